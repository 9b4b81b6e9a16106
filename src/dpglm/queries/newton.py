"""Gradient with Hessian, the same in the plane of a fit, and second moments of whole records."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from ..arrays import Total, Vector, on_column_grids
from ..bounds import Coordinates
from ..data.products import (
    LARGEST_ENTRY,
    GramRows,
    JointMargins,
    JointRows,
    MomentRows,
    OuterRows,
    joint_grids,
    symmetric,
    triangle,
)
from ..data.record_set import RecordSet
from ..data.terms import Gradient, HessianProduct, ScoreCovarianceProduct
from ..losses import Loss
from ..privacy import Neighbours
from .base import BoundedSum, Query, WorstCase, require_enforceable, require_moderate

_ROUNDING = 2.0**-53
_LEAST = 25 / 24


class Parts(NamedTuple):
    """What a release consists of: gradient, Hessian and covariance of the scores, in the metric."""

    gradient: Vector
    hessian: Vector
    scores: Vector


@dataclass(frozen=True, eq=False)
class ScoreAndCurvature(Query):
    """Sums over the records of H = omega k u u', S = (omega e)² u u' and g = omega e u, in one vector.

    The public arguments are a matrix, the metric, and coefficients w. u is the record in that metric, its
    weight omega = min(1, C² / norm(u)²), e its slope at w over the largest slope, and k its curvature there.
    The vector is (off-diagonal of H, diagonal of H / sqrt(2), the same of alpha S, alpha C g).

    Parameters
    ----------
    loss : Loss
        It has bounded slopes and a finite ``joint_constant`` A. Curvatures are cut to
        sqrt(4 A (1 - e²)): the sensitivity rests on that, not on what the loss states.
    coordinates : Coordinates
    leverage : float
        C, the norm of u from which on a record is weighed down. Infinity evaluates all without a price, and
        then in the coordinates of the records.
    weight : float
        alpha, at least sqrt(25 A / 24); see ``weight_for``.
    n_records : int
        The public size of the table: it decides on the grids that records are rounded to.

    Guarantee
    ---------
    With G = norm(g) / C and h = norm(H) / C² of one record, G <= abs(e) and h <= k, so h² <= 4 A (1 - G²).
    The proof page shows that then replacing a record moves the vector by at most 2 alpha C², which the part
    alpha C g alone can reach: H and S are free. Zeroing a record out moves it by at most
    max(sqrt(2 A), sqrt(3/2) alpha) C². To both is added what rounding can do.
    """

    name: ClassVar[str] = "score and curvature"
    takes_units: ClassVar[bool] = True
    loss: Loss
    coordinates: Coordinates
    leverage: float
    weight: float
    n_records: int

    def __post_init__(self) -> None:
        require_enforceable("leverage", self.leverage)
        if math.isfinite(self.leverage) and self.weight**2 < _LEAST * self._constant * (1 - 2.0**-40):
            raise ValueError(f"weight must be at least sqrt(25 A / 24) for A = {self._constant!r}")

    @staticmethod
    def weight_for(loss: Loss, neighbours: Neighbours) -> float:
        """The weight alpha that leaves the least noise in the Hessian."""
        least = _LEAST if neighbours is Neighbours.REPLACE_ONE else 4 / 3
        return math.sqrt(least * loss.joint_constant())

    @property
    def dimension(self) -> int:
        """The number of coefficients."""
        return self.coordinates.dimension

    @property
    def _constant(self) -> float:
        return self.loss.joint_constant()

    def __call__(self, data: RecordSet, *public: Vector) -> Vector | Total:
        transform, w = public
        if math.isinf(self.leverage):
            return self._exact(data, w)
        return data.cross_products(self._term(transform, w))

    def _term(self, transform: Vector, w: Vector) -> JointRows:
        metric, point = on_column_grids(transform), on_column_grids(w[:, None])[:, 0]
        return JointRows(
            self.loss, self.coordinates, self.leverage, self.weight, self.n_records, metric, point
        )

    def _exact(self, data: RecordSet, w: Vector) -> Vector:
        """The same sums without weights, in the coordinates of the records and in their own units."""
        basis = np.eye(len(w))
        hessian = np.array([np.asarray(data.total(HessianProduct(self.loss, w, math.inf, v))) for v in basis])
        scores = np.array([np.asarray(data.total(ScoreCovarianceProduct(self.loss, w, v))) for v in basis])
        gradient = np.asarray(data.total(Gradient(self.loss, w, math.inf)))
        half = np.triu_indices(len(w))
        parts = [np.where(half[0] == half[1], m[half] / math.sqrt(2), m[half]) for m in (hessian, scores)]
        return np.concatenate([*parts, gradient])

    def sensitivity(self, neighbours: Neighbours) -> float:
        if math.isinf(self.leverage):
            return math.inf
        alpha, c, a = self.weight, self.leverage, self._constant
        if neighbours is Neighbours.REPLACE_ONE:
            exact, moved = 2 * alpha * c**2, 2
        else:
            exact, moved = max(math.sqrt(2 * a), math.sqrt(1.5) * alpha) * c**2, 1
        return (exact + moved * self._rounding()) * (1 + 2.0**-48)

    def _rounding(self) -> float:
        """How far rounding can move what one record adds."""
        alpha, c, d = self.weight, self.leverage, self.dimension
        root = math.sqrt(2 * math.sqrt(self._constant))
        bent, pulled = joint_grids(c, self._constant, self.n_records)
        v = math.sqrt(d) * bent / 2 + (d + 16) * _ROUNDING * c * root
        q = math.sqrt(d) * pulled / 2 + (d + 16) * _ROUNDING * c
        hessian = (2 * c * root * v + v**2) / math.sqrt(2)
        scores = alpha * (2 * c * q + q**2) / math.sqrt(2)
        return math.hypot(hessian, scores, alpha * c * q)

    def parts(self, released: Vector) -> Parts:
        """Gradient, Hessian and covariance of the scores, in units of the largest slope."""
        d = self.dimension
        size = triangle(d)
        hessian, scores = (symmetric(released[k * size : (k + 1) * size], d) for k in (0, 1))
        gradient = released[2 * size :]
        if math.isinf(self.leverage):
            return Parts(gradient, hessian, scores)
        return Parts(gradient / (self.weight * self.leverage), hessian, scores / self.weight)

    def worst_case(self, n_features: int, radius: float, constant: float) -> WorstCase:
        lean = 1e-3 * radius
        shared = math.sqrt(radius**2 - lean**2)
        low, high = np.zeros(n_features), np.zeros(n_features)
        low[:2], high[:2] = (shared, -lean), (shared, lean)
        d = n_features + bool(constant)
        metric, point = np.zeros((d, d)), np.zeros(d)
        metric[0, 0] = self.leverage * self.coordinates.half[0] / shared
        point[1] = 1e6 * self.coordinates.half[1] / lean
        return WorstCase((low, 1.0), (high, -1.0), (metric, point))


@dataclass(frozen=True, eq=False)
class Recalibration(ScoreAndCurvature):
    """`ScoreAndCurvature` of records (z, 1), z being their margin at a public fit.

    The public arguments are the coefficients of the fit, a matrix of size 2 x 2, the metric, and the scale
    and shift at which it answers: there the margin of a record is scale * z + shift.

    Guarantee
    ---------
    (z, 1) is a function of one record and of the public fit, so the guarantee is that of `ScoreAndCurvature`
    in two dimensions.
    """

    name: ClassVar[str] = "recalibration"
    coordinates: None  # type: ignore[assignment]  # margins take the place of coordinates

    @property
    def dimension(self) -> int:
        return 2

    def __call__(self, data: RecordSet, *public: Vector) -> Total:
        fit, transform, point = public
        require_moderate(fit)
        return data.cross_products(
            JointMargins(self.loss, None, self.leverage, self.weight, self.n_records, transform, point, fit)
        )

    def worst_case(self, n_features: int, radius: float, constant: float) -> WorstCase:
        """Margins of opposite signs that the metric makes almost equal, on the wrong side of their labels."""
        row = np.zeros(n_features)
        row[0] = radius
        fit = np.zeros(n_features + bool(constant))
        fit[0] = 1.0 / radius
        metric = np.array([[0.0, 0.0], [self.leverage, 0.0]])
        return WorstCase((row, -1.0), (-row, 1.0), (fit, metric, np.array([1e6, 0.0])))


class OuterProducts(BoundedSum, OuterRows):
    """Upper triangle of the sum of z z', its diagonal divided by sqrt(2), for numbers z of a record.

    z is scaled down to norm ``norm`` if it is longer.

    Guarantee
    ---------
    Half the squared Frobenius norm of z z' - t t' is (norm(z)⁴ + norm(t)⁴) / 2 - (z·t)², at most rho⁴ for
    records of norm up to rho: the sum moves by at most rho² if a record is replaced. If it is zeroed out, by
    norm(z)² / sqrt(2), at most rho² / sqrt(2). Rounding is part of rho.
    """

    takes_units: ClassVar[bool] = True

    @property
    def limit(self) -> float:
        return math.sqrt(0.5) * self._longest**2 * (1 + 2.0**-48)

    @property
    def distance(self) -> float:
        return self._longest**2 * (1 + 2.0**-48)

    @property
    def _longest(self) -> float:
        """Largest norm of z after rounding."""
        return self.norm * (1 + (self.size + 16) * _ROUNDING) + math.sqrt(self.size) * self.grid / 2

    @property
    @abstractmethod
    def _owed(self) -> float:
        """Minus the inner product of two worst records without their features."""

    @property
    def _reach(self) -> float:
        """The number that z has for the first feature where its coordinate is 1."""
        return 1.0

    def matrix(self, released: Vector) -> Vector:
        """The released matrix of second moments."""
        return symmetric(released, self.size)

    def worst_case(self, n_features: int, radius: float, constant: float) -> WorstCase:
        # Orthogonal records: what targets and constants multiply to is made up for by the features.
        unit = self.coordinates.half[0] / (radius * self._reach)
        cosine = min(max(self._owed * unit**2, -1.0), 1.0)
        first, second = np.zeros(n_features), np.zeros(n_features)
        first[0], second[:2] = radius, (radius * cosine, radius * math.sqrt(1 - cosine**2))
        return WorstCase((first, 1.0), (second, -1.0), ())


@dataclass(frozen=True, eq=False)
class Moments(OuterProducts, MomentRows):
    """The second moments of z = (coordinates, target).

    A record is z: its features in public coordinates, which lie in [-1, 1], a constant 1 if there is an
    intercept, and its target, moved and scaled. Its sensitivity is that of `OuterProducts`.

    Parameters
    ----------
    coordinates : Coordinates
    norm : float
        Bound on the norm of z.
    target_middle, target_scale : float
        The last entry of z is target_scale * (target - target_middle).
    n_records : int
        The public size of the table: it decides on the grid that z is rounded to.
    largest_offset : float
        If it is finite, coordinates are multiplied by exp(offset - largest_offset), at most 1.
    """

    name: ClassVar[str] = "moment matrix"

    @property
    def _owed(self) -> float:
        return self.target_scale**2 - self.coordinates.intercept


@dataclass(frozen=True, eq=False)
class Gram(OuterProducts, GramRows):
    """The second moments of z = coordinates @ transform.

    Its sensitivity is that of `OuterProducts`, whatever the matrix is.

    Parameters
    ----------
    coordinates : Coordinates
    norm : float
        Bound on the norm of z: longer records are scaled down.
    transform : array of shape (d, k)
        Public. It is rounded to grids on which products with coordinates are exact.
    n_records : int
        The public size of the table: it decides on the grid that z is rounded to.
    """

    name: ClassVar[str] = "Gram matrix"

    def __post_init__(self) -> None:
        require_enforceable("norm", self.norm)
        require_moderate(self.transform, LARGEST_ENTRY)
        object.__setattr__(self, "transform", on_column_grids(self.transform))

    @property
    def _owed(self) -> float:
        constant = self.transform[-1] if self.coordinates.intercept else np.zeros(1)
        return -float(constant @ constant)

    @property
    def _reach(self) -> float:
        return float(np.linalg.norm(self.transform[0]))
