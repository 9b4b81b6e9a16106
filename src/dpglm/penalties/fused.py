"""Penalties that draw coefficients to equal values: total variation on chains and graphs, fused lasso."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from typing import Any, Self

import numpy as np
from scipy.special import ndtri

from .. import strict
from ..arrays import Vector, soft_threshold
from .base import CONFIDENCE, Penalty
from .lovasz_extensions import Chain, CustomExtension, Extension, cut_of
from .submodular_functions import Features, require_few_features

_DRAWS, _LEAST_DRAWS, _ENTRIES = 100, 20, 100_000


@dataclass(frozen=True)
class FusionPenalty(Penalty):
    """strength * f(w) + l1 * sum of abs(w_j) + l2 / 2 * norm(w)², with f a Lovász extension.

    f is the same if all coefficients move by as much, so it draws them to equal values: plateaus. A subclass
    says which extension it is, and has an L1 part or none.
    """

    strength: float
    l2: float = field(default=0.0, kw_only=True)

    def __post_init__(self) -> None:
        strict.level("strength", self.strength)
        strict.level("l2", self.l2)

    @property
    @abstractmethod
    def extension(self) -> Extension:
        """The extension f."""

    @property
    def l1_part(self) -> float:
        """The strength of the L1 part."""
        return 0.0

    @property
    def strong_convexity(self) -> float:
        return self.l2

    @property
    def is_zero(self) -> bool:
        return self.strength == 0 and self.l1_part == 0 and self.l2 == 0

    def scaled(self, factor: float) -> Self:
        return replace(self, strength=factor * self.strength, l2=factor * self.l2)

    def value(self, w: Vector) -> float:
        self.extension.require(len(w))
        absolute, squares = float(np.sum(np.abs(w))), float(np.sum(np.square(w)))
        return self.strength * self.extension.value(w) + self.l1_part * absolute + self.l2 / 2 * squares

    def prox(self, w: Vector, step: float | Vector) -> Vector:
        """Return the u that minimises norm(u - w)² / 2 + step * penalty(u).

        The step of f comes first, that of the L1 part second. Together they are exact: what f takes away is a
        subgradient of f at every u that has the order of its result, ties included, and the L1 part keeps
        that order. See Friedman, Hastie, Höfling and Tibshirani, "Pathwise coordinate optimization".
        """
        self.extension.require(len(w))
        self._require_one_step(step)
        if not np.all(np.isfinite(w)):
            return np.full(w.shape, np.nan)  # a search that diverged
        shrink = 1 + float(step) * self.l2
        u, length = np.divide(w, shrink), float(step) / shrink
        if self.strength * length > 0 and u.size:
            u = self.extension.flatten(u, self.strength * length)
        return soft_threshold(u, length * self.l1_part) if self.l1_part else u

    def prox_rounding(self, n_features: int, given: float = 0.0) -> float:
        return super().prox_rounding(n_features, given) + self.extension.rounding(n_features)

    def dual_norm(self, g: Vector) -> float:
        """Return the least step of f that levels g: max of g(A) / F(A) for the g that is not flat.

        Strength, L1 and L2 parts have no part in it. It is infinite for a function of one's own with
        F(A) = 0 < g(A).
        """
        self.extension.require(len(g))
        return self.extension.dual_norm(g)

    def noise_share(self, n_features: int, noise: float) -> float:
        """Return the share that is left of noise of that deviation in the slope of each coefficient.

        m equal coefficients stay equal where the strength times their price exceeds sqrt(m) times the noise,
        and their mean has 1 / sqrt(m) of it. The price is that of a single coefficient, in the mean; if one
        is free, the share is 1.
        """
        self.extension.require(n_features)
        prices = self.strength * self.extension.single_prices(n_features)
        return min(1.0, noise / float(np.mean(prices))) if prices.size and np.all(prices > 0) else 1.0

    def denoised(self, w: Vector, noise: float) -> Vector:
        """Return w with the means of its plateaus, as far as noise of that deviation alone made the jumps.

        The plateaus are those of a proximal step of f that levels noise alone in all but about a twentieth of
        cases. With an L1 part those whose mean noise alone could have made are 0.
        """
        if noise == 0:
            return w
        labels = np.arange(w.size)
        if self.strength > 0:
            level = float(np.quantile(self._levels_of_noise(w.size), CONFIDENCE, method="higher"))
            if not level < np.inf:  # some jumps are free
                return w
            labels = self.extension.plateaus(self.extension.flatten(w, level * noise), 0.0)
        means = self.extension.mean_over(labels, w)
        if self.l1_part > 0:
            size = self.extension.mean_over(labels, 1 / np.bincount(labels)[labels]) ** -1
            limit = noise * float(ndtri((1 + CONFIDENCE ** (1 / (labels.max() + 1))) / 2))
            means = np.where(np.abs(means) * np.sqrt(size) > limit, means, 0.0)
        return means

    def _levels_of_noise(self, n_features: int) -> list[float]:
        """The dual norms of some standard normal vectors."""
        rng = np.random.default_rng(0)
        draws = min(max(_ENTRIES // n_features, _LEAST_DRAWS), _DRAWS)
        return [self.extension.dual_norm(rng.standard_normal(n_features)) for _ in range(draws)]

    def rounded(self, w: Vector, width: float) -> Vector:
        if self.strength > 0:
            w = self.extension.mean_over(self.extension.plateaus(w, 2 * width), w)
        return super().rounded(w, width)


@dataclass(frozen=True)
class TotalVariation(FusionPenalty):
    """strength * sum of abs(w_{j+1} - w_j) + l2 / 2 * norm(w)²: neighbouring coefficients become equal.

    For features that have an order: bins of a number, ordered levels, periods. The proximal step takes time
    in proportion to the number of features; see Johnson, "A dynamic programming algorithm for the fused lasso
    and L0-segmentation".

    Parameters
    ----------
    strength : float
        Weight of the penalty beside the mean loss.
    l2 : float
        Weight of the L2 part. Output perturbation needs one.

    Examples
    --------
    >>> import numpy as np
    >>> TotalVariation(1.0).prox(np.array([1.0, 2.0, 9.0, 8.0]), step=1.0)
    array([2., 2., 8., 8.])
    """

    @cached_property
    def extension(self) -> Extension:
        return Chain()


Edges = tuple[tuple[int, int], ...]

_SHOWN = 100  # edges and weights


@dataclass(frozen=True, repr=False)
class GraphFused(FusionPenalty):
    """strength * sum over edges (i, j) of weight * abs(w_i - w_j) + l2 / 2 * norm(w)².

    Coefficients that an edge joins become equal: neighbouring regions, levels of a taxonomy, bins in two
    dimensions. The proximal step is exact, by flows in whole numbers.

    Parameters
    ----------
    strength : float
        Weight of the penalty beside the mean loss.
    edges : sequence of pairs of int
        Pairs of different features, counted from 0. Features of no edge are not penalised. An edge that is
        given twice counts twice.
    weights : sequence of float, optional
        One for each edge, at least 0; by default 1.
    l2 : float
        Weight of the L2 part, over all features. Output perturbation needs one.

    Examples
    --------
    >>> import numpy as np
    >>> GraphFused(1.0, [(0, 1), (0, 2)]).prox(np.array([1.0, 3.0, 9.0]), step=1.0)
    array([2.5, 2.5, 8. ])
    """

    edges: Sequence[tuple[int, int]]
    weights: Sequence[float] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        edges, weights = checked_edges(self.edges, self.weights)
        object.__setattr__(self, "edges", edges)
        object.__setattr__(self, "weights", weights)

    def __repr__(self) -> str:
        return shown(self)

    @cached_property
    def extension(self) -> Extension:
        return extension_of(self.edges, self.weights)


def checked_edges(edges: object, weights: object) -> tuple[Edges, tuple[float, ...]]:
    """Edges and their weights as plain Python, if they are those of a graph."""
    listed = isinstance(edges, tuple | list | set | frozenset)
    pairs = strict.doubles(list(edges) if listed else edges)  # type: ignore[call-overload]
    if pairs is None or pairs.ndim != 2 or pairs.shape[1] != 2 or not np.all(pairs == np.rint(pairs)):
        raise ValueError("edges must be pairs of features such as [(0, 1), (1, 2)], one pair at least")
    if pairs.min() < 0 or pairs.max() >= 2**31:
        wrong = pairs.min() if pairs.min() < 0 else pairs.max()
        raise ValueError(f"edges must join features that are counted from 0, got feature {wrong:.0f}")
    if np.any(loops := pairs[:, 0] == pairs[:, 1]):
        raise ValueError(f"an edge must join two different features, got {_pair(pairs[np.argmax(loops)])}")
    prices = np.ones(len(pairs)) if weights is None else strict.doubles(weights)
    if prices is None or prices.ndim != 1 or not np.all((prices >= 0) & (prices < np.inf)):
        raise ValueError("weights must be finite numbers of at least 0")
    if len(prices) != len(pairs):
        raise ValueError(f"weights must be one for each of {len(pairs)} edges, got {len(prices)}")
    return tuple(map(_pair, pairs)), tuple(prices.tolist())


def extension_of(edges: Any, weights: Any) -> Extension:
    """The extension of edges that were checked."""
    return cut_of(np.array(edges, dtype=np.intp), np.array(weights))


def shown(penalty: Any) -> str:
    """The penalty as text, without the edges if there are many."""
    parts = []
    for name in strict.names(type(penalty)):
        value = getattr(penalty, name)
        many = isinstance(value, tuple) and len(value) > _SHOWN
        text = f"<{len(value):,}, {sha256(repr(value).encode()).hexdigest()[:16]}>" if many else repr(value)
        parts.append(f"{name}={text}")
    return f"{type(penalty).__name__}({', '.join(parts)})"


def _pair(ends: Vector) -> tuple[int, int]:
    return int(ends[0]), int(ends[1])


@dataclass(frozen=True, repr=False)
class Fused(FusionPenalty):
    """The fused lasso: strength * total variation + l1 * sum of abs(w_j) + l2 / 2 * norm(w)².

    Neighbouring coefficients become equal, and small ones 0. See Tibshirani, Saunders, Rosset, Zhu and
    Knight, "Sparsity and smoothness via the fused lasso".

    Parameters
    ----------
    strength : float
        Weight of the total variation beside the mean loss.
    l1 : float
        Weight of the L1 part.
    edges, weights : optional
        Which coefficients are neighbours, as in `GraphFused`; by default all form a chain, as in
        `TotalVariation`.
    l2 : float
        Weight of the L2 part. Output perturbation needs one.

    Examples
    --------
    >>> import numpy as np
    >>> Fused(1.0, l1=3.0).prox(np.array([1.0, 2.0, 9.0, 8.0]), step=1.0)
    array([0., 0., 5., 5.])
    """

    l1: float
    edges: Sequence[tuple[int, int]] | None = None
    weights: Sequence[float] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        strict.level("l1", self.l1)
        if self.edges is not None:
            edges, weights = checked_edges(self.edges, self.weights)
            object.__setattr__(self, "edges", edges)
            object.__setattr__(self, "weights", weights)
        elif self.weights is not None:
            raise ValueError("weights are those of edges: give edges, too")

    def __repr__(self) -> str:
        return shown(self)

    @property
    def l1_part(self) -> float:
        return self.l1

    def scaled(self, factor: float) -> Self:
        return replace(super().scaled(factor), l1=factor * self.l1)

    @cached_property
    def extension(self) -> Extension:
        return Chain() if self.edges is None else extension_of(self.edges, self.weights)


@dataclass(frozen=True, repr=False)
class Lovasz(FusionPenalty):
    """strength * f(w) + l2 / 2 * norm(w)², f the Lovász extension of a submodular F with F(all features) = 0.

    f(w) is the integral over x of F({j: w_j > x}): F prices the sets of features whose coefficients are
    larger than those of the others, and coefficients are drawn to equal values. The function of a set A that
    counts the neighbours of which one is in A gives `TotalVariation`.

    Proximal steps search for minimum-norm points of polytopes, which takes thousands of values of the
    function where there are a hundred features.

    Parameters
    ----------
    strength : float
        Weight of the penalty beside the mean loss.
    function : callable
        From an array of distinct features, in any order, to a number.
    p : int
        Number of features.
    l2 : float
        Weight of the L2 part. Output perturbation needs one.

    Raises
    ------
    ValueError
        If the function is not 0 for no feature and for all, or if a thousand random sets show that it is
        negative or not submodular.

    Examples
    --------
    >>> import numpy as np
    >>> def balance(features):
    ...     return len(features) * (4 - len(features))
    >>> penalty = Lovasz(0.1, balance, p=4)
    >>> round(penalty.value(np.array([1.0, 1.0, 1.0, 3.0])), 6)
    0.6
    >>> penalty.prox(np.array([1.0, 1.1, 1.2, 3.0]), step=1.0).round(6)
    array([1.2, 1.2, 1.2, 2.7])
    """

    function: Callable[[Features], float]
    p: int

    def __post_init__(self) -> None:
        super().__post_init__()
        require_few_features(self.p)
        if not callable(self.function):
            raise strict.wrong("function", self.function, "a function of a set of features")
        self.extension.require(self.p)

    def __repr__(self) -> str:
        name = getattr(self.function, "__qualname__", repr(self.function))
        return f"Lovasz(strength={self.strength!r}, function={name}, p={self.p}, l2={self.l2!r})"

    @cached_property
    def extension(self) -> Extension:
        return CustomExtension(self.function, self.p)
