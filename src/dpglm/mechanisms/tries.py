"""The secret number of tries of a search."""

from __future__ import annotations

from decimal import Decimal, localcontext

from ..accounting import NegativeBinomial, Tries
from .randomness import Randomness

TRIES_DISTANCE = 2.0**-100
"""Bound on the distance of a draw from its law, in total variation."""

_DIGITS, _BITS, _NOTHING = 60, 62, Decimal("1e-45")


def draw_tries(tries: Tries, randomness: Randomness) -> int:
    """A number of tries: the first k with P(K <= k) above a uniform number of 124 binary digits.

    Probabilities are computed to 60 decimal digits, so that no sum of them is off by more than 2**-120.
    """
    high, low = (int(word) for word in randomness.integers(1 << _BITS, 2))
    with localcontext() as context:
        context.prec = _DIGITS
        uniform = (Decimal(high << _BITS | low) + Decimal("0.5")) / Decimal(1 << 2 * _BITS)
        if isinstance(tries, NegativeBinomial):
            return _negative_binomial(tries, uniform)
        mean = Decimal(tries.mean)
        k, term = 0, (-mean).exp()
        below = term
        while below <= uniform and (term > _NOTHING or k < mean):
            k += 1
            term *= mean / k
            below += term
        return k


def _negative_binomial(tries: NegativeBinomial, uniform: Decimal) -> int:
    shape, stop = Decimal(tries.shape), Decimal(tries.stop)
    norm = ((-shape * stop.ln()).exp() - 1) / shape if shape else -stop.ln()
    k, term = 1, (1 - stop) / norm
    below = term
    # A tail is at most its first term over 1 minus the largest ratio of two neighbours in it.
    while below <= uniform and term > _NOTHING * (1 - (1 - stop) * max((k + shape) / (k + 1), Decimal(1))):
        term *= (1 - stop) * (k + shape) / (k + 1)
        k += 1
        below += term
    return k
