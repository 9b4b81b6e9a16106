"""The deviance of a fit: twice the loss of all records."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..arrays import Total, Vector, on_column_grids
from ..bounds import Coordinates
from ..data.products import LossValues
from ..data.record_set import RecordSet
from ..losses import Loss
from ..privacy import Neighbours
from .base import Query, WorstCase


@dataclass(frozen=True, eq=False)
class Deviance(Query):
    """Sum over the records of their loss at w, each cut to [0, most].

    Parameters
    ----------
    loss : Loss
        The logistic or the log-cosh loss.
    coordinates : Coordinates
    most : float
        What the loss of a record is cut to.
    n_records : int
        The public size of the table: it decides on the grid that values are rounded to.

    Guarantee
    ---------
    A record adds a number in [0, most], rounded to a grid on which ``most`` lies: both neighbours move the
    sum by at most ``most``, up to a step of the grid.
    """

    name: ClassVar[str] = "deviance"
    takes_units: ClassVar[bool] = True
    loss: Loss
    coordinates: Coordinates
    most: float
    n_records: int

    def __call__(self, data: RecordSet, *public: Vector) -> Total:
        (w,) = public
        return data.cross_products(self._term(on_column_grids(w[:, None])[:, 0]))

    def sensitivity(self, neighbours: Neighbours) -> float:
        return self.most + self._term(np.zeros(1)).grid

    def worst_case(self, n_features: int, radius: float, constant: float) -> WorstCase:
        low, high = np.zeros(n_features), np.zeros(n_features)
        low[0], high[0] = -radius, radius
        if self.loss.kind != "classification":
            high[0] = 0.0
        point = np.zeros(n_features + bool(constant))
        point[0] = 1e6 * math.sqrt(self.most) * self.coordinates.half[0] / radius
        return WorstCase((low, 1.0), (high, 1.0 if self.loss.kind == "classification" else 0.0), (point,))

    def _term(self, w: Vector) -> LossValues:
        return LossValues(self.coordinates, self.n_records, self.loss, self.most, w)
