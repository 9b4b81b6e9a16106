"""Clipped partial derivatives, one coordinate at a time, with margins kept between them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..arrays import Vector, cache_lines
from ..data.records import Records
from ..data.sums import cut_to_grid
from ..kernels.arguments import Form, NoiseBlock
from ..losses import Loss
from ..mechanisms import Additive, Gaussian
from ..privacy import Neighbours
from ..tables import Columns, Index
from .base import (
    LARGEST_COEFFICIENT,
    LARGEST_LIMIT,
    LEAST_LIMIT,
    Opening,
    Query,
    require_enforceable,
    require_moderate,
)


class CoordinateRule(NamedTuple):
    """The public step rule of a block: w_j <- prox(w_j - rate_j * released, step_j) for its penalty."""

    rate: Vector
    step: Vector
    l1: Vector
    l2: Vector
    low: Vector
    high: Vector

    def apply(self, j: int, w_j: float, released: float) -> float:
        """The new value of coordinate j."""
        step, moved = float(self.step[j]), float(w_j - self.rate[j] * released)
        kept = max(abs(moved) - step * float(self.l1[j]), 0.0)
        shrunk = math.copysign(kept, moved) / (1 + step * float(self.l2[j]))
        return min(max(shrunk, float(self.low[j])), float(self.high[j]))


@dataclass(frozen=True, eq=False)
class CoordinateSums(Query):
    """For each coordinate j, the sum over the records of slope * x_j cut to [-clip_j, clip_j].

    Guarantee
    ---------
    One record adds to coordinate j a number in [-C_j, C_j], so that sum moves by at most C_j if the
    record is zeroed out, 2 C_j if it is replaced. Each coordinate is released, and accounted for, alone.
    """

    name: ClassVar[str] = "clipped partial derivative"
    needs = (Columns,)
    loss: Loss
    clip: Vector

    def __post_init__(self) -> None:
        require_enforceable("clip of a coordinate", self.clip, LEAST_LIMIT, LARGEST_LIMIT)

    def __call__(self, data: Records, *public: Vector) -> Vector:
        (w,) = public
        opened = self.open(Opening.exact(data, w, Gaussian(0.0)))
        return np.array([opened.release(j) for j in range(len(w))])

    def sensitivity(self, neighbours: Neighbours) -> Vector:
        return self.clip * neighbours.records_moved

    def open(self, opening: Opening) -> OpenCoordinates:
        """Start keeping the margins of every record at w."""
        return OpenCoordinates(self, opening)


class OpenCoordinates:
    """Private state (the margins) behind ``release``, ``move`` and ``descend``."""

    def __init__(self, query: CoordinateSums, opening: Opening) -> None:
        if not isinstance(opening.mechanism, Additive):
            raise opening.wrong_kind(query, "adds noise")
        data, self._releases, self._mechanism = opening.resident, opening.releases, opening.mechanism
        self._query, self._sensitivity = query, query.sensitivity(opening.neighbours)
        self._data, self._columns, self._tail = data, data.by_columns, data.intercept_column
        self._w, self._z = np.array(opening.w, dtype=np.float64), data.margins(opening.w)
        self._limit, self._rounding = cut_to_grid(query.clip, data.table_size)

    def release(self, j: int) -> float:
        """The partial derivative j, made private: costs one event."""
        rows, entries = self._column(j)
        slope = self._data.slopes(self._query.loss, self._z[rows], rows)
        limit, rounding = self._limit[j], self._rounding[j]
        exact = float(((np.clip(slope * entries, -limit, limit) + rounding) - rounding).sum())
        released: float = self._releases.give(exact, self._sensitivity[j], self._mechanism)
        return released

    def move(self, j: int, value: float) -> None:
        """Set coordinate j of the public point: costs nothing."""
        require_moderate(value)
        rows, entries = self._column(j)
        self._z[rows] += (value - self._w[j]) * entries
        self._w[j] = value

    def descend(self, coordinates: NDArray[np.int64], rule: CoordinateRule) -> tuple[Vector, Vector]:
        """Release and move once for each of the coordinates; return the moves and the last point.

        Losses that declare a compiled form run as one block; the draws are the same as in the loop.
        """
        loss, mechanism = self._query.loss, self._mechanism
        if loss.form is None or not self._releases.in_blocks:
            moves = np.empty(len(coordinates))
            for k, j in enumerate(coordinates):
                value = rule.apply(j, self._w[j], self.release(j))
                moves[k] = value - self._w[j]
                self.move(j, value)
            return moves, self._w.copy()
        draws = self._releases.spend(mechanism, entries=1, count=len(coordinates))
        noise, grid = mechanism.draw_each(draws.padded(self._sensitivity), coordinates, draws.randomness)
        if mechanism.noise > 0:
            self._require_finite(coordinates, noise, rule)
        lines = cache_lines(len(self._w))
        proximal = rule.step * rule.l1, 1.0 + rule.step * rule.l2, rule.low, rule.high
        for k, facts in enumerate((rule.rate, *proximal, grid, self._limit, self._rounding)):
            lines[:, k] = facts
        releases, moves = NoiseBlock(coordinates, noise, lines), np.empty(len(coordinates))
        self._columns.descend(self._tail, Form.of(loss), self._data.y, self._z, self._w, releases, moves)
        return moves, self._w.copy()

    def _require_finite(self, coordinates: NDArray[np.int64], noise: Vector, rule: CoordinateRule) -> None:
        """Refuse a block that could overflow for some records."""
        n, clip, rate, start = self._data.table_size, self._query.clip, rule.rate, np.abs(self._w).max()
        # As if every step had the largest rate, clip and noise: the sum takes longer, and is less.
        largest = max(noise.max(initial=0.0), -noise.min(initial=0.0))
        most = noise.size * rate.max() * (n * clip.max() + largest)
        if not start + most < LARGEST_COEFFICIENT:
            most = np.sum(rate[coordinates] * (n * clip[coordinates] + np.abs(noise)))
        require_moderate(start + most)

    def _column(self, j: int) -> tuple[Index, NDArray[np.floating]]:
        return (slice(None), self._tail) if j == self._data.n_features else self._columns.column(j)
