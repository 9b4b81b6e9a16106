"""Every number has noise of its own, and the key of the noise has all of its bits."""

import secrets

import numpy as np
import pytest

from dpglm import Bounds, Neighbours
from dpglm.curator import Curator
from dpglm.data import as_data
from dpglm.losses import Logistic
from dpglm.mechanisms import Exponential, Gaussian, Laplace, LaplaceNoisyMax, LinearTerm, Randomness
from dpglm.queries import ClippedGradient, SecondMoments

SIZE = 4000
ADDITIVE = {"Gaussian": (Gaussian(2.0), 2.0), "Laplace": (Laplace(2.0), 2.0 * np.sqrt(2))}


def require_independent(noise, deviation):
    """Noise of that deviation whose entries, neighbours, and halves have nothing in common."""
    noise = np.ravel(noise) / deviation
    assert abs(np.mean(noise**2) - 1) < 6 * np.sqrt(5 / noise.size)  # kurtosis 6 of Laplace noise
    assert abs(np.mean(noise)) < 6 / np.sqrt(noise.size)
    for lag in (1, 2, 3, noise.size // 2):
        assert abs(np.mean(noise[lag:] * noise[:-lag])) < 6 / np.sqrt(noise.size - lag)
    assert len(np.unique(noise)) > 0.98 * noise.size


@pytest.mark.parametrize("shape", [(SIZE,), (SIZE // 40, 40)], ids=str)
@pytest.mark.parametrize("name", ADDITIVE)
def test_the_entries_of_a_release_have_independent_noise(name, shape):
    mechanism, deviation = ADDITIVE[name]
    answer = np.random.default_rng(0).standard_normal(shape)
    require_independent(mechanism.release(answer, 1.0, Randomness(1)) - answer, deviation)


@pytest.mark.parametrize("name", ADDITIVE)
def test_a_block_of_draws_has_independent_noise(name):
    mechanism, deviation = ADDITIVE[name]
    sensitivity = np.random.default_rng(2).uniform(0.5, 20.0, SIZE)
    noise, grid = mechanism.draw(sensitivity, (SIZE,), Randomness(3))
    require_independent(noise / sensitivity, deviation)
    assert np.array_equal(noise / grid, np.rint(noise / grid))
    noise, _ = mechanism.draw(1.0, (SIZE,), Randomness(4))
    require_independent(noise, deviation)


@pytest.mark.parametrize("name", ADDITIVE)
def test_releases_one_after_the_other_have_independent_noise(name):
    mechanism, deviation = ADDITIVE[name]
    randomness = Randomness(5)
    require_independent([mechanism.release(0.25, 1.0, randomness) - 0.25 for _ in range(SIZE)], deviation)


class Echo:
    """An objective whose minimiser is its linear term; what is found is off by 2**-20 at most."""

    dimension = SIZE
    query = property(lambda self: self)

    def perturbed_error(self, length, moved):
        return 2.0**-20

    def minimiser(self, linear):
        self.linear = np.array(linear)
        return self.linear


def test_a_linear_term_and_the_noise_after_it_have_independent_entries():
    echo, mechanism = Echo(), LinearTerm(3.0, 0.1, "any", 1.0, "zero-out")
    released = mechanism.release(echo, 1.0, Randomness(6))
    require_independent(echo.linear, 3.0)
    after = released - echo.linear
    require_independent(after, mechanism.deviation(echo, 1.0))
    assert abs(np.corrcoef(after, echo.linear)[0, 1]) < 6 / np.sqrt(SIZE)


@pytest.mark.parametrize("mechanism", [Exponential(1.0), LaplaceNoisyMax(1.0)], ids=lambda kind: kind.name)
def test_equal_scores_are_chosen_equally_often(mechanism):
    """Noise that some of them shared would favour the first."""
    randomness, draws = Randomness(7), 6000
    chosen = [mechanism.release(np.zeros(6), 1.0, randomness) for _ in range(draws)]
    expected = draws / 6
    assert (np.abs(np.bincount(chosen, minlength=6) - expected) < 6 * np.sqrt(expected)).all()


@pytest.mark.parametrize(
    "query", [ClippedGradient(Logistic(), 1.0), SecondMoments(1.0)], ids=lambda q: q.name
)
def test_the_curator_gives_every_entry_of_a_sum_noise_of_its_own(query):
    records = as_data(np.zeros((5, SIZE)), np.ones(5), Bounds(row_norm=1.0))
    point = () if isinstance(query, SecondMoments) else (np.zeros(SIZE),)
    released = Curator(records, Neighbours.ZERO_OUT, Randomness(8)).release(query, Gaussian(2.0), *point)
    require_independent(released, 2.0)


# The key.


def test_a_key_has_128_bits_of_the_operating_system(monkeypatch):
    asked, key = [], (0xDEAD << 112) | 0xBEEF
    monkeypatch.setattr(secrets, "randbits", lambda bits: asked.append(bits) or key)
    keyed = Randomness()
    assert asked == [128] and keyed.secure
    assert np.array_equal(keyed.integers(1 << 62, 20), Randomness(key).integers(1 << 62, 20))


def test_every_bit_of_the_key_reaches_the_stream():
    streams = {tuple(Randomness(1 << bit).integers(1 << 62, 4)) for bit in range(128)}
    assert len(streams | {tuple(Randomness(0).integers(1 << 62, 4))}) == 129
