"""Losses of labels."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from scipy.special import entr, expit, logsumexp, softmax

from .. import strict
from ..arrays import Vector
from .base import SMALLEST, Loss, inside


@dataclass(frozen=True)
class Logistic(Loss):
    """log(1 + exp(-y z)) for y in {-1, 1}; 1-Lipschitz and 1/4-smooth in z.

    Examples
    --------
    >>> import numpy as np
    >>> Logistic().derivative(np.array([0.0]), np.array([1.0]))
    array([-0.5])
    """

    name: ClassVar[str] = "logistic"
    kind: ClassVar[str] = "classification"
    form: ClassVar[int | None] = 1
    slopes: ClassVar[Literal["any", "signed", "logistic"]] = "logistic"

    def value(self, z: Vector, y: Vector) -> Vector:
        return np.logaddexp(0, -y * z)

    def derivative(self, z: Vector, y: Vector) -> Vector:
        slope: Vector = -y * expit(-y * z)
        return slope

    def curvature(self, z: Vector, y: Vector) -> Vector:
        curvature: Vector = expit(z) * expit(-z)
        return curvature

    def lipschitz(self, target: tuple[float, float] | None = None) -> float:
        return 1.0

    def smoothness(self) -> float:
        return 0.25

    def curvature_lipschitz(self) -> float:
        return 1 / math.sqrt(108)

    def joint_constant(self) -> float:
        return (5 * math.sqrt(5) - 11) / 8  # the curvature is e (1 - e) at a slope of e

    def fall(self, target: tuple[float, float] | None = None) -> float:
        return 0.7  # log(2)

    def conjugate(self, u: Vector, y: Vector) -> Vector:
        share = np.clip(-y * u, 0, 1)
        return np.where(inside(-y * u, 0.0, 1.0), -entr(share) - entr(1 - share), math.inf)


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


@dataclass(frozen=True)
class SmoothedHinge(Loss):
    """The hinge max(0, 1 - y z) for y in {-1, 1}, its corner rounded over a width w.

    With the shortfall m = 1 - y z: 0 for m <= 0, m² / (2 w) for m up to w, and m - w/2 beyond.
    1-Lipschitz and 1/w-smooth in z.

    Parameters
    ----------
    width : float
        The shortfall w at which the loss turns from quadratic to linear.

    Examples
    --------
    >>> import numpy as np
    >>> SmoothedHinge(width=1.0).value(np.array([2.0, 0.0, -1.0]), np.ones(3))
    array([0. , 0.5, 1.5])
    """

    name: ClassVar[str] = "smoothed_hinge"
    kind: ClassVar[str] = "classification"
    form: ClassVar[int | None] = 3
    slopes: ClassVar[Literal["any", "signed", "logistic"]] = "signed"

    width: float = 1.0

    def __post_init__(self) -> None:
        strict.positive("width", self.width)

    @property
    def form_parameter(self) -> float:
        return self.width

    def value(self, z: Vector, y: Vector) -> Vector:
        shortfall = np.maximum(1 - y * z, 0)
        inner = np.minimum(shortfall, self.width)
        return inner / self.width * (shortfall - inner / 2)

    def derivative(self, z: Vector, y: Vector) -> Vector:
        return -y * (np.clip(1 - y * z, 0, self.width) / self.width)

    def curvature(self, z: Vector, y: Vector) -> Vector:
        shortfall = 1 - y * z
        inside = (shortfall >= 0) & (shortfall <= self.width)
        return inside.astype(shortfall.dtype) / self.width

    def lipschitz(self, target: tuple[float, float] | None = None) -> float:
        return 1.0

    def smoothness(self) -> float:
        return 1 / self.width

    def fall(self, target: tuple[float, float] | None = None) -> float:
        return 1.0  # less than the hinge's

    def conjugate(self, u: Vector, y: Vector) -> Vector:
        value = y * u + self.width / 2 * np.square(u)
        return np.where(inside(y * u, -1.0, 0.0), value, math.inf)

    def dual_step(self, alpha: Vector, z: Vector, y: Vector, weight: Vector) -> Vector:
        free = (1 - y * z + weight * y * alpha) / (self.width + weight)
        return y * np.clip(free, 0, 1) - alpha


@dataclass(frozen=True)
class Hinge(Loss):
    """max(0, 1 - y z) for y in {-1, 1}; 1-Lipschitz and not smooth: its slope jumps at y z = 1.

    The derivative at the kink is 0. Solvers that rest on a bounded curvature refuse
    this loss; dual coordinate descent needs none.

    Examples
    --------
    >>> import numpy as np
    >>> Hinge().value(np.array([2.0, 0.0, -1.0]), np.ones(3))
    array([0., 1., 2.])
    """

    name: ClassVar[str] = "hinge"
    kind: ClassVar[str] = "classification"
    form: ClassVar[int | None] = 5

    def value(self, z: Vector, y: Vector) -> Vector:
        return np.maximum(1 - y * z, 0)

    def derivative(self, z: Vector, y: Vector) -> Vector:
        return np.where(y * z < 1, -y, 0.0)

    def curvature(self, z: Vector, y: Vector) -> Vector:
        return np.zeros_like(y * z)

    def lipschitz(self, target: tuple[float, float] | None = None) -> float:
        return 1.0

    def smoothness(self) -> float:
        return math.inf

    def conjugate(self, u: Vector, y: Vector) -> Vector:
        return np.where(inside(y * u, -1.0, 0.0), y * u, math.inf)

    def dual_step(self, alpha: Vector, z: Vector, y: Vector, weight: Vector) -> Vector:
        with np.errstate(over="ignore"):
            free = (1 - y * z + weight * y * alpha) / np.maximum(weight, SMALLEST)
        return y * np.clip(free, 0, 1) - alpha
