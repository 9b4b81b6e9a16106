"""Pairs of doubles: slopes of twice the precision, and exact sums and products."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest

from dpglm.arrays import exact_product, exact_sum
from dpglm.kernels.arguments import Form
from dpglm.kernels.double_double import write_slopes
from dpglm.losses import Huber, Logistic, Poisson, SmoothedHinge, Squared

LOSSES = [Squared(), Logistic(), Huber(0.7), SmoothedHinge(0.3), Poisson(20.0)]


def exact_slope(loss, z, y):
    """The derivative in the precision of mpmath, for a compiled form's own parameter."""
    parameter = mpmath.mpf(loss.form_parameter)
    if isinstance(loss, Logistic):
        return -y / (1 + mpmath.exp(y * z))
    if isinstance(loss, SmoothedHinge):
        return -y * min(max((1 - y * z) / parameter, 0), 1)
    if isinstance(loss, Poisson):
        return mpmath.exp(min(z, parameter)) - y
    return z - y if isinstance(loss, Squared) else min(max(z - y, -parameter), parameter)


def sample(loss, n=600):
    rng = np.random.default_rng(0)
    y = rng.choice([-1.0, 1.0], n) if loss.kind == "classification" else np.abs(rng.standard_normal(n))
    z = rng.standard_normal(n) * 10 ** rng.uniform(-8, 2.7, n)
    z[::2] = y[::2] + rng.uniform(-1, 1, n // 2)
    return np.array([z, z * 2.0**-54 * rng.uniform(-1, 1, n)]), y


def worst(loss, z, y, slopes):
    """The largest error, over 1 or the smoothness, and over the margin where that is larger."""
    with mpmath.workprec(300):
        errors = [
            abs(
                mpmath.mpf(a)
                + mpmath.mpf(b)
                - exact_slope(loss, mpmath.mpf(c) + mpmath.mpf(d), mpmath.mpf(t))
            )
            / (max(1.0, loss.smoothness()) * (1 + abs(c)))
            for a, b, c, d, t in zip(*slopes, *z, y, strict=True)
        ]
        return float(max(errors))


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
def test_slopes_in_pairs_are_off_by_a_few_units_of_the_second_double(loss):
    z, y = sample(loss)
    slopes = np.empty_like(z)
    write_slopes(Form.of(loss), z, y, slopes)
    assert worst(loss, z, y, slopes) <= 2.0**-100
    assert worst(loss, z, y, [slopes[0], 0 * y]) > 2.0**-60  # the second double counts
    write_slopes(Form.of(loss), np.array([z[0], 0 * y]), y, slopes)
    assert worst(loss, z, y, slopes) > 2.0**-60  # and so does that of a margin


@pytest.mark.parametrize("size", [1e4, 1e50])
def test_a_margin_of_any_size_has_a_slope(size):
    z, y = np.array([[size, -size], [0.0, 0.0]]), np.ones(2)
    for loss, ends in (
        (Logistic(), [0.0, -1.0]),
        (SmoothedHinge(0.3), [0.0, -1.0]),
        (Poisson(20.0), [19.0, -1.0]),
    ):
        slopes = np.empty_like(z)
        write_slopes(Form.of(loss), z, y, slopes)
        assert slopes.sum(axis=0) == pytest.approx(ends, abs=1e-14)


def test_sums_and_products_leave_nothing():
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal((2, 500)) * 10.0 ** rng.integers(-20, 20, (2, 500))
    for pair, operation in ((exact_sum(a, b), Fraction.__add__), (exact_product(a, b), Fraction.__mul__)):
        for high, low, x, y in zip(*pair, a, b, strict=True):
            assert Fraction(high) + Fraction(low) == operation(Fraction(x), Fraction(y))
