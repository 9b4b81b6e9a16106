"""Penalties that draw coefficients to equal values."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
from scipy.special import ndtri

from .. import strict
from ..arrays import Vector, soft_threshold
from .base import SURE, Penalty
from .extensions import Extension

_DRAWS, _LEAST_DRAWS, _ENTRIES = 100, 20, 100_000


@dataclass(frozen=True)
class Plateaus(Penalty):
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
        if np.ndim(step):
            raise ValueError(f"{type(self).__name__} needs one step for all coordinates, got several")
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

    def denoised(self, w: Vector, noise: float) -> Vector:
        """Return w with the means of its plateaus, as far as noise of that deviation alone made the jumps.

        The plateaus are those of a proximal step of f that levels noise alone in all but about a twentieth of
        cases. With an L1 part those whose mean noise alone could have made are 0.
        """
        if noise == 0:
            return w
        labels = np.arange(w.size)
        if self.strength > 0:
            level = float(np.quantile(self._levels_of_noise(w.size), SURE, method="higher"))
            if not level < np.inf:  # some jumps are free
                return w
            labels = self.extension.plateaus(self.extension.flatten(w, level * noise), 0.0)
        means = self.extension.mean_over(labels, w)
        if self.l1_part > 0:
            size = self.extension.mean_over(labels, 1 / np.bincount(labels)[labels]) ** -1
            most = noise * float(ndtri((1 + SURE ** (1 / (labels.max() + 1))) / 2))
            means = np.where(np.abs(means) * np.sqrt(size) > most, means, 0.0)
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
