"""Random draws from 64-bit words: coins, integer noise and the order of random numbers.

Integer noise is what ``mechanisms/exact_noise.py`` defines, from the same words in the same order. Where the
first digits of a number do not decide a comparison or a rounding, a kernel stops at the first word of that
draw and states it. There is no floating-point operation in it; words are never mixed with signed integers,
which would turn both into floats.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .arguments import Integers, Whole, Words
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


@compiled(nogil=True)
def write_order(keys: Integers, digits: int, begins: Integers, found: Integers, order: Integers) -> None:
    """Write the places of the keys, least key first; equal keys stay in their order.

    Keys have ``digits`` binary digits. They are put into bins by the first of these, then ordered inside:
    that takes few moves if keys are uniformly random and there are about as many bins as keys. ``begins`` has
    one entry for each bin, a power of two, and one more; ``found`` is space for the ordered keys.
    """
    bins, shift = begins.size - 1, np.int64(digits)
    while bins > 1:
        bins, shift = bins >> 1, shift - 1
    begins[:] = 0
    for key in keys:
        begins[(key >> shift) + 1] += 1
    for k in range(1, begins.size):
        begins[k] += begins[k - 1]
    for i in range(keys.size):
        at = begins[keys[i] >> shift]
        begins[keys[i] >> shift] = at + 1
        found[at], order[at] = keys[i], i
    for i in range(1, keys.size):
        key, place, at = found[i], order[i], i
        while at > 0 and found[at - 1] > key:
            found[at], order[at] = found[at - 1], order[at - 1]
            at -= 1
        found[at], order[at] = key, place


_0, _1, _2, _32, _63 = (np.uint64(n) for n in (0, 1, 2, 32, 63))
_HALF = np.uint64(1 << 63)
_LOW = np.uint64((1 << 32) - 1)
_ALL = np.uint64((1 << 64) - 1)

# The first word of a Gaussian draw, from its last digit on: sign, column (10), choice of a cell (29), coin.
_COLUMN, _CHOICE = np.uint64((1 << 10) - 1), np.uint64((1 << 29) - 1)
_TO_CHOICE, _TO_COIN = np.uint64(11), np.uint64(40)
_TO_SHARE, _TO_UNIT, _HALF_UNIT = np.uint64(10), np.uint64(4), np.uint64(8)
_TWICE, _TO_EXPONENT = np.uint64(25), np.uint64(33)


@part
def _high(a: np.uint64, b: np.uint64) -> np.uint64:
    """The upper 64 digits of the product of two words."""
    a1, a0, b1, b0 = a >> _32, a & _LOW, b >> _32, b & _LOW
    middle = a1 * b0 + (a0 * b0 >> _32)
    other = a0 * b1 + (middle & _LOW)
    return a1 * b1 + (middle >> _32) + (other >> _32)


@compiled(nogil=True)
def gaussian(
    columns: Words, words: Words, at: int, scale: Words, out: Integers, done: int
) -> tuple[Whole, Whole, bool]:
    """Fill out[done:] with round(scale * Z); return the next word and entry, and if it needs more digits.

    There is a scale for each entry, or one. Without need of more digits, a stop before the last entry means
    that the words ran out. A column has 29 digits of its own cell's share, then the other cell in 10 digits.
    """
    size, here, each = np.uint64(words.size), np.uint64(at), np.uint64(scale.size > 1)
    for i in range(np.uint64(done), np.uint64(out.size)):
        start = here
        while True:
            if here + _2 > size:
                return start, i, False
            first, x = words[here], words[here + _1]
            here += _2
            column = first >> _1 & _COLUMN
            choice, share = first >> _TO_CHOICE & _CHOICE, columns[column] >> _TO_SHARE
            cell = column if choice < share else columns[column] & _COLUMN
            if choice == share:
                return start, i, True
            # Cells beyond 255 have no choice below their share. So x (2 cell + x) / 512, in units of 2**-24,
            # is in [low, low + 2); the coin is in [coin, coin + 1).
            u, coin = x >> _TO_COIN, first >> _TO_COIN
            low = u * ((cell << _TWICE) + u) >> _TO_EXPONENT
            if coin >= low + _2:
                break
            if coin >= low:
                return start, i, True
            last, even = coin, False
            while True:
                if here == size:
                    return start, i, False
                z = words[here] >> _TO_COIN
                here += _1
                if z == last:
                    return start, i, True
                if z > last:
                    break
                last, even = z, not even
            if even:
                break
        factor = scale[i * each]
        if factor * x > _ALL - factor:
            return start, i, True
        drawn = np.int64(factor * cell + _high(factor, x) + _HALF_UNIT >> _TO_UNIT)
        out[i] = -drawn if first & _1 else drawn
    return here, np.uint64(out.size), False


@compiled(nogil=True)
def laplace(words: Words, at: int, scale: Words, out: Integers, done: int) -> tuple[int, int, bool]:
    """The same for round(scale * L), L a Laplace variable of scale 1."""
    each = np.int64(scale.size > 1)
    for i in range(done, out.size):
        start = at
        if at == words.size:
            return start, i, False
        first = words[at]
        at += 1
        k = _0
        while True:
            if at == words.size:
                return start, i, False
            x = words[at]
            at += 1
            last, even = x, True
            while True:
                if at == words.size:
                    return start, i, False
                z = words[at]
                at += 1
                if z > last:
                    break
                if z == last:
                    return start, i, True
                last, even = z, not even
            if even:
                break
            k += _1
        factor = scale[i * each]
        lower = factor * x
        if lower < _HALF and lower + factor > _HALF:
            return start, i, True
        size = np.int64(factor * k + _high(factor, x) + (lower >> _63))
        out[i] = -size if first & _1 else size
    return at, out.size, False
