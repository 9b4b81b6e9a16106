"""Random words: those of AES in counter mode, however they are made."""

import numpy as np
import pytest
from randomgen import AESCounter

from dpglm.kernels import aes
from dpglm.mechanisms.randomness import Words

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
