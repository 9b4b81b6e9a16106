"""Cut functions of a graph of features."""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from ...arrays import Vector
from .base import Extension, Labels
from .chain import EDGE_WIDTH, Chain, require_last

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
        return float(self._weights @ np.abs(w[self._edges[:, 0]] - w[self._edges[:, 1]]))

    def flatten(self, w: Vector, step: float) -> Vector:
        """Return the u that minimises norm(u - w)² / 2 + step * f(u), for a positive step.

        It is computed in whole numbers, so that a flow is one and a cut is a least one, without tolerance:
        entries of w, and prices, are rounded to less than p 2**-59 times the largest entry.
        """
        from ...kernels import proximal  # compiled code is loaded by those who use it

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
