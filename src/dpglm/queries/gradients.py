"""Clipped gradients, of one prediction per record or one per class, and how many records each class has."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..arrays import Total, Vector, bits_of_terms, on_column_grids
from ..bounds import Coordinates
from ..data.products import LARGEST_ENTRY, ClassGradients, MetricClassRows, MetricRows, in_metric
from ..data.record_set import RecordSet
from ..data.records import Records
from ..data.terms import Gradient, SquaredRow
from ..losses import Loss, Multinomial
from ..privacy import Neighbours
from .base import LARGEST_CLIP, LEAST_CLIP, Opening, Query, WorstCase, require_enforceable, require_moderate

_MOST_BYTES = 1 << 31
"""Records in a metric are kept in memory up to this size; above it they are computed in every pass."""


@dataclass(frozen=True, eq=False)
class ClippedGradient(Query):
    """Sum over the records of their gradient at w, each scaled down to L2 norm at most ``clip``.

    The constant feature, which carries the intercept, is that of the records unless another one is given. If
    there are ``scales``, column j is multiplied by scale j first, and w are coefficients of the products. A
    row with a norm above ``longest`` has the weight longest / norm, before its gradient is clipped: a weight
    that depends on the row alone leaves the mean gradient 0 where the model holds.

    Guarantee
    ---------
    The gradient of a GLM is slope * row. Scaled to norm at most C, one record adds a vector of norm
    at most C, so the sum moves by at most C if it is zeroed out, 2C if it is replaced. Scales and the largest
    norm of full weight are public, so that a scaled row and its weight are functions of one record.
    """

    name: ClassVar[str] = "clipped gradient"
    takes_units: ClassVar[bool] = True
    loss: Loss
    clip: float
    constant: float | None = None
    scales: Vector | None = None
    longest: float | None = None

    def __post_init__(self) -> None:
        require_enforceable("clip", self.clip)
        if self.longest is not None and not LEAST_CLIP <= self.longest <= LARGEST_CLIP:
            raise ValueError(f"longest must be from {LEAST_CLIP:g} to {LARGEST_CLIP:g}, got {self.longest!r}")

    def __call__(self, data: RecordSet, *public: Vector) -> Total:
        (w,) = public
        return data.total(
            Gradient(
                self.loss, w, self.clip, self.longest, scales=self.scales, constant_feature=self.constant
            )
        )

    def sensitivity(self, neighbours: Neighbours) -> float:
        return self.clip * neighbours.records_moved


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

    def open(self, opening: Opening) -> OpenMetricGradient:
        """Keep the records in the metric, if they are resident and not too large."""
        return OpenMetricGradient(self, opening)

    def worst_case(self, n_features: int, radius: float, constant: float) -> WorstCase:
        rows = super().worst_case(n_features, radius, constant)
        return WorstCase(rows.first, rows.second, (self._coefficients(rows.public[0]),))

    def resident(self, rows: Records) -> Records:
        """The records in the metric."""
        return in_metric(rows, self.coordinates, self.transform, self.leverage)

    def resident_answer(self, data: RecordSet, w: Vector) -> Total:
        """The exact answer for records that are in the metric already."""
        total = data.total(self._term(w).gradient)
        return Total(total.steps[: w.size], total.grid)

    def _coefficients(self, point: Vector) -> Vector:
        """Coefficients of u that predict as those of the features do."""
        features = point[: len(self.coordinates.middle)] * self.coordinates.half
        padded = np.append(features, np.zeros(int(self.coordinates.intercept)))
        return np.asarray(np.linalg.lstsq(self.transform, padded)[0], dtype=np.float64)

    def _term(self, w: Vector) -> MetricRows:
        return MetricRows(
            self.loss, self.coordinates, self.transform, w, self.clip, self.leverage, self.n_records
        )


class OpenMetricGradient:
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


@dataclass(frozen=True)
class MultinomialGradient(Query):
    """Sum over the records of their gradients at w, scaled down together to norm at most ``clip``.

    w has a row for each feature, the constant one included, and a column for each class; it may be flat.

    Parameters
    ----------
    loss : Multinomial
    clip : float
    n_records, n_features : int
        The public size of the table: it decides on the grid of the sum, and on what rounding adds.
    constant : float, optional
        The constant feature, which carries the intercepts: that of the records unless another one is given.
    longest : float, optional
        A row with a norm above it has the weight longest / norm, before its gradient is clipped.

    Guarantee
    ---------
    The gradient of a record is x g', its row times the vector g of slopes for all classes, with Frobenius
    norm norm(x) norm(g). Scaled to norm at most C, one record adds a matrix of norm at most C, so the sum
    moves by at most C if it is zeroed out, 2 C if it is replaced.
    """

    name: ClassVar[str] = "multinomial gradient"
    takes_units: ClassVar[bool] = True
    loss: Multinomial
    clip: float
    n_records: int
    n_features: int
    constant: float | None = None
    longest: float | None = None

    def __post_init__(self) -> None:
        require_enforceable("clip", self.clip)
        if self.longest is not None and not LEAST_CLIP <= self.longest <= LARGEST_CLIP:
            raise ValueError(f"longest must be from {LEAST_CLIP:g} to {LARGEST_CLIP:g}, got {self.longest!r}")

    def __call__(self, data: RecordSet, *public: Vector) -> Total:
        w = public[0].reshape(-1, self.loss.outputs)
        limit = self.clip
        if math.isinf(limit):  # then nothing is private
            limit = self.loss.lipschitz() * (_longest(data) or 1.0)
        return data.cross_products(
            ClassGradients(self.loss, w, self.clip, limit, self.n_records, self.constant, self.longest)
        )

    def sensitivity(self, neighbours: Neighbours) -> float:
        return _padded(self.clip, self.loss, self.n_records, self.n_features + 1) * neighbours.records_moved

    def worst_case(self, n_features: int, radius: float, constant: float) -> WorstCase:
        """Records of the first two classes, each taken for the other with certainty."""
        rows = super().worst_case(n_features, radius, constant)
        return _of_two_classes(rows, self.loss)


@dataclass(frozen=True, eq=False)
class MetricMultinomialGradient(MetricGradient):
    """The same for records u = coordinates @ transform, in a metric as in `MetricGradient`.

    Guarantee
    ---------
    Whatever the matrix is, u is a function of one record, and what the record adds is u g', scaled down to
    norm at most C: the sum moves by at most C if it is zeroed out, 2 C if it is replaced.
    """

    name: ClassVar[str] = "multinomial gradient in the metric"
    loss: Multinomial

    def sensitivity(self, neighbours: Neighbours) -> float:
        width = int(self.transform.shape[1])
        return _padded(self.clip, self.loss, self.n_records, width) * neighbours.records_moved

    def worst_case(self, n_features: int, radius: float, constant: float) -> WorstCase:
        return _of_two_classes(super().worst_case(n_features, radius, constant), self.loss)

    def resident_answer(self, data: RecordSet, w: Vector) -> Total:
        return data.cross_products(self._term(w).gradient)

    def _term(self, w: Vector) -> MetricClassRows:
        w = w.reshape(-1, self.loss.outputs)
        return MetricClassRows(
            self.loss, self.coordinates, self.transform, w, self.clip, self.leverage, self.n_records
        )


def gradient_of(
    loss: Loss, clip: float, n_records: int, n_features: int, constant: float | None = None,
    scales: Vector | None = None, longest: float | None = None,
) -> ClippedGradient | MultinomialGradient:  # fmt: skip
    """The query for clipped gradients of a loss; only those of one prediction a record have scales."""
    if isinstance(loss, Multinomial):
        return MultinomialGradient(loss, clip, n_records, n_features, constant, longest)
    return ClippedGradient(loss, clip, constant, scales, longest)


def metric_gradient_of(
    loss: Loss, coordinates: Coordinates, transform: Vector, clip: float, leverage: float, n_records: int
) -> MetricGradient:
    """The query for clipped gradients of a loss in a metric."""
    kind = MetricMultinomialGradient if isinstance(loss, Multinomial) else MetricGradient
    return kind(loss, coordinates, transform, clip, leverage, n_records)  # type: ignore[arg-type]


def _padded(clip: float, loss: Multinomial, n_records: int, width: int) -> float:
    """The clip, enlarged by what the rounding of ``classes`` slopes and terms adds.

    The curator allows for the norm of a row and for one term of each feature.
    """
    norm = (loss.outputs + 16) * 2.0**-52
    grid = 2.0 * math.sqrt(loss.outputs * width) * 2.0 ** -bits_of_terms(n_records)
    return clip * (1.0 + norm + grid)


def _longest(data: RecordSet) -> float:
    """Bound on the norm of a row, the constant feature included; without a declared one it is not private."""
    return data.radius if math.isfinite(data.radius) else math.sqrt(data.longest(SquaredRow(math.inf)))


def _of_two_classes(rows: WorstCase, loss: Multinomial) -> WorstCase:
    """The worst case of two labels, the public point for the first two of the classes."""
    (point,) = rows.public
    w = np.zeros((len(point), loss.outputs))
    w[:, 0], w[:, 1] = point, -point
    # The first record is low along the point: it is taken for class 1.
    return WorstCase((rows.first[0], 0.0), (rows.second[0], 1.0), (w,))
