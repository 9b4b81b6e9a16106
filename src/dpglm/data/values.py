"""Losses of records at several points, each cut to a range: sums for scores."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from ..arrays import Total, Vector
from .products import CrossProducts, grid_of_factors

if TYPE_CHECKING:
    from .records import Records


class Valued(Protocol):
    """What has a value for a margin and a target, elementwise."""

    def value(self, z: Vector, y: Vector) -> Vector: ...


@dataclass(frozen=True, eq=False)
class CutValues(CrossProducts):
    """Minus the loss of each record at each of some points, cut to [-most, 0]; 0 for a null record.

    ``points`` has one column for each model. What a record adds is multiplied by its share, from 0 to 1.
    """

    coordinates: None  # type: ignore[assignment]  # margins are those of the rows themselves
    loss: Valued
    most: float
    points: Vector

    @property
    def width(self) -> int:
        return int(self.points.shape[1])

    @property
    def grid(self) -> float:
        """The grid of the values."""
        return grid_of_factors(self.most, self.n_records)

    def entries(self, n_features: int) -> int:
        return self.width

    def total(self, steps: NDArray[np.int64]) -> Total:
        return Total(steps, self.grid)

    def add(self, rows: Records, out: NDArray[np.int64]) -> None:
        counts = rows.scale > 0
        for k, values in enumerate(self._values(rows)):
            out[k] += rows.on_grid(rows.shared(np.where(counts, values, 0.0)), self.grid).sum()

    def _values(self, rows: Records) -> Iterator[Vector]:
        """What each record adds at each point, before its weight counts."""
        for loss in self._losses(rows):
            yield -np.clip(np.nan_to_num(loss, nan=self.most), 0.0, self.most)

    def _losses(self, rows: Records) -> Iterator[Vector]:
        for k in range(self.points.shape[1]):
            with np.errstate(all="ignore"):
                yield self.loss.value(rows.margins(np.ascontiguousarray(self.points[:, k])), rows.y)


@dataclass(frozen=True, eq=False)
class CutGains(CutValues):
    """How much less the loss of each record is than at the first point, cut to [-most, most].

    There is one number for each further point; all are 0 for a null record.
    """

    @property
    def width(self) -> int:
        return super().width - 1

    def _values(self, rows: Records) -> Iterator[Vector]:
        losses = self._losses(rows)
        first = next(losses)
        for loss in losses:
            with np.errstate(all="ignore"):
                gain = np.nan_to_num(first - loss, nan=-self.most)
            yield np.clip(gain, -self.most, self.most)
