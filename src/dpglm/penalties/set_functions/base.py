"""What a set function is, and the norm that it gives."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...arrays import Vector
from .submodular_function import NONE, SubmodularFunction, check_random_sets
from .submodular_function import Features as Features


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
