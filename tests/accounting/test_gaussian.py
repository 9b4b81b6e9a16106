"""The closed form of the Gaussian mechanism, against 60-digit arithmetic."""

import math

import mpmath
import numpy as np
import pytest

from dpglm.accounting import (
    Composed,
    Gaussian,
    PoissonGaussian,
    Repeated,
    calibrate,
    compose,
    gaussian_delta,
    gaussian_mu,
)
from dpglm.accounting.curves import DELTA_ERROR, hockey_stick


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
