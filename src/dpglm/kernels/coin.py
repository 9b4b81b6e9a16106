"""Coins of exactly a given probability, from random 64-bit words or bytes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .arguments import Integers, Words
from .compiled import compiled, part

WORD = 2.0**64
WORDS_A_COIN = 17
"""The most words that a coin can take: a double has its last digit at 2**-1074 or before."""


@part
def coin(words: Words, at: int, chance: float) -> tuple[int, bool]:
    """The next word, and True with exactly this probability below 1: digits are read until two differ."""
    while True:
        scaled = chance * WORD
        whole = np.floor(scaled)  # a float: an integer would overflow
        word, digits = words[at], np.uint64(whole)
        at += 1
        if word != digits or scaled == whole:
            return at, word < digits
        chance = scaled - whole


@compiled(nogil=True)
def taken(digits: NDArray[np.uint8], first: int, ties: NDArray[np.bool_], out: Integers) -> None:
    """Write the places of digits below ``first``; ``ties`` decides on those that are equal.

    A place is written before it is known whether it counts: the processor could not foresee it. So there is
    space for one more.
    """
    count, tie = np.uint64(0), np.uint64(0)
    for i in range(np.uint64(digits.size)):
        out[count] = i
        if digits[i] == first:
            count += np.uint64(ties[tie])
            tie += np.uint64(1)
        else:
            count += np.uint64(digits[i] < first)
