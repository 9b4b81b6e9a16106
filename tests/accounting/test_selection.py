"""Lemma 4: the adaptive composition of bounded-range selections is exact, and never undercharged."""

import math

import numpy as np
import pytest

from dpglm.accounting import Composed, Exponential, Gaussian, Laplace, Pure, Repeated, compose
from dpglm.accounting.curves import bounded_range_profile, gaussian_profile, laplace_profile
from dpglm.accounting.pld import _without_gains, discretise, selection_rounds

from .reference import achieved_delta, gaussian_loss_cdf, laplace_loss_cdf

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
