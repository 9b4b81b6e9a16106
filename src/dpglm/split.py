"""Disjoint parts of a table by a public rule: a record's position alone decides on its part."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_GOLDEN = 2654435769
"""2**32 over the golden ratio: its multiples, modulo 2**32, are spread evenly over any stretch."""
_ROUND = 1 << 32


@dataclass(frozen=True)
class Part:
    """The positions of one part of a table.

    Attributes
    ----------
    limit : int
        Position i is held out if i * 2654435769 mod 2**32 is below the limit.
    held_out : bool
        Whether this is the part that is held out, or the rest.
    """

    limit: int
    held_out: bool

    def taken(self, start: int, stop: int) -> NDArray[np.intp]:
        """The positions from start to stop that are in this part, counted from ``start``."""
        positions = np.arange(start, stop, dtype=np.uint64) * np.uint64(_GOLDEN) % np.uint64(_ROUND)
        return np.flatnonzero((positions < np.uint64(self.limit)) == self.held_out)

    def before(self, stop: int) -> int:
        """How many of the first positions are in this part."""
        # x mod m is below l if, and only if, floor(x / m) - floor((x - l) / m) is 1, else that is 0
        below = _floors(stop, _ROUND, _GOLDEN, 0) - _floors(stop, _ROUND, _GOLDEN, -self.limit)
        return below if self.held_out else stop - below


@dataclass(frozen=True)
class Split:
    """A table cut in two: rows to train on, and rows that are held out for scores.

    Neighbouring tables have the same rows but one, at the same position, so both have it in the same part.

    Parameters
    ----------
    share : float
        The share of rows that are held out.
    """

    share: float

    @property
    def training(self) -> Part:
        """The part for training."""
        return Part(round(self.share * _ROUND), held_out=False)

    @property
    def held_out(self) -> Part:
        """The part for scores."""
        return Part(round(self.share * _ROUND), held_out=True)

    @property
    def rule(self) -> str:
        """The rule in words; events on parts by the same rule are added up part by part."""
        return f"row i is held out if {_GOLDEN} i mod 2^32 < {self.training.limit}"


def _floors(n: int, m: int, a: int, b: int) -> int:
    """The sum of floor((a i + b) / m) over i = 0, ..., n - 1, by Euclid's algorithm."""
    total = 0
    while n > 0:
        total += n * (n - 1) // 2 * (a // m) + n * (b // m)
        a, b = a % m, b % m
        last = a * n + b
        n, b, m, a = last // m, last % m, a, m
    return total
