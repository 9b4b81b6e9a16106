"""Three sums for the price of one: the lemma of docs/proofs/scores.md."""

import math

import numpy as np
import pytest

from dpglm import Bounds, Neighbours
from dpglm.data import as_data
from dpglm.privacy import PUBLIC_SIZE
from dpglm.queries import CellSums, ScoreSums
from dpglm.queries.sums import LARGEST_WEIGHT
from dpglm.scores import Accuracy, ClassesByMargin, PublicModel, Reliability, TargetValue

MODEL = PublicModel(np.array([[1.0, 0.0]]), np.zeros(1))
GRID = np.linspace(-1, 1, 2_001)


def distances(weight):
    u, v = np.meshgrid(GRID, GRID)
    return (u - v) ** 2 * (1 + weight**2 * (u + v) ** 2)


def test_the_square_of_a_score_adds_nothing_to_the_distance_of_two_records_up_to_the_largest_weight():
    assert distances(LARGEST_WEIGHT).max() <= 4 + 1e-12
    assert distances(1.001 * LARGEST_WEIGHT).max() > 4
    assert math.isclose(LARGEST_WEIGHT, 1.6651, rel_tol=1e-4)


@pytest.mark.parametrize("neighbours", PUBLIC_SIZE)
def test_the_weights_that_are_used_move_the_sums_by_no_more_than_is_stated(neighbours):
    query = ScoreSums.weighed(TargetValue((-1.0, 1.0)), MODEL, 2, neighbours)
    points = np.column_stack([np.full(len(GRID), query.counted), GRID, query.weight * (1 - np.square(GRID))])
    farthest = np.linalg.norm(points, axis=1).max()
    if neighbours is Neighbours.REPLACE_ONE:
        apart = np.linalg.norm(points[:, None, :] - points[None, ::50, :], axis=2).max()
        farthest = max(farthest, apart)
    stated = query.sensitivity(neighbours)
    assert 0.999 * stated <= farthest <= stated


def test_a_weight_for_which_the_lemma_is_false_is_refused():
    with pytest.raises(ValueError, match="weight must be from 0 to 1.665"):
        ScoreSums(Accuracy(), MODEL, 2, 1.0, 1.7)


def test_sums_are_those_of_the_records_and_null_records_add_nothing():
    X = np.array([[0.5, 0.0], [-0.5, 0.1], [0.2, 0.0], [np.nan, 1.0], [0.9, 0.0]])
    records = as_data(X, np.array([1.0, 1.0, 0.0, 1.0, np.nan]), Bounds(row_norm=1.0))
    counted, total, left = np.asarray(ScoreSums(Accuracy(), MODEL, 5, 1.2, 1.6)(records))
    assert (counted / 1.2, total, left) == pytest.approx((3, -1, 0))
    cells = np.asarray(CellSums(ClassesByMargin(0.0, 2, 1.0), MODEL, 5, 1.0)(records))
    assert cells.tolist() == [0, 1, 1, 1]  # class 0 below and above 0, then class 1
    sums = np.asarray(CellSums(Reliability(1.1, 10), MODEL, 5, 0.5)(records))
    assert sums[:10].sum() == 1.5
    chances = 1 / (1 + np.exp(-X[:3, 0]))
    assert sums[10:].sum() == pytest.approx((np.array([1, 1, 0]) - chances).sum(), abs=1e-5)
