"""Weights and offsets move no sum further than its sensitivity, and neither does a family."""

import pytest

from dpglm import Bounds, queries
from dpglm.losses import Logistic, NegativeBinomial, Quantile, Tweedie
from dpglm.privacy import PUBLIC_SIZE
from dpglm.testing import check_query

from .test_queries import gram, metric_gradient, minimiser, moments, recalibration, score_and_curvature

LABELS = Bounds(row_norm=1.0, target=(-1, 1), weight=2.5, offset=(-3.0, 2.0))
COUNTS = Bounds(row_norm=1.0, target=(0, 1), weight=0.3, offset=2.0)
POISSON = Tweedie(1.0, 0.0, 2.0, 1.0)


@pytest.mark.parametrize("neighbours", PUBLIC_SIZE)
@pytest.mark.parametrize(
    ("query", "bounds", "pairs", "tightness"),
    [
        (queries.ClippedGradient(Logistic(), 0.8), LABELS, 120, 0.95),
        (queries.ClippedGradient(Logistic(), 0.8, longest=0.9), LABELS, 120, 0.95),
        (queries.ClippedGradient(NegativeBinomial(), 0.4), COUNTS, 80, 0.95),
        (queries.InterceptSlope(Logistic(), 0.3), LABELS, 80, 0.95),
        (metric_gradient(POISSON, 1.0), COUNTS, 80, 0.95),
        (moments(1.0), LABELS, 80, 0.95),
        (gram(1.0), LABELS, 80, 0.95),
        (score_and_curvature(Logistic(), 1.0), LABELS, 120, 0.95),
        (recalibration(Logistic()), LABELS, 120, 0.95),
        (score_and_curvature(POISSON, 1.0), COUNTS, 80, 0.4),  # counts reach less than the unit of slopes
        (score_and_curvature(Quantile(0.5, 0.5), 1.0), LABELS, 80, 0.9),
        (minimiser(Logistic(), 1.0), LABELS, 16, 0.9),
        (queries.HeldOutScores(Logistic(), 1.4, 1, 4), LABELS, 80, 0.95),
        (queries.Gains(Logistic(), 0.35, 1, 4), LABELS, 80, 0.95),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_neighbours_with_weights_and_offsets_move_the_answer_by_at_most_the_sensitivity(
    query, bounds, pairs, tightness, neighbours
):
    check_query(query, neighbours, bounds, constant=1.0, pairs=pairs, tightness=tightness)
