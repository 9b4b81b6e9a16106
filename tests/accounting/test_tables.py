"""Calibrated noise against the reference tables."""

import math

import pytest

from dpglm.accounting import Composed, Exponential, Gaussian, Laplace, PoissonGaussian, Repeated, calibrate

from .tables import POISSON, SELECT, SELECT_AND_RELEASE

# This reference is 1.1 % above what dp-accounting itself needs on a fine grid; test_poisson.py compares the
# price there with dp-accounting and with a lower bound.
LOOSE_REFERENCE = (4, 20000, 200, 1000, "replace-one")


@pytest.mark.parametrize(("epsilon", "delta", "rounds", "laplace", "gaussian"), SELECT_AND_RELEASE)
def test_rounds_need_the_reference_noise(epsilon, delta, rounds, laplace, gaussian):
    with_laplace = Repeated(Composed((Exponential(1.0), Laplace(1.0))), rounds)
    with_gaussian = Repeated(Composed((Exponential(1.0), Gaussian(math.sqrt(2)))), rounds)
    assert calibrate(with_laplace, epsilon, delta) == pytest.approx(laplace, rel=0.01)
    assert calibrate(with_gaussian, epsilon, delta) == pytest.approx(gaussian, rel=0.01)


@pytest.mark.parametrize(("epsilon", "delta", "rounds", "scale"), SELECT)
def test_selections_need_the_reference_noise(epsilon, delta, rounds, scale):
    assert calibrate(Repeated(Exponential(1.0), rounds), epsilon, delta) == pytest.approx(scale, rel=0.01)


@pytest.mark.parametrize(("epsilon", "records", "batch", "steps", "zero_out", "replace_one"), POISSON)
def test_sampled_steps_need_the_reference_noise(epsilon, records, batch, steps, zero_out, replace_one):
    for neighbours, noise in (("zero-out", zero_out), ("replace-one", replace_one)):
        if noise is None:
            continue
        event = Repeated(PoissonGaussian(1.0, batch / records, neighbours), steps)
        loose = (epsilon, records, batch, steps, neighbours) == LOOSE_REFERENCE
        assert calibrate(event, epsilon, 1e-6) == pytest.approx(noise, rel=0.012 if loose else 0.01)
