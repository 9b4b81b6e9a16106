"""A penalty on the coefficients of columns that are multiplied by public scales."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..arrays import Vector
from .base import Separable


@dataclass(frozen=True, eq=False)
class InScaledColumns(Separable):
    """A separable penalty of the coefficients scales * u, as a function of u, plus quadratic / 2 norm(u)².

    A column that is multiplied by a scale has a coefficient that is divided by it; the penalty is still that
    of the column as it was.

    Parameters
    ----------
    penalty : Separable
    scales : array
        The factor of each column, above 0.
    quadratic : float
        Strength of a further L2 part, the same for all scaled columns.
    """

    penalty: Separable
    scales: Vector
    quadratic: float = 0.0

    @property
    def strong_convexity(self) -> float:
        return float(np.min(self.coordinate_form()[1]))

    @property
    def is_zero(self) -> bool:
        return self.penalty.is_zero and self.quadratic == 0

    def coordinate_form(self) -> tuple[Vector, Vector, Vector, Vector]:  # type: ignore[override]
        """The numbers of `Separable.coordinate_form`, each of them an array."""
        l1, l2, low, high = self.penalty.coordinate_form()
        strengths = l2 * np.square(self.scales) + self.quadratic
        return l1 * self.scales, strengths, low / self.scales, high / self.scales

    def value(self, w: Vector) -> float:
        return self.penalty.value(self.scales * w) + self.quadratic / 2 * float(np.sum(np.square(w)))

    def prox_rounding(self, n_features: int, given: float = 0.0) -> float:
        # A product and a difference for an L1 part, a product, a sum and a quotient for an L2 part.
        return given + (2.0 + given) + (3.0 + given)

    def support(self, w: Vector, noise: float) -> NDArray[np.bool_]:
        return self.penalty.support(w, noise)
