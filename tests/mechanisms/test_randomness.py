"""Random words, coins, orders and numbers of tries: those of AES in counter mode, with their exact laws."""

import pickle

import numpy as np
import pytest
from randomgen import AESCounter
from scipy import stats

from dpglm.accounting import NegativeBinomial, PoissonTries, tries_of
from dpglm.kernels import aes
from dpglm.mechanisms import Randomness
from dpglm.mechanisms.randomness import Coins, Words, draw_tries, order_of

KEYS = [0, 1, 2**64, 2**128 - 1, 0x0123456789ABCDEF0011223344556677]
STARTS = [0, 1, 15, 16, 2**64 - 2, 2**64 + 1, 2**65 - 17, 2**65 - 1, 5 << 64, (1 << 128) + 3]


@pytest.fixture(params=[True, False], ids=["compiled", "by randomgen"])
def made(request, monkeypatch):
    """Words from each source, where the processor has instructions for the first."""
    if request.param and not aes.is_available():
        pytest.skip("the processor has no instructions for AES")
    monkeypatch.setattr(aes, "is_available", lambda: request.param)
    return Words


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("key", KEYS)
def test_words_are_those_of_the_reference(made, key, start):
    for count in (0, 1, 2, 16, 33):
        reference = AESCounter(key=key)
        reference.advance(start)
        assert np.array_equal(made(key).read(start, count), reference.random_raw(count))


def test_a_block_is_the_cipher_of_its_number(made):
    # FIPS 197, appendix C.1.
    key, number, cipher = (
        int.from_bytes(bytes.fromhex(text), "little")
        for text in (
            "000102030405060708090a0b0c0d0e0f",
            "00112233445566778899aabbccddeeff",
            "69c4e0d86a7b0430d8cdb78070b4c55a",
        )
    )
    low, high = (int(word) for word in made(key).read(2 * number, 2))
    assert high << 64 | low == cipher


def test_words_that_are_read_on_are_those_of_one_reading(made):
    whole, read = made(7).read(3, 1000), made(7).from_number(3)
    parts = [read(count) for count in (1, 2, 13, 16, 300, 668)]
    assert np.array_equal(np.concatenate(parts), whole)


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


@pytest.mark.parametrize("digits", [1, 3, 30, 62])
@pytest.mark.parametrize("count", [0, 1, 2, 3, 100, 4095, 4096, 20_000])
def test_the_order_is_that_of_a_stable_sort(count, digits):
    keys = Randomness(count).integers(1 << digits, count)
    assert np.array_equal(order_of(keys, digits), np.argsort(keys, kind="stable"))


@pytest.mark.parametrize("key", [lambda i: 500 - i, lambda i: i, lambda i: 0 * i, lambda i: 2**61 + i // 9])
def test_numbers_that_are_not_random_are_ordered_too(key):
    keys = key(np.arange(500))
    assert np.array_equal(order_of(keys, 62), np.argsort(keys, kind="stable"))


@pytest.mark.parametrize(
    "tries",
    [
        tries_of("logarithmic", 4.0),
        tries_of("geometric", 3.0),
        PoissonTries(2.5),
        NegativeBinomial(-0.5, 0.1),
    ],
    ids=lambda tries: tries.words,
)
def test_numbers_of_tries_have_their_law(tries):
    count, chances = 3_000, tries.probabilities()
    randomness = Randomness(5)
    drawn = np.bincount([draw_tries(tries, randomness) for _ in range(count)], minlength=4)
    for k in range(4):
        expected, deviation = count * chances[k], np.sqrt(count * chances[k] * (1 - chances[k]))
        assert abs(drawn[k] - expected) <= 5 * deviation + 1e-9
