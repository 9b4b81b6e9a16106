"""Integer noise in exact arithmetic: the definition that the compiled kernels must agree with.

A uniform number is a sequence of random binary digits of which only those that matter are ever drawn, so
every comparison and every rounding below is that of real numbers. ``read`` returns the next word of digits of
the stream. Proof: docs/proofs/grid_noise.md.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Context, Decimal, localcontext

Read = Callable[[], int]

WORD = 64
_BITS = 1087
_TERMS = 38


class Uniform:
    """A uniform number in [0, 1), known to lie in [digits, digits + 1) / 2**bits."""

    def __init__(self, read: Read) -> None:
        self._read, self.digits, self.bits = read, read(), WORD

    def extend(self) -> None:
        """Draw one more word of digits."""
        self.digits, self.bits = self.digits << WORD | self._read(), self.bits + WORD


def gaussian(read: Read, scale: int) -> int:
    """round(scale * Z) for a standard normal Z (Karney, 2016, Algorithm N)."""
    while True:
        whole = Uniform(read)
        # The last digit of the first word is the sign, the others choose the integer part of abs(Z).
        negative, whole.digits, whole.bits = whole.digits & 1, whole.digits >> 1, WORD - 1
        k = 0
        while k < len(THRESHOLDS) and not _negative(-THRESHOLDS[k], (1 << _BITS, whole)):
            k += 1
        x = Uniform(read)
        if all(_accepted(read, x, k) for _ in range(k + 1)):
            return _rounded(scale, k, x) * (-1 if negative else 1)


def laplace(read: Read, scale: int) -> int:
    """round(scale * L) for L of density exp(-abs(t)) / 2 (von Neumann, 1951)."""
    negative, k = read() & 1, 0
    while True:
        x = Uniform(read)
        if _accepted(read, x):
            return _rounded(scale, k, x) * (-1 if negative else 1)
        k += 1


def _accepted(read: Read, x: Uniform, k: int | None = None) -> bool:
    """True with probability exp(-x), or exp(-x (2k + x) / (2k + 2)) if k is given.

    The run x > z_1 > z_2 > ... is longer than m with probability x^m / m!, and each of its members is
    kept with probability (2k + x) / (2k + 2): that its length is even has the stated probability.
    """
    last, even = x, True
    while True:
        z = Uniform(read)
        if not _negative(0, (1, z), (-1, last)):
            return even
        if k is not None and not _negative(-2 * k, (2 * k + 2, Uniform(read)), (-1, x)):
            return even
        last, even = z, not even


def _negative(constant: int, *terms: tuple[int, Uniform]) -> bool:
    """Whether constant + the sum of factor * uniform is negative; digits are drawn until that is certain."""
    while True:
        bits = max(number.bits for _, number in terms)
        low = high = constant << bits
        for factor, number in terms:
            shift = bits - number.bits
            ends = factor * (number.digits << shift), factor * (number.digits + 1 << shift)
            low, high = low + min(ends), high + max(ends)
        if high <= 0 or low >= 0:
            return high <= 0
        for _, number in terms:
            number.extend()


def _rounded(scale: int, k: int, x: Uniform) -> int:
    """floor(scale * (k + x) + 1/2)."""
    while True:
        half = 1 << x.bits >> 1
        low, high = scale * x.digits + half, scale * (x.digits + 1) + half - 1
        if low >> x.bits == high >> x.bits:
            return scale * k + (low >> x.bits)
        x.extend()


def _thresholds() -> tuple[int, ...]:
    """P(k <= i) in units of 2**-1087, P(k) being proportional to exp(-k² / 2); the last k takes the rest."""
    with localcontext(Context(prec=400)):
        root = Decimal("-0.5").exp()
        weights = [root ** (k * k) for k in range(_TERMS + 20)]
        unit = 2**_BITS / sum(weights)
        return tuple(int(unit * sum(weights[: i + 1])) for i in range(_TERMS - 1))


THRESHOLDS = _thresholds()
FIRST_DIGITS = tuple(threshold >> _BITS - 63 for threshold in THRESHOLDS)
