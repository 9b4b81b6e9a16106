import math

import numpy as np
import pytest

from dpglm import Bounds


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
    assert hash(Bounds(feature=[1.0, 2.0])) == hash(Bounds(feature=(1.0, 2.0)))
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
