"""Poisson sampling, in both directions and both relations, against dp-accounting and from below."""

import math

import dp_accounting
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as oracle
from scipy.integrate import quad
from scipy.stats import norm

from dpglm.accounting import Composed, Gaussian, Laplace, PoissonGaussian, Repeated, calibrate, compose
from dpglm.accounting.curves import poisson_profile

from .reference import achieved_poisson_delta

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
