import numpy as np
import pytest
from scipy import stats

from dpglm.mechanisms import MECHANISMS, Exponential, Randomness
from dpglm.testing import check_mechanism

DRAWS = 100_000


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_noise_is_in_units_of_the_sensitivity(mechanism):
    check_mechanism(mechanism)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_negative_noise_is_refused(mechanism):
    with pytest.raises(ValueError, match="noise"):
        mechanism(-1.0)


@pytest.mark.parametrize(
    ("draw", "law"),
    [
        (lambda r: r.gaussian(2**30, DRAWS), stats.norm(scale=2**30)),
        (lambda r: r.laplace(2**30, DRAWS), stats.laplace(scale=2**30)),
        (lambda r: r.gumbel(DRAWS), stats.gumbel_r()),
    ],
)
def test_noise_follows_its_law(draw, law):
    assert stats.kstest(draw(Randomness(1)), law.cdf).pvalue > 1e-6


def test_the_exponential_mechanism_is_a_softmax():
    scores, scale = np.array([0.0, 1.0, 3.0]), 2.0
    expected = np.exp(scores / scale) / np.exp(scores / scale).sum()
    randomness = Randomness(2)
    chosen = [Exponential(scale).release(scores, 1.0, randomness) for _ in range(20_000)]
    assert stats.chisquare(np.bincount(chosen), 20_000 * expected).pvalue > 1e-6


def test_noise_without_a_seed_never_repeats():
    assert Randomness().secure
    assert not np.array_equal(Randomness().gaussian(100, 4), Randomness().gaussian(100, 4))


def test_a_seed_repeats_the_noise_and_is_not_secure():
    assert not Randomness(5).secure
    assert np.array_equal(Randomness(5).gaussian(100, 4), Randomness(5).gaussian(100, 4))
    assert "NOT private" in Randomness(5).description


def test_a_seed_outside_the_key_space_is_refused():
    with pytest.raises(ValueError, match="random_state"):
        Randomness(-1)
