"""Scores of the vertices of an L1 ball, from which Frank-Wolfe selects the next one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..arrays import Vector
from ..data.records import Records
from ..losses import Loss
from ..mechanisms import Exponential, Gaussian, Mechanism
from ..mechanisms.base import Kept
from ..privacy import Neighbours
from ..tables import Index, RowsAndColumns
from .base import (
    Draws,
    Exact,
    Query,
    Releases,
    WorstCase,
    opposed_records,
    require_enforceable,
    require_moderate,
    wrong_kind,
)
from .lazy import LazyVertices, rounding_of_margins

_SMALLEST_FACTOR = 2.0**-200
_LITTLE = 2.0**-4
_FEWEST_STEPS = 16  # of the grid in a scale; padding may double the grid


@dataclass(frozen=True, eq=False)
class VertexScores(Query):
    """For the vertices of an L1 ball around 0, n times how fast the mean loss falls towards each.

    Entry 2 j + 1 is the score of the vertex along +e_j and entry 2 j that of its opposite: -G_j and G_j, with
    G_j the sum over the records of slope * x_j cut to [-clip, clip]. The sign of a vertex is part of the
    choice, so it is paid for.

    Guarantee
    ---------
    One record adds to a score a number in [-C, C]: it moves by at most C if the record is zeroed out, 2 C if
    it is replaced. That holds whatever margin a record's slope is taken at, as long as it is a function of
    that record and of public values. Proof: docs/proofs/vertex_scores.md.

    Parameters
    ----------
    loss : Loss
    clip : float
        C.
    n_features : int
    largest : float
        Public bound on the absolute value of a feature.
    structure : str
        "lazy" computes few sums and has scores at the true margins; others, named in
        `dpglm.mechanisms.STRUCTURES`, keep all of them.
    refresh : float
        Where scores are kept, the margins of all records follow a shrinking of the coefficients after it has
        changed them by this share; a selected feature brings its own records up to date at once.
    """

    name: ClassVar[str] = "vertex scores"
    needs = (RowsAndColumns,)
    loss: Loss
    clip: float
    n_features: int
    largest: float
    structure: str = "lazy"
    refresh: float = 0.0

    def __post_init__(self) -> None:
        require_enforceable("clip", self.clip)

    def __call__(self, data: Records, *public: Vector) -> Vector:
        (w,) = public
        return np.asarray(self.open(data, w, Neighbours.REPLACE_ONE, Exact(), Exponential(0.0)).select())

    def sensitivity(self, neighbours: Neighbours) -> Vector:
        return np.full(2 * self.n_features, self.clip * neighbours.records_moved)

    def worst_case(self, n_features: int, radius: float, constant: float) -> WorstCase:
        return opposed_records(n_features, radius, constant)

    def open(
        self, data: Records, w: Vector, neighbours: Neighbours, releases: Releases, mechanism: Mechanism
    ) -> OpenVertices:
        """Start keeping the margins of every record at w."""
        if not isinstance(mechanism, Exponential):
            raise wrong_kind(self, mechanism, "selects by exponential weights")
        sensitivity = float(self.clip * neighbours.records_moved)
        return OpenVertices(self, data.without_zeros, w, sensitivity, releases, mechanism)


class OpenVertices:
    """Private state (margins with a shared factor, slopes, sums) behind ``select``, ``shrink``, ``move``."""

    def __init__(
        self, query: VertexScores, data: Records, w: Vector, sensitivity: float,
        releases: Releases, mechanism: Exponential,
    ) -> None:  # fmt: skip
        self._query, self._data, self._sensitivity = query, data, sensitivity
        self._releases, self._mechanism = releases, mechanism
        features, intercept = data.split(w)
        self._size = float(np.abs(features).sum())
        self._base = float(intercept.sum() * data.constant)
        self._rest = np.where(data.scale > 0, self._base, 0.0)
        self._v = data.dot(np.concatenate([features, 0.0 * intercept])) if self._size else 0.0 * self._rest
        self._factor = self._refreshed = 1.0
        self._refresh = 0.0 if query.structure == "lazy" else query.refresh
        self._clipped: Any = None
        self._kept: Kept | None = None

    def select(self) -> int:
        """A vertex whose score is nearly the largest: costs one event."""
        if self._clipped is None:
            self._keep_sums()
        if not self._releases.in_blocks:
            return self._releases.give(self._scores(slice(None)), self._sensitivity, self._mechanism)
        draws = self._releases.spend(self._mechanism, entries=2 * self._query.n_features)
        if self._kept is None:
            scores, sensitivity = self._scores(slice(None)), draws.padded(self._sensitivity)
            structure = "auto" if self._query.structure == "lazy" else self._query.structure
            self._kept = self._mechanism.keep(scores, sensitivity, structure)
            if self._kept is None:
                return self._mechanism.release(scores, sensitivity, draws.randomness)
        return self._kept.draw(draws.randomness, self._score)

    def shrink(self, factor: float) -> None:
        """Multiply all coefficients of the public point, but not the intercept: costs nothing."""
        self._factor *= factor
        if self._factor < _SMALLEST_FACTOR:
            self._v *= self._factor
            self._factor, self._refreshed, self._clipped = 1.0, 1.0, None
        if self._clipped is None:
            return
        if self._linear:
            self._kept = None
        elif abs(self._factor - self._refreshed) > self._refresh * self._refreshed:
            self._refreshed = self._factor
            self._set_margins(np.flatnonzero(self._v), 0)

    def move(self, j: int, amount: float) -> None:
        """Add to coefficient j of the public point: costs nothing."""
        require_moderate(amount)
        rows, entries = self._data.column(j)
        self._v[rows] += amount / self._factor * entries
        if self._clipped is not None:
            self._set_margins(rows, j)

    def run(self, steps: Vector, radius: float) -> NDArray[np.int64]:
        """Select a vertex and move towards it by a share of the way, once for each of the steps; the choices.

        Where the structure is lazy and the loss has a compiled form, compiled code takes all steps at once.
        """
        require_moderate(float(radius))
        count = len(steps)
        if self._releases.in_blocks and self._can_be_lazy(radius):
            draws = self._releases.spend(self._mechanism, entries=2 * self._query.n_features, count=count)
            return self._run_lazily(steps, radius, draws)
        choices = np.empty(count, dtype=np.int64)
        for t, step in enumerate(steps):
            choices[t] = self.select()
            self.shrink(1 - step)
            self.move(int(choices[t]) // 2, step * radius * (1 if choices[t] % 2 else -1))
        return choices

    def gap(self, radius: float) -> float:
        """How far the mean loss is above its minimum over the ball at most; not private: noise must be 0."""
        if self._mechanism.noise > 0:
            raise ValueError("the Frank-Wolfe gap is not private: it is available without noise only")
        part = self._factor * self._v
        slopes = self._data.slopes(self._query.loss, part + self._rest)
        sums, _ = self._data.split(self._data.t_dot(slopes))
        gap = float(slopes @ part + radius * np.abs(sums).max(initial=0.0)) / self._data.n_records
        return self._releases.give(gap, 0.0, Gaussian(0.0))

    def _can_be_lazy(self, radius: float) -> bool:
        """Whether bounds of sums can be much less than a scale above them, by what is public."""
        loss, largest, noise = self._query.loss, self._query.largest, self._mechanism.noise
        if self._query.structure != "lazy" or loss.form is None or not noise > 0:
            return False
        wobble = rounding_of_margins(max(radius, self._size) * largest, self._base)
        widest = self._data.n_records * largest * loss.smoothness() * wobble
        if not widest <= _LITTLE * noise * self._sensitivity:
            return False
        grid, scale = self._mechanism.law(self._sensitivity)
        return scale >= _FEWEST_STEPS * grid

    def _run_lazily(self, steps: Vector, radius: float, draws: Draws) -> NDArray[np.int64]:
        law = self._mechanism.law(draws.padded(self._sensitivity))
        lazy = LazyVertices(self._query, self._data, self._factor * self._v, self._base, radius, *law)
        choices = lazy.run(steps, draws.randomness.run_on)
        self._v, self._factor, self._refreshed, self._clipped = lazy.parts, 1.0, 1.0, None
        return choices

    @property
    def _linear(self) -> bool:
        """Whether sums are those of v times the factor plus others that stay: then nothing lags behind."""
        return self._query.loss.form == 0 and math.isinf(self._query.clip)

    def _keep_sums(self) -> None:
        p = self._query.n_features
        limit = np.full(p + bool(self._data.constant), math.inf)
        limit[:p] = self._query.clip
        self._clipped = self._data.sums(limit, np.full(len(limit), math.inf))
        self._slopes = np.zeros(self._data.n_records)
        self._stay = np.zeros(p)
        if self._linear:
            still = self._data.slopes(self._query.loss, self._rest)
            self._stay, _ = self._data.split(self._data.t_dot(still))
        self._kept = None
        self._refreshed = self._factor
        self._set_margins(slice(None), 0)

    def _set_margins(self, rows: Index, j: int) -> None:
        """Bring the sums up to date with the margins of some rows."""
        old = np.array(self._slopes[rows])
        new = np.array(self._v[rows])
        if not self._linear:
            z = self._factor * new + self._rest[rows]
            new = self._data.slopes(self._query.loss, z, rows)
        self._slopes[rows] = new
        touched = self._clipped.shift(rows, old, new, j)
        if touched is None:
            self._kept = None
        if self._kept is not None:
            features = touched[touched < self._query.n_features]
            index = (2 * features[:, None] + np.arange(2)).ravel()
            self._kept.update(index, self._scores(features), lambda: self._scores(slice(None)))

    def _scores(self, features: Index) -> Vector:
        """Scores of both vertices of each of these features."""
        sums = self._data.split(self._clipped.sums)[0][features]
        if self._linear:
            sums = self._factor * sums + self._stay[features]
        return np.column_stack([sums, -sums]).ravel()

    def _score(self, vertex: int) -> float:
        return float(self._scores(np.array([vertex // 2]))[vertex % 2])
