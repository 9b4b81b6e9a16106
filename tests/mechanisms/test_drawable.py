"""A mechanism says of its noise alone whether it can be drawn, before there is anything to release."""

import numpy as np
import pytest

from dpglm.arrays import Total
from dpglm.errors import UnsupportedProblem
from dpglm.mechanisms import Exponential, Gaussian, Laplace, LaplaceNoisyMax, Randomness, Round, Thresholded
from dpglm.mechanisms.additive import Levels

NOISES = [0.5, 1e3, *(10.0**k * f for k in range(8, 15) for f in (1, 2, 5)), 1e150]
SENSITIVITIES = [1e-90, 1e-3, 1.0, 7.3, 1e90]
TOTAL = Total(np.arange(5), 2.0**-30)
UNITS = Total(np.arange(5), 2.0**-30, unit=np.array([1.0, 1.9, 0.6, 1.0, 1.0]))
SCORES = np.arange(5.0)
LEVELS = Levels(({"a": 3.0}, {"b": 1.0}), 5)


def of_levels(mechanism, size):
    return mechanism.release(LEVELS, 2.0 if size == 1.0 else 1.0, Randomness(0))


KINDS = {
    "gaussian": (Gaussian, 5, lambda m, s: m.release(s * SCORES, s, Randomness(0))),
    "laplace": (Laplace, 5, lambda m, s: m.release(s * SCORES, s, Randomness(0))),
    "gaussian, exact sum": (Gaussian, 5, lambda m, s: m.release(TOTAL, max(s, 1e-3), Randomness(0))),
    "gaussian, in units": (Gaussian, 5, lambda m, s: m.release(UNITS, max(s, 1e-3), Randomness(0))),
    "exponential": (Exponential, 5, lambda m, s: m.release(s * SCORES, s, Randomness(0))),
    "noisy max": (LaplaceNoisyMax, 5, lambda m, s: m.release(s * SCORES, s, Randomness(0))),
    "levels": (lambda noise: Thresholded(noise, 7.0, 2), 10, of_levels),
    "round": (
        lambda noise: Round(Exponential(1.0), Gaussian(noise)), 5,
        lambda m, s: m.release((s * SCORES, s * SCORES), (s, np.full(5, s)), Randomness(0)),
    ),
    "round, selection": (
        lambda noise: Round(Exponential(noise), Gaussian(1.0)), 5,
        lambda m, s: m.release((s * SCORES, s * SCORES), (s, np.full(5, s)), Randomness(0)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_noise_that_is_called_drawable_is_drawn_whatever_the_sensitivity(kind):
    made, entries, release = KINDS[kind]
    refused = []
    for noise in NOISES:
        mechanism = made(noise)
        try:
            mechanism.require_drawable(entries)
        except UnsupportedProblem:
            refused.append(noise)
            continue
        for size in SENSITIVITIES:
            release(mechanism, size)
    assert refused and refused == NOISES[-len(refused) :]
    # little is refused that could be drawn: less than a factor of a hundred in noise
    with pytest.raises(UnsupportedProblem):
        for size in SENSITIVITIES:
            release(made(100 * refused[0]), size)
