"""Poisson coins: of exactly their rate, and by position alone."""

import pickle

import numpy as np
import pytest
from scipy import stats

from dpglm.mechanisms import Randomness
from dpglm.mechanisms.randomness import Coins

LARGEST = 2**64 - 1


class Given(Coins):
    """Coins from given words: those of the first stream, then those of the second."""

    def __init__(self, first, second, rate):
        super().__init__(0, rate)
        self._first, self._second = first, second

    def _reader(self):
        def read(start, count):
            words, at = (self._first, start) if start < 2**64 else (self._second, start - 2**64)
            return words[at : at + count]

        return read


def test_a_coin_has_exactly_its_rate():
    digits = np.array([4, 5, 5, 6, 5, 0, 255, 5], dtype=np.uint8).view(np.uint64)
    more = np.array([2 << 19, 3 << 19, (3 << 19) - 1, LARGEST], dtype=np.uint64)
    coins = Given(digits, more, 5 / 2**8 + 3 / 2**53)
    assert np.array_equal(coins.taken(0, 8), [0, 1, 4, 5])
    assert len(Randomness(0).coins(1.0).taken(0, 1000)) == 1000


def test_every_coin_has_digits_of_its_own():
    for count in range(1, 25):
        coins = Given(
            np.arange(24, dtype=np.uint8).view(np.uint64), np.full(20, LARGEST, np.uint64), count / 2**8
        )
        assert np.array_equal(coins.taken(0, 20), np.arange(min(count, 20)))


def test_each_position_is_taken_at_the_rate():
    counts = np.bincount(
        np.concatenate([Randomness(seed).coins(0.3).taken(0, 1000) for seed in range(100)]), minlength=1000
    )
    assert stats.binomtest(int(counts.sum()), 100_000, 0.3).pvalue > 1e-6
    assert (
        stats.binom.sf(counts.max() - 1, 100, 0.3) > 1e-9 and stats.binom.cdf(counts.min(), 100, 0.3) > 1e-9
    )


@pytest.mark.parametrize("rate", [2.0**-53, 1 / 256, 0.01, 0.3, 0.999])
def test_coins_do_not_depend_on_which_others_are_looked_at(rate):
    coins, n = Randomness(7).coins(rate), 200_001
    whole = coins.taken(0, n)
    for size in (1 << 16, 65_537, 9_999):
        cuts = [*range(0, n, size), n]
        parts = [coins.taken(a, b) + a for a, b in zip(cuts[:-1], cuts[1:], strict=True)]
        assert np.array_equal(np.concatenate(parts), whole)
    for place in (0, 7, 65_535, 65_536, 131_073, 200_000):
        assert len(coins.taken(place, place + 1)) == (place in set(whole.tolist()))
    assert len(coins.taken(5, 5)) == 0


def test_the_key_is_drawn_from_the_stream_and_appears_in_no_text():
    source = Randomness(3)
    one, two = source.coins(0.5), source.coins(0.5)
    assert not np.array_equal(one.taken(0, 500), two.taken(0, 500))
    assert str(one._key) not in repr(one) and hex(one._key)[2:] not in repr(one)
    assert np.array_equal(pickle.loads(pickle.dumps(one)).taken(3, 99), one.taken(3, 99))
