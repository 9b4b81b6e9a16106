"""Queries: functions of private records, each beside its sensitivity."""

from .base import Query, WorstCase
from .coordinate import CoordinateRule, CoordinateSums
from .gradient import ClippedGradient
from .scores import RULES, CoordinateScores
from .second_moments import SecondMoments

QUERIES: tuple[type[Query], ...] = (ClippedGradient, CoordinateScores, CoordinateSums, SecondMoments)

__all__ = [
    "QUERIES",
    "RULES",
    "ClippedGradient",
    "CoordinateRule",
    "CoordinateScores",
    "CoordinateSums",
    "Query",
    "SecondMoments",
    "WorstCase",
]
