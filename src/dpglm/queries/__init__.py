"""Queries: functions of private records, each beside its sensitivity."""

from .base import Query, WorstCase
from .coordinate import RULES, CoordinateRule, CoordinateScores, CoordinateSums, OpenCoordinates
from .dual import DualForm, DualStep
from .frank_wolfe import DualVertices, VertexScores
from .gradients import (
    ClippedGradient,
    MetricGradient,
    MetricMultinomialGradient,
    MultinomialGradient,
    gradient_of,
    metric_gradient_of,
)
from .learning import ColumnRanges, LevelCounts, RowNorms
from .minimiser import Minimiser
from .model_comparison import Gains, HeldOutScores
from .newton import Gram, Moments, Recalibration, ScoreAndCurvature
from .streamed_scores import PLAIN
from .sums import (
    CellCounts,
    CellSums,
    ClassCounts,
    ClassShares,
    ColumnSizes,
    Deviance,
    InterceptSlope,
    MeanRow,
    RecordCount,
    RowAndTargetScale,
    RowScale,
    ScaledRowScale,
    ScoreSums,
    SecondMoments,
)

QUERIES: tuple[type[Query], ...] = (
    CellCounts,
    CellSums,
    ClassShares,
    ClippedGradient,
    ColumnSizes,
    CoordinateScores,
    CoordinateSums,
    Deviance,
    DualStep,
    DualVertices,
    Gains,
    Gram,
    HeldOutScores,
    InterceptSlope,
    MeanRow,
    MetricGradient,
    MetricMultinomialGradient,
    Minimiser,
    Moments,
    MultinomialGradient,
    Recalibration,
    RowAndTargetScale,
    RowScale,
    ScaledRowScale,
    ScoreAndCurvature,
    ScoreSums,
    SecondMoments,
    VertexScores,
)

LEARNING: tuple[type[Query], ...] = (ClassCounts, ColumnRanges, LevelCounts, RecordCount, RowNorms)
"""Queries that are released before a fit: of raw records, by which facts of a schema are learnt, of classes,
and of the number of records."""

__all__ = [
    "LEARNING",
    "PLAIN",
    "QUERIES",
    "RULES",
    "CellCounts",
    "CellSums",
    "ClassCounts",
    "ClassShares",
    "ClippedGradient",
    "ColumnRanges",
    "ColumnSizes",
    "CoordinateRule",
    "CoordinateScores",
    "CoordinateSums",
    "OpenCoordinates",
    "Deviance",
    "DualForm",
    "DualStep",
    "DualVertices",
    "Gains",
    "Gram",
    "HeldOutScores",
    "InterceptSlope",
    "LevelCounts",
    "MeanRow",
    "MetricGradient",
    "MetricMultinomialGradient",
    "Minimiser",
    "Moments",
    "MultinomialGradient",
    "Query",
    "Recalibration",
    "RecordCount",
    "RowNorms",
    "RowAndTargetScale",
    "RowScale",
    "ScaledRowScale",
    "ScoreAndCurvature",
    "ScoreSums",
    "SecondMoments",
    "VertexScores",
    "WorstCase",
    "gradient_of",
    "metric_gradient_of",
]
