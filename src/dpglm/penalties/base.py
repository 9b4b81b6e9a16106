"""What a penalty is: a convex function of the coefficients with a cheap proximal step."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from ..arrays import Vector, soft_threshold
from ..errors import UnsupportedProblem

Ends = float | Vector

TOLERANCE = 1e-9  # relative; a projected point may miss its set by rounding
CONFIDENCE = 0.95
"""Probability with which noise alone leaves all coefficients at 0."""


@dataclass(frozen=True)
class Penalty(ABC):
    """A convex penalty on the coefficients; the intercept is never part of them."""

    @property
    def strong_convexity(self) -> float:
        """The largest m for which penalty(w) - m/2 norm(w)² is convex."""
        return 0.0

    @property
    def is_zero(self) -> bool:
        """Whether there is no penalty at all: it is 0 everywhere."""
        return False

    def scaled(self, factor: float) -> Penalty:
        """Return the penalty times a factor; a constraint set stays as it is."""
        raise UnsupportedProblem(
            f"{type(self).__name__} does not say what a multiple of it is, which weights of records need: "
            "define its method scaled"
        )

    @abstractmethod
    def value(self, w: Vector) -> float:
        """Return the penalty at w; infinite outside a constraint set."""

    @abstractmethod
    def prox(self, w: Vector, step: float | Vector) -> Vector:
        """Return the u that minimises norm(u - w)² / 2 + step * penalty(u)."""

    def _require_one_step(self, step: float | Vector) -> None:
        if np.ndim(step):
            raise ValueError(f"{type(self).__name__} needs one step for all coordinates, got several")

    def prox_rounding(self, n_features: int, given: float = 0.0) -> float:
        """Return how far from the exact proximal step the computed one may be.

        In units of 2**-53 norm(w) / (1 + step * strong_convexity), with Euclidean norms; ``given`` is the
        relative error of w and of the step, in units of 2**-53.

        Without ``given`` this one is measured, not proven: more than twice the largest error that was found
        against exact arithmetic.
        """
        return 8.0 * n_features + 16.0 + 3.0 * given

    def noise_share(self, n_features: int, noise: float) -> float:
        """Return the share that is left of noise of that deviation in the slope of each coefficient.

        It is 1 but for penalties that draw coefficients to equal values: a mean has less noise.
        """
        return 1.0

    def support(self, w: Vector, noise: float) -> NDArray[np.bool_]:
        """Return which coefficients are to differ from 0 if w carries noise of that deviation.

        A penalty that induces no zeros keeps all.
        """
        return np.ones(w.shape, dtype=bool)

    def denoised(self, w: Vector, noise: float) -> Vector:
        """Return w without what noise of that deviation alone could have made.

        Coefficients outside of the support are 0. Penalties that draw coefficients to equal values level
        them, too.
        """
        return np.where(self.support(w, noise), w, 0.0)

    def rounded(self, w: Vector, width: float) -> Vector:
        """Return w with the zeros of a minimiser from which each coefficient is off by at most the width.

        Penalties that draw coefficients to equal values make those equal that may be.
        """
        return np.where(np.abs(w) > width, w, 0.0)


@dataclass(frozen=True)
class Separable(Penalty):
    """A sum over coordinates of l1 abs(u) + l2/2 u², with u kept in [low, high].

    A subclass states these four numbers; value and proximal steps follow from them.
    """

    @abstractmethod
    def coordinate_form(self) -> tuple[float, float, Ends, Ends]:
        """Return (l1, l2, low, high); the ends may be arrays, with one for each coordinate.

        The proximal step of one coordinate is clip(soft(v, t * l1) / (1 + t * l2), low, high)
        with soft(v, s) = sign(v) max(abs(v) - s, 0); compiled kernels use these numbers.
        """

    @property
    def strong_convexity(self) -> float:
        return self.coordinate_form()[1]

    @property
    def is_zero(self) -> bool:
        return self.coordinate_form() == (0.0, 0.0, -math.inf, math.inf)

    def value(self, w: Vector) -> float:
        l1, l2, low, high = self.coordinate_form()
        below = low - TOLERANCE * np.maximum(1.0, np.abs(low))
        above = high + TOLERANCE * np.maximum(1.0, np.abs(high))
        if np.any(w < below) or np.any(w > above):
            return math.inf
        return float(l1 * np.sum(np.abs(w)) + l2 / 2 * np.sum(np.square(w)))

    def prox(self, w: Vector, step: float | Vector) -> Vector:
        """Return the u that minimises norm(u - w)² / 2 + step * penalty(u); w_j may have its own step."""
        l1, l2, low, high = self.coordinate_form()
        result: Vector = np.clip(soft_threshold(w, step * l1) / (1 + step * l2), low, high)
        return result

    def prox_rounding(self, n_features: int, given: float = 0.0) -> float:
        # A product and a difference round, then a product, a sum and a quotient; clipping is exact.
        l1, l2, _, _ = self.coordinate_form()
        return given + (2.0 + given if l1 else 0.0) + (3.0 + given if l2 else 0.0)

    def support(self, w: Vector, noise: float) -> NDArray[np.bool_]:
        """Return which coefficients are to differ from 0 if w carries noise of that deviation.

        With an L1 part, those that are larger than noise alone would be in all but a twentieth of cases.
        """
        if self.coordinate_form()[0] == 0:
            return super().support(w, noise)
        return np.abs(w) > noise * float(ndtri((1 + CONFIDENCE ** (1 / max(w.size, 1))) / 2))
