"""Draws of integer noise from a stream of random 64-bit words.

They compute what ``mechanisms/exact.py`` defines, from the same words in the same order. Where 64 digits of
a number do not decide a comparison or a rounding, a kernel stops at the first word of that draw and states
it. There is no floating-point operation; words are never mixed with signed integers, which would turn both
into floats.
"""

from __future__ import annotations

import numpy as np

from .arguments import Integers, Words
from .compiled import compiled, part

_0, _1, _32, _63 = (np.uint64(n) for n in (0, 1, 32, 63))
_HALF = np.uint64(1 << 63)
_LOW = np.uint64((1 << 32) - 1)
_ALL = np.uint64((1 << 64) - 1)


@part
def _high(a: np.uint64, b: np.uint64) -> np.uint64:
    """The upper 64 digits of the product of two words."""
    a1, a0, b1, b0 = a >> _32, a & _LOW, b >> _32, b & _LOW
    middle = a1 * b0 + (a0 * b0 >> _32)
    other = a0 * b1 + (middle & _LOW)
    return a1 * b1 + (middle >> _32) + (other >> _32)


@compiled(nogil=True)
def gaussian(
    high: Words, words: Words, at: int, scale: Words, out: Integers, done: int
) -> tuple[int, int, bool]:
    """Fill out[done:] with round(scale * Z); return the next word and entry, and if it needs more digits.

    If it does not, a stop before the last entry means that the words ran out. ``high`` holds the upper 63
    digits of the thresholds of the integer part.
    """
    for i in range(done, out.size):
        start = at
        accepted = False
        while not accepted:
            if at + 2 > words.size:
                return start, i, False
            first, x = words[at], words[at + 1]
            at += 2
            whole = first >> _1
            k = 0
            while k < high.size and whole >= high[k]:
                if whole == high[k]:
                    return start, i, True
                k += 1
            twice = np.uint64(2 * k)
            count = twice + _1 + _1
            accepted = True
            for _ in range(k + 1):
                last = x
                while True:
                    if at + 2 > words.size:
                        return start, i, False
                    z = words[at]
                    at += 1
                    if z > last:
                        break
                    r = words[at]
                    at += 1
                    # count * r in two words; later digits of r may add up to count to the lower one.
                    upper = (r >> _32) * count + ((r & _LOW) * count >> _32) >> _32
                    lower = r * count
                    if z == last or lower > _ALL - count:
                        return start, i, True
                    if upper > twice or (upper == twice and lower > x):
                        break
                    if upper == twice and lower + count > x:
                        return start, i, True
                    last = z
                    accepted = not accepted
                if not accepted:
                    break
        lower = scale[i] * x
        if lower < _HALF and lower + scale[i] > _HALF:
            return start, i, True
        size = np.int64(scale[i] * np.uint64(k) + _high(scale[i], x) + (lower >> _63))
        out[i] = -size if first & _1 else size
    return at, out.size, False


@compiled(nogil=True)
def laplace(words: Words, at: int, scale: Words, out: Integers, done: int) -> tuple[int, int, bool]:
    """The same for round(scale * L), L a Laplace variable of scale 1."""
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
        lower = scale[i] * x
        if lower < _HALF and lower + scale[i] > _HALF:
            return start, i, True
        size = np.int64(scale[i] * k + _high(scale[i], x) + (lower >> _63))
        out[i] = -size if first & _1 else size
    return at, out.size, False
