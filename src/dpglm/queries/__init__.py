"""Queries: functions of private records, each beside its sensitivity."""

from .base import Query, WorstCase
from .by_passes import PLAIN
from .coordinate import CoordinateRule, CoordinateSums
from .deviance import Deviance
from .dual_step import DualForm, DualStep
from .dual_vertices import DualVertices
from .gradient import ClippedGradient
from .intercept import InterceptSlope
from .minimiser import Minimiser
from .moments import Moments
from .score_and_curvature import ScoreAndCurvature
from .scores import RULES, CoordinateScores
from .second_moments import SecondMoments
from .vertices import VertexScores

QUERIES: tuple[type[Query], ...] = (
    ClippedGradient,
    CoordinateScores,
    CoordinateSums,
    Deviance,
    DualStep,
    DualVertices,
    InterceptSlope,
    Minimiser,
    Moments,
    ScoreAndCurvature,
    SecondMoments,
    VertexScores,
)

__all__ = [
    "PLAIN",
    "QUERIES",
    "RULES",
    "ClippedGradient",
    "CoordinateRule",
    "CoordinateScores",
    "CoordinateSums",
    "Deviance",
    "DualForm",
    "DualStep",
    "DualVertices",
    "InterceptSlope",
    "Minimiser",
    "Moments",
    "Query",
    "ScoreAndCurvature",
    "SecondMoments",
    "VertexScores",
    "WorstCase",
]
