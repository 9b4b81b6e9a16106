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
from scipy.stats import nbinom
from sklearn._loss.loss import (
    HalfBinomialLoss,
    HalfGammaLoss,
    HalfPoissonLoss,
    HalfSquaredError,
    HalfTweedieLoss,
    HuberLoss,
    PinballLoss,
)
from sklearn.metrics import hinge_loss

from dpglm import losses
from dpglm.losses import (
    LOSSES,
    EpsilonInsensitive,
    Hinge,
    Huber,
    LogCosh,
    Logistic,
    NegativeBinomial,
    Poisson,
    Quantile,
    SmoothedHinge,
    Squared,
    Tweedie,
)

INSTANCES = [cls() for cls in LOSSES] + [
    Huber(threshold=0.3),
    Huber(threshold=50.0),
    LogCosh(scale=0.2),
    LogCosh(scale=4.0),
    SmoothedHinge(width=0.05),
    SmoothedHinge(width=4.0),
    EpsilonInsensitive(tube=0.0),
    EpsilonInsensitive(tube=2.0),
    Poisson(max_rate=0.5),
    Poisson(max_rate=2000.0),
    Tweedie(1.0, 0.0, 5.0, 8.0),
    Tweedie(2.0, 0.05, 3.0, 10.0),
    NegativeBinomial(0.2, 0.0, 3.0, 15.0),
    NegativeBinomial(5.0, 0.02, 30.0, 20.0),
    Quantile(0.9, 0.5),
]
LOG_LINKS = (Tweedie, NegativeBinomial)
EVERY_LOSS = pytest.mark.parametrize("loss", INSTANCES, ids=repr)
SMOOTH = [loss for loss in INSTANCES if math.isfinite(loss.smoothness())]
EVERY_SMOOTH_LOSS = pytest.mark.parametrize("loss", SMOOTH, ids=repr)
EVERY_LOSS_WITH_A_KINK = pytest.mark.parametrize("loss", [i for i in INSTANCES if i not in SMOOTH], ids=repr)
EXACT_STEPS = (Squared, Huber, SmoothedHinge, Hinge, EpsilonInsensitive)
TARGETS = {"classification": (-1.0, 1.0), "regression": (-3.0, 5.0), "count": (0.0, 20.0)}
FINITE = st.floats(-30, 30)


def targets(loss):
    low, high = TARGETS[loss.kind]
    return np.array([low, high]) if loss.kind == "classification" else np.linspace(low, high, 9)


def grid(loss, z):
    z, y = np.meshgrid(z, targets(loss))
    return z.ravel(), y.ravel()


def kinks(loss, y):
    """Where the curvature or the derivative jumps, as values of z."""
    if isinstance(loss, Huber):
        return np.stack([y - loss.threshold, y + loss.threshold])
    if isinstance(loss, SmoothedHinge):
        return np.stack([y * 1.0, y * (1 - loss.width)])
    if isinstance(loss, Hinge):
        return y[None] * 1.0
    if isinstance(loss, EpsilonInsensitive):
        return np.stack([y - loss.tube, y + loss.tube])
    if isinstance(loss, Poisson):
        return np.full((1, y.size), math.log(loss.max_rate))
    if isinstance(loss, LOG_LINKS):
        low = math.log(loss.min_mean) if loss.min_mean else -math.inf
        return np.array([np.full(y.size, low), np.full(y.size, math.log(loss.max_mean))])
    return np.full((1, y.size), math.inf)


def smooth_points(loss, margin=1e-3):
    z, y = grid(loss, np.linspace(-12, 12, 1213))
    keep = np.all(np.abs(z - kinks(loss, y)) > margin, axis=0)
    return z[keep], y[keep]


def is_slope(derivative, function, loss):
    """Whether central differences of a function of z and y agree with its derivative, away from kinks."""
    z, y = smooth_points(loss)
    h = 1e-5
    slope = (function(z + h, y) - function(z - h, y)) / (2 * h)
    scale = 1 + np.abs(function(z, y))
    return np.all(np.abs(derivative(z, y) - slope) <= 1e-8 * scale)


@EVERY_LOSS
def test_derivative_is_the_slope_of_the_value(loss):
    assert is_slope(loss.derivative, loss.value, loss)


@EVERY_LOSS
def test_curvature_is_the_slope_of_the_derivative(loss):
    assert is_slope(loss.curvature, loss.derivative, loss)


@EVERY_SMOOTH_LOSS
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


@EVERY_LOSS_WITH_A_KINK
def test_a_loss_whose_smoothness_is_infinite_has_a_derivative_that_jumps(loss):
    y = targets(loss)
    for z in kinks(loss, y):
        for h in (1e-3, 1e-6, 1e-9):
            assert np.all(loss.derivative(z + h, y) - loss.derivative(z - h, y) >= 0.5)


@EVERY_SMOOTH_LOSS
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
        5: lambda z, y: -y if y * z < 1 else 0.0,
        6: lambda z, y: np.sign(z - y) if abs(z - y) > t else 0.0,
        7: lambda z, y: t * math.tanh((z - y) / t),
        8: lambda z, y: mean(z) ** (2 - t) - min(y, top) * mean(z) ** (1 - t),
        9: lambda z, y: (mean(z) - min(y, top)) / (1 + t * mean(z)),
        10: lambda z, y: (1 - t) - 1 / (1 + math.exp(2 * (z - y) / top)),
    }
    low, high, top, _ = loss.form_range

    def mean(z):
        return math.exp(min(max(z, low), high))

    for z, y in zip(*grid(loss, np.linspace(-9, 9, 61)), strict=True):
        expected = slopes[loss.form](z, y)
        assert loss.derivative(np.float64(z), y) == pytest.approx(expected, rel=1e-12, abs=1e-14)


@pytest.mark.parametrize(
    "loss", [i for i in INSTANCES if i.kind != "classification" and i != Quantile(0.9, 0.5)], ids=repr
)
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


@pytest.mark.parametrize(
    ("power", "reference"), [(1.0, HalfPoissonLoss()), (1.5, HalfTweedieLoss(1.5)), (2.0, HalfGammaLoss())]
)
def test_tweedie_agrees_with_sklearn_within_its_range_of_means(power, reference):
    loss = Tweedie(power, 0.05, 20.0, 30.0)
    z, y = np.meshgrid(np.linspace(math.log(0.05), math.log(20.0), 61), np.linspace(0.5, 20.0, 7))
    z, y = z.ravel(), y.ravel()
    np.testing.assert_allclose(loss.derivative(z, y), reference.gradient(y, z), rtol=1e-11, atol=1e-12)
    apart = loss.value(z, y) - reference.loss(y, z)  # a constant for each target
    for target in np.unique(y):
        np.testing.assert_allclose(apart[y == target], apart[y == target][0], rtol=0, atol=1e-11)


def test_negative_binomial_is_the_likelihood_of_scipy_and_tends_to_poisson():
    a, y = 0.7, np.arange(8.0)
    for z in (-2.0, 0.3, 1.5):
        p = 1 / (1 + a * math.exp(z))
        apart = NegativeBinomial(a).value(np.full(8, z), y) + nbinom.logpmf(y, 1 / a, p)
        np.testing.assert_allclose(apart, NegativeBinomial(a).value(np.zeros(8), y)
                                   + nbinom.logpmf(y, 1 / a, 1 / (1 + a)), atol=1e-12)  # fmt: skip
        small = NegativeBinomial(1e-9).derivative(np.full(8, z), y)
        np.testing.assert_allclose(small, math.exp(z) - y, rtol=1e-7)


def test_narrow_quantile_loss_tends_to_the_pinball_loss():
    z, y = grid(Quantile(), np.linspace(-5, 5, 101))
    for width in (0.1, 0.001):
        gap = Quantile(0.8, width).value(z, y) - PinballLoss(quantile=0.8).loss(y, z)
        assert np.all(gap >= -1e-12) and np.all(gap <= width * math.log(2) / 2 + 1e-12)


def test_narrow_smoothed_hinge_tends_to_the_hinge():
    z, y = grid(SmoothedHinge(), np.linspace(-5, 5, 101))
    for width in (0.1, 0.001):
        gap = Hinge().value(z, y) - SmoothedHinge(width).value(z, y)
        assert np.all(gap >= -1e-12) and np.all(gap <= width / 2 + 1e-12)


def test_hinge_agrees_with_sklearn():
    z, y = grid(Hinge(), np.linspace(-5, 5, 101))
    assert Hinge().value(z, y).mean() == pytest.approx(hinge_loss(y, z), rel=1e-13)


def test_poisson_without_bounded_targets_has_no_lipschitz_constant():
    assert math.isinf(Poisson().lipschitz(None))


def test_every_built_in_is_found_by_its_name():
    for cls in LOSSES:
        assert losses.get(cls.name) == cls()
    own = Huber(threshold=0.1)
    assert losses.get(own) is own


@pytest.mark.parametrize("wrong", ["absolute", 3, None, Logistic])
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


def slopes(loss, y):
    """The slopes the loss takes at target y, from the lowest to the highest; the domain of its conjugate."""
    ends = loss.derivative(np.array([-1e6, 1e6]), np.array([y, y]))
    return np.clip(ends, -40, 40) if math.isinf(loss.lipschitz(TARGETS[loss.kind])) else ends


@EVERY_LOSS
def test_conjugate_and_value_add_up_at_the_slope(loss):
    z, y = smooth_points(loss)
    slope, value = loss.derivative(z, y), loss.value(z, y)
    size = 1 + np.abs(z * slope) + np.abs(value)
    assert np.all(np.abs(loss.conjugate(slope, y) + value - z * slope) <= 1e-11 * size)


@EVERY_LOSS
def test_conjugate_and_value_are_never_below_the_product(loss):
    z = np.linspace(-12, 12, 121)
    for y in targets(loss):
        u = np.linspace(*slopes(loss, y), 83)[:, None]
        product = u * z
        total = loss.conjugate(u, np.full_like(u, y)) + loss.value(z, np.full_like(z, y))
        assert np.all(total >= product - 1e-11 * (1 + np.abs(product)))


@EVERY_LOSS
def test_conjugate_is_the_supremum_over_all_predictions(loss):
    for y in targets(loss):
        low, high = slopes(loss, y)
        u = low + np.array([0.02, 0.3, 0.5, 0.9]) * (high - low)

        def below(z, u=u, y=y):
            return loss.value(z, np.full_like(z, y)) - u * z

        found = below(least(below, np.full(4, -60.0), np.full(4, 60.0)))
        assert loss.conjugate(u, np.full(4, y)) == pytest.approx(-found, rel=1e-7, abs=1e-7)


@EVERY_LOSS
def test_conjugate_is_finite_for_slopes_of_the_loss_and_infinite_elsewhere(loss):
    for y in targets(loss):
        low, high = slopes(loss, y)
        within = loss.conjugate(np.linspace(low, high, 21), np.full(21, y))
        beyond = loss.conjugate(np.array([low - 0.01, low - 50, high + 0.01, high + 50]), np.full(4, y))
        assert np.all(np.isfinite(within))
        assert np.all(np.isposinf(beyond)) or isinstance(loss, Squared)


def dual_points(loss, weights=(0.05, 1.0, 20.0)):
    """Dual variables from end to end of their domain, predictions, targets and weights, as columns."""
    rows = [
        (-(low + share * (high - low)), z, y, weight)
        for y in targets(loss)[:: 1 if loss.kind == "classification" else 4]
        for low, high in [slopes(loss, y)]
        for share in (0.0, 0.37, 1.0)
        for z in (-9.0, -0.7, 0.2, 1.0, 4.0)
        for weight in weights
    ]
    return np.array(rows).T


def subproblem(loss, alpha, z, y, weight, step):
    return loss.conjugate(-(alpha + step), y) + z * step + weight * np.square(step) / 2


def least(function, low, high):
    """Where a convex function of each entry is least between bounds: golden sections of all at once."""
    share = (math.sqrt(5) - 1) / 2
    for _ in range(80):
        width = share * (high - low)
        left, right = high - width, low + width
        lower = function(left) <= function(right)
        low, high = np.where(lower, low, left), np.where(lower, right, high)
    return (low + high) / 2


def best_steps(loss, alpha, z, y, weight):
    ends = np.array([[-60.0, 60.0] if isinstance(loss, Squared) else -slopes(loss, c)[::-1] for c in y]).T
    if not isinstance(loss, Squared):
        ends = ends - alpha
    return least(lambda step: subproblem(loss, alpha, z, y, weight, step), *ends)


@EVERY_LOSS
def test_dual_steps_go_towards_the_best_step_and_not_beyond_it(loss):
    alpha, z, y, weight = dual_points(loss)
    step, best = loss.dual_step(alpha, z, y, weight), best_steps(loss, alpha, z, y, weight)
    slack = 1e-6 * (1 + np.abs(best))
    assert np.all(step * np.sign(best) >= -slack)
    assert np.all(np.abs(step) <= np.abs(best) + slack)
    assert np.any(np.abs(step) > 0.01)


@EVERY_LOSS
def test_dual_steps_never_raise_the_subproblem(loss):
    alpha, z, y, weight = dual_points(loss)
    step = loss.dual_step(alpha, z, y, weight)
    before, after = (subproblem(loss, alpha, z, y, weight, d) for d in (np.zeros_like(step), step))
    assert np.all(after <= before + 1e-12 * (1 + np.abs(before)))
    assert np.any(after < before - 0.01)


@EVERY_LOSS
def test_dual_steps_keep_the_dual_variable_in_the_domain(loss):
    rng = np.random.default_rng(1)
    for y in targets(loss):
        low, high = slopes(loss, y)
        alpha = -rng.uniform(low, high, 2000)
        z, weight = rng.normal(size=2000) * 10.0 ** rng.uniform(-2, 4, 2000), 10.0 ** rng.uniform(-4, 4, 2000)
        for _ in range(5):
            alpha = alpha + loss.dual_step(alpha, z, np.full(2000, y), weight)
            assert np.all(np.isfinite(loss.conjugate(-alpha, np.full(2000, y))))


@pytest.mark.parametrize("loss", [i for i in INSTANCES if isinstance(i, EXACT_STEPS)], ids=repr)
def test_dual_steps_of_piecewise_quadratic_losses_are_exact(loss):
    alpha, z, y, weight = dual_points(loss)
    step, best = loss.dual_step(alpha, z, y, weight), best_steps(loss, alpha, z, y, weight)
    np.testing.assert_allclose(step, best, rtol=1e-6, atol=2e-6)


@pytest.mark.parametrize("loss", [Logistic(), Poisson(max_rate=0.5), Poisson(max_rate=20.0)], ids=repr)
def test_repeated_dual_steps_converge_to_the_best_step(loss):
    alpha, z, y, weight = dual_points(loss, weights=(0.05, 1.0, 5.0))
    best = best_steps(loss, alpha, z, y, weight)
    total = np.zeros_like(alpha)
    for _ in range(3000):
        total += loss.dual_step(alpha + total, z + weight * total, y, weight)
    np.testing.assert_allclose(total, best, rtol=1e-6, atol=2e-6)
    # The condition of a minimum: the dual variable is minus the slope where the prediction ends.
    np.testing.assert_allclose(alpha + total, -loss.derivative(z + weight * total, y), atol=1e-9)


@EVERY_LOSS
def test_a_dual_step_of_no_weight_goes_to_minus_the_slope(loss):
    z, y = smooth_points(loss)
    alpha = np.linspace(-0.5, 0.5, z.size)
    step = loss.dual_step(alpha, z, y, np.zeros_like(z))
    np.testing.assert_allclose(step, -loss.derivative(z, y) - alpha, rtol=1e-12, atol=1e-12)


@EVERY_LOSS
def test_huge_values_give_dual_steps_without_nan_and_warnings(loss):
    size = np.array([-1e100, -1e6, -1.0, 0.0, 1.0, 1e6, 1e100])
    z, y, weight = (a.ravel() for a in np.meshgrid(size, targets(loss), [0.0, 1e-300, 1e-6, 1.0, 1e6, 1e100]))
    ends = np.array([slopes(loss, t) for t in targets(loss)])
    low, high = (ends[np.searchsorted(targets(loss), y), k] for k in (0, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for alpha in (-low, -high, -(low + high) / 2):
            assert np.all(np.isfinite(loss.dual_step(alpha, z, y, weight)))
            assert not np.any(np.isnan(loss.conjugate(-alpha + z, y)))
        assert not np.any(np.isnan(loss.largest_curvature(z, np.flip(z))))


@EVERY_LOSS
def test_largest_curvature_bounds_the_curvature_between_two_predictions(loss):
    rng = np.random.default_rng(2)
    one, other = rng.normal(size=(2, 500)) * 5
    bound = np.broadcast_to(loss.largest_curvature(one, other), one.shape)
    for y in targets(loss):
        for share in np.linspace(0, 1, 41):
            between = one + share * (other - one)
            assert np.all(loss.curvature(between, np.full_like(one, y)) <= bound * (1 + 1e-12))


@EVERY_LOSS
def test_dual_functions_are_elementwise(loss):
    alpha, z, y, weight = dual_points(loss)
    whole = loss.dual_step(alpha, z, y, weight), loss.conjugate(-alpha, y)
    for i in range(z.size):
        part = slice(i, i + 1)
        assert loss.dual_step(alpha[part], z[part], y[part], weight[part]) == whole[0][i]
        assert loss.conjugate(-alpha[part], y[part]) == whole[1][i]


@pytest.mark.parametrize(
    ("loss", "constant"),
    [(Logistic(), (5 * math.sqrt(5) - 11) / 8), (LogCosh(0.3), 0.25)],
)
def test_the_joint_constant_is_the_least_that_holds(loss, constant):
    assert loss.joint_constant() == pytest.approx(constant)
    if math.isfinite(constant):
        z, y = grid(loss, np.linspace(-9, 9, 20_001))
        e = loss.derivative(z, y) / loss.lipschitz()
        inside = np.abs(e) < 1 - 1e-6
        found = np.max(np.square(loss.curvature(z, y))[inside] / (4 * (1 - np.square(e[inside]))))
        assert found == pytest.approx(constant, rel=1e-4)


def test_the_joint_constant_of_huber_holds_in_units_above_its_largest_slope():
    loss = Huber()
    z, y = grid(loss, np.linspace(-9, 9, 2_001))
    e = loss.derivative(z, y) / (1.25 * loss.lipschitz())
    assert np.max(np.square(loss.curvature(z, y)) / (4 * (1 - np.square(e)))) <= loss.joint_constant() * (
        1 + 1e-9
    )


def test_squares_are_softened_and_bounded_losses_stay():
    assert Squared().softened(0.7) == LogCosh(0.7)
    assert Logistic().softened(0.7) == Logistic()
