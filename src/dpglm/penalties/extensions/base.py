"""What the Lovász extension of a set function that is 0 for all features is."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

from ...arrays import Vector

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
