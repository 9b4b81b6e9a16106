"""The mean row and its size (docs/proofs/bounded_sums.md)."""

import math

import numpy as np
import pytest
import scipy.sparse as sp

from dpglm import Bounds, Neighbours
from dpglm.bounds import Coordinates
from dpglm.data import as_data
from dpglm.data.bounded_numbers import INNER_RADIUS, SIZE_WEIGHT
from dpglm.privacy import PUBLIC_SIZE
from dpglm.queries import MeanRow
from dpglm.testing import check_query

rng = np.random.default_rng(3)
X = rng.uniform(-1, 3, (5_000, 3))
X[rng.random(X.shape) < 0.3] = 0.0
X[7] = np.nan, np.inf, -np.inf
BOUNDS = Bounds(feature=(-1.0, 3.0))
COORDINATES = Coordinates(np.full(3, 1.0), np.full(3, 2.0), False)


def test_no_pair_of_norms_moves_the_pair_farther_than_the_row_alone():
    """The lemma on a fine grid of norms, for rows that point in opposite directions."""
    a, b = np.meshgrid(np.linspace(0, 1, 1_001), np.linspace(0, 1, 1_001))
    assert np.max((a + b) ** 2 * (1 + 4 * SIZE_WEIGHT**2 * (a - b) ** 2)) <= 4
    # A weight that is a twentieth larger would not be free.
    assert np.max((a + b) ** 2 * (1 + 4 * (1.05 * SIZE_WEIGHT) ** 2 * (a - b) ** 2)) > 4


def test_a_ball_lies_in_the_hull_of_what_records_add():
    v = np.linspace(0, 1, 100_001)
    assert min(np.sqrt(v + (SIZE_WEIGHT * (2 * v - 1)) ** 2).min(), SIZE_WEIGHT) >= INNER_RADIUS


@pytest.mark.parametrize("neighbours", PUBLIC_SIZE)
def test_the_sensitivity_holds_and_is_reached(neighbours):
    asked = MeanRow(Coordinates(np.zeros(4), np.full(4, 2.0), False), 0.4, 4)
    assert 0.999 <= check_query(asked, neighbours, Bounds(row_norm=2.0), pairs=1_000) <= 1 + 1e-9


def test_without_noise_it_is_the_mean_and_the_mean_size_of_scaled_rows():
    asked = MeanRow(COORDINATES, 0.8, 5_000)
    mean, size = asked.means(np.asarray(asked(as_data(X, np.zeros(5_000), BOUNDS))), 4_999)
    z = (np.delete(X, 7, axis=0) - 1) / 2
    z *= np.minimum(1, 0.8 / np.linalg.norm(z, axis=1))[:, None]
    assert np.allclose(mean, z.mean(axis=0), atol=1e-6)
    # The record that is null counts neither way: it adds 0, which is a size of one half.
    assert size == pytest.approx(np.square(z).sum(axis=1).mean() / 0.64, abs=1e-6)


def test_all_layouts_and_cuts_have_the_same_bits():
    asked, y = MeanRow(COORDINATES, 0.8, 5_000), np.zeros(5_000)
    whole = asked(as_data(X, y, BOUNDS)).steps
    for table in (np.asfortranarray(X), sp.csr_array(X), sp.csc_array(X)):
        assert np.array_equal(asked(as_data(table, y, BOUNDS)).steps, whole)
    parts = [asked(as_data(X[part], y[part], BOUNDS)).steps for part in np.array_split(np.arange(5_000), 7)]
    assert np.array_equal(np.sum(parts, axis=0), whole)


def test_sums_of_many_records_stay_within_64_bits():
    asked = MeanRow(COORDINATES, 0.8, 1 << 40)
    rows = as_data(np.full((1_000, 3), 3.0), np.zeros(1_000), BOUNDS)
    assert np.abs(asked(rows).steps).max() / 1_000 * 2.0**40 < 2.0**62
    assert asked.sensitivity(Neighbours.REPLACE_ONE) == pytest.approx(1.6, rel=1e-4)
    assert asked.sensitivity(Neighbours.ZERO_OUT) == pytest.approx(0.8 * math.hypot(1, 0.8), rel=1e-4)


@pytest.mark.parametrize("norm", [0.0, 1e-170, math.nan])
def test_a_norm_whose_square_is_no_number_is_refused(norm):
    """An empty row would add 0 / 0."""
    with pytest.raises(ValueError, match="norm"):
        MeanRow(COORDINATES, norm, 5_000)
