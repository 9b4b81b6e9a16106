"""A coin of exactly a given probability, from random 64-bit words."""

from __future__ import annotations

import numpy as np

from .arguments import Words
from .compiled import part

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
