"""The second moments of whole records (docs/proofs/moments.md)."""

import math

import numpy as np
import pytest

from dpglm import Bounds
from dpglm.bounds import Coordinates
from dpglm.data import as_data
from dpglm.privacy import PUBLIC_SIZE
from dpglm.queries import Gram, Moments
from dpglm.testing import check_query


@pytest.mark.parametrize("neighbours", PUBLIC_SIZE)
@pytest.mark.parametrize("intercept", [False, True])
def test_the_sensitivity_holds_and_is_reached(neighbours, intercept):
    coordinates = Coordinates(np.zeros(4), np.full(4, 2.0), intercept)
    asked = Moments(coordinates, math.sqrt(1.64 + intercept), 0.0, 0.8, 4)
    bounds = Bounds(row_norm=2.0, target=(-1, 1))
    share = check_query(asked, neighbours, bounds, constant=1.5 * intercept, pairs=1_000)
    assert 0.999 <= share <= 1 + 1e-9


def test_the_moment_matrix_is_that_of_the_records():
    rng = np.random.default_rng(5)
    X, y = rng.uniform(-1, 3, (400, 3)), rng.uniform(0, 10, 400)
    coordinates = Coordinates(np.full(3, 1.0), np.full(3, 2.0), True)
    asked = Moments(coordinates, math.sqrt(4 + 4), 5.0, 0.4, 400)
    records = as_data(X, y, Bounds(feature=(-1.0, 3.0), target=(0, 10)), 1.5)
    z = np.column_stack([(X - 1) / 2, np.ones(400), 0.4 * (y - 5)])
    assert np.allclose(asked.matrix(np.asarray(asked(records))), z.T @ z, atol=1e-3)


def test_the_gram_matrix_is_that_of_rows_in_a_metric_cut_to_the_norm():
    """With a metric that is not diagonal, a constant and a null record; the same bits however it is cut."""
    rng = np.random.default_rng(6)
    X, y = rng.uniform(-1, 3, (400, 3)), np.zeros(400)
    X[7] = np.nan
    metric = np.array(
        [[1.0, 0.2, 0.0, -0.3], [0.0, 0.8, 0.5, 0.1], [0.3, 0.0, 1.2, 0.0], [0.1, 0.2, 0.1, 0.3]]
    )
    asked = Gram(Coordinates(np.full(3, 1.0), np.full(3, 2.0), True), 0.9, metric, 400)
    records = as_data(X, y, Bounds(feature=(-1.0, 3.0)), 1.5)
    z = np.column_stack([(np.delete(X, 7, axis=0) - 1) / 2, np.ones(399)]) @ metric
    lengths = np.linalg.norm(z, axis=1)
    assert 0.1 < np.mean(lengths > 0.9) < 0.9
    z *= np.minimum(1, 0.9 / lengths)[:, None]
    assert np.allclose(asked.matrix(np.asarray(asked(records))), z.T @ z, atol=1e-3)
    parts = [
        as_data(X[part], y[part], Bounds(feature=(-1.0, 3.0)), 1.5) for part in (slice(150), slice(150, 400))
    ]
    assert np.array_equal(sum(asked(part).steps for part in parts), asked(records).steps)


def test_a_record_beyond_the_norm_is_scaled_down():
    coordinates = Coordinates(np.zeros(2), np.ones(2), False)
    asked = Moments(coordinates, 0.5, 0.0, 1.0, 1)
    records = as_data(np.array([[0.6, 0.8]]), np.array([1.0]), Bounds(feature=1.0, target=(-1, 1)))
    assert np.trace(asked.matrix(np.asarray(asked(records)))) == pytest.approx(0.25, rel=1e-5)


def test_a_null_record_adds_nothing_not_even_to_the_constant():
    coordinates = Coordinates(np.full(2, 3.0), np.ones(2), True)
    asked = Moments(coordinates, 2.0, 0.5, 1.0, 2)
    records = as_data(
        np.array([[3.0, 3.0], [np.nan, 3.0]]), np.zeros(2), Bounds(feature=(2.0, 4.0), target=(0, 1)), 1.0
    )
    assert np.allclose(np.asarray(asked(records))[[0, 2]], 0.0)
    assert asked.matrix(np.asarray(asked(records)))[2, 2] == pytest.approx(1.0)
