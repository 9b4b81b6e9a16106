"""Lovász extensions of set functions that are 0 for all features: chains, graphs, and one's own."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from ..arrays import Vector
from .submodular_functions import NONE, Features, SubmodularValues, check_random_sets

Labels = NDArray[np.intp]

_ROUNDING = 1e-12


class Extension(ABC):
    """The Lovász extension f of a submodular F >= 0 with F(no feature) = F(all features) = 0.

    f(w) is the integral over x of F({j: w_j > x}): convex, linear along rays, and the same if all w_j move by
    as much. So it draws coefficients to equal values, and none to 0.
    """

    @property
    def n_features(self) -> int | None:
        """How many features there are; None if there may be any number, or more."""
        return None

    @abstractmethod
    def require(self, n_features: int) -> None:
        """Refuse a number of features that it is not for."""

    @abstractmethod
    def value(self, w: Vector) -> float:
        """Return f(w)."""

    @abstractmethod
    def single_prices(self, n_features: int) -> Vector:
        """Return F of each feature by itself."""

    @abstractmethod
    def flatten(self, w: Vector, step: float) -> Vector:
        """Return the u that minimises norm(u - w)² / 2 + step * f(u), for a positive step."""

    @abstractmethod
    def plateaus(self, w: Vector, width: float) -> Labels:
        """Return a label for each coefficient: that of its plateau, which has no jump beyond the width."""

    def flat(self, w: Vector) -> Vector:
        """Return the nearest u with f(u) = f(-u) = 0."""
        return np.full(w.shape, np.mean(w))

    def gaussian_width(self, n_features: int) -> float | None:
        """Return the mean of f at a standard normal vector; None if there is no formula."""
        return None

    def rounding(self, n_features: int) -> float:
        """Return what `flatten` may be off beyond what any proximal step may, in units of 2**-53 norm(w)."""
        return 0.0

    def dual_norm(self, g: Vector) -> float:
        """Return the least step at which `flatten` leaves what is flat of g, and no more.

        It is the largest g(A) / F(A) for the rest of g, found by discrete Newton steps: the best set at the
        price of one ratio has the next ratio.
        """
        rest = g - self.flat(g)
        ratio, subset = 0.0, rest > 0
        while (worth := float(np.sum(rest[subset]))) > _ROUNDING * float(np.sum(np.abs(rest))):
            price = self.value(subset.astype(np.float64))
            better = worth / price if price > 0 else np.inf
            if not ratio < better < np.inf:
                return max(ratio, better)
            ratio, subset = better, self.flatten(rest, better) > 0
        return ratio

    def mean_over(self, labels: Labels, w: Vector) -> Vector:
        """Return the mean of w over the plateau of each coefficient."""
        _, place, count = np.unique(labels, return_inverse=True, return_counts=True)
        means: Vector = np.bincount(place, weights=w) / count
        return means[place]


EDGE_WIDTH = 2 / math.sqrt(math.pi)
"""Mean distance of two standard normal numbers."""


def require_last(last: int, n_features: int) -> None:
    """Refuse features among which the last one that is joined is not."""
    if 0 < last >= n_features:
        raise ValueError(
            f"an edge leads to feature {last}, counted from 0, and there are {n_features} features"
        )


class Chain(Extension):
    """The sum of prices[k] abs(w[k + 1] - w[k]); features beyond the last price are in no chain.

    Parameters
    ----------
    prices : array, optional
        One for each pair of neighbours; by default 1 for any number of features.
    """

    def __init__(self, prices: Vector | None = None) -> None:
        self._prices = prices

    def require(self, n_features: int) -> None:
        require_last(0 if self._prices is None else len(self._prices), n_features)

    def prices(self, n_features: int) -> Vector:
        """Return a price for each pair of neighbours among so many features."""
        pairs = max(n_features - 1, 0)
        if self._prices is None:
            return np.ones(pairs)
        return np.concatenate([self._prices, np.zeros(pairs - len(self._prices))])

    def value(self, w: Vector) -> float:
        return float(self.prices(len(w)) @ np.abs(np.diff(w)))

    def single_prices(self, n_features: int) -> Vector:
        prices = self.prices(n_features)
        both: Vector = np.append(prices, 0.0)[:n_features] + np.append(0.0, prices)[:n_features]
        return both

    def flatten(self, w: Vector, step: float) -> Vector:
        from ..kernels import proximal  # compiled code is loaded by those who use it

        p = len(w)
        u = np.array(w, dtype=np.float64)
        if p > 1:
            prices = np.minimum(step * self.prices(p), np.finfo(np.float64).max)
            proximal.flatten_chain(u.copy(), prices, np.empty((2, p)), np.empty((3, 2 * p)), u)
        return u

    def plateaus(self, w: Vector, width: float) -> Labels:
        jumps = (np.abs(np.diff(w)) > width) | (self.prices(len(w)) == 0)
        return np.concatenate([np.zeros(min(len(w), 1), dtype=np.intp), np.cumsum(jumps)])

    def flat(self, w: Vector) -> Vector:
        return self.mean_over(self.plateaus(w, math.inf), w)

    def dual_norm(self, g: Vector) -> float:
        """Return the largest sum of the rest of g up to a pair of neighbours, over the price of the pair."""
        prices = self.prices(len(g))
        sums = np.abs(np.cumsum(g - self.flat(g))[:-1])
        priced = prices > 0
        return float(np.max(sums[priced] / prices[priced], initial=0.0))

    def gaussian_width(self, n_features: int) -> float:
        return EDGE_WIDTH * float(np.sum(self.prices(n_features)))


_BITS = 60  # of whole numbers in which flow is computed, less those for sums over the nodes


def cut_of(edges: NDArray[np.intp], weights: Vector) -> Extension:
    """The sum of weight * abs(w_i - w_j) over the edges (i, j); a chain if they join neighbours only."""
    first = edges.min(axis=1)
    if np.all(edges.max(axis=1) == first + 1):
        return Chain(np.bincount(first, weights=weights).astype(np.float64))
    return Cut(edges, weights)


class Cut(Extension):
    """The sum of weight * abs(w_i - w_j) over the edges (i, j): F(A) is the weight of edges that leave A.

    Parameters
    ----------
    edges : array of shape (m, 2)
        Pairs of different features; features of none are as they are.
    weights : array of length m
    """

    def __init__(self, edges: NDArray[np.intp], weights: Vector) -> None:
        self._edges, self._weights = edges, weights

    def require(self, n_features: int) -> None:
        require_last(int(self._arcs[0][-1]), n_features)

    @cached_property
    def _arcs(self) -> tuple[NDArray[np.intp], ...]:
        """Nodes, ends of edges among them; edges of the arcs, where those of nodes begin, heads, twins."""
        nodes, ends = np.unique(self._edges, return_inverse=True)
        ends, m = ends.reshape(-1, 2), len(self._edges)
        tails, heads = ends.T.ravel(), ends[:, ::-1].T.ravel()
        order = np.argsort(tails, kind="stable")
        place = np.empty(2 * m, dtype=np.intp)
        place[order] = np.arange(2 * m)
        begins = np.concatenate([[0], np.cumsum(np.bincount(tails, minlength=len(nodes)))])
        return nodes, order % m, begins, heads[order], place[(order + m) % (2 * m)]

    def value(self, w: Vector) -> float:
        return float(self._weights @ self._jumps(w))

    def single_prices(self, n_features: int) -> Vector:
        prices: Vector = np.bincount(self._edges.ravel(), np.repeat(self._weights, 2), n_features).astype(
            float
        )
        return prices

    def flatten(self, w: Vector, step: float) -> Vector:
        """Return the u that minimises norm(u - w)² / 2 + step * f(u), for a positive step.

        It is computed in whole numbers, so that a flow is one and a cut is a least one, without tolerance:
        entries of w, and prices, are rounded to less than p 2**-59 times the largest entry.
        """
        from ..kernels import proximal  # compiled code is loaded by those who use it

        nodes, edges, begins, heads, twins = self._arcs
        u, p = np.array(w, dtype=np.float64), len(nodes)
        _, exponent = math.frexp(float(np.max(np.abs(u[nodes]))))
        worth = np.ldexp(u[nodes], -exponent)  # at most 1
        middle = (worth.max() + worth.min()) / 2
        bits = _BITS - math.ceil(math.log2(p))
        # No more flows along an edge than all nodes have above the middle: larger prices act the same.
        most = float(p * (worth.max() - worth.min()))
        with np.errstate(over="ignore"):
            prices = np.ldexp(step * self._weights, -exponent)
        left = np.rint(np.ldexp(np.minimum(prices, most), bits)).astype(np.int64)[edges]
        supply = np.rint(np.ldexp(worth - middle, bits)).astype(np.int64)
        levels = np.empty(p)
        network = proximal.Network(begins, heads, twins, left)
        proximal.flatten_cuts(network, supply, np.arange(p), np.empty((9, p), dtype=np.int64), levels)
        u[nodes] = np.ldexp(np.ldexp(levels, -bits) + middle, exponent)
        return u

    def rounding(self, n_features: int) -> float:
        """Return what rounding to whole numbers adds, in units of 2**-53 norm(w).

        The result is exact for entries that are off by half a unit, at most one more for the mean of a block,
        and half a unit for each edge; a unit is 2**-59 p times the largest entry at most.
        """
        nodes, _, begins, _, _ = self._arcs
        p, most = len(nodes), int(np.max(np.diff(begins)))
        return 2.0**-6 * p * math.sqrt(p) * (2 + most / 2)

    def plateaus(self, w: Vector, width: float) -> Labels:
        first, second = self._edges[(self._weights > 0) & (self._jumps(w) <= width)].T
        links = csr_array((np.ones(len(first), dtype=bool), (first, second)), shape=(len(w), len(w)))
        labels: Labels = connected_components(links, directed=False)[1].astype(np.intp)
        return labels

    def _jumps(self, w: Vector) -> Vector:
        return np.abs(w[self._edges[:, 0]] - w[self._edges[:, 1]])

    def flat(self, w: Vector) -> Vector:
        return self.mean_over(self.plateaus(w, math.inf), w)

    def gaussian_width(self, n_features: int) -> float:
        return EDGE_WIDTH * float(np.sum(self._weights))


_TRIALS, _TOLERANCE = 1000, 1e-9


class CustomExtension(Extension):
    """The extension of a submodular function that is given by its values.

    Raises
    ------
    ValueError
        If the function is not 0 for no feature and for all, or if a thousand random sets show that it is
        negative or not submodular.
    """

    def __init__(self, function: Callable[[Features], float], n_features: int) -> None:
        self._function, self._size = SubmodularValues(function), n_features
        every = np.arange(n_features)
        scale = max(abs(self._function.value(every[j : j + 1])) for j in every.tolist())
        for subset, what in ((NONE, "no features"), (every, "all features")):
            if not abs(value := self._function.value(subset)) <= _TOLERANCE * scale:
                raise ValueError(f"the value of {what} must be 0, got {value!r}")
        rounding = _TOLERANCE * scale
        for rest, i, without, value in check_random_sets(self._function, n_features, _TRIALS, 0, rounding):
            for subset, found in ((rest, without), (np.append(rest, i), value)):
                if not found >= -rounding:
                    raise ValueError(
                        f"the value must be at least 0, got {found!r} for {sorted(subset.tolist())}"
                    )

    @property
    def n_features(self) -> int:
        return self._size

    def require(self, n_features: int) -> None:
        if n_features != self._size:
            raise ValueError(f"Lovasz is for {self._size} features, got {n_features}")

    def value(self, w: Vector) -> float:
        order = np.argsort(-w, kind="stable")
        return float(w[order] @ self._function.gains(order))

    def single_prices(self, n_features: int) -> Vector:
        return np.array([self._function.value(np.array([j])) for j in range(n_features)])

    def flatten(self, w: Vector, step: float) -> Vector:
        return self._function.levels(w, step, np.arange(w.size))

    def plateaus(self, w: Vector, width: float) -> Labels:
        order = np.argsort(w, kind="stable")
        labels = np.empty(len(w), dtype=np.intp)
        labels[order] = np.cumsum(np.diff(w[order], prepend=w[order[:1]]) > width)
        return labels
