"""Submodular functions of sets of features, and their minimisation."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr_delete, qr_insert, solve_triangular

from .. import strict
from ..arrays import Vector

Features = NDArray[np.intp]

NONE: Features = np.empty(0, dtype=np.intp)
_LEAST_GAIN = 1e-15  # relative; a set must be better than another by more than this
_MAX_FEATURES = 10_000


@dataclass(frozen=True)
class SubmodularFunction(ABC):
    """A function F of sets of features with F(A + j) - F(A) that never grows with A; 0 for no feature.

    A subclass defines `gains`; all else follows from them, and may be overridden by a closed form.
    """

    @property
    def n_features(self) -> int | None:
        """How many features there are; None for a function that takes any number."""
        return None

    @abstractmethod
    def gains(self, order: Features) -> Vector:
        """Return F(order[:k + 1]) - F(order[:k]) for every k and an order of some or all features."""

    def value(self, subset: Features) -> float:
        """Return F(subset)."""
        return float(np.sum(self.gains(np.asarray(subset, dtype=np.intp))))

    def levels(self, worth: Vector, step: float, free: Features) -> Vector:
        """Return the u that minimises norm(u - worth)² / 2 + step * f(u), f being the extension of F.

        Features that are not ``free`` are 0. The set where the result is above a level minimises
        step * F(A) - sum over A of (worth - level). Features of one block are equal to its level unless a
        part of it is above; then it is split. See Groenevelt, "Two algorithms for maximizing a separable
        concave function over a polymatroid feasible region", and Bach, "Learning with submodular functions",
        section 9.1, doi:10.1561/2200000039.
        """
        result = np.zeros(worth.shape)
        blocks = [(NONE, free)]
        while blocks:
            above, block = blocks.pop()
            if not block.size:
                continue
            price = step * np.sum(self.gains(np.append(above, block))[above.size :])
            level = (np.sum(worth[block]) - price) / block.size
            upper = self.minimiser(worth - level, step, above, block) if block.size > 1 else NONE
            if 0 < upper.size < block.size:
                lower = np.setdiff1d(block, upper, assume_unique=True)
                blocks += [(above, upper), (np.append(above, upper), lower)]
            else:
                result[block] = level
        return result

    def minimiser(self, worth: Vector, step: float, taken: Features, free: Features) -> Features:
        """Return the A within `free` that minimises step * F(taken and A) - worth(A).

        Found from the minimum-norm point of the base polytope, for any F; a subclass may be faster.
        """

        def gains(order: Features) -> Vector:
            features = free[order]
            return step * self.gains(np.append(taken, features))[taken.size :] - worth[features]

        rounding = _LEAST_GAIN * float(np.sum(np.abs(worth)))
        return free[minimising_set(gains, free.size, rounding)] if free.size else free


@dataclass(frozen=True)
class SubmodularValues(SubmodularFunction):
    """A function of sets, given by its values."""

    function: Callable[[Features], float]

    def value(self, subset: Features) -> float:
        return float(self.function(np.asarray(subset, dtype=np.intp)))

    def gains(self, order: Features) -> Vector:
        return np.diff([self.value(order[:k]) for k in range(len(order) + 1)])


def require_few_features(p: object) -> None:
    """Refuse more features than a function can have whose values are computed in Python."""
    if strict.whole("p", p) > _MAX_FEATURES:
        raise strict.wrong("p", p, f"at most {_MAX_FEATURES:,}: the value of each set is computed in Python")


def check_random_sets(
    function: SubmodularFunction, n_features: int, trials: int, seed: int, rounding: float
) -> Iterator[tuple[Features, int, float, float]]:
    """Refuse a function that is not submodular, as far as random sets show.

    Yields a random set, a feature that is not in it, and the values without and with that feature.
    """
    rng = np.random.default_rng(seed)
    for _ in range(trials if n_features > 1 else 0):
        i, j, *rest = rng.permutation(n_features)[: rng.integers(2, n_features, endpoint=True)].tolist()
        none, with_i, with_j, both = (
            function.value(np.array(rest + more, dtype=np.intp)) for more in ([], [i], [j], [i, j])
        )
        yield np.array(rest, dtype=np.intp), i, none, with_i
        if not with_i - none >= both - with_j - rounding:
            raise ValueError(f"not submodular: {i} adds more to {sorted([*rest, j])} than to {sorted(rest)}")


@dataclass(frozen=True)
class SetFunction(SubmodularFunction):
    """A price F(A) of using the features A: non-decreasing and submodular, 0 for no feature.

    Submodular means that a feature costs no more beside others than alone: F(A + j) - F(A) never grows
    with A. Every single feature has a positive price. Then

        norm(w) = max of w · s over the s with abs(s)(A) <= F(A) for all A

    is a norm, and the largest convex function that is at most F(support of w) wherever all
    abs(w_j) <= 1. See Bach, "Structured sparsity-inducing norms through submodular functions".

    A subclass defines `gains`; all else follows from them, and may be overridden by a closed form.
    """

    @property
    def few_vertices(self) -> bool:
        """Whether the s with abs(s)(A) <= F(A) for all A are the L1 ball, with two vertices a feature."""
        return False

    def norm(self, w: Vector) -> float:
        """Return max of w · s over abs(s)(A) <= F(A), by the greedy algorithm."""
        size = self._sizes(w)
        order = np.argsort(-size, kind="stable")
        return float(size[order] @ self.gains(order))

    def linear_minimiser(self, g: Vector) -> Vector:
        """Return an s with abs(s)(A) <= F(A) for all A at which g · s is least: -norm(g)."""
        order = np.argsort(-self._sizes(g), kind="stable")
        vertex = np.empty(g.shape)
        vertex[order] = self.gains(order)
        return np.where(g > 0, -vertex, vertex)

    def dual_norm(self, g: Vector) -> float:
        """Return max of abs(g)(A) / F(A) over the nonempty A.

        Discrete Newton steps: the best set at the price of one ratio has the next ratio. They end after
        finitely many sets.
        """
        size = self._sizes(g)
        ratio, subset = 0.0, np.flatnonzero(size)
        while subset.size and (better := float(size[subset].sum()) / self.value(subset)) > ratio:
            ratio, subset = better, self.support(size, better)
        return ratio

    def prox(self, w: Vector, step: float) -> Vector:
        """Return the u that minimises norm(u - w)² / 2 + step * norm(u), the first norm being Euclidean."""
        size = self._sizes(w)
        return np.copysign(self.shrink(size, step), w) if step > 0 else np.array(w, dtype=np.float64)

    def shrink(self, size: Vector, step: float) -> Vector:
        """Return the proximal step of coefficients that are at least 0, for a positive step."""
        return np.maximum(self.levels(size, step, self.support(size, step)), 0.0)

    def support(self, size: Vector, step: float) -> Features:
        """Return where `shrink` is positive: the A that minimises step * F(A) - size(A)."""
        return self.minimiser(size, step, NONE, np.arange(size.size))

    def mean_value(self, rate: Vector, n_features: int) -> Vector | None:
        """Return the mean of F(A) if every feature is in A with probability `rate`; None if unknown."""
        return None

    def _sizes(self, w: Vector) -> Vector:
        """Absolute values, of as many coefficients as there are features."""
        if self.n_features not in (None, len(w)):
            raise ValueError(f"{type(self).__name__} is for {self.n_features} features, got {len(w)}")
        return np.abs(w)


def check_set_function(
    function: SetFunction, n_features: int, trials: int = 1000, seed: int = 0, tolerance: float = 1e-9
) -> None:
    """Refuse a set function whose norm would not be one, as far as random sets show.

    Parameters
    ----------
    function : SetFunction
    n_features : int
        How many features there are.
    trials : int
        Number of random sets, to which two more features are added.
    seed : int
        Seed of the random sets.
    tolerance : float
        What may be missing for rounding, relative to the price of all features.

    Raises
    ------
    ValueError
        It names the property that fails and features that show it.
    """
    empty = function.value(NONE)
    if empty != 0:
        raise ValueError(f"the value of no features must be 0, got {empty!r}")
    for j in range(n_features):
        if not 0 < (single := function.value(np.array([j]))) < np.inf:
            raise ValueError(f"the value of a single feature must be positive, got {single!r} for [{j}]")
    rounding = tolerance * abs(function.value(np.arange(n_features)))
    for rest, i, none, with_i in check_random_sets(function, n_features, trials, seed, rounding):
        if not with_i >= none - rounding:
            raise ValueError(
                f"the value must not decrease, but does when {i} is added to {sorted(rest.tolist())}"
            )


def minimising_set(gains: Callable[[Features], Vector], size: int, rounding: float) -> Features:
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
