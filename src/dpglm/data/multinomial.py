"""Gradients of records with a prediction for each class, and how many records each class has."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..arrays import Total, Vector, finer_grid, grid_of_terms
from ..losses import Multinomial
from .metric import MetricRows, RowSizes, in_metric
from .products import CrossProducts, in_lanes
from .terms import Given

if TYPE_CHECKING:
    from .records import Records

_ROWS, _ROWS_FINELY = 1 << 20, 1 << 12


@dataclass(frozen=True, eq=False)
class ClassGradients(CrossProducts):
    """The gradients of each record at w, scaled down together to a norm of at most ``clip``.

    Attributes
    ----------
    w : array of shape (d, classes)
        Coefficients of the features and, last, of the constant feature if there is an intercept.
    most : float
        Largest norm of what a record adds: the clip, unless that is infinite.
    constant : float or None
        The constant feature, that of the records unless another one is given.
    longest : float or None
        A row with a norm above it has the weight longest / norm, before the clip.
    """

    needs_norms: ClassVar[bool] = True

    coordinates: None  # type: ignore[assignment]  # rows are read as they are
    loss: Multinomial
    w: Vector
    clip: float
    most: float
    constant: float | None = None
    longest: float | None = None

    @property
    def rows_at_once(self) -> int:
        return _ROWS_FINELY if self._finely else _ROWS  # compiled code takes few at a time

    @property
    def grid(self) -> float:
        """The grid of the sums."""
        return grid_of_terms(self.most, self.n_records)

    @property
    def _finely(self) -> int:
        """Sums that are not private are as precise as doubles are."""
        return int(math.isinf(self.clip))

    def entries(self, n_features: int) -> int:
        return (1 + self._finely) * self.loss.outputs * (n_features + 1)

    def total(self, steps: NDArray[np.int64]) -> Total:
        d, classes = self.w.shape
        by_class = steps.reshape(1 + self._finely, classes, -1)[:, :, :d]
        by_feature = np.swapaxes(by_class, 1, 2).reshape(1 + self._finely, -1)
        rest = by_feature[1:] if self._finely else None
        return Total(by_feature[0], self.grid, rest, finer_grid(1.0, self.n_records))

    def add(self, rows: Records, out: NDArray[np.int64]) -> None:
        if self.constant is not None:
            rows = rows.with_constant(self.constant)
        if self.longest is not None:
            rows = rows.weighed_by_length(self.longest)
        by_class = out.reshape(1 + self._finely, self.loss.outputs, -1)
        if not self._finely:
            rows.add_class_gradient(self.w, self.clip, self.grid, by_class[0])
            return
        for k, factors in enumerate(self._slopes(rows)):
            by_class[:, k] += rows.steps(Given(factors, self.most), self.grid, self._finely)

    def _slopes(self, rows: Records) -> Vector:
        """Slopes of shape (classes, rows), each times the share of its record."""
        from ..kernels.softmax import to_class_slopes  # compiled code is loaded by those who use it

        z = np.array([rows.margins(np.ascontiguousarray(w)) for w in self.w.T])
        scratch = np.empty((2, rows.n_records))
        to_class_slopes(z, rows.y, rows.scale, rows.row_norms, self.clip, scratch)
        return rows.shared(z)


@dataclass(frozen=True, eq=False)
class MetricClassRows(MetricRows):
    """The same for records in a metric: u = coordinates @ transform. w has shape (d, classes)."""

    loss: Multinomial

    @property
    def gradient(self) -> ClassGradients:  # type: ignore[override]  # another kind of sum
        return ClassGradients(None, self.n_records, self.loss, self.w, self.clip, self.clip)

    def entries(self, n_features: int) -> int:
        return self.gradient.entries(in_lanes(self.transform.shape[1]))

    def total(self, steps: NDArray[np.int64]) -> Total:
        return self.gradient.total(steps)

    def add(self, rows: Records, out: NDArray[np.int64]) -> None:
        self.gradient.add(in_metric(rows, self.coordinates, self.transform, self.leverage), out)


@dataclass(frozen=True, eq=False)
class ClassSizes(RowSizes):
    """(2 v - 1, e) for the size v of a row as in `RowSizes`, and e: 1 for its class, 0 for the others."""

    classes: int

    def entries(self, n_features: int) -> int:
        return 1 + self.classes

    def targets(self, rows: Records) -> list[Vector]:
        return [np.where(rows.y == k, 1.0, 0.0) for k in range(self.classes)]
