"""Queries: functions of private records, each beside its sensitivity."""

from .base import Query, WorstCase
from .coordinate import CoordinateRule, CoordinateSums
from .gradient import ClippedGradient
from .second_moments import SecondMoments

QUERIES: tuple[type[Query], ...] = (ClippedGradient, CoordinateSums, SecondMoments)

__all__ = [
    "QUERIES",
    "ClippedGradient",
    "CoordinateRule",
    "CoordinateSums",
    "Query",
    "SecondMoments",
    "WorstCase",
]
