"""The clipped gradient in a metric: of records multiplied by a public matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..arrays import Total, Vector, on_column_grids
from ..bounds import Coordinates
from ..data.metric import LARGEST_ENTRY, MetricRows, in_metric
from ..data.record_set import RecordSet
from ..data.records import Records
from ..losses import Loss
from ..privacy import Neighbours
from .base import Opening, Query, WorstCase, require_enforceable, require_moderate

_MOST_BYTES = 1 << 31
"""Records in a metric are kept in memory up to this size; above it they are computed in every pass."""


@dataclass(frozen=True, eq=False)
class MetricGradient(Query):
    """Sum over the records u of their gradient at w, each scaled down to L2 norm at most ``clip``.

    A record is u = coordinates @ transform, rounded to float32. The public argument w are coefficients of u.

    Parameters
    ----------
    loss : Loss
    coordinates : Coordinates
    transform : array of shape (d, k)
        Public. It is rounded to grids on which products with coordinates are exact.
    clip : float
    n_records : int
        The public size of the table: it decides on the grid of the sum.

    Guarantee
    ---------
    Whatever the matrix is, u is a function of one record, and what the record adds is slope * u, scaled down
    to norm at most C: the sum moves by at most C if it is zeroed out, 2 C if it is replaced.
    """

    name: ClassVar[str] = "gradient in the metric"
    takes_units: ClassVar[bool] = True
    loss: Loss
    coordinates: Coordinates
    transform: Vector
    clip: float
    leverage: float
    n_records: int

    def __post_init__(self) -> None:
        require_enforceable("clip", self.clip)
        require_moderate(self.transform, LARGEST_ENTRY)
        object.__setattr__(self, "transform", on_column_grids(self.transform))

    def __call__(self, data: RecordSet, *public: Vector) -> Total:
        (w,) = public
        return data.cross_products(self._term(w))

    def sensitivity(self, neighbours: Neighbours) -> float:
        # The curator allows for the rounding of norms of p features; there is one more, the constant.
        return self.clip * neighbours.records_moved * (1 + 2.0**-48)

    def open(self, opening: Opening) -> OpenedGradient:
        """Keep the records in the metric, if they are resident and not too large."""
        return OpenedGradient(self, opening)

    def worst_case(self, n_features: int, radius: float, constant: float) -> WorstCase:
        rows = super().worst_case(n_features, radius, constant)
        return WorstCase(rows.first, rows.second, (self._coefficients(rows.public[0]),))

    def resident(self, rows: Records) -> Records:
        """The records in the metric."""
        return in_metric(rows, self.coordinates, self.transform, self.leverage)

    def resident_answer(self, data: RecordSet, w: Vector) -> Total:
        """The exact answer for records that are in the metric already."""
        found = data.total(self._term(w).gradient)
        return Total(found.steps[: w.size], found.grid)

    def _coefficients(self, point: Vector) -> Vector:
        """Coefficients of u that predict as those of the features do."""
        features = point[: len(self.coordinates.middle)] * self.coordinates.half
        padded = np.append(features, np.zeros(int(self.coordinates.intercept)))
        return np.asarray(np.linalg.lstsq(self.transform, padded)[0], dtype=np.float64)

    def _term(self, w: Vector) -> MetricRows:
        return MetricRows(
            self.coordinates, self.n_records, self.loss, self.transform, w, self.clip, self.leverage
        )


class OpenedGradient:
    """Gradients of records that are multiplied by the matrix once, or in every pass."""

    def __init__(self, query: MetricGradient, opening: Opening) -> None:
        self._query, self._opening = query, opening
        self._resident = None
        size = 4 * opening.data.table_size * query.transform.shape[1]
        if opening.is_resident and size <= _MOST_BYTES:
            self._resident = query.resident(opening.resident)

    def release(self, w: Vector) -> Vector:
        """The gradient at w, with noise."""
        require_moderate(w)
        query, opening = self._query, self._opening
        if self._resident is None:
            answer = query(opening.data, w)
        else:
            answer = query.resident_answer(self._resident, w)
        released: Vector = opening.releases.give(
            answer, query.sensitivity(opening.neighbours), opening.mechanism
        )
        return released.reshape(w.shape)
