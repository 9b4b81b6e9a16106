"""Laws that every composed price and every calibration obeys."""

import math

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as oracle

from dpglm.accounting import (
    Composed,
    Exponential,
    Gaussian,
    Imprecision,
    Laplace,
    PoissonGaussian,
    Pure,
    Repeated,
    calibrate,
    compose,
)
from dpglm.accounting.compose import SMALLEST_DELTA, normal_form, zcdp_delta, zcdp_rho
from dpglm.accounting.curves import gaussian_delta, gaussian_profile
from dpglm.accounting.pld import composed_delta, discretise

TEMPLATES = [
    Repeated(Laplace(1.0), 3),
    Repeated(Pure(1.0), 40),
    Repeated(Exponential(1.0), 7),
    Repeated(Composed((Exponential(1.0), Gaussian(0.5))), 100),
    Repeated(Composed((Exponential(1.0), Laplace(2.0))), 2),
    PoissonGaussian(1.0, 0.2, "zero-out"),
    Repeated(PoissonGaussian(1.0, 0.01, "replace-one"), 1000),
    Composed(
        (
            Gaussian(3.0),
            Repeated(Exponential(1.0), 5),
            Repeated(PoissonGaussian(1.0, 0.1, "zero-out"), 9),
            Pure(0.1),
        )
    ),
]


@pytest.mark.parametrize("event", TEMPLATES, ids=repr)
@pytest.mark.parametrize(("epsilon", "delta"), [(0.05, 1e-5), (1.0, 1e-12), (20.0, 1e-8)])
def test_calibration_never_overspends_and_is_least(event, epsilon, delta):
    factor = calibrate(event, epsilon, delta)
    assert compose(event.scaled(factor)).delta(epsilon) <= delta
    assert compose(event.scaled(factor * (1 - 1e-3))).delta(epsilon) > delta


@pytest.mark.parametrize(
    "event",
    [
        Repeated(Exponential(1.0), 20),
        Repeated(Exponential(1.0), 4000),
        Repeated(Composed((Exponential(1.0), Gaussian(math.sqrt(2)))), 50),
        Composed((Repeated(Exponential(1.0), 100), Repeated(Gaussian(3.0), 8))),
        Repeated(PoissonGaussian(1.0, 0.01, "zero-out"), 1000),
    ],
    ids=["few selections", "many selections", "rounds", "selections and releases", "batches"],
)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_no_factor_that_is_smaller_by_the_tolerance_is_enough(event, epsilon):
    factor = calibrate(event, epsilon, 1e-9)
    assert compose(event.scaled(factor)).delta(epsilon) <= 1e-9
    assert compose(event.scaled(factor * (1 - 1.001e-4))).delta(epsilon) > 1e-9


@pytest.mark.parametrize("event", TEMPLATES, ids=repr)
def test_delta_falls_with_epsilon_and_with_noise(event):
    epsilons = [0.0, 0.1, 0.5, 1.0, 3.0, 10.0]
    curve, noisier = compose(event.scaled(3.0)), compose(event.scaled(3.3))
    deltas = [curve.delta(e) for e in epsilons]
    assert deltas == sorted(deltas, reverse=True)
    # below SMALLEST_DELTA the cut tails, not the mechanism, are charged
    assert all(noisier.delta(e) <= max(d, SMALLEST_DELTA) for e, d in zip(epsilons, deltas, strict=True))


@pytest.mark.parametrize("event", TEMPLATES, ids=repr)
def test_epsilon_and_delta_are_inverse(event):
    curve = compose(event.scaled(4.0))
    for delta in (1e-9, 1e-3):
        epsilon = curve.epsilon(delta)
        assert curve.delta(epsilon) <= delta
        assert epsilon == 0 or curve.delta(epsilon * (1 - 1e-4)) > delta


@pytest.mark.parametrize("event", TEMPLATES[:5], ids=repr)
def test_the_price_is_at_most_the_zcdp_bound(event):
    for epsilon in (0.1, 1.0):
        rho = zcdp_rho(normal_form(event.scaled(5.0)))
        assert compose(event.scaled(5.0)).delta(epsilon) <= zcdp_delta(rho, epsilon) * (1 + 1e-5)


@pytest.mark.parametrize("rho", [1e-8, 1e-4, 0.01, 0.5, 20.0])
@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1.0, 10.0, 100.0])
def test_the_zcdp_conversion_is_at_its_best_order(rho, epsilon):
    gaps = np.geomspace(1e-6, 1e12, 20_001)
    logs = gaps * ((1 + gaps) * rho - epsilon) - (1 + gaps) * np.log1p(1 / gaps) - np.log(gaps)
    assert zcdp_delta(rho, epsilon) <= min(1.0, math.exp(logs.min())) * (1 + 1e-9)


def test_zcdp_of_a_gaussian_is_above_its_exact_price_but_not_far():
    for mu, epsilon in ((0.1, 0.2), (0.1, 0.5), (1.0, 0.5), (1.0, 3.0)):
        exact = gaussian_delta(mu, epsilon)
        assert exact <= zcdp_delta(mu * mu / 2, epsilon) <= 20 * exact


@pytest.mark.parametrize(("mu", "count", "epsilon"), [(0.3, 2, 2.0), (0.05, 400, 5.0), (1e-3, 10**6, 6.5)])
def test_tilted_composition_keeps_relative_precision_far_below_the_fft_floor(mu, count, epsilon):
    law = discretise(gaussian_profile(mu), 0.02 * mu)
    exact = gaussian_delta(mu * math.sqrt(count), epsilon)
    bound = composed_delta([(law, count)], epsilon)
    assert exact <= bound <= 1.02 * exact
    assert count < 10**6 or exact < 1e-8


def test_the_discrete_law_dominates_the_curve_it_stands_for():
    law = discretise(gaussian_profile(1.0), 0.3)
    x = law.step * np.arange(law.low, law.high + 1)
    assert law.mass.sum() + law.infinite == pytest.approx(1.0, abs=1e-12)
    for epsilon in np.linspace(0, 4, 41):
        discrete = law.infinite + np.sum(np.maximum(-np.expm1(epsilon - x), 0.0) * law.mass)
        assert discrete >= gaussian_delta(1.0, float(epsilon)) * (1 - 1e-10)


def test_randomized_response_composes_as_its_binomial_law():
    """Kairouz, Oh and Viswanath: k runs of randomized response, exactly."""
    step, count, epsilon = 0.1, 30, 1.0
    p = 1 / (1 + math.exp(-step))
    exact = sum(
        math.comb(count, k)
        * p**k
        * (1 - p) ** (count - k)
        * max(0.0, -math.expm1(epsilon - (2 * k - count) * step))
        for k in range(count + 1)
    )
    price = compose(Repeated(Pure(step), count)).delta(epsilon)
    assert exact <= price <= (1 + 1e-5) * exact


def test_small_pure_losses_are_not_rounded_up_to_a_coarse_grid():
    """Hazard 2: dp-accounting's default grid makes 1.985 of this 0.998."""
    assert compose(Repeated(Pure(0.00167), 20_000)).epsilon(1e-6) < 1.15


def test_laplace_agrees_with_dp_accounting():
    bound = oracle.from_laplace_mechanism(20.0, value_discretization_interval=1e-3).self_compose(50)
    for epsilon in (0.5, 1.0, 2.0):
        price = compose(Repeated(Laplace(20.0), 50)).delta(epsilon)
        assert price == pytest.approx(bound.get_delta_for_epsilon(epsilon), rel=1e-3)


def test_pure_budgets_follow_basic_composition():
    event = Composed((Repeated(Composed((Exponential(1.0), Laplace(1.0))), 2), Pure(0.5)))
    assert compose(event).epsilon(0.0) == pytest.approx(6.5, rel=1e-12)
    assert compose(event).epsilon(0.0) >= 6.5
    factor = calibrate(event, 0.5, 0.0)
    assert factor == pytest.approx(13.0, rel=1e-12)
    assert compose(event.scaled(factor)).delta(0.5) == 0.0


def test_delta_zero_is_refused_for_gaussians():
    assert compose(Gaussian(1e6)).epsilon(0.0) == math.inf
    assert compose(Composed((Pure(1.0), Gaussian(1.0)))).epsilon(0.0) == math.inf
    with pytest.raises(ValueError, match="delta = 0"):
        calibrate(Gaussian(1.0), 1.0, 0.0)


def test_a_delta_below_what_the_grid_can_show_is_refused():
    with pytest.raises(ValueError, match="delta"):
        calibrate(Repeated(Exponential(1.0), 3), 1.0, 1e-40)


def test_infinite_epsilon_needs_no_noise():
    assert calibrate(Repeated(PoissonGaussian(1.0, 0.1, "zero-out"), 10), math.inf, 1e-6) == 0.0


@pytest.mark.parametrize(
    ("epsilon", "delta", "name"), [(-1.0, 1e-6, "epsilon"), (1.0, 1.5, "delta"), (math.nan, 0.1, "epsilon")]
)
def test_a_wrong_budget_is_named(epsilon, delta, name):
    with pytest.raises(ValueError, match=name):
        calibrate(Gaussian(1.0), epsilon, delta)


def test_calibrating_a_part_without_noise_is_refused():
    with pytest.raises(ValueError, match="without noise"):
        calibrate(Composed((Gaussian(1.0), Laplace(0.0))), 1.0, 1e-6)


def test_the_order_inside_a_round_matters_and_any_other_is_priced_for_all_orders():
    select_first = compose(Repeated(Composed((Exponential(4.0), Gaussian(4.0))), 3)).delta(1.0)
    any_order = compose(Repeated(Composed((Gaussian(4.0), Exponential(4.0))), 3)).delta(1.0)
    assert select_first < any_order


def test_nothing_costs_nothing():
    assert compose(Composed(())).epsilon(0.0) == 0.0
    assert compose(Composed(())).delta(0.0) == 0.0


BESIDE = [
    Repeated(Gaussian(20.0), 100),
    Repeated(Laplace(50.0), 10),
    Repeated(PoissonGaussian(2.0, 0.01, "zero-out"), 50),
    Repeated(Composed((Exponential(60.0), Gaussian(40.0))), 20),
]


@pytest.mark.parametrize("event", BESIDE, ids=repr)
@pytest.mark.parametrize("distance", [2.0**-400, 1e-12, 1e-7])
def test_a_distance_from_the_exact_law_adds_its_multiple_to_delta(event, distance):
    exact, imprecise = compose(event), compose(Composed((event, Repeated(Imprecision(distance / 8), 8))))
    for epsilon in (0.0, 0.3, 1.0, 3.0):
        added = (1 + math.exp(epsilon)) * distance
        assert exact.delta(epsilon) + added <= imprecise.delta(epsilon)
        assert imprecise.delta(epsilon) <= (exact.delta(epsilon) + added) * (1 + 1e-9)
    for delta in (1e-6, 1e-3):
        epsilon = imprecise.epsilon(delta)
        assert epsilon >= exact.epsilon(delta) * (1 - 1e-6)
        assert imprecise.delta(epsilon) <= delta
        if distance < 1e-12:
            assert epsilon == pytest.approx(exact.epsilon(delta), rel=2e-6)


def test_a_distance_that_delta_cannot_pay_leaves_no_epsilon():
    event = Composed((Gaussian(5.0), Imprecision(1e-6)))
    assert compose(event).epsilon(1e-6) == math.inf
    assert compose(Composed((Laplace(1.0), Imprecision(1e-20)))).epsilon(0.0) == math.inf
    assert compose(event).delta(math.inf) == 0.0 and compose(event).delta(1000.0) == 1.0


@pytest.mark.parametrize("event", BESIDE, ids=repr)
def test_calibration_pays_for_the_distance_first(event):
    whole = Composed((event, Imprecision(1e-8)))
    factor = calibrate(whole, 1.0, 1e-6)
    assert compose(whole.scaled(factor)).delta(1.0) <= 1e-6
    assert compose(whole.scaled(factor * (1 - 2e-4))).delta(1.0) > 1e-6
    tiny = Composed((event, Repeated(Imprecision(2.0**-400), 10**6)))
    assert calibrate(tiny, 1.0, 1e-6) == pytest.approx(calibrate(event, 1.0, 1e-6), rel=2e-4)
    with pytest.raises(ValueError, match="delta"):
        calibrate(whole, 1.0, 3e-8)
