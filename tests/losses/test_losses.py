"""The contract of a loss, on every built-in and a few parameters of each."""

from __future__ import annotations

import math
import warnings
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit, huber
from sklearn._loss.loss import HalfBinomialLoss, HalfPoissonLoss, HalfSquaredError, HuberLoss

from dpglm import losses
from dpglm.losses import LOSSES, Huber, Logistic, Poisson, SmoothedHinge, Squared

INSTANCES = [cls() for cls in LOSSES] + [
    Huber(threshold=0.3),
    Huber(threshold=50.0),
    SmoothedHinge(width=0.05),
    SmoothedHinge(width=4.0),
    Poisson(max_rate=0.5),
    Poisson(max_rate=2000.0),
]
EVERY_LOSS = pytest.mark.parametrize("loss", INSTANCES, ids=repr)
TARGETS = {"classification": (-1.0, 1.0), "regression": (-3.0, 5.0), "count": (0.0, 20.0)}
FINITE = st.floats(-30, 30)


def targets(loss):
    low, high = TARGETS[loss.kind]
    return np.array([low, high]) if loss.kind == "classification" else np.linspace(low, high, 9)


def grid(loss, z):
    z, y = np.meshgrid(z, targets(loss))
    return z.ravel(), y.ravel()


def kinks(loss, y):
    """Where the curvature jumps, as values of z."""
    if isinstance(loss, Huber):
        return np.stack([y - loss.threshold, y + loss.threshold])
    if isinstance(loss, SmoothedHinge):
        return np.stack([y * 1.0, y * (1 - loss.width)])
    if isinstance(loss, Poisson):
        return np.full((1, y.size), math.log(loss.max_rate))
    return np.full((1, y.size), math.inf)


def smooth_points(loss, margin=1e-3):
    z, y = grid(loss, np.linspace(-12, 12, 1213))
    keep = np.all(np.abs(z - kinks(loss, y)) > margin, axis=0)
    return z[keep], y[keep]


@EVERY_LOSS
def test_derivative_is_the_slope_of_the_value(loss):
    z, y = smooth_points(loss)
    h = 1e-5
    slope = (loss.value(z + h, y) - loss.value(z - h, y)) / (2 * h)
    scale = 1 + np.abs(loss.value(z, y))
    assert np.all(np.abs(loss.derivative(z, y) - slope) <= 1e-8 * scale)


@EVERY_LOSS
def test_curvature_is_the_slope_of_the_derivative(loss):
    z, y = smooth_points(loss)
    h = 1e-5
    slope = (loss.derivative(z + h, y) - loss.derivative(z - h, y)) / (2 * h)
    scale = 1 + np.abs(loss.derivative(z, y))
    assert np.all(np.abs(loss.curvature(z, y) - slope) <= 1e-8 * scale)


@EVERY_LOSS
def test_derivative_is_continuous_across_kinks(loss):
    y = targets(loss)
    for z in kinks(loss, y):
        z = np.where(np.isfinite(z), z, 0.0)
        jump = loss.derivative(z + 1e-9, y) - loss.derivative(z - 1e-9, y)
        assert np.all(np.abs(jump) <= 1e-8 * max(1.0, loss.smoothness()))


@EVERY_LOSS
@given(a=FINITE, b=FINITE, weight=st.floats(0, 1), pick=st.integers(0, 8))
def test_value_is_convex(loss, a, b, weight, pick):
    y = targets(loss)[pick % targets(loss).size]
    left, right, middle = (float(loss.value(np.float64(z), y)) for z in (a, b, weight * a + (1 - weight) * b))
    bound = weight * left + (1 - weight) * right
    assert middle <= bound + 1e-12 * (1 + abs(left) + abs(right))


@EVERY_LOSS
def test_derivative_never_decreases(loss):
    z = np.sort(np.concatenate([np.linspace(-20, 20, 4001), [-1e6, 1e6]]))
    for y in targets(loss):
        slope = loss.derivative(z, np.full_like(z, y))
        assert np.all(np.diff(slope) >= 0)


@EVERY_LOSS
def test_lipschitz_constant_bounds_the_derivative_and_is_approached(loss):
    target = TARGETS[loss.kind]
    largest = np.max(np.abs(loss.derivative(*grid(loss, np.array([-1e6, -60.0, 0.0, 60.0, 1e6])))))
    bound = loss.lipschitz(target)
    if math.isinf(bound):
        assert largest > 1e5
    else:
        assert 0.999 * bound <= largest <= bound


@EVERY_LOSS
@given(z=st.floats(-1e6, 1e6), pick=st.integers(0, 8))
def test_derivative_stays_within_the_lipschitz_constant(loss, z, pick):
    y = targets(loss)[pick % targets(loss).size]
    assert abs(loss.derivative(np.float64(z), y)) <= loss.lipschitz(TARGETS[loss.kind])


@EVERY_LOSS
def test_smoothness_bounds_the_curvature_and_is_approached(loss):
    centre = math.log(loss.max_rate) if isinstance(loss, Poisson) else 0.0
    z, y = grid(loss, np.concatenate([centre + np.linspace(-8, 8, 8001), [centre]]))
    curvature = loss.curvature(z, y)
    assert np.all(curvature >= 0)
    assert 0.99 * loss.smoothness() <= curvature.max() <= loss.smoothness() * (1 + 1e-12)


@EVERY_LOSS
def test_huge_predictions_neither_overflow_nor_warn(loss):
    z, y = grid(loss, np.array([-1e100, -1e6, -800.0, 0.0, 800.0, 1e6, 1e100]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for function in (loss.value, loss.derivative, loss.curvature):
            assert np.all(np.isfinite(function(z, y)))


@EVERY_LOSS
def test_functions_are_elementwise(loss):
    rng = np.random.default_rng(0)
    z = rng.normal(size=(4, 5))
    y = rng.choice(targets(loss), size=(4, 5))
    for function in (loss.value, loss.derivative, loss.curvature):
        whole = function(z, y)
        assert whole.shape == z.shape
        parts = [function(z[i, j : j + 1], y[i, j : j + 1])[0] for i in range(4) for j in range(5)]
        np.testing.assert_array_equal(whole.ravel(), parts)


@EVERY_LOSS
def test_compiled_form_is_the_derivative(loss):
    if loss.form is None:
        pytest.skip("this loss has no compiled form")
    t = loss.form_parameter
    slopes = {
        0: lambda z, y: z - y,
        1: lambda z, y: -y / (1 + np.exp(y * z)),
        2: lambda z, y: min(max(z - y, -t), t),
        3: lambda z, y: -y * min(max(1 - y * z, 0.0), t) / t,
        4: lambda z, y: math.exp(min(z, t)) - y,
    }
    for z, y in zip(*grid(loss, np.linspace(-9, 9, 61)), strict=True):
        expected = slopes[loss.form](z, y)
        assert loss.derivative(np.float64(z), y) == pytest.approx(expected, rel=1e-12, abs=1e-14)


@pytest.mark.parametrize("loss", [i for i in INSTANCES if i.kind != "classification"], ids=repr)
def test_link_is_the_best_constant_fit_and_mean_its_inverse(loss):
    for mean in (0.1, 0.3, 0.5):
        z = np.float64(loss.link(mean))
        assert loss.derivative(z, np.float64(mean)) == pytest.approx(0, abs=1e-12)
        assert loss.mean(z) == pytest.approx(mean, rel=1e-12)


def test_link_of_the_poisson_loss_is_finite_for_any_mean():
    assert Poisson(max_rate=5.0).mean(np.float64(Poisson(max_rate=5.0).link(80.0))) == pytest.approx(5.0)
    for mean in (-1.0, 0.0):
        assert math.isfinite(Poisson().link(mean))


@pytest.mark.parametrize("threshold", [0.3, 1.0, 7.0])
def test_huber_agrees_with_scipy_and_sklearn(threshold):
    z, y = grid(Huber(threshold), np.linspace(-20, 20, 401))
    value = Huber(threshold).value(z, y)
    np.testing.assert_allclose(value, huber(threshold, z - y), rtol=1e-13)
    reference = HuberLoss(quantile=0.5, delta=threshold)
    np.testing.assert_allclose(value, reference.loss(y, z), rtol=1e-13)
    np.testing.assert_allclose(Huber(threshold).derivative(z, y), reference.gradient(y, z), rtol=1e-13)


def test_squared_agrees_with_sklearn():
    z, y = grid(Squared(), np.linspace(-20, 20, 401))
    np.testing.assert_allclose(Squared().value(z, y), HalfSquaredError().loss(y, z), rtol=1e-13)
    np.testing.assert_allclose(Squared().derivative(z, y), HalfSquaredError().gradient(y, z), rtol=1e-13)


def test_logistic_agrees_with_sklearn():
    z, y = grid(Logistic(), np.linspace(-30, 30, 601))
    value, slope = HalfBinomialLoss().loss_gradient((y + 1) / 2, z)
    np.testing.assert_allclose(Logistic().value(z, y), value, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(Logistic().derivative(z, y), slope, rtol=1e-12)
    np.testing.assert_allclose(Logistic().curvature(z, y), expit(z) * (1 - expit(z)), atol=1e-15)


def test_poisson_agrees_with_sklearn_below_its_largest_rate():
    loss = Poisson(max_rate=100.0)
    z, y = grid(loss, np.linspace(-6, math.log(100.0), 201))
    reference = HalfPoissonLoss()
    np.testing.assert_allclose(loss.value(z, y), reference.loss(y, z), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(loss.derivative(z, y), reference.gradient(y, z), rtol=1e-12, atol=1e-12)


def test_narrow_smoothed_hinge_tends_to_the_hinge():
    z, y = grid(SmoothedHinge(), np.linspace(-5, 5, 101))
    for width in (0.1, 0.001):
        gap = np.maximum(0, 1 - y * z) - SmoothedHinge(width).value(z, y)
        assert np.all(gap >= -1e-12) and np.all(gap <= width / 2 + 1e-12)


def test_poisson_without_bounded_targets_has_no_lipschitz_constant():
    assert math.isinf(Poisson().lipschitz(None))


def test_every_built_in_is_found_by_its_name():
    for cls in LOSSES:
        assert losses.get(cls.name) == cls()
    own = Huber(threshold=0.1)
    assert losses.get(own) is own


@pytest.mark.parametrize("wrong", ["hinge", 3, None, Logistic])
def test_unknown_losses_are_refused_with_the_names_that_exist(wrong):
    with pytest.raises(ValueError, match=r"loss must be .*logistic.*squared"):
        losses.get(wrong)


@pytest.mark.parametrize(
    ("cls", "name"), [(Huber, "threshold"), (SmoothedHinge, "width"), (Poisson, "max_rate")]
)
@pytest.mark.parametrize("wrong", [0.0, -1.0, math.inf, math.nan])
def test_parameters_must_be_positive_and_finite(cls, name, wrong):
    with pytest.raises(ValueError, match=name):
        cls(**{name: wrong})


def test_losses_are_frozen_values():
    assert Huber(2.0) == Huber(2.0)
    assert hash(Huber(2.0)) == hash(Huber(2.0))
    with pytest.raises(FrozenInstanceError):
        Huber(2.0).threshold = 3.0
