"""Gradient and Hessian in the plane of a fit: of its scale and its intercept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..arrays import Total, Vector
from ..data.products import JointMargins
from ..data.record_set import RecordSet
from .base import WorstCase, require_moderate
from .score_and_curvature import ScoreAndCurvature


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
            JointMargins(None, self.n_records, self.loss, self.leverage, self.weight, transform, point, fit)
        )

    def worst_case(self, n_features: int, radius: float, constant: float) -> WorstCase:
        """Margins of opposite signs that the metric makes almost equal, on the wrong side of their labels."""
        row = np.zeros(n_features)
        row[0] = radius
        fit = np.zeros(n_features + bool(constant))
        fit[0] = 1.0 / radius
        metric = np.array([[0.0, 0.0], [self.leverage, 0.0]])
        return WorstCase((row, -1.0), (-row, 1.0), (fit, metric, np.array([1e6, 0.0])))
