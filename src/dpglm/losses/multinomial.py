"""Multinomial logistic loss: one prediction for each class."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import logsumexp, softmax

from .. import strict
from ..arrays import Vector
from .base import Loss


@dataclass(frozen=True)
class Multinomial(Loss):
    """log(sum of exp(z_k)) - z_y for a class y from 0 to K - 1: sqrt(2)-Lipschitz and 1/2-smooth in z.

    Predictions z have shape (n, K), targets (n,). Derivatives are those along each z_k; their sum is 0, since
    a shift of all predictions changes nothing.

    Parameters
    ----------
    classes : int
        The number K of classes, at least 2.

    Examples
    --------
    >>> import numpy as np
    >>> Multinomial(classes=2).derivative(np.zeros((1, 2)), np.array([1.0]))
    array([[ 0.5, -0.5]])
    """

    name: ClassVar[str] = "multinomial"
    kind: ClassVar[str] = "classification"

    classes: int

    def __post_init__(self) -> None:
        strict.number("classes", self.classes, "a whole number of at least 2", _is_count)

    @property
    def outputs(self) -> int:
        return self.classes

    def value(self, z: Vector, y: Vector) -> Vector:
        loss: Vector = logsumexp(z, axis=-1) - np.sum(z * self._is_class(y), axis=-1)
        return loss

    def derivative(self, z: Vector, y: Vector) -> Vector:
        slopes: Vector = softmax(z, axis=-1) - self._is_class(y)
        return slopes

    def curvature(self, z: Vector, y: Vector) -> Vector:
        """Return the second derivative along each prediction: the diagonal of the Hessian."""
        share = softmax(z, axis=-1)
        curvature: Vector = share * (1 - share)
        return curvature

    def lipschitz(self, target: tuple[float, float] | None = None) -> float:
        """Return the largest norm of the derivatives: (1 - s)² + s'² ... is at most 2 (docs/proofs)."""
        return math.sqrt(2.0)

    def smoothness(self) -> float:
        """Return the largest eigenvalue of diag(s) - s s' for shares s."""
        return 0.5

    def fall(self, target: tuple[float, float] | None = None) -> float:
        return math.log(self.classes) * (1 + 2.0**-40)

    def _is_class(self, y: Vector) -> Vector:
        return np.where(np.asarray(y)[..., None] == np.arange(self.classes), 1.0, 0.0)


def _is_count(value: float) -> bool:
    return value >= 2 and value == int(value)
