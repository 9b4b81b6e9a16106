"""Laws of the secret number of tries of a private search, and the privacy curve of such a search.

The generating function f(x) = E x^K states all that a price needs: the search puts out an output below which
a share F of the base law lies with density f'(F) (docs/proofs/search.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from scipy.optimize import brentq
from scipy.special import gammaln

from .. import codec, strict
from ..arrays import Vector
from .curves import SURVEY, Profile, hockey_stick, symmetric

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
        """Return the law of this shape with ``mean`` tries on average."""
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
    """Return the law of this name with ``mean`` tries on average."""
    strict.one_of("law", law, LAWS)
    if law == "poisson":
        return PoissonTries(float(mean))
    return NegativeBinomial.of_mean(0.0 if law == "logarithmic" else 1.0, float(mean))


def tries_from_dict(values: Mapping[str, object]) -> Tries:
    """The inverse of ``to_dict``."""
    kinds: dict[str, type[Tries]] = {kind.kind: kind for kind in (NegativeBinomial, PoissonTries)}
    kind, found = codec.kind_of("tries", values, kinds)
    return codec.from_dict(kind, "tries", found)


_LINES = 400
_MOST_TERMS = 64
_POINTS_AT_ONCE = 1 << 12
_ROUNDING = 1 + 1e-9
_NEGLIGIBLE = 1e-13
_GROUPS = 80
_BEYOND = 1e-18
"""More than the probability of numbers of tries that are left out."""

Curve = Callable[[Vector], Vector]


def search_profile(base: Profile, tries: Tries) -> Profile:
    """Return a curve above that of a search whose tries have the curve ``base`` (docs/proofs/search.md).

    With G_P and G_Q the probabilities of a better output than a given one and h the largest G_Q that the
    curve of a try allows, the search weighs that output by f'(1 - G_P) against f'(1 - h(G_P)). Lines e^x g
    + E_{e^x} bound h; between the points where two of them meet, one line is the least, and the logarithm
    of the ratio of weights is largest at an end. So the curve of a search is at most a sum of shifted
    curves of a try.
    """
    forward = _bound(base, tries)
    if math.isfinite(base.mu):
        chances = tries.probabilities()
        if len(chances) < LONGEST:  # else some that are not negligible are left out
            forward = _smaller(forward, _mixed(base.mu, chances))
    if base.is_symmetric:
        return symmetric(forward)
    return Profile(forward, _bound(base.swapped(), tries))


def _bound(base: Profile, tries: Tries) -> Curve:
    shifts, weights = _terms(base, tries)

    def curve(x: Vector) -> Vector:
        total = np.empty_like(x)
        for start in range(0, len(x), _POINTS_AT_ONCE):
            here = slice(start, start + _POINTS_AT_ONCE)
            moved = x[here, None] - shifts
            total[here] = (_everywhere(base, moved.ravel()).reshape(moved.shape) * weights).sum(axis=1)
        return np.minimum(total * _ROUNDING, 1.0)

    return curve


def _smaller(first: Curve, second: Curve) -> Curve:
    return lambda x: np.minimum(first(x), second(x))


def _mixed(mu: float, chances: Vector) -> Curve:
    """Return the mean over K of the curve of K Gaussian tries that are all put out: small losses cost less.

    ``chances`` are P(K = 0), P(K = 1), ... Numbers of tries are taken together in groups, each as if it were
    the largest of its group.
    """
    edges = np.unique(np.geomspace(1, len(chances), _GROUPS).astype(int))
    counts = np.append(edges[1:] - 1, len(chances) - 1)
    weights = np.add.reduceat(chances, edges - (edges == len(chances)))

    def curve(x: Vector) -> Vector:
        parts = [w * hockey_stick(mu * math.sqrt(k), x) for w, k in zip(weights, counts, strict=True) if w]
        total: Vector = np.minimum(np.sum(parts, axis=0) * _ROUNDING + _BEYOND, 1.0)
        return total

    return curve


def _terms(base: Profile, tries: Tries) -> tuple[Vector, Vector]:
    """Return (shifts, weights): the curve of the search is at most the sum of weight E_{e^(x - shift)}."""
    slope, height = _lines(base)
    edges = np.clip((height[1:] - height[:-1]) / (slope[:-1] - slope[1:]), 0.0, 1.0)
    low = np.append(0.0, np.maximum.accumulate(edges))
    high = np.append(low[1:], 1.0)
    shift = np.maximum(_log_ratio(tries, slope, height, low), _log_ratio(tries, slope, height, high))
    weight = np.exp(tries.log_slope(low))
    order = np.argsort(-shift, kind="stable")
    shift, largest = shift[order], np.maximum.accumulate(weight[order])
    added = np.diff(largest, prepend=0.0)
    shift, added = shift[added > 0], added[added > 0]
    # fewer terms: each takes the largest shift of its group
    starts = np.unique(np.linspace(0, len(shift), _MOST_TERMS + 1).astype(int)[:-1])
    return shift[starts], np.add.reduceat(added, starts)


def _lines(base: Profile) -> tuple[Vector, Vector]:
    """Return slopes, falling, and heights of lines above h: Q(S) <= e^x P(S) + E_{e^x}(Q || P), real x."""
    reach = _far(base)
    x = np.append(np.geomspace(1e-4 * reach, 0.02 * reach, 20), np.linspace(0.02 * reach, reach, _LINES)[1:])
    up, down = base.backward(x), base.forward(x)
    middle = base.backward(np.zeros(1))
    slope = np.concatenate([np.exp(x[::-1]), [1.0], np.exp(-x)])
    height = np.concatenate([up[::-1], middle, -np.expm1(-x) + np.exp(-x) * down])
    return slope, height


def _far(base: Profile) -> float:
    """Return a loss beyond which lines are of no use: their heights fall no more."""
    height = np.maximum(base.forward(SURVEY), base.backward(SURVEY))
    flat = height <= max(_NEGLIGIBLE, (1 + 1e-3) * float(height[-1]))
    return float(SURVEY[int(np.argmax(flat))])


def _log_ratio(tries: Tries, slope: Vector, height: Vector, g: Vector) -> Vector:
    return tries.log_slope(g) - tries.log_slope(slope * g + height)


def _everywhere(base: Profile, x: Vector) -> Vector:
    """Return E_{e^x}(P || Q) for any real x: E_{e^-t} = 1 - e^-t + e^-t E_{e^t}(Q || P)."""
    far = np.abs(x)
    with np.errstate(under="ignore"):
        left = -np.expm1(-far) + np.exp(-far) * base.backward(far)
        return np.where(x >= 0, base.forward(far), left)
