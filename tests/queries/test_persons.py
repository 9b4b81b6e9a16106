"""All records of a person, however many, move no sum further than one record may.

As a script, `python -m tests.queries.test_persons 10000`, it checks so many neighbours for every query.
"""

import math
import sys
from dataclasses import replace

import numpy as np
import pytest

from dpglm import Bounds, Neighbours, queries
from dpglm.bounds import Coordinates
from dpglm.curator import Curator
from dpglm.data import as_data, units
from dpglm.errors import UnsupportedProblem
from dpglm.losses import LogCosh, Logistic, Squared
from dpglm.mechanisms import Gaussian, Randomness
from dpglm.privacy import PUBLIC_SIZE
from dpglm.testing import check_query

from .test_queries import (
    gram,
    mean_row,
    metric_gradient,
    minimiser,
    moments,
    multinomial_gradients,
    recalibration,
    row_scale,
    score_and_curvature,
)

LABELS = Bounds(row_norm=1.0, target=(-1, 1), rows_per_unit=1000)
WEIGHED = replace(LABELS, weight=2.5, offset=(-3.0, 2.0))
COUNTS = Bounds(row_norm=1.0, target=(0, 1), rows_per_unit=1000)
CLASSES = Bounds(row_norm=1.0, target=(0, 2), rows_per_unit=1000)

CASES = [
    (queries.ClippedGradient(Logistic(), 0.8), LABELS, 40, 0.95),
    (queries.ClippedGradient(Squared(), 0.8), WEIGHED, 40, 0.95),
    (queries.ClippedGradient(Logistic(), 0.8, longest=0.9), LABELS, 40, 0.95),
    (queries.InterceptSlope(Logistic(), 0.3), LABELS, 40, 0.95),
    (queries.SecondMoments(1.0), LABELS, 40, 0.95),
    (row_scale(None), LABELS, 40, 0.95),
    (queries.RowAndTargetScale(None, 1.0, 0.0, 1.0, 4), LABELS, 40, 0.8),
    (queries.HeldOutScores(Logistic(), 1.4, 1, 4), LABELS, 40, 0.9),
    (queries.Gains(Logistic(), 1.4, 1, 4), LABELS, 40, 0.9),
    (metric_gradient(Logistic(), 1.0), LABELS, 40, 0.95),
    *((query, CLASSES, 40, 0.4) for query in multinomial_gradients(3, 1.0)),  # labels are two of the three
    (queries.ClassShares(None, 1.0, 3, 4), CLASSES, 40, 0.4),
    (queries.ClassCounts(2, 4), COUNTS, 40, 0.4),
    (queries.CellCounts(((1, 2),) * 4, 4), LABELS, 40, 0.95),
    (moments(1.0), LABELS, 40, 0.95),
    (gram(1.0), LABELS, 40, 0.95),
    (mean_row(), LABELS, 40, 0.95),
    (score_and_curvature(Logistic(), 1.0), LABELS, 60, 0.95),
    (recalibration(Logistic()), LABELS, 60, 0.95),
    (recalibration(Logistic()), WEIGHED, 60, 0.9),
    (score_and_curvature(LogCosh(), 1.0), WEIGHED, 60, 0.9),
    (queries.Deviance(Logistic(), Coordinates(np.zeros(4), np.ones(4), True), 2.0, 4), LABELS, 40, 0.9),
    (replace(minimiser(Logistic(), 1.0), rows_per_unit=50), replace(LABELS, rows_per_unit=50), 8, 0.85),
]


@pytest.mark.parametrize("neighbours", PUBLIC_SIZE)
@pytest.mark.parametrize(
    ("query", "bounds", "pairs", "tightness"), CASES, ids=lambda x: getattr(x, "name", None)
)
def test_persons_move_the_answer_by_at_most_the_sensitivity(query, bounds, pairs, tightness, neighbours):
    check_query(query, neighbours, bounds, constant=1.0, pairs=pairs, tightness=tightness)


@pytest.mark.parametrize("query", [case[0] for case in CASES[:4]], ids=lambda query: query.name)
def test_records_that_each_count_whole_are_found_out(query, monkeypatch):
    monkeypatch.setattr(units.Units, "share", property(lambda self: np.ones(len(self.number))), raising=False)
    monkeypatch.setattr(units.Units, "__init__", _without_share)
    with pytest.raises(AssertionError, match="moved the answer"):
        check_query(query, Neighbours.REPLACE_ONE, LABELS, constant=1.0, pairs=40)


def _without_share(self, number, share, count):
    object.__setattr__(self, "number", number)
    object.__setattr__(self, "count", count)


HUGE = 1 << 40
"""Persons in a table of grids so coarse that rounding shows: 21 binary digits for a term, 10 for a factor."""


@pytest.mark.parametrize("count", [2, 7, 100, 1000])
@pytest.mark.parametrize("size", [1.0, 0.37, 2.0**-11])
def test_rounding_of_many_records_adds_nothing_to_a_person(count, size):
    rows = np.full((count, 3), size / math.sqrt(3))
    values = np.column_stack([np.ones(count), np.ones(count), np.zeros(count), np.zeros(count)])
    records = as_data(rows, values, Bounds(row_norm=1.0, rows_per_unit=count), 1.0, HUGE)
    far = np.array([-1e9, -1e9, -1e9, 0.0])
    coordinates = Coordinates(np.zeros(3), np.ones(3), True)
    asked = [
        (queries.ClippedGradient(Logistic(), size), (far,)),
        (queries.SecondMoments(1.0), ()),
        (queries.RowScale(None, 1.0, 0.0, 1.0, HUGE), ()),
        (queries.Gram(coordinates, size, np.diag([1.0, 2.0, 0.5, 0.1]), HUGE), ()),
        (queries.MeanRow(replace(coordinates, intercept=False), size, HUGE), ()),
        (queries.Deviance(Logistic(), coordinates, 2.0, HUGE), (far,)),
        (queries.ScoreAndCurvature(LogCosh(), coordinates, size, 0.6, HUGE), (np.eye(4), 1e-3 * far)),
        (queries.ScoreAndCurvature(LogCosh(), coordinates, size, 0.6, HUGE), (np.eye(4), 0.0 * far)),
    ]
    for query, public in asked:
        found = np.asarray(query(records, *public))
        exact = query.sensitivity(Neighbours.ZERO_OUT)
        assert np.linalg.norm(found) <= exact * (1 + 1e-12), query.name


def test_a_person_whose_records_are_too_many_for_the_grid_adds_nothing():
    count = 3000
    rows, values = np.ones((count, 1)), np.zeros((count, 4))
    values[:, :2] = 1.0
    records = as_data(rows, values, Bounds(row_norm=1.0, rows_per_unit=count), 0.0, 1 << 50)
    assert not np.asarray(queries.ClippedGradient(Logistic(), 1.0)(records, np.zeros(1))).any()


def test_scores_of_a_person_are_added_up_before_they_are_squared():
    rng = np.random.default_rng(0)
    rows, y, number = rng.uniform(-0.5, 0.5, (30, 3)), rng.choice([-1.0, 1.0], 30), np.repeat(np.arange(6), 5)
    values = np.column_stack([y, np.ones(30), np.zeros(30), number])
    records = as_data(rows, values, Bounds(row_norm=1.0, rows_per_unit=5), 0.0)
    coordinates, w = Coordinates(np.zeros(3), np.ones(3), False), np.array([0.3, -0.2, 0.1])
    query = queries.ScoreAndCurvature(Logistic(), coordinates, 10.0, 0.6, 6)
    parts = query.parts(np.asarray(query(records, np.eye(3), w)))
    slope = Logistic().derivative(rows @ w, y)
    scores = np.array([(slope[k == number, None] * rows[k == number]).mean(axis=0) for k in range(6)])
    assert np.allclose(parts.gradient, scores.sum(axis=0), atol=1e-4)
    assert np.allclose(parts.scores, scores.T @ scores, atol=1e-4)
    exact = replace(query, leverage=math.inf)
    assert np.allclose(exact.parts(exact(records, np.eye(3), w)).scores, scores.T @ scores, atol=1e-9)


@pytest.mark.parametrize("cut", [1, 3, 50])
def test_sums_over_persons_do_not_depend_on_how_the_table_is_cut(cut, monkeypatch):
    from dpglm.data import products

    rng = np.random.default_rng(1)
    number = np.repeat(np.arange(40), rng.integers(1, 20, 40))
    rows, values = rng.uniform(-0.5, 0.5, (len(number), 3)), np.zeros((len(number), 4))
    values[:, 0], values[:, 1], values[:, 3] = rng.choice([-1.0, 1.0], len(number)), 1.0, number
    query = queries.ScoreAndCurvature(Logistic(), Coordinates(np.zeros(3), np.ones(3), False), 1.0, 0.6, 40)
    public = np.eye(3), np.array([0.3, -0.2, 0.1])
    records = as_data(rows, values, Bounds(row_norm=1.0, rows_per_unit=20))
    whole = np.asarray(query(records, *public))
    monkeypatch.setattr(products, "_ROWS_A_CHUNK", cut)
    assert np.array_equal(np.asarray(query(records, *public)), whole)


@pytest.mark.parametrize(
    "query", [query for query in queries.QUERIES if not query.takes_units], ids=lambda query: query.__name__
)
def test_the_curator_refuses_queries_that_are_not_for_persons(query):
    values = np.array([[1.0, 1.0, 0.0, 0.0], [1.0, 1.0, 0.0, 0.0]])
    records = as_data(np.ones((2, 1)), values, Bounds(row_norm=1.0, rows_per_unit=2))
    curator = Curator(records, Neighbours.REPLACE_ONE, Randomness(0))
    asked = query.__new__(query)  # it is refused before anything is asked of it
    for ask in (curator.release, lambda query, noise: curator.open(query, np.zeros(1), noise)):
        with pytest.raises(UnsupportedProblem, match="is not for persons"):
            ask(asked, Gaussian(1.0))


def test_every_query_for_persons_is_checked_with_persons():
    checked = {type(query) for query, *_ in CASES}
    assert {query for query in queries.QUERIES if query.takes_units} <= checked


if __name__ == "__main__":
    for query, bounds, _, tightness in CASES:
        for neighbours in PUBLIC_SIZE:
            many = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
            most = check_query(query, neighbours, bounds, constant=1.0, pairs=many, tightness=tightness)
            print(query.name, neighbours.value, f"{many} neighbours, largest share {most:.4f}", flush=True)
