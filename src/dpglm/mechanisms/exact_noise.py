"""Integer noise in exact arithmetic: the definition that the compiled kernels must agree with.

A uniform number is a sequence of random binary digits of which only those that matter are ever drawn, so
every comparison and every rounding below is that of real numbers. ``read`` returns the next word of digits of
the stream. Proof: docs/proofs/grid_noise.md.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import cache

Read = Callable[[], int]
Ends = tuple[Fraction, Fraction]

WORD = 64
CELLS_A_UNIT, COLUMN_BITS = 16, 10
CHOICE_BITS, COIN_BITS = 29, 24
"""The first word of a Gaussian draw: after the sign, a column, the choice of one of its cells, a coin."""

BITS = 1087
_UNITS = 38
_PRECISION = 1152
_TWICE_SQUARED = 2 * CELLS_A_UNIT**2  # 512


class Uniform:
    """A uniform number in [0, 1), known to lie in [digits, digits + 1) / 2**bits."""

    def __init__(self, read: Read, digits: int | None = None, bits: int = 0) -> None:
        self._read, self.digits, self.bits = read, digits or 0, bits
        if digits is None:
            self.extend()

    def extend(self) -> None:
        """Draw one more word of digits."""
        self.digits, self.bits = self.digits << WORD | self._read(), self.bits + WORD

    def ends(self) -> Ends:
        """The ends of the interval."""
        return Fraction(self.digits, 1 << self.bits), Fraction(self.digits + 1, 1 << self.bits)


def gaussian(read: Read, scale: int) -> int:
    """round(scale * Z) for a standard normal Z, by rejection from a step function."""
    while True:
        word = read()
        negative, word = word & 1, word >> 1
        column, word = word & (1 << COLUMN_BITS) - 1, word >> COLUMN_BITS
        choice = Uniform(read, word & (1 << CHOICE_BITS) - 1, CHOICE_BITS)
        coin = Uniform(read, word >> CHOICE_BITS, COIN_BITS)
        cell, x = _cell(column, choice), Uniform(read)
        if kept(read, cell, x, coin):
            return _rounded(scale, cell, x, CELLS_A_UNIT) * (-1 if negative else 1)


def _cell(column: int, choice: Uniform) -> int:
    """The column's own cell, with the probability of its share, or the other one."""
    own, other = columns()
    share = Fraction(own[column], 1 << BITS)
    return column if _below(choice, lambda: (share, share)) else other[column]


def laplace(read: Read, scale: int) -> int:
    """round(scale * L) for L of density exp(-abs(t)) / 2 (von Neumann, 1951)."""
    negative, k = read() & 1, 0
    while True:
        x = Uniform(read)
        if _even(read, Uniform(read), x.ends, x):
            return _rounded(scale, k, x) * (-1 if negative else 1)
        k += 1


def kept(read: Read, cell: int, x: Uniform, coin: Uniform) -> bool:
    """Return True with probability exp(-x (2 cell + x) / 512): the density at cell + x over that at the cell.

    It is that of several successes, each of a probability exp(-a) with a <= 1.
    """
    trials = -(-(2 * cell + 1) // _TWICE_SQUARED)

    def exponent() -> Ends:
        low, high = (u * (2 * cell + u) / (_TWICE_SQUARED * trials) for u in x.ends())
        return low, high

    return all(_even(read, Uniform(read) if k else coin, exponent, x) for k in range(trials))


def _even(read: Read, z: Uniform, limit: Callable[[], Ends], *numbers: Uniform) -> bool:
    """Return True with probability exp(-a), for a limit a <= 1 that is a function of some numbers.

    The run a > z_1 > z_2 > ... has m members or more with probability a^m / m!; z is its first. That their
    number is even has the stated probability.
    """
    even = True
    while _below(z, limit, *numbers):
        limit, numbers = z.ends, (z,)
        z, even = Uniform(read), not even
    return even


def _below(z: Uniform, limit: Callable[[], Ends], *numbers: Uniform) -> bool:
    """Return whether z is below a limit between two ends; digits are drawn until that is known."""
    while True:
        (low, high), (lowest, highest) = z.ends(), limit()
        if high <= lowest or low >= highest:
            return high <= lowest
        for number in (z, *numbers):
            number.extend()


def _rounded(scale: int, k: int, x: Uniform, cells: int = 1) -> int:
    """floor(scale * (k + x) / cells + 1/2)."""
    while True:
        half, unit = cells << x.bits >> 1, cells << x.bits
        low = scale * ((k << x.bits) + x.digits) + half
        if low // unit == (low + scale - 1) // unit:
            return low // unit
        x.extend()


@cache
def columns() -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Columns that are chosen uniformly: the share of column c that is cell c's, and the cell of its rest.

    Shares are in units of 2**-1087 (Walker's alias method, in integers).
    """
    full = 1 << BITS
    own = _weights(full << COLUMN_BITS)
    own += [0] * ((1 << COLUMN_BITS) - len(own))
    other = list(range(len(own)))
    poor = [c for c in other if own[c] < full]
    rich = [c for c in other if own[c] >= full]
    while poor:
        c, giver = poor.pop(), rich[-1]
        other[c] = giver
        own[giver] -= full - own[c]
        if own[giver] < full:
            poor.append(rich.pop())
    return tuple(own), tuple(other)


def _weights(total: int) -> list[int]:
    """Integers proportional to exp(-cell² / 512), for |Z| < 38, that add up to a total."""
    unit, term, k = 1 << _PRECISION, 1 << _PRECISION, 0
    inverse = unit  # exp(1 / 512), by its series
    while term:
        k += 1
        term //= _TWICE_SQUARED * k
        inverse += term
    ratio = unit * unit // inverse
    square = ratio * ratio >> _PRECISION
    weights = [unit]
    for _ in range(_UNITS * CELLS_A_UNIT - 1):
        weights.append(weights[-1] * ratio >> _PRECISION)
        ratio = ratio * square >> _PRECISION
    whole = sum(weights)
    shares = [weight * total // whole for weight in weights]
    shares[0] += total - sum(shares)
    return shares
