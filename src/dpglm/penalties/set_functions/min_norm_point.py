"""Minimisation of a submodular function by the minimum-norm point of its base polytope."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr_delete, qr_insert, solve_triangular

from ...arrays import Vector

Indices = NDArray[np.intp]


def minimising_set(gains: Callable[[Indices], Vector], size: int, rounding: float) -> Indices:
    """Return the indices of a set at which a submodular function is least.

    The function H is given by its gains along an order, H(order[:k + 1]) - H(order[:k]). For the point x of
    the base polytope with the least Euclidean norm, min H = sum of min(x_j, 0), reached by the indices of
    negative x_j; any x of the polytope gives a lower bound. See Fujishige and Isotani, "A submodular function
    minimization algorithm based on the minimum-norm base", and Wolfe, "Finding the nearest point in a
    polytope".

    Parameters
    ----------
    gains : callable
        Gains of H along an order of all indices.
    size : int
        Number of indices, 1 at least.
    rounding : float
        How far from the least value the search may stop; the empty set is preferred by as much.
    """
    order = np.arange(size)
    unit = float(np.max(np.abs(gains(order)))) or 1.0  # keeps squares from over- and underflow
    rounding /= unit
    least, best = -rounding, order[:0]
    hull: _Hull | None = None
    while True:
        gained = gains(order) / unit
        values = np.cumsum(gained)
        k = int(np.argmin(values))
        if values[k] < least:
            least, best = float(values[k]), order[: k + 1]
        vertex = np.empty(size)
        vertex[order] = gained
        if hull is None:
            hull = _Hull(vertex)
        elif not hull.add(vertex):
            return best
        if least - np.sum(np.minimum(hull.nearest, 0)) <= rounding:
            return best
        order = np.argsort(hull.nearest, kind="stable")


class _Hull:
    """The convex hull of some vertices, and its point nearest to 0, by Wolfe's algorithm.

    With a constant put before each, affinely independent vertices are linearly independent columns, Q R. The
    point of their affine hull nearest to 0 has weights proportional to the solution of R' R weights = 1.
    """

    def __init__(self, vertex: Vector) -> None:
        self.constant = float(np.linalg.norm(vertex)) or 1.0
        column = np.append(self.constant, vertex)[:, None]
        length = np.linalg.norm(column)
        self.q, self.r = column / length, np.array([[length]])
        self.vertices, self.weights = vertex[None], np.ones(1)
        self.nearest = vertex

    def add(self, vertex: Vector) -> bool:
        """Add a vertex and move to the nearest point; False if it is no nearer than before."""
        try:
            column = np.append(self.constant, vertex)
            self.q, self.r = qr_insert(self.q, self.r, column, len(self.weights), "col", rcond=1e-14)
        except np.linalg.LinAlgError:
            return False
        self.vertices = np.vstack([self.vertices, vertex])
        self.weights = np.append(self.weights, 0.0)
        while (target := self._affine_weights()).min() < 0:
            negative = np.flatnonzero(target < 0)
            shares = self.weights[negative] / (self.weights[negative] - target[negative])
            leaving, share = int(negative[np.argmin(shares)]), np.min(shares)
            self.weights = np.maximum(self.weights + share * (target - self.weights), 0)
            self._remove(leaving)
        self.weights = target
        before, self.nearest = self.nearest, target @ self.vertices
        return bool(self.nearest @ self.nearest < before @ before)

    def _affine_weights(self) -> Vector:
        half = solve_triangular(self.r, np.ones(len(self.weights)), trans="T", check_finite=False)
        weights: Vector = solve_triangular(self.r, half, check_finite=False)
        return weights / float(np.sum(weights))

    def _remove(self, j: int) -> None:
        self.q, self.r = qr_delete(self.q, self.r, j, which="col")
        self.vertices = np.delete(self.vertices, j, axis=0)
        self.weights = np.delete(self.weights, j)
