"""Scores of coordinates and vertices over records that are read in passes: nothing of a record is kept.

Each step reads all records once, at a point that is public. The scores are those of `OpenScores` and
`OpenVertices`, which keep the margins of resident records and change them step by step: the same function of
the records and of the point, the same sensitivity, the same law. Only the rounding of margins differs.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..arrays import ROUNDING, Vector
from ..data.record_set import RecordSet
from ..data.sums import cut_to_grid
from ..data.terms import CutGradient, Gradient
from ..errors import UnsupportedProblem
from ..losses import Loss
from ..mechanisms import Exponential, Gaussian, Round
from .base import Opening, require_moderate

if TYPE_CHECKING:
    from .coordinate import CoordinateScores
    from .frank_wolfe import OpenVertices, VertexScores


PLAIN = ("gumbel", "heap")
"""Structures that look at every score in each step, and so need nothing but passes."""


def cut_gradient(data: RecordSet, loss: Loss, w: Vector, clip: Vector) -> Vector:
    """Sum over the records of slope times entry j at w, each term cut to [-clip_j, clip_j].

    Terms are rounded to grids on which sums of them are exact in doubles, and limits are multiples of these
    grids: no term exceeds its clip. Without clips, for fits without noise, it is the plain gradient.
    """
    if np.isinf(clip).all():
        return np.asarray(data.total(Gradient(loss, w, math.inf)))
    limits, rounding = cut_to_grid(clip, data.table_size)
    return data.cut_sums(CutGradient(loss, w, limits), rounding / ROUNDING)


class StreamedScores:
    """A public point behind ``step`` and ``move``."""

    def __init__(self, query: CoordinateScores, opening: Opening) -> None:
        if not isinstance(opening.mechanism, Round):
            raise opening.wrong_kind(query, "selects, then adds noise")
        self._query, self._data = query, opening.data
        self._releases, self._round = opening.releases, opening.mechanism
        self._n = query.n_records or self._data.table_size
        features = self._data.split(opening.w)[0]
        query.require_precise(self._n, slice(self._data.n_features), features)
        query.require_inside(features)
        self._points = np.column_stack([opening.w, query.curvature])
        largest = float(query.sensitivity(opening.neighbours).max())
        self._sensitivities = largest, query.clip * opening.neighbours.records_moved

    def step(self) -> tuple[int, float]:
        """A coordinate j whose score is nearly the largest, and its slope n g_j, made private: one round."""
        data, query = self._data, self._query
        sums = cut_gradient(data, query.loss, self._points[:, 0].copy(), query.clip)
        index = np.arange(len(sums), dtype=np.int64)
        scores = query.scores(self._n, data.n_features, sums, self._points, index)
        released: tuple[int, float] = self._releases.give((scores, sums), self._sensitivities, self._round)
        return released

    def move(self, j: int, value: float) -> None:
        """Set coordinate j of the public point: costs nothing."""
        require_moderate(value)
        if j < self._data.n_features:
            self._query.require_precise(self._n, j, value)
            self._query.require_inside(float(value))
        self._points[j, 0] = value


class StreamedVertices:
    """A public point behind ``select``, ``shrink`` and ``move``."""

    def __init__(self, query: VertexScores, opening: Opening) -> None:
        if not isinstance(opening.mechanism, Exponential):
            raise opening.wrong_kind(query, "selects by exponential weights")
        if query.structure not in PLAIN:
            raise UnsupportedProblem(
                f"the structure {query.structure!r} needs a resident table: use one of {list(PLAIN)}"
            )
        self._query, self._data, self._w = query, opening.data, opening.w.copy()
        self._releases, self._mechanism = opening.releases, opening.mechanism
        self._sensitivity = float(query.clip * opening.neighbours.records_moved)

    def select(self) -> int:
        """A vertex whose score is nearly the largest: costs one event."""
        sums = self._sums(self._query.clip)
        scores = np.column_stack([sums, -sums]).ravel()
        vertex: int = self._releases.give(scores, self._sensitivity, self._mechanism)
        return vertex

    def shrink(self, factor: float) -> None:
        """Multiply all coefficients of the public point, but not the intercept: costs nothing."""
        features, _ = self._data.split(self._w)
        features *= factor

    def move(self, j: int, amount: float) -> None:
        """Add to coefficient j of the public point: costs nothing."""
        require_moderate(amount)
        self._w[j] += amount

    def run(self, steps: Vector, radius: float) -> NDArray[np.int64]:
        """Select a vertex and move towards it by a step of the given size, for each step; the choices."""
        require_moderate(float(radius))
        return walk(self, steps, radius)

    def gap(self, radius: float) -> float:
        """Upper bound on mean loss minus its minimum over the ball; not private: noise must be 0."""
        if self._mechanism.noise > 0:
            raise ValueError("the Frank-Wolfe gap is not private: it is available without noise only")
        sums, (features, _) = self._sums(math.inf), self._data.split(self._w)
        # The slopes times their margins, without the intercept's part, add up to the gradient times w.
        gap = float(sums @ features + radius * np.abs(sums).max(initial=0.0)) / self._data.table_size
        released: float = self._releases.give(gap, 0.0, Gaussian(0.0))
        return released

    def _sums(self, clip: float) -> Vector:
        sums = cut_gradient(self._data, self._query.loss, self._w, np.full(len(self._w), clip))
        return self._data.split(sums)[0]


def walk(vertices: OpenVertices | StreamedVertices, steps: Vector, radius: float) -> NDArray[np.int64]:
    """Select a vertex and move towards it by a step of the given size, once for each step; the choices."""
    choices = np.empty(len(steps), dtype=np.int64)
    for t, step in enumerate(steps):
        choices[t] = vertices.select()
        vertices.shrink(1 - step)
        vertices.move(int(choices[t]) // 2, step * radius * (1 if choices[t] % 2 else -1))
    return choices
