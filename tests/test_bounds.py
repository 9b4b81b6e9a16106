import math

import numpy as np
import pytest
import scipy.sparse as sp

from dpglm import Bounds
from dpglm.data import as_data


def test_rows_are_scaled_down_and_never_up():
    clipped = Bounds(row_norm=2.0).clip([[3.0, 4.0], [0.3, 0.4], [0.0, 0.0]])
    assert np.allclose(np.linalg.norm(clipped, axis=1), [2.0, 0.5, 0.0])


def test_entries_are_cut_before_rows_are_scaled():
    clipped = Bounds(row_norm=1.0, feature=[1.0, 10.0]).clip([[100.0, 0.0], [100.0, 1.0]])
    assert np.allclose(clipped, [[1.0, 0.0], np.array([1.0, 1.0]) / math.sqrt(2)])


def test_radius_is_the_smaller_of_what_rows_and_features_imply():
    assert Bounds(row_norm=3.0).radius(100) == 3.0
    assert Bounds(feature=2.0).radius(4) == 4.0
    assert Bounds(row_norm=3.0, feature=2.0).radius(4) == 3.0
    assert Bounds(row_norm=9.0, feature=2.0).radius(4) == 4.0


def test_a_feature_is_bounded_by_the_row_norm_too():
    assert np.array_equal(Bounds(row_norm=3.0, feature=[1.0, 5.0]).features(2), [1.0, 3.0])


def test_bounds_are_values():
    assert Bounds(feature=[1.0, 2.0]) == Bounds(feature=np.array([1, 2]))
    assert hash(Bounds(feature=[1.0, 2.0])) == hash(Bounds(feature=np.array([1.0, 2.0])))
    assert Bounds(row_norm=1.0) != Bounds(row_norm=2.0)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({}, "row_norm"),
        ({"row_norm": 0.0}, "row_norm"),
        ({"row_norm": float("nan")}, "row_norm"),
        ({"row_norm": 1e-165}, "row_norm"),
        ({"row_norm": 1.0, "target": (-1e308, 1.7e308)}, "target"),
        ({"feature": -1.0}, "feature"),
        ({"feature": [1.0, 0.0]}, "feature"),
        ({"row_norm": 1.0, "target": (1.0, 1.0)}, "target"),
        ({"row_norm": 1.0, "target": (0.0, math.inf)}, "target"),
    ],
)
def test_impossible_bounds_are_refused_by_name(arguments, named):
    with pytest.raises(ValueError, match=named):
        Bounds(**arguments)


def test_feature_bounds_must_match_the_table():
    with pytest.raises(ValueError, match="3 features"):
        Bounds(feature=[1.0, 2.0]).radius(3)


def test_ranges_may_be_given_by_pairs_or_by_ends():
    pairs = Bounds(feature=[(18, 90), (-2, 5)])
    assert pairs == Bounds(feature=([18, -2], [90, 5])) == Bounds(feature=np.array([[18.0, 90], [-2, 5]]))
    assert Bounds(feature=(0, 1)).ranges(2)[1].tolist() == [1.0, 1.0]
    assert Bounds(feature=(0, [1.0, 2.0])).ranges(2)[0].tolist() == [0.0, 0.0]
    assert pairs.features(2).tolist() == [90.0, 5.0]
    assert Bounds(feature=[1.0, 2.0]) != Bounds(feature=(1.0, 2.0))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_entries_are_cut_to_their_range_and_stay_inside_in_single_precision(dtype):
    low, high = np.array([18.1, -2.3]), np.array([90.7, 0.3])
    clipped = Bounds(feature=(low, high)).clip(np.array([[0, 1], [100, -9], [50, 0]], dtype=dtype))
    assert ((low <= clipped) & (clipped <= high)).all()
    assert np.allclose(clipped, [[18.1, 0.3], [90.7, -2.3], [50, 0]], rtol=1e-6)


def test_a_range_without_zero_refuses_a_row_norm_and_sparse_tables():
    with pytest.raises(ValueError, match="contain 0"):
        Bounds(row_norm=1.0, feature=(1.0, 2.0))
    with pytest.raises(ValueError, match="contain 0"):
        Bounds(feature=(1.0, 2.0)).clip(sp.csr_array(np.eye(2)))
    with pytest.raises(ValueError, match="contain 0"):
        as_data(sp.csc_array(np.eye(2)), np.ones(2), Bounds(feature=(1.0, 2.0)))
    assert Bounds(row_norm=1.0, feature=(-0.5, 2.0)).features(1).tolist() == [1.0]


def test_records_are_cut_to_ranges_alike_in_every_layout():
    X = np.random.default_rng(0).uniform(-3, 3, (50, 4))
    low, high = np.array([-1.0, 0.0, -2.0, -0.5]), np.array([0.5, 2.0, 0.0, 1.0])
    expected = np.clip(X, low, high).sum(axis=0)
    for layout in (np.array, np.asfortranarray, sp.csr_array, sp.csc_array):
        records = as_data(layout(X), np.zeros(50), Bounds(feature=(low, high)))
        assert np.allclose(records.t_dot(np.ones(50)), expected)


@pytest.mark.parametrize(
    "feature",
    [(1.0, 1.0), (2.0, 1.0), ([0, 0], [1, 1, 1]), [(0, 1), (3, 2)], (0, "x"), (0, math.nan), [[1, 2, 3]]],
)
def test_impossible_ranges_are_refused(feature):
    with pytest.raises(ValueError, match="feature must be"):
        Bounds(feature=feature)


@pytest.mark.parametrize(
    "ends",
    [
        (1e6 - 0.02, 1e6 - 0.01), (1e6 + 0.01, 1e6 + 0.02), (-1e6 + 0.01, -1e6 + 0.02), (7.5e-46, 7.6e-46),
        (-7.6e-46, -7.5e-46), (1e39, 2e39), (-2e39, -1e39), (-1e-50, 1e-50), (1900.1, 2100.1),
    ],
)  # fmt: skip
def test_ranges_between_two_numbers_of_single_precision_do_not_let_rows_grow(ends):
    bounds, rows = Bounds(feature=ends), np.array([[-3e38], [3e38], [0.0]], dtype=np.float32)
    assert np.abs(bounds.clip(rows)).max() <= bounds.radius(1)
    assert as_data(rows, np.ones(3), bounds).norms.max() <= bounds.radius(1)
