"""Random numbers of tries of a private search, as values; all of it is public but the number that is drawn.

The generating function f(x) = E x^K states all that a price needs: the search puts out an output below which
a share F of the base law lies with density f'(F) (docs/proofs/search.md).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from scipy.optimize import brentq
from scipy.special import gammaln

from .. import codec, strict
from ..arrays import Vector

_SHAPE = strict.within("above -1 and at most 100", lambda shape: -1 < shape <= 100)
_STOP = strict.within("strictly between 0 and 1", lambda stop: 0 < stop < 1)
_MEAN = strict.within("above 0 and at most 1000", lambda mean: 0 < mean <= 1000)
_TAIL = 1e-20
LONGEST = 1 << 22
"""No more probabilities than these are computed."""


@dataclass(frozen=True)
class NegativeBinomial(codec.Tagged):
    """Negative binomial number of tries, given that it is not 0 (Papernot and Steinke, 2022).

    P(K = k) is proportional to (1 - stop)^k times the product of (l + shape) / (l + 1) over l < k. Shape 1 is
    the geometric law; the limit of shape 0, with P(K = k) proportional to (1 - stop)^k / k, the logarithmic.

    Parameters
    ----------
    shape : float
        Above -1.
    stop : float
        Strictly between 0 and 1; a smaller value means more tries.
    """

    shape: Annotated[float, _SHAPE]
    stop: Annotated[float, _STOP]
    kind: ClassVar[str] = "negative-binomial"

    @classmethod
    def of_mean(cls, shape: float, mean: float) -> NegativeBinomial:
        """The law of this shape with so many tries on average."""
        _MEAN("mean", mean)
        if not mean > 1:
            raise ValueError(f"mean must be above 1, as there is always one try, got {mean!r}")

        def excess(log_stop: float) -> float:
            return math.log(cls(shape, math.exp(log_stop)).mean) - math.log(mean)

        return cls(shape, math.exp(brentq(excess, -500.0 / (2 + shape), -1e-9, xtol=1e-13)))

    @property
    def mean(self) -> float:
        """E K = f'(1)."""
        return (1 - self.stop) * math.exp(-(self.shape + 1) * math.log(self.stop)) / self._norm

    @property
    def _norm(self) -> float:
        """(stop^-shape - 1) / shape, and its limit log(1 / stop) at shape 0."""
        log_stop = math.log(self.stop)
        return math.expm1(-self.shape * log_stop) / self.shape if self.shape else -log_stop

    def log_slope(self, above: Vector) -> Vector:
        """Return log f'(1 - above)."""
        left = np.log(self.stop + (1 - self.stop) * above)
        slope: Vector = math.log1p(-self.stop) - math.log(self._norm) - (self.shape + 1) * left
        return slope

    def missed(self, share: float) -> float:
        """Return f(1 - share): the probability that no try hits a set of this probability."""
        left = math.log(self.stop + (1 - self.stop) * share)
        if self.shape == 0:
            return left / math.log(self.stop)
        return math.expm1(-self.shape * left) / math.expm1(-self.shape * math.log(self.stop))

    def probabilities(self) -> Vector:
        """Return P(K = 0), P(K = 1), ... up to a tail of 1e-20, or `LONGEST` of them if that takes more.

        Probabilities of a shape above 1 rise first, from as little as 1e-300. The tail is at most the next
        one over 1 minus the largest ratio of two neighbours that follow.
        """
        term, terms = (1 - self.stop) / self._norm, [0.0]
        while len(terms) < LONGEST:
            k = len(terms)
            if term <= _TAIL * (1 - (1 - self.stop) * max((k + self.shape) / (k + 1), 1.0)):
                break
            terms.append(term)
            term *= (1 - self.stop) * (k + self.shape) / (k + 1)
        return np.array(terms)

    @property
    def words(self) -> str:
        """The law in words."""
        named = {1.0: "geometric", 0.0: "logarithmic"}
        law = named.get(self.shape, f"truncated negative binomial of shape {self.shape:g}")
        return f"{law} number of tries, {self.mean:.4g} on average"


@dataclass(frozen=True)
class PoissonTries(codec.Tagged):
    """Poisson number of tries: none with probability exp(-mean), and nothing is put out then."""

    mean: Annotated[float, _MEAN]
    kind: ClassVar[str] = "poisson"

    def log_slope(self, above: Vector) -> Vector:
        """Return log f'(1 - above)."""
        slope: Vector = math.log(self.mean) - self.mean * above
        return slope

    def missed(self, share: float) -> float:
        """Return f(1 - share): the probability that no try hits a set of this probability."""
        return math.exp(-self.mean * share)

    def probabilities(self) -> Vector:
        """Return P(K = 0), P(K = 1), ... up to a tail of 1e-20.

        They are computed from logarithms, since exp(-mean) may be less than any double.
        """
        # The tail from k on is at most ((mean / k) e^(1 - mean / k))^k (Chernoff).
        last = math.ceil(self.mean)
        while last * (1 + math.log(self.mean / last)) - self.mean > math.log(_TAIL):
            last += 1
        k = np.arange(last + 1)
        chances: Vector = np.exp(k * math.log(self.mean) - self.mean - gammaln(k + 1.0))
        return chances

    @property
    def words(self) -> str:
        """The law in words."""
        return f"Poisson number of tries, {self.mean:.4g} on average"


Tries = NegativeBinomial | PoissonTries

LAWS = ("logarithmic", "geometric", "poisson")
"""The laws that have names."""


def tries_of(law: str, mean: float) -> Tries:
    """The law of this name with so many tries on average."""
    strict.one_of("law", law, LAWS)
    if law == "poisson":
        return PoissonTries(float(mean))
    return NegativeBinomial.of_mean(0.0 if law == "logarithmic" else 1.0, float(mean))


def tries_from_dict(values: Mapping[str, object]) -> Tries:
    """The inverse of ``to_dict``."""
    kinds: dict[str, type[Tries]] = {kind.kind: kind for kind in (NegativeBinomial, PoissonTries)}
    kind, found = codec.kind_of("tries", values, kinds)
    return codec.from_dict(kind, "tries", found)
