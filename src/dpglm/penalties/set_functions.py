"""Set functions, prices of sets of features, and the norms that they give."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import quad
from scipy.optimize import isotonic_regression
from scipy.special import betainc, erfc

from .. import strict
from ..arrays import Vector
from .base import CONFIDENCE, Penalty
from .fused import FusionPenalty
from .submodular_functions import (
    Features,
    SetFunction,
    SubmodularValues,
    check_set_function,
    require_few_features,
)


@dataclass(frozen=True)
class CardinalityFunction(SetFunction):
    """F(A) = the sum of the first abs(A) of some weights that do not increase.

    norm(w) is the sum of the weights times the abs(w_j) in falling order.
    """

    @abstractmethod
    def increments(self, n_features: int) -> Vector:
        """Return the weights, one for each feature."""

    def gains(self, order: Features) -> Vector:
        return self.increments(len(order))

    def dual_norm(self, g: Vector) -> float:
        """Return the largest ratio of the k largest abs(g_j) to the k first weights."""
        largest = np.sort(self._sizes(g))[::-1]
        return float(np.max(np.cumsum(largest) / np.cumsum(self.increments(len(g))), initial=0.0))

    def shrink(self, size: Vector, step: float) -> Vector:
        """Return the proximal step of coefficients that are at least 0, by pooling adjacent violators.

        See Bogdan, van den Berg, Sabatti, Su and Candes, "SLOPE: adaptive variable selection via convex
        optimization", doi:10.1214/15-AOAS842.
        """
        order = np.argsort(-size, kind="stable")
        result = np.empty(size.shape)
        shrunk = size[order] - step * self.increments(size.size)
        result[order] = isotonic_regression(shrunk, increasing=False).x if size.size else shrunk
        return np.maximum(result, 0)

    def mean_value(self, rate: Vector, n_features: int) -> Vector | None:
        k = np.arange(1, n_features + 1)
        reached: Vector = betainc(k, n_features + 1 - k, np.asarray(rate)[..., None])
        return reached @ self.increments(n_features)


@dataclass(frozen=True)
class Cardinality(CardinalityFunction):
    """F(A) = the number of features in A; its norm is the L1 norm.

    Examples
    --------
    >>> import numpy as np
    >>> Cardinality().norm(np.array([3.0, -2.0]))
    5.0
    """

    def increments(self, n_features: int) -> Vector:
        return np.ones(n_features)

    def mean_value(self, rate: Vector, n_features: int) -> Vector | None:
        return n_features * np.asarray(rate)


@dataclass(frozen=True)
class AnyFeature(CardinalityFunction):
    """F(A) = 1 if A has any feature; its norm is the largest abs(w_j).

    Examples
    --------
    >>> import numpy as np
    >>> AnyFeature().prox(np.array([3.0, -2.0]), step=2.0)
    array([ 1.5, -1.5])
    """

    @property
    def few_vertices(self) -> bool:
        return True

    def increments(self, n_features: int) -> Vector:
        return np.eye(1, n_features).ravel()

    def mean_value(self, rate: Vector, n_features: int) -> Vector | None:
        return 1 - (1 - np.asarray(rate)) ** n_features


@dataclass(frozen=True)
class Ordered(CardinalityFunction):
    """F(A) = weights[0] + ... + weights[abs(A) - 1], a concave function of the number of features.

    The norm is the sum of weights[k] times the k-th largest abs(w_j): ordered weighted L1, SLOPE or OSCAR.

    Parameters
    ----------
    weights : sequence of float
        One for each feature: at least 0, not increasing, and the first one positive. For a concave h with
        h(0) = 0 they are h(1) - h(0), h(2) - h(1), ...

    Examples
    --------
    >>> import numpy as np
    >>> Ordered((2.0, 1.0)).norm(np.array([-1.0, 3.0]))
    7.0
    """

    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        weights = tuple(float(weight) for weight in self.weights)
        if not (weights and np.all(np.isfinite(weights)) and weights[0] > 0 and weights[-1] >= 0):
            raise ValueError("weights must be finite and at least 0, the first one positive")
        if np.any(np.diff(weights) > 0):
            raise ValueError("weights must not increase")
        object.__setattr__(self, "weights", weights)

    @property
    def n_features(self) -> int:
        return len(self.weights)

    def increments(self, n_features: int) -> Vector:
        return np.array(self.weights[:n_features])


@dataclass(frozen=True)
class GroupCover(SetFunction):
    """F(A) = the sum of the weights of the groups that A meets.

    The norm is the sum over groups of weight times the largest abs(w_j) in the group. A feature is free
    of charge once every one of its groups is used. Groups may overlap; the proximal step is fastest if any
    two of them are disjoint or one is within the other, as in a hierarchy.

    Parameters
    ----------
    groups : sequence of sequences of int
        The features of each group; every feature 0, 1, ... is in one at least.
    weights : sequence of float, optional
        One for each group, positive; by default 1.

    Examples
    --------
    >>> import numpy as np
    >>> groups = GroupCover([[0, 1], [2, 3, 4]])
    >>> groups.norm(np.array([1.0, -2.0, 0.0, 0.0, 5.0]))
    7.0
    >>> groups.prox(np.array([1.0, -2.0, 0.0, 0.0, 0.5]), step=1.0)
    array([ 1., -1.,  0.,  0.,  0.])
    """

    groups: tuple[tuple[int, ...], ...]
    weights: tuple[float, ...]

    def __init__(self, groups: Sequence[Sequence[int]], weights: Sequence[float] | None = None) -> None:
        kept = tuple(tuple(sorted({int(j) for j in group})) for group in groups)
        weighed = (1.0,) * len(kept) if weights is None else tuple(float(weight) for weight in weights)
        if len(weighed) != len(kept):
            raise ValueError(f"there must be one weight for each group, got {len(weighed)} for {len(kept)}")
        if not all(0 < weight < np.inf for weight in weighed):
            raise ValueError("weights must be positive and finite")
        covered = {j for group in kept for j in group}
        if not covered or not all(kept) or covered != set(range(len(covered))):
            raise ValueError("groups must not be empty, and every feature 0, 1, ... must be in one of them")
        object.__setattr__(self, "groups", kept)
        object.__setattr__(self, "weights", weighed)

    @property
    def n_features(self) -> int:
        return self._size

    @cached_property
    def _size(self) -> int:
        return 1 + max(group[-1] for group in self.groups)

    @cached_property
    def _members(self) -> tuple[Features, Features]:
        """The features of all groups, one group after the other, and where each group begins."""
        sizes = [len(group) for group in self.groups]
        return np.concatenate(self.groups).astype(np.intp), np.cumsum([0, *sizes[:-1]])

    @cached_property
    def _hierarchy(self) -> tuple[tuple[Features, float], ...] | None:
        """Groups and weights, inner groups first, if any two are disjoint or nested."""
        outermost: dict[int, tuple[int, ...]] = {}
        ordered = sorted(zip(self.groups, self.weights, strict=True), key=lambda pair: len(pair[0]))
        for group, _ in ordered:
            inside = Counter(outermost[j] for j in group if j in outermost)
            if any(len(inner) != count for inner, count in inside.items()):
                return None
            outermost.update(dict.fromkeys(group, group))
        return tuple((np.array(group), weight) for group, weight in ordered)

    def gains(self, order: Features) -> Vector:
        place = np.full(self.n_features, len(order))
        place[order] = np.arange(len(order))
        members, begins = self._members
        gains = np.zeros(len(order) + 1)
        np.add.at(gains, np.minimum.reduceat(place[members], begins), self.weights)
        return gains[:-1]

    def shrink(self, size: Vector, step: float) -> Vector:
        """Return the proximal step of coefficients that are at least 0.

        In a hierarchy it is the step of one group after the other, inner groups first; see Jenatton, Mairal,
        Obozinski and Bach, "Proximal methods for hierarchical sparse coding", arXiv:1009.2139.
        """
        if self._hierarchy is None:
            return super().shrink(size, step)
        result = size.copy()
        for group, weight in self._hierarchy:
            result[group] = AnyFeature().shrink(result[group], step * weight)
        return result

    def support(self, size: Vector, step: float) -> Features:
        if self._hierarchy is None:
            return super().support(size, step)
        return np.flatnonzero(self.shrink(size, step))

    def mean_value(self, rate: Vector, n_features: int) -> Vector | None:
        sizes = np.array([len(group) for group in self.groups])
        mean: Vector = (1 - (1 - np.asarray(rate)[..., None]) ** sizes) @ np.array(self.weights)
        return mean


@dataclass(frozen=True)
class Range(SetFunction):
    """F(A) = p - 1 + max(A) - min(A) for a nonempty set A of p ordered features: its support is an interval.

    The length of the interval alone is not submodular: two distant features together cost more than twice
    what one does. p - 1 is the least that must be added. The norm is the sum, over k = 1, ..., p - 1, of the
    largest abs(w_j) among the first k and among the last k features.

    Parameters
    ----------
    p : int
        Number of features, 2 at least.

    Examples
    --------
    >>> import numpy as np
    >>> Range(3).gains(np.array([2, 1, 0]))
    array([2., 1., 1.])
    """

    p: int

    def __post_init__(self) -> None:
        if self.p < 2:
            raise ValueError(f"p must be at least 2, got {self.p!r}")

    @property
    def n_features(self) -> int:
        return self.p

    def gains(self, order: Features) -> Vector:
        spanned = np.maximum.accumulate(order) - np.minimum.accumulate(order)
        return np.diff(self.p - 1.0 + spanned, prepend=0.0)

    def minimiser(self, worth: Vector, step: float, taken: Features, free: Features) -> Features:
        """Return the A within `free` that minimises step * F(taken and A) - worth(A), from running sums."""
        profit = np.zeros(self.p)
        profit[free] = np.maximum(worth[free], 0)
        # A span from i to j, ends included, is worth after[j] - before[i].
        after = np.cumsum(profit) - step * np.arange(self.p)
        before = after - profit
        if taken.size:
            low, high = int(taken.min()), int(taken.max())
            first = int(np.argmin(before[: low + 1]))
            last = high + int(np.argmax(after[high:]))
        else:
            spans = after - np.minimum.accumulate(before)
            last = int(np.argmax(spans))
            first = int(np.argmin(before[: last + 1]))
            if spans[last] <= step * (self.p - 1):
                return free[:0]
        return free[(free >= first) & (free <= last) & (worth[free] > 0)]

    def mean_value(self, rate: Vector, n_features: int) -> Vector | None:
        k = np.arange(1, self.p)
        reached: Vector = np.sum(1 - (1 - np.asarray(rate)[..., None]) ** k, axis=-1)
        return 2 * reached


@dataclass(frozen=True, repr=False)
class Custom(SubmodularValues, SetFunction):
    """Any non-decreasing submodular function of a set of features.

    Proximal steps search for minimum-norm points of polytopes, which takes thousands of values of the
    function where there are a hundred features.

    Parameters
    ----------
    function : callable
        From an array of distinct features, in any order, to a number.
    p : int
        Number of features.

    Raises
    ------
    ValueError
        If the function is not 0 for no feature or not positive for one, or if a thousand random sets show
        that it decreases or is not submodular.

    Examples
    --------
    >>> import numpy as np
    >>> def root(features):
    ...     return len(features) ** 0.5
    >>> Custom(root, 4).norm(np.array([0.0, 1.0, 0.0, -1.0]))
    1.4142135623730951
    """

    p: int

    def __post_init__(self) -> None:
        require_few_features(self.p)
        check_set_function(self, self.p)

    def __repr__(self) -> str:
        return f"Custom({getattr(self.function, '__qualname__', repr(self.function))}, p={self.p})"

    @property
    def n_features(self) -> int:
        return self.p


_DRAWS = 100


@dataclass(frozen=True)
class Submodular(Penalty):
    """strength * the norm of a non-decreasing submodular function F of sets of features, + l2 / 2 * norm(w)².

    The norm is the convex stand-in for F(support of w): the function prices the patterns of coefficients that
    differ from 0, and coefficients are drawn to cheap ones.

    Parameters
    ----------
    strength : float
        Weight of the penalty beside the mean loss.
    function : SetFunction
        One of `Cardinality`, `AnyFeature`, `Ordered`, `GroupCover`, `Range` and `Custom`.
    l2 : float
        Weight of the L2 part, with the Euclidean norm. Output perturbation and dual Frank-Wolfe need one.

    References
    ----------
    Kumar and Deisenroth, "Differentially private empirical risk minimization with sparsity-inducing norms",
    2019, arXiv:1905.04873: equations (5) and (6).

    Bach, "Structured sparsity-inducing norms through submodular functions", NIPS 2010.

    Examples
    --------
    >>> import numpy as np
    >>> from dpglm import Bounds, GLMRegressor
    >>> from dpglm.penalties import GroupCover
    >>> penalty = Submodular(0.1, GroupCover([[0, 1], [2, 3]]))
    >>> penalty.prox(np.array([3.0, -2.0, 0.4, 0.5]), step=10.0)
    array([ 2., -2.,  0.,  0.])
    >>> X = np.random.default_rng(0).uniform(-0.5, 0.5, (5000, 4))
    >>> bounds = Bounds(row_norm=1.0, target=(-1, 1))
    >>> model = GLMRegressor(epsilon=1.0, penalty=penalty, bounds=bounds).fit(X, X[:, 0] - X[:, 1])
    >>> model.coef_.shape
    (4,)
    """

    strength: float
    function: SetFunction
    l2: float = 0.0

    def __post_init__(self) -> None:
        strict.level("strength", self.strength)
        strict.level("l2", self.l2)

    @property
    def strong_convexity(self) -> float:
        return self.l2

    @property
    def is_zero(self) -> bool:
        return self.strength == 0 and self.l2 == 0

    def scaled(self, factor: float) -> Self:
        return replace(self, strength=factor * self.strength, l2=factor * self.l2)

    def value(self, w: Vector) -> float:
        return self.strength * self.function.norm(w) + self.l2 / 2 * float(np.sum(np.square(w)))

    def prox(self, w: Vector, step: float | Vector) -> Vector:
        self._require_one_step(step)
        shrink = 1 + float(step) * self.l2
        return self.function.prox(w / shrink, self.strength * float(step) / shrink)

    def support(self, w: Vector, noise: float) -> NDArray[np.bool_]:
        """Return which coefficients are to differ from 0 if w carries noise of that deviation.

        Those that stay after a proximal step of the norm that takes everything from noise alone, in all but
        about a twentieth of cases.
        """
        if self.strength == 0 or noise == 0:
            return super().support(w, noise)
        rng = np.random.default_rng(0)
        levels = [self.function.dual_norm(rng.standard_normal(w.shape)) for _ in range(_DRAWS)]
        return np.not_equal(self.function.prox(w, float(np.quantile(levels, CONFIDENCE)) * noise), 0)

    def dual_norm(self, g: Vector) -> float:
        """Return max of abs(g)(A) / F(A) over the nonempty A; strength and l2 have no part in it."""
        return self.function.dual_norm(g)

    def linear_minimiser(self, g: Vector) -> Vector:
        """Return a point of the unit ball of the dual norm at which the inner product with g is least."""
        return self.function.linear_minimiser(g)


_FAR = 38.0  # no larger normal deviate has a probability that floats can hold


def gaussian_width(
    function: SetFunction | FusionPenalty,
    n_features: int | None = None,
    draws: int | None = None,
    seed: int = 0,
) -> float:
    """Return the mean of max g · s over the s with abs(s)(A) <= F(A) for all A, for standard normal g.

    This is the mean norm of g, and the polytope is the unit ball of the dual norm. The norm is the integral
    over x > 0 of F({j: abs(g_j) > x}), so the width is an integral of means of F at random sets. Where these
    have no formula, as for `Custom`, it is simulated.

    For a penalty that draws coefficients to equal values the polytope is the base polytope, the s with
    s(A) <= F(A) for all A and s(all features) = 0, and the width is the mean of the extension of F at g.
    Strength, L1 and L2 parts have no part in it.

    Parameters
    ----------
    function : SetFunction, TotalVariation, GraphFused, Fused or Lovasz
    n_features : int, optional
        How many features there are, for a function that takes any number.
    draws : int, optional
        Simulate, with so many draws of g; by default only where there is no formula, with 10,000.
    seed : int
        Seed of the simulation.

    Returns
    -------
    float
        The width; where it is simulated, the mean over the draws.

    References
    ----------
    Kumar and Deisenroth, "Differentially private empirical risk minimization with sparsity-inducing norms",
    2019, arXiv:1905.04873: what the bounds of Theorems 1 and 4 depend on.

    Examples
    --------
    >>> from dpglm.penalties import Cardinality, gaussian_width
    >>> round(gaussian_width(Cardinality(), 100), 6) == round(100 * math.sqrt(2 / math.pi), 6)
    True
    """
    known = (function.extension if isinstance(function, FusionPenalty) else function).n_features
    p = n_features if known is None else known
    if p is None or n_features not in (None, p):
        raise ValueError(f"n_features must be given and fit {function!r}, got {n_features!r}")
    if isinstance(function, FusionPenalty):
        extension = function.extension
        extension.require(p)
        width = extension.gaussian_width(p) if draws is None else None
        return _simulated(extension.value, p, draws, seed) if width is None else width
    if draws is None and function.mean_value(np.array(0.5), p) is not None:
        return float(
            quad(lambda x: function.mean_value(erfc(x / math.sqrt(2)), p), 0, _FAR, epsrel=1e-10, limit=200)[
                0
            ]
        )
    return _simulated(function.norm, p, draws, seed)


def _simulated(function: Callable[[Vector], float], p: int, draws: int | None, seed: int) -> float:
    rng = np.random.default_rng(seed)
    return float(np.mean([function(rng.standard_normal(p)) for _ in range(draws or 10_000)]))
