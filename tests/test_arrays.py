"""Coefficients and intercept in one array, and lines of the cache."""

from fractions import Fraction

import numpy as np
import pytest

from dpglm import Bounds
from dpglm.arrays import Total, cache_lines
from dpglm.losses import Logistic
from dpglm.penalties import L1
from dpglm.problem import Problem

EITHER = pytest.mark.parametrize("fit_intercept", [False, True])


def problem(fit_intercept):
    return Problem(Logistic(), L1(0.1), Bounds(row_norm=2.0), fit_intercept)


@EITHER
@pytest.mark.parametrize("p", [1, 4])
def test_join_undoes_split(fit_intercept, p):
    w = np.arange(1.0, p + 1 + fit_intercept)
    parts = problem(fit_intercept).split(w)
    assert [len(part) for part in parts] == [p, int(fit_intercept)]
    assert np.array_equal(problem(fit_intercept).join(*parts), w)


@EITHER
def test_to_change_a_part_is_to_change_the_whole(fit_intercept):
    w = np.zeros(3 + fit_intercept)
    features, intercept = problem(fit_intercept).split(w)
    features += 1.0
    intercept += 2.0
    assert np.array_equal(w, [1.0] * 3 + [2.0] * fit_intercept)


@EITHER
def test_joined_arrays_are_new(fit_intercept):
    w = np.zeros(3 + fit_intercept)
    joined = problem(fit_intercept).join(*problem(fit_intercept).split(w))
    joined += 1.0
    assert not w.any()


@EITHER
def test_a_number_for_the_intercept_counts_only_with_one(fit_intercept):
    joined = problem(fit_intercept).join(np.zeros(3), 5.0)
    assert np.array_equal(joined, [0.0] * 3 + [5.0] * fit_intercept)


@EITHER
def test_a_proximal_step_leaves_the_intercept_alone(fit_intercept):
    w = np.full(3 + fit_intercept, 1.0)
    assert np.allclose(problem(fit_intercept).prox(w, 2.0), [0.8] * 3 + [1.0] * fit_intercept)


@pytest.mark.parametrize("count", [1, 7])
def test_each_row_lies_in_one_line_of_the_cache(count):
    lines = cache_lines(count)
    assert lines.shape == (count, 8) and not lines.any() and lines.ctypes.data % 64 == 0


def test_a_total_as_doubles_has_all_of_its_limbs():
    """What rounding left of many terms is far more than a unit of the sum of what it did not leave."""
    rng = np.random.default_rng(0)
    steps, rest = rng.integers(-1000, 1000, 50), rng.integers(-(2**40), 2**40, (2, 50))
    total = Total(steps, 0.25, rest, 2.0**-30)
    exact = [
        Fraction(int(a)) / 4 + Fraction(int(b)) / 2**32 + Fraction(int(c)) / 2**62
        for a, b, c in zip(steps, *rest, strict=True)
    ]
    assert np.array_equal(np.asarray(total), [float(each) for each in exact])
    high, low = total.twofold()
    assert all(Fraction(a) + Fraction(b) == c for a, b, c in zip(high, low, exact, strict=True))
