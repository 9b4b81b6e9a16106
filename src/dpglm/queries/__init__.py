"""Queries: functions of private records, each beside its sensitivity."""

from .base import Query, WorstCase
from .by_passes import PLAIN
from .cell_counts import CellCounts
from .cell_sums import CellSums
from .class_counts import ClassCounts
from .column_ranges import ColumnRanges, RowNorms
from .column_sizes import ColumnSizes
from .coordinate import CoordinateRule, CoordinateSums, OpenCoordinates
from .deviance import Deviance
from .dual_step import DualForm, DualStep
from .dual_vertices import DualVertices
from .gradient import ClippedGradient
from .intercept import InterceptSlope
from .level_counts import LevelCounts
from .mean_row import MeanRow
from .metric_gradient import MetricGradient
from .minimiser import Minimiser
from .model_comparison import Gains, HeldOutScores
from .moments import Gram, Moments
from .multinomial import (
    ClassShares,
    MetricMultinomialGradient,
    MultinomialGradient,
    gradient_of,
    metric_gradient_of,
)
from .recalibration import Recalibration
from .record_count import RecordCount
from .row_scale import RowAndTargetScale, RowScale, ScaledRowScale
from .score_and_curvature import ScoreAndCurvature
from .score_sums import ScoreSums
from .scores import RULES, CoordinateScores
from .second_moments import SecondMoments
from .vertices import VertexScores

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
