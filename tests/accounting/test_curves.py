"""Curves of mechanisms and selections, against 60-digit arithmetic, dp-accounting and bounds from below."""

import math

import dp_accounting
import mpmath
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as oracle
from scipy.integrate import quad
from scipy.stats import norm

from dpglm.accounting import (
    Composed,
    Exponential,
    Gaussian,
    Laplace,
    PoissonGaussian,
    Pure,
    Repeated,
    calibrate,
    compose,
    gaussian_delta,
    gaussian_mu,
)
from dpglm.accounting.curves import (
    DELTA_ERROR,
    bounded_range_profile,
    gaussian_profile,
    hockey_stick,
    laplace_profile,
    poisson_profile,
)
from dpglm.accounting.pld import _without_gains, discretise, selection_rounds

from .reference import achieved_delta, achieved_poisson_delta, gaussian_loss_cdf, laplace_loss_cdf


def exact_delta(mu, epsilon):
    with mpmath.workdps(60):
        mu, epsilon = mpmath.mpf(mu), mpmath.mpf(epsilon)
        upper = mpmath.ncdf(mu / 2 - epsilon / mu)
        return upper - mpmath.exp(epsilon) * mpmath.ncdf(-mu / 2 - epsilon / mu)


@pytest.mark.parametrize("mu", [1e-6, 1e-3, 0.05, 0.099, 0.101, 1.0, 5.0, 30.0])
@pytest.mark.parametrize("ratio", [0.0, 1e-3, 0.5, 1.0, 4.0, 8.0, 20.0])
def test_delta_has_full_relative_precision_and_rounds_up(mu, ratio):
    epsilon = ratio * mu
    true = exact_delta(mu, epsilon)
    found = gaussian_delta(mu, epsilon)
    assert found >= true
    assert found <= true * (1 + mpmath.mpf("3e-11"))


@pytest.mark.parametrize("epsilon", [-3.0, -0.1])
def test_negative_epsilon_follows_from_symmetry(epsilon):
    assert gaussian_delta(1.3, epsilon) == pytest.approx(float(exact_delta(1.3, epsilon)), rel=1e-10)


@pytest.mark.parametrize("epsilon", [0.0, 1e-3, 0.1, 1.0, 10.0, 50.0])
@pytest.mark.parametrize("delta", [1e-30, 1e-12, 1e-6, 0.1, 0.9])
def test_mu_is_the_largest_that_does_not_overspend(epsilon, delta):
    mu = gaussian_mu(epsilon, delta)
    assert exact_delta(mu, epsilon) <= delta
    assert exact_delta(mu * (1 + 1e-10), epsilon) > delta


@pytest.mark.parametrize("noise", [0.5, 4.225, 300.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-6, 1e-2])
def test_reported_epsilon_is_the_closed_form_rounded_up(noise, delta):
    epsilon = compose(Gaussian(noise)).epsilon(delta)
    if epsilon == 0.0:
        assert exact_delta(1 / noise, 0.0) <= delta
        return
    assert exact_delta(1 / noise, epsilon) <= delta
    assert exact_delta(1 / noise, epsilon * (1 - 1e-9)) > delta


def test_gaussians_compose_to_one_gaussian():
    together = Composed((Repeated(Gaussian(10.0), 300), Gaussian(2.0), Repeated(Gaussian(7.0), 49)))
    alone = Gaussian(1 / math.sqrt(3 + 0.25 + 1))
    assert compose(together).delta(1.0) == pytest.approx(compose(alone).delta(1.0), rel=1e-12)


@pytest.mark.parametrize(("neighbours", "moved"), [("zero-out", 1), ("replace-one", 2)])
def test_sampling_everyone_is_the_gaussian(neighbours, moved):
    sampled = Repeated(PoissonGaussian(9.0, 1.0, neighbours), 20)
    assert compose(sampled).delta(1.0) == compose(Repeated(Gaussian(9.0 / moved), 20)).delta(1.0)


@pytest.mark.parametrize("neighbours", ["zero-out", "replace-one"])
def test_sampling_nearly_everyone_is_nearly_the_gaussian(neighbours):
    nearly = compose(Repeated(PoissonGaussian(9.0, 1 - 1e-7, neighbours), 20)).delta(1.0)
    everyone = compose(Repeated(PoissonGaussian(9.0, 1.0, neighbours), 20)).delta(1.0)
    assert nearly == pytest.approx(everyone, rel=2e-2)


def test_no_noise_costs_everything():
    for event in (Gaussian(0.0), Composed((Gaussian(1.0), PoissonGaussian(0.0, 0.1, "zero-out")))):
        assert compose(event).delta(100.0) == 1.0
        assert compose(event).epsilon(0.5) == math.inf


@pytest.mark.parametrize(
    ("epsilon", "delta", "noise"),
    [
        (0.1, 1e-6, 36.30),
        (0.5, 1e-6, 8.058),
        (1, 1e-6, 4.225),
        (1, 1e-5, 3.731),
        (1, 2.5e-9, 5.341),
        (4, 1e-6, 1.194),
    ],
)
def test_calibrated_gaussians_match_the_reference_and_never_overspend(epsilon, delta, noise):
    factor = calibrate(Repeated(Gaussian(1.0), 400), epsilon, delta)
    assert factor == pytest.approx(20 * noise, rel=1e-3)
    assert exact_delta(20 / factor, epsilon) <= delta
    assert exact_delta(20 / (factor * (1 - 1e-10)), epsilon) > delta


def test_a_delta_at_one_point_is_that_of_an_array_to_the_last_digit():
    rng = np.random.default_rng(0)
    for mu, epsilon in zip(10 ** rng.uniform(-9, 2, 300), 10 ** rng.uniform(-6, 3, 300), strict=True):
        among_others = hockey_stick(float(mu), np.array([0.0, epsilon]))[1] * (1 + DELTA_ERROR)
        expected = min(1.0, math.nextafter(float(among_others), math.inf))
        assert gaussian_delta(float(mu), float(epsilon)) == expected


RELATIONS = {
    "zero-out": dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE,
    "replace-one": dp_accounting.NeighboringRelation.REPLACE_ONE,
}


@pytest.mark.parametrize("neighbours", RELATIONS)
@pytest.mark.parametrize(("noise", "rate"), [(0.5, 0.3), (0.8, 0.01), (5.0, 0.1), (40.0, 0.5), (1.0, 1e-4)])
def test_one_step_curves_are_the_integrals_they_stand_for(noise, rate, neighbours):
    profile = poisson_profile(noise, rate, neighbours)
    other = 0.0 if neighbours == "zero-out" else -1.0

    def mixture(y, centre):
        return (1 - rate) * norm.pdf(y, 0, noise) + rate * norm.pdf(y, centre, noise)

    for x in (0.0, rate / noise):
        for half, (p, q) in ((profile.forward, (1.0, other)), (profile.backward, (other, 1.0))):
            integral = quad(
                lambda y, x=x, p=p, q=q: max(mixture(y, p) - math.exp(x) * mixture(y, q), 0.0),
                -12 * noise - 2,
                12 * noise + 2,
                limit=200,
                epsabs=1e-13,
                points=[-1, 0, 0.5, 1],
            )[0]
            assert half(np.array([x]))[0] == pytest.approx(integral, rel=1e-5, abs=1e-11)


@pytest.mark.parametrize("neighbours", RELATIONS)
@pytest.mark.parametrize(
    ("noise", "rate", "count", "epsilon"),
    [(2.0, 0.05, 100, 1.0), (0.878, 0.01, 1000, 4.0), (6.0, 0.3, 30, 0.5)],
)
def test_composition_agrees_with_dp_accounting_and_is_never_below_the_truth(
    noise, rate, count, epsilon, neighbours
):
    price = compose(Repeated(PoissonGaussian(noise, rate, neighbours), count)).delta(epsilon)
    bound = (
        oracle.from_gaussian_mechanism(
            noise,
            sampling_prob=rate,
            value_discretization_interval=5e-4,
            neighboring_relation=RELATIONS[neighbours],
        )
        .self_compose(count)
        .get_delta_for_epsilon(epsilon)
    )
    assert price == pytest.approx(bound, rel=2e-2)
    attained = max(
        achieved_poisson_delta(noise, rate, count, epsilon, neighbours, swapped) for swapped in (False, True)
    )
    assert price >= attained
    assert price <= 1.15 * attained


def test_both_directions_are_needed():
    """Zeroing a record out and adding it cost differently; the price is the larger, not the first."""
    profile = poisson_profile(1.0, 0.1, "zero-out")
    assert profile.forward(np.array([0.2]))[0] > 0 == profile.backward(np.array([0.2]))[0]
    event = Repeated(PoissonGaussian(1.0, 0.1, "zero-out"), 5)
    for epsilon in (0.05, 0.5):
        both = [achieved_poisson_delta(1.0, 0.1, 5, epsilon, "zero-out", s) for s in (False, True)]
        assert compose(event).delta(epsilon) >= max(both)


def test_replacing_costs_more_than_zeroing_out():
    for noise, rate in ((1.0, 0.01), (5.0, 0.2)):
        zero, replace = (
            compose(Repeated(PoissonGaussian(noise, rate, n), 50)).delta(0.5)
            for n in ("zero-out", "replace-one")
        )
        assert replace > 1.5 * zero


def test_replace_one_doubles_the_sensitivity_of_a_plain_gaussian():
    """Hazard 1: dp-accounting's Renyi accountant forgets it (epsilon 1.143), its PLD accountant does not."""
    event = PoissonGaussian(4.0, 1.0, "replace-one")
    assert compose(event).epsilon(1e-6) == pytest.approx(2.254, abs=2e-3)


def test_two_relations_in_one_price_are_refused():
    mixed = Composed((PoissonGaussian(1.0, 0.1, "zero-out"), PoissonGaussian(1.0, 0.1, "replace-one")))
    with pytest.raises(ValueError, match="mixes"):
        compose(mixed)


def test_mixtures_agree_with_dp_accounting():
    event = Composed(
        (Gaussian(3.0), Repeated(Laplace(8.0), 10), Repeated(PoissonGaussian(1.5, 0.05, "zero-out"), 60))
    )
    options = {"value_discretization_interval": 5e-4}
    bound = (
        oracle.from_gaussian_mechanism(3.0, **options)
        .compose(oracle.from_laplace_mechanism(8.0, **options).self_compose(10))
        .compose(oracle.from_gaussian_mechanism(1.5, sampling_prob=0.05, **options).self_compose(60))
    )
    for epsilon in (0.5, 2.0, 3.0):
        price = compose(event).delta(epsilon)
        assert price == pytest.approx(bound.get_delta_for_epsilon(epsilon), rel=2e-2)


@pytest.mark.parametrize(
    ("rate", "steps", "epsilon", "delta"), [(2.56e-4, 100, 1.0, 1e-12), (1e-4, 1000, 1.0, 1e-10)]
)
def test_small_rates_need_no_more_noise_than_dp_accounting_asks_for(rate, steps, epsilon, delta):
    noise = calibrate(Repeated(PoissonGaussian(1.0, rate, "zero-out"), steps), epsilon, delta)
    less = 0.995 * noise
    law = oracle.from_gaussian_mechanism(less, sampling_prob=rate, value_discretization_interval=1e-4)
    assert law.self_compose(steps).get_delta_for_epsilon(epsilon) > delta
    both = calibrate(Repeated(PoissonGaussian(1.0, rate, "replace-one"), steps), epsilon, delta)
    assert noise <= both * (1 + 1e-3) and both <= 2 * noise


# delta of the best adaptive adversary at eta = 1, by Monte Carlo, and its standard error
SELECTION_ONLY = {1: (0.08286, 0.00017), 2: (0.11283, 0.00026), 3: (0.13222, 0.00032)}
WITH_LAPLACE = {1: (0.04737, 0.00015), 2: (0.06591, 0.00024), 3: (0.09180, 0.00031)}
WITH_GAUSSIAN = {1: (0.04502, 0.00020), 2: (0.07476, 0.00028), 3: (0.10169, 0.00034)}
MONTE_CARLO = [
    (release, scale, rounds, *values)
    for release, scale, table in (
        (None, 0.48, SELECTION_ONLY),
        (Laplace(2.0), 0.96, WITH_LAPLACE),
        (Gaussian(2.0), 0.96, WITH_GAUSSIAN),
    )
    for rounds, values in table.items()
]


def rounds_of(eta, release, count):
    selection = Exponential(2 / eta)
    return Repeated(Composed((selection, release)) if release else selection, count)


@pytest.mark.parametrize("profile", [gaussian_profile(0.7), laplace_profile(0.5)])
def test_raising_the_least_losses_raises_every_expected_value_and_hardly_so(profile):
    law = discretise(profile, 0.02, tail=1e-36)
    raised = _without_gains(law)
    assert raised.high == law.high and raised.low >= law.low and raised.infinite == law.infinite
    assert abs(raised.mass.sum() - law.mass.sum()) < 1e-15
    for x in (0.0, 0.5, 2.0, 6.0):  # of a curve that falls with the loss
        before, after = (
            float(np.sum(one.mass * np.exp(-3 * (x - 0.02 * np.arange(one.low, one.high + 1)))))
            for one in (law, raised)
        )
        assert before * (1 - 1e-14) <= after <= before * (1 + 1e-12)


@pytest.mark.parametrize(("release", "scale", "rounds", "delta", "error"), MONTE_CARLO)
def test_the_price_is_what_the_best_adversary_attains(release, scale, rounds, delta, error):
    price = compose(rounds_of(1.0, release, rounds)).delta(scale * math.sqrt(rounds))
    assert abs(price - delta) < 4 * error


@pytest.mark.parametrize(("eta", "rounds"), [(1.0, 2), (0.5, 5), (0.25, 20), (0.2, 64)])
@pytest.mark.parametrize("share", [0.25, 1.0, 3.0])
def test_selections_cost_at_least_what_is_attained_and_hardly_more(eta, rounds, share):
    epsilon = share * eta * math.floor(math.sqrt(rounds))
    attained = achieved_delta(eta, rounds, epsilon)
    price = compose(Repeated(Exponential(2 / eta), rounds)).delta(epsilon)
    assert price >= attained
    assert price <= 1.05 * attained


@pytest.mark.parametrize("rounds", [1, 3, 8])
@pytest.mark.parametrize(
    ("release", "law"),
    [(Laplace(3.0), laplace_loss_cdf(1 / 3)), (Gaussian(3.0), gaussian_loss_cdf(1 / 3))],
    ids=["laplace", "gaussian"],
)
def test_rounds_cost_at_least_what_is_attained_and_hardly_more(release, law, rounds):
    epsilon = math.floor(math.sqrt(rounds)) * 0.5
    attained = achieved_delta(0.5, rounds, epsilon, law, cells=64)
    price = compose(rounds_of(0.5, release, rounds)).delta(epsilon)
    assert price >= attained
    assert price <= 1.12 * attained


def test_one_selection_is_lemma_3():
    eta, x = 0.8, 0.3
    exact = (1 - math.exp(-(eta - x) / 2)) ** 2 / (1 - math.exp(-eta))
    assert compose(Exponential(2 / eta)).delta(x) == pytest.approx(exact, rel=2e-6)
    sampled = selection_rounds(eta, None, {1}, 64)[1]
    grid = np.linspace(0, eta, 50)
    assert np.all(sampled.forward(grid) >= bounded_range_profile(eta).forward(grid) * (1 - 1e-12))


@pytest.mark.parametrize("count", [65, 128, 200])
def test_blocks_cost_at_least_the_exact_recursion_and_hardly_more(count):
    eta, epsilon = 0.1, 1.5
    exact = selection_rounds(eta, None, {count}, 32)[count].at(epsilon)
    blocks = compose(Repeated(Exponential(2 / eta), count)).delta(epsilon)
    assert blocks >= exact * (1 - 2e-3)
    assert blocks <= 1.12 * exact


def test_a_selection_is_not_randomized_response_of_half_its_range():
    """Hazard 3: RR(eta/2) has a smaller loss than an eta-bounded-range selection can have."""
    eta = 1.0
    assert compose(Exponential(2 / eta)).delta(0.75 * eta) > 0
    assert compose(Pure(eta / 2)).delta(0.75 * eta) == 0


def test_bounded_range_halves_the_long_run_price_of_pure_selection():
    selection = compose(Repeated(Exponential(100.0), 1000)).epsilon(1e-6)
    pure = compose(Repeated(Pure(2 / 100.0), 1000)).epsilon(1e-6)
    assert 1.8 < pure / selection < 2.6
