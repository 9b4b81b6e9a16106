"""Calibrated noise against the reference tables."""

import math

import pytest
from dp_accounting import GaussianDpEvent, NeighboringRelation, PoissonSampledDpEvent
from dp_accounting.pld import PLDAccountant

from dpglm.accounting import Composed, Exponential, Gaussian, Laplace, PoissonGaussian, Repeated, calibrate

from .tables import POISSON, SELECT, SELECT_AND_RELEASE

# This reference is 1.1 % above what dp-accounting itself needs, so dp-accounting takes its place.
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
        found = calibrate(event, epsilon, 1e-6)
        if (epsilon, records, batch, steps, neighbours) == LOOSE_REFERENCE:
            accountant = PLDAccountant(NeighboringRelation.REPLACE_ONE)
            accountant.compose(PoissonSampledDpEvent(batch / records, GaussianDpEvent(found)), steps)
            assert accountant.get_delta(epsilon) <= 1e-6 and 0.98 * noise < found < noise
        else:
            assert found == pytest.approx(noise, rel=0.01)
