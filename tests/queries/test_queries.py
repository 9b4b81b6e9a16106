import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from dpglm import Bounds, Neighbours, queries
from dpglm.bounds import Coordinates
from dpglm.data import as_data
from dpglm.losses import (
    LOSSES,
    LogCosh,
    Logistic,
    Multinomial,
    NegativeBinomial,
    Quantile,
    Squared,
    Tweedie,
)
from dpglm.penalties import L2
from dpglm.privacy import PUBLIC_SIZE
from dpglm.scores import (
    AbsoluteError,
    Accuracy,
    ClassesByMargin,
    DeterminationInfluence,
    LogLoss,
    PublicModel,
    RankInfluence,
    Reliability,
    SquaredError,
    TargetValue,
)
from dpglm.testing import check_query

COUNTS = Bounds(row_norm=1.0, target=(0, 1))
REALS = Bounds(row_norm=1.0, target=(-1, 1))

FORMS = {
    "gs": (0.0, 0.02, -math.inf, math.inf),
    "gs-s": (0.05, 0.0, -math.inf, math.inf),
    "gs-r": (0.05, 0.02, -math.inf, math.inf),
    "gs-q": (0.05, 0.02, -1e9, 1e9),
}


def scores(loss, rule, constant, clip=0.5):
    """Scores whose clip is proportional to the root of the curvature, as the solver has it."""
    curvature = np.linspace(0.4, 1.6, 4 + bool(constant))
    reach = np.full(len(curvature), math.inf)
    return queries.CoordinateScores(loss, clip * np.sqrt(curvature), curvature, rule, FORMS[rule], reach)


def minimiser(loss, constant):
    """Its public linear terms and starts are of any size that the check draws."""
    radius, hold = math.hypot(1.0, constant), 1.0 if constant else None
    return queries.Minimiser(loss, 0.5, L2(1.0), 4, 4, radius, hold=hold, push=1e4)


def scaled_minimiser(constant):
    """For columns that are multiplied by scales, with another constant feature than that of the records."""
    return replace(
        minimiser(Logistic(), constant), scales=np.linspace(1.0, 0.9, 4), constant=constant / 2 or None,
        radius=math.hypot(1.0, constant / 2), table_radius=math.hypot(1.0, constant),
    )  # fmt: skip


def moments(constant):
    coordinates = Coordinates(np.zeros(4), np.ones(4), constant > 0)
    return queries.Moments(coordinates, math.sqrt(1.64 + constant**2), 0.0, 0.8, 4)


def gram(constant):
    """With columns of unequal scales, in which the first feature reaches the bound, and with a constant."""
    coordinates = Coordinates(np.zeros(4), np.ones(4), constant > 0)
    scales = np.array([1.5, 1.2, 1.0, 0.3, constant / 2])[: coordinates.dimension]
    return queries.Gram(coordinates, math.hypot(0.9, constant / 2), np.diag(scales), 4)


def mean_row():
    """In coordinates whose middle is not 0, with rows that are longer than the bound."""
    return queries.MeanRow(Coordinates(np.linspace(-0.1, 0.1, 4), np.full(4, 2.0), False), 0.4, 4)


def row_scale(coordinates, kind=queries.RowScale):
    return kind(coordinates, 1.0, 0.0, 1.0, 4)


def metric_gradient(loss, constant, leverage=2.0):
    """In a metric that is not diagonal, where most rows are longer than the leverage."""
    d = 4 + bool(constant)
    transform = np.random.default_rng(d).standard_normal((d, d)) + 3.0 * np.eye(d)
    coordinates = Coordinates(np.zeros(4), np.full(4, 2.0), constant > 0)
    return queries.MetricGradient(loss, coordinates, transform, 0.8, leverage, 4)


def multinomial_gradients(classes, constant):
    """Of rows as they are, and in a metric that is not diagonal."""
    d, loss = 4 + bool(constant), Multinomial(classes)
    transform = np.random.default_rng(d).standard_normal((d, d)) + 3.0 * np.eye(d)
    coordinates = Coordinates(np.zeros(4), np.full(4, 2.0), constant > 0)
    return (
        queries.MultinomialGradient(loss, 0.8, 4, 4),
        queries.MetricMultinomialGradient(loss, coordinates, transform, 0.8, 2.0, 4),
        queries.MultinomialGradient(loss, 0.8, 4, 4, longest=0.7),
    )


def score_and_curvature(loss, constant):
    """With the weight that is right for both relations."""
    coordinates = Coordinates(np.zeros(4), np.ones(4), constant > 0)
    weight = queries.ScoreAndCurvature.weight_for(loss, Neighbours.ZERO_OUT)
    return queries.ScoreAndCurvature(loss, coordinates, 1.7, weight, 4)


def recalibration(loss):
    """With the weight that is right for both relations."""
    weight = queries.Recalibration.weight_for(loss, Neighbours.ZERO_OUT)
    return queries.Recalibration(loss, None, 1.7, weight, 4)


def judging():
    """A public model that is sure of itself, whatever the order of the features."""
    return PublicModel(np.full((1, 4), 1e3), np.zeros(1))


def score_sums(score):
    """With the weights that are right for both relations."""
    return queries.ScoreSums(score, judging(), 4, 0.5, 1.0)


SCORES = (
    Accuracy(),
    LogLoss(4.0),
    SquaredError(Squared(), (-1.0, 1.0)),
    AbsoluteError(Squared(), (-1.0, 1.0)),
    TargetValue((-1.0, 1.0)),
    DeterminationInfluence(SquaredError(Squared(), (-1.0, 1.0)), 0.001, 0.5, 0.0),
    RankInfluence(ClassesByMargin(0.0, 4, 2.0), np.array([[0.0, 0.1, 0.2, 0.5], [-0.3, 0.0, 0.1, 0.2]])),
)


# Slopes of the families do not reach these clips on the tables that are drawn: see test_beside.py.
DRAWN = [cls for cls in LOSSES if cls not in (NegativeBinomial, Quantile, Tweedie)]

CASES = [
    (query, REALS if loss.kind != "count" else COUNTS, constant)
    for loss in (cls() for cls in DRAWN)
    for constant in (0.0, 1.0)
    for query in (
        queries.ClippedGradient(loss, clip=0.8),
        queries.DualStep(loss, 0.4, 0.2, 0.1),
        queries.CoordinateSums(loss, clip=np.linspace(0.3, 0.8, 4 + bool(constant))),
        queries.VertexScores(loss, 0.3, 4, math.inf),
        *(scores(loss, rule, constant) for rule in (("gs-s", "gs-r") if constant else ("gs", "gs-q"))),
    )
] + [
    (queries.SecondMoments(radius=2.0), Bounds(row_norm=2.0), 0.0),
    (queries.SecondMoments(2.0, scales=np.ones(4)), Bounds(row_norm=2.0), 0.0),
    *((moments(constant), REALS, constant) for constant in (0.0, 1.0)),
    *(
        (score_and_curvature(loss, constant), REALS, constant)
        for loss in (Logistic(), LogCosh(0.3))
        for constant in (0.0, 1.0)
    ),
    *(
        (recalibration(loss), REALS, constant)
        for loss in (Logistic(), LogCosh(0.3))
        for constant in (0.0, 1.0)
    ),
    *(
        (queries.Deviance(loss, Coordinates(np.zeros(4), np.ones(4), True), 0.7, 4), REALS, 1.0)
        for loss in (Logistic(), LogCosh(0.3))
    ),
    *((queries.InterceptSlope(cls(), 0.4), REALS if cls.kind != "count" else COUNTS, 0.5) for cls in DRAWN),
    (minimiser(Logistic(), 1.0), REALS, 1.0),
    (minimiser(Squared(), 0.0), REALS, 0.0),
    (queries.DualVertices(minimiser(Logistic(), 0.0), 0.3), REALS, 0.0),
    (queries.DualVertices(minimiser(Squared(), 0.0), 2.0), REALS, 0.0),
    *((gram(constant), REALS, constant) for constant in (0.0, 1.0)),
    *((score_sums(score), REALS, 0.0) for score in SCORES),
    (queries.CellSums(ClassesByMargin(0.0, 4, 2.0), judging(), 4, 1.0), REALS, 0.0),
    (queries.CellSums(Reliability(1.1, 10), judging(), 4, 0.5), REALS, 0.0),
    *(
        (query(score, most, 1, 4), REALS, constant)
        for query in (queries.HeldOutScores, queries.Gains)
        for score, most in (
            (Logistic(), 1.4),
            (queries.model_comparison.Errors(), 1.0),
            (queries.model_comparison.SquaredErrors(Squared(), -1.0, 1.0), 0.5),
        )
        for constant in (0.0, 1.0)
    ),
    (row_scale(None), REALS, 1.0),
    (row_scale(Coordinates(np.zeros(4), np.ones(4), False)), REALS, 0.0),
    *(
        (queries.ColumnSizes(loss, clip=0.8), REALS if loss.kind != "count" else COUNTS, constant)
        for loss, constant in zip((cls() for cls in DRAWN), itertools.cycle((0.0, 1.0)))
    ),
    (queries.ClippedGradient(Logistic(), 0.8, scales=np.linspace(0.9, 1.0, 4)), REALS, 1.0),
    (queries.ClippedGradient(Logistic(), 0.8, longest=0.9), REALS, 0.0),
    (queries.ClippedGradient(Squared(), 0.8, longest=0.3), REALS, 1.0),
    (queries.ScaledRowScale(None, 0.9, 0.0, 1.0, 4, scales=np.linspace(0.9, 1.0, 4)), REALS, 1.0),
    (mean_row(), REALS, 1.0),
    (row_scale(None, queries.RowAndTargetScale), REALS, 1.0),
    (row_scale(Coordinates(np.zeros(4), np.ones(4), False), queries.RowAndTargetScale), REALS, 0.0),
    *(
        (metric_gradient(cls(), constant, leverage), REALS if cls.kind != "count" else COUNTS, constant)
        for cls in DRAWN
        for constant, leverage in ((0.0, 2.0), (1.0, 2.0), (1.0, math.inf))
    ),
    *(
        (query, REALS, constant)
        for classes, constant in ((2, 0.0), (3, 1.0), (9, 0.0))
        for query in multinomial_gradients(classes, constant)
    ),
    (queries.ClassCounts(3, 4), Bounds(row_norm=1.0), 1.0),
    (queries.CellCounts(((1, 2),) * 4, 4), Bounds(row_norm=1.0), 0.0),
    (queries.ClassShares(None, 1.0, 3, 4), Bounds(row_norm=1.0), 1.0),
    (queries.ClassShares(Coordinates(np.zeros(4), np.ones(4), False), 1.0, 3, 4), Bounds(row_norm=1.0), 0.0),
    *((scaled_minimiser(constant), REALS, constant) for constant in (0.0, 1.0)),
    *(
        (queries.DualStep(Logistic(), 0.4, 0.5, 0.5, 0.1, np.linspace(1.0, 0.9, 4), other), REALS, constant)
        for constant, other in ((0.0, None), (1.0, 0.5))
    ),
]
PAIRS = {
    # A minimiser takes some milliseconds: test_minimiser.py has a thousand pairs more, made for it.
    queries.Minimiser: (40, 75),
    queries.DualVertices: (40, 75),
    # It is left to chance whether bystanders let a record move a score by nearly all of its sensitivity.
    queries.CoordinateScores: (400, 400),
    # It has one case, since it has no loss.
    queries.SecondMoments: (1_000, 1_000),
}
USUAL = (100, 300)


PAIRED = (
    queries.ClippedGradient,
    queries.DualStep,
    queries.CoordinateSums,
    queries.VertexScores,
    queries.MetricGradient,
)


def is_taken(query, constant):
    """Whether a case is tried: every pair of query, loss and constant feature is, not every triple."""
    if type(query) not in PAIRED:
        return True
    return (PAIRED.index(type(query)) + DRAWN.index(type(query.loss)) + bool(constant)) % 2 == 0


TAKEN = [k for k, (query, _, constant) in enumerate(CASES) if is_taken(query, constant)]


def pairs_of(query, neighbours):
    """The pairs of one case. What is left to chance, see above, takes many if a record is replaced."""
    if isinstance(query, queries.CoordinateScores) and neighbours is not Neighbours.REPLACE_ONE:
        return USUAL[0]
    return PAIRS.get(type(query), USUAL)[0]


def test_every_pair_of_a_query_a_loss_and_a_constant_feature_is_taken():
    taken = {
        (type(query), type(query.loss), constant)
        for query, _, constant in (CASES[k] for k in TAKEN)
        if type(query) in PAIRED
    }
    values = (PAIRED, DRAWN, (0.0, 1.0))
    for first, second in ((0, 1), (0, 2), (1, 2)):
        every = set(itertools.product(values[first], values[second]))
        assert {(case[first], case[second]) for case in taken} == every


@pytest.mark.parametrize("neighbours", PUBLIC_SIZE)
@pytest.mark.parametrize("case", TAKEN, ids=[f"{CASES[k][0].name}-{k}" for k in TAKEN])
def test_neighbours_move_the_answer_by_at_most_the_sensitivity(case, neighbours):
    """Each case draws pairs of its own: what a query does with every loss sees a thousand, with the next.

    Records that are added or removed are in the next test: the loss does not matter to them.
    """
    query, bounds, constant = CASES[case]
    pairs = pairs_of(query, neighbours)
    share = check_query(query, neighbours, bounds, constant=constant, pairs=pairs, seed=case)
    assert 0.95 <= share <= 1 + 1e-9


MANY = 1_000
"""A query whose cases have so many pairs under a relation needs no more of them."""


def needs_more(kind, neighbours):
    cases = (CASES[k][0] for k in TAKEN if isinstance(CASES[k][0], kind))
    return neighbours not in PUBLIC_SIZE or sum(pairs_of(query, neighbours) for query in cases) < MANY


@pytest.mark.parametrize(
    ("kind", "neighbours"),
    [(kind, relation) for kind in queries.QUERIES for relation in Neighbours if needs_more(kind, relation)],
)
def test_every_query_holds_over_many_more_pairs(kind, neighbours):
    """Under add-remove the tables of a pair differ in size, and have the most records there can be."""
    query, bounds, constant = next(case for case in CASES if isinstance(case[0], kind))
    pairs = PAIRS.get(type(query), USUAL)[1]
    assert check_query(query, neighbours, bounds, constant=constant, pairs=pairs, seed=1) <= 1 + 1e-9


def test_a_record_more_or_less_moves_the_count_by_one():
    relation = Neighbours.ADD_REMOVE
    assert check_query(queries.RecordCount(), relation, Bounds(row_norm=1.0), pairs=200) == 1.0


def test_the_check_of_tables_of_different_size_notices_a_mean_over_the_true_number_of_records():
    class Mean(queries.ClippedGradient):
        def __call__(self, data, *public):
            return 4 * np.asarray(super().__call__(data, *public)) / data.n_records

    check_query(Mean(Logistic(), 0.8), Neighbours.ZERO_OUT, REALS, pairs=100)
    with pytest.raises(AssertionError, match="moved the answer"):
        check_query(Mean(Logistic(), 0.8), Neighbours.ADD_REMOVE, REALS, pairs=100)


def test_the_check_notices_a_sensitivity_that_is_too_small():
    class Understated(queries.ClippedGradient):
        def sensitivity(self, neighbours):
            return self.clip

    with pytest.raises(AssertionError, match="moved the answer"):
        check_query(Understated(Logistic(), 0.8), Neighbours.REPLACE_ONE, REALS, pairs=100)


def test_the_check_notices_a_sensitivity_that_is_too_large():
    class Overstated(queries.ClippedGradient):
        def sensitivity(self, neighbours):
            return 3 * self.clip

    with pytest.raises(AssertionError, match="no neighbour reached"):
        check_query(Overstated(Logistic(), 0.8), Neighbours.REPLACE_ONE, REALS, pairs=100)


@pytest.mark.parametrize("scale", [np.inf, 1e308])
@pytest.mark.parametrize("coordinates", [None, Coordinates(np.zeros(4), np.ones(4), False)])
@pytest.mark.parametrize("radius", [1.0, 1e-170])
def test_row_scales_are_finite_whatever_the_range_of_targets_is(scale, coordinates, radius):
    """The target in the middle would be 0 times infinity: a warning, and a sum that is no number."""
    query, high = queries.RowScale(coordinates, radius, 5e-311, scale, 3), 1e-310
    answers = []
    for target in (0.0, high / 2, high, math.nan):
        data = as_data(np.zeros((3, 4)), [0.0, 0.0, target], Bounds(row_norm=1.0, target=(0, high)), 0.0)
        answers.append(np.asarray(query(data)))
    assert np.isfinite(answers).all()
    moved = max(np.linalg.norm(a - b) for a in answers[:3] for b in answers[:3])
    assert moved <= query.sensitivity(Neighbours.REPLACE_ONE) * (1 + 1e-9)


def test_an_unclipped_gradient_is_the_gradient():
    rng = np.random.default_rng(0)
    X, y, w = rng.standard_normal((50, 4)), rng.standard_normal(50), rng.standard_normal(4)
    data = as_data(X, y, Bounds(row_norm=math.inf))
    expected = X.T @ (X @ w - y)
    assert np.allclose(queries.ClippedGradient(Squared(), math.inf)(data, w), expected)
    assert np.allclose(queries.CoordinateSums(Squared(), np.full(4, math.inf))(data, w), expected)


@pytest.mark.parametrize("kind", [np.asarray, np.asfortranarray, sp.csr_array, np.float32], ids=str)
def test_weights_of_long_rows_depend_on_the_row_alone(kind):
    """Below the clip, the gradient of each record is multiplied by longest / norm, whatever its target."""
    rng = np.random.default_rng(0)
    X, w = rng.standard_normal((50, 4)).astype(np.float32), np.array([0.5, -1.0, 0.3, 0.2, 0.1])
    rows = np.column_stack([X, np.full(50, 0.5)])
    weight = np.minimum(1.0, 1.5 / np.linalg.norm(rows, axis=1))
    assert 0 < np.count_nonzero(weight < 1) < 50
    y = np.resize([1.0, -1.0], 50)
    data = as_data(kind(X), y, Bounds(row_norm=100.0), 0.5)
    query = queries.ClippedGradient(Logistic(), 1.5, longest=1.5)
    expected = rows.T @ (weight * Logistic().derivative(rows @ w, y))
    assert np.allclose(np.asarray(query(data, w)), expected, atol=1e-6)
    classes = queries.MultinomialGradient(Multinomial(2), 3.0, 50, 4, longest=1.5)
    both = np.asarray(
        classes(as_data(kind(X), (y > 0) * 1.0, Bounds(row_norm=100.0), 0.5), np.column_stack([-w, w]) / 2)
    )
    assert np.allclose(both.reshape(-1, 2)[:, 1], expected, atol=1e-6)


def test_clipping_keeps_the_direction_of_each_record():
    data = as_data([[3.0, 4.0]], [0.0], Bounds(row_norm=math.inf))
    w = np.array([1.0, 1.0])
    assert np.allclose(queries.ClippedGradient(Squared(), 2.0)(data, w), 2.0 * np.array([0.6, 0.8]))


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array, sp.csc_array])
def test_columns_in_single_precision_are_not_scaled_beyond_their_bounds(layout):
    """A product that is rounded up to single precision made the sensitivity too small by one part in 1e7."""
    for seed in range(20):
        scales = np.random.default_rng(seed).uniform(0.1, 1.0, 3)
        query = queries.SecondMoments(float(np.linalg.norm(scales)), scales=scales)
        records = as_data(layout(np.ones((1, 3), dtype=np.float32)), np.ones(1), Bounds(feature=1.0), 0.0)
        moved = np.linalg.norm(np.sqrt(np.asarray(query(records))))
        assert moved <= query.radius * (1 + 1e-12)
