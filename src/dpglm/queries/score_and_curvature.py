"""Gradient, Hessian and covariance of the scores in one release, for the price of the gradient."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from ..arrays import Total, Vector, on_column_grids
from ..bounds import Coordinates
from ..data.products import JointRows, joint_grids, symmetric, triangle
from ..data.record_set import RecordSet
from ..data.terms import Bent, Gradient, Scattered
from ..losses import Loss
from ..privacy import Neighbours
from .base import Query, WorstCase, require_enforceable

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
            self.coordinates, self.n_records, self.loss, self.leverage, self.weight, metric, point
        )

    def _exact(self, data: RecordSet, w: Vector) -> Vector:
        """The same sums without weights, in the coordinates of the records and in their own units."""
        basis = np.eye(len(w))
        hessian = np.array([np.asarray(data.total(Bent(self.loss, w, math.inf, v))) for v in basis])
        scores = np.array([np.asarray(data.total(Scattered(self.loss, w, v))) for v in basis])
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
