"""Queries: functions of private records, each beside its sensitivity."""

from .base import Query, WorstCase
from .by_passes import PLAIN
from .coordinate import CoordinateRule, CoordinateSums
from .deviance import Deviance
from .dual_step import DualForm, DualStep
from .dual_vertices import DualVertices
from .gradient import ClippedGradient
from .held_out import HeldOutScores
from .intercept import InterceptSlope
from .metric_gradient import MetricGradient
from .minimiser import Minimiser
from .moments import Gram, Moments
from .row_scale import RowScale
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
    Gram,
    HeldOutScores,
    InterceptSlope,
    MetricGradient,
    Minimiser,
    Moments,
    RowScale,
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
    "Gram",
    "HeldOutScores",
    "InterceptSlope",
    "MetricGradient",
    "Minimiser",
    "Moments",
    "Query",
    "RowScale",
    "ScoreAndCurvature",
    "SecondMoments",
    "VertexScores",
    "WorstCase",
]
