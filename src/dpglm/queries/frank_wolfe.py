"""Scores of vertices, from which Frank-Wolfe selects the next one: of an L1 ball, and of a dual ball."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ..arrays import Vector
from ..data.record_set import RecordSet
from ..data.sums import ClippedSums
from ..losses import Loss
from ..mechanisms import Exponential, Gaussian, Selection
from ..mechanisms.selection import ScoreStructure
from ..privacy import Neighbours
from ..tables import Index
from .base import Draws, Opening, Query, WorstCase, require_enforceable, require_moderate
from .frank_wolfe_lazy import LazyVertices, rounding_of_margins
from .minimiser import Minimiser
from .streamed_scores import StreamedVertices, walk

_SMALLEST_FACTOR = 2.0**-200
_LITTLE = 2.0**-4
_FEWEST_STEPS = 16  # of the grid in a scale; padding may double the grid


@dataclass(frozen=True, eq=False)
class VertexScores(Query):
    """Score of each vertex of an L1 ball around 0: n times how fast the mean loss falls towards it.

    Entry 2 j + 1 is the score of the vertex along +e_j and entry 2 j that of its opposite: -G_j and G_j, with
    G_j the sum over the records of slope * x_j cut to [-clip, clip]. The sign of a vertex is part of the
    choice, so its privacy is accounted for.

    Guarantee
    ---------
    One record adds to a score a number in [-C, C]: it moves by at most C if the record is zeroed out, 2 C if
    it is replaced. That holds at any margin that is a function of the record and of public values. Proof:
    docs/proofs/vertex_scores.md.

    Resident records keep their margins between steps (`OpenVertices`), others are read once in each step
    (`StreamedVertices`): the law is that of exact margins.

    Parameters
    ----------
    loss : Loss
    clip : float
        C.
    n_features : int
    largest : float
        Public bound on the absolute value of a feature.
    structure : str
        "lazy" computes few sums, and has scores at the true margins; others, named in
        `dpglm.mechanisms.STRUCTURES`, keep all sums. Records that are not resident need one of
        `dpglm.queries.PLAIN`, which look at every score.
    refresh : float
        Where scores are kept, the margins of all records are updated after shrinking has changed the
        coefficients by this share; a selected feature updates its own records at once. Where records are
        read in passes, margins are always those of the present point.
    """

    name: ClassVar[str] = "vertex scores"
    loss: Loss
    clip: float
    n_features: int
    largest: float
    structure: str = "lazy"
    refresh: float = 0.0

    def __post_init__(self) -> None:
        require_enforceable("clip", self.clip)

    def __call__(self, data: RecordSet, *public: Vector) -> Vector:
        (w,) = public
        return np.asarray(self.open(Opening.exact(data, w, Exponential(0.0))).select())

    def sensitivity(self, neighbours: Neighbours) -> Vector:
        return np.full(2 * self.n_features, self.clip * neighbours.records_moved)

    def open(self, opening: Opening) -> OpenVertices | StreamedVertices:
        """Start at w; of resident records the margins are kept from now on."""
        return OpenVertices(self, opening) if opening.is_resident else StreamedVertices(self, opening)


class OpenVertices:
    """Private state (margins with a shared factor, slopes, sums) behind ``select``, ``shrink``, ``move``."""

    def __init__(self, query: VertexScores, opening: Opening) -> None:
        if not isinstance(opening.mechanism, Exponential):
            raise opening.wrong_kind(query, "selects by exponential weights")
        self._query, self._data = query, (data := opening.resident.without_zeros)
        self._releases, self._mechanism = opening.releases, opening.mechanism
        self._sensitivity = float(query.clip * opening.neighbours.records_moved)
        features, intercept = data.split(opening.w)
        self._size = float(np.abs(features).sum()) if features.any() else 0.0
        self._base = float(intercept.sum() * data.constant)
        self._rest = np.where(data.scale > 0, self._base, 0.0)
        self._v = data.dot(np.concatenate([features, 0.0 * intercept])) if self._size else 0.0 * self._rest
        self._factor = self._refreshed = 1.0
        self._refresh = 0.0 if query.structure == "lazy" else query.refresh
        self._clipped: ClippedSums | None = None
        self._kept: ScoreStructure | None = None

    def select(self) -> int:
        """A vertex whose score is nearly the largest: costs one event."""
        clipped = self._keep_sums() if self._clipped is None else self._clipped
        if not self._releases.in_blocks:
            scores = self._scores(clipped, slice(None))
            vertex: int = self._releases.give(scores, self._sensitivity, self._mechanism)
            return vertex
        draws = self._releases.spend(self._mechanism, entries=2 * self._query.n_features)
        if self._kept is None:
            scores, sensitivity = self._scores(clipped, slice(None)), draws.padded(self._sensitivity)
            structure = "auto" if self._query.structure == "lazy" else self._query.structure
            self._kept = self._mechanism.keep(scores, sensitivity, structure)
            if self._kept is None:
                return self._mechanism.release(scores, sensitivity, draws.randomness)
        return self._kept.draw(
            draws.randomness, lambda vertex: float(self._scores(clipped, np.array([vertex // 2]))[vertex % 2])
        )

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
        self._set_margins(rows, j)

    def run(self, steps: Vector, radius: float) -> NDArray[np.int64]:
        """Select a vertex and move towards it by a step of the given size, once for each step; the choices.

        Where the structure is lazy and the loss has a compiled form, compiled code takes all steps at once.
        """
        require_moderate(float(radius))
        count = len(steps)
        if self._releases.in_blocks and self._can_be_lazy(radius):
            draws = self._releases.spend(self._mechanism, entries=2 * self._query.n_features, count=count)
            return self._run_lazily(steps, radius, draws)
        return walk(self, steps, radius)

    def gap(self, radius: float) -> float:
        """Upper bound on mean loss minus its minimum over the ball; not private: noise must be 0."""
        if self._mechanism.noise > 0:
            raise ValueError("the Frank-Wolfe gap is not private: it is available without noise only")
        part = self._factor * self._v
        slopes = self._data.slopes(self._query.loss, part + self._rest)
        sums, _ = self._data.split(self._data.t_dot(slopes))
        gap = float(slopes @ part + radius * np.abs(sums).max(initial=0.0)) / self._data.n_records
        released: float = self._releases.give(gap, 0.0, Gaussian(0.0))
        return released

    def _can_be_lazy(self, radius: float) -> bool:
        """Whether, by what is public, bounds of sums can be above them by much less than a scale."""
        loss, largest, noise = self._query.loss, self._query.largest, self._mechanism.noise
        if self._query.structure != "lazy" or loss.form is None or not noise > 0:
            return False
        wobble = rounding_of_margins(max(radius, self._size) * largest, self._base)
        widest = self._data.table_size * largest * loss.smoothness() * wobble
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
        """Whether sums are linear in the factor: then none lags behind."""
        return self._query.loss.form == 0 and math.isinf(self._query.clip)

    def _keep_sums(self) -> ClippedSums:
        p = self._query.n_features
        limit = np.full(p + bool(self._data.constant), math.inf)
        limit[:p] = self._query.clip
        self._clipped = clipped = self._data.sums(limit, np.full(len(limit), math.inf))
        self._slopes = np.zeros(self._data.n_records)
        self._stay = np.zeros(p)
        if self._linear:
            still = self._data.slopes(self._query.loss, self._rest)
            self._stay, _ = self._data.split(self._data.t_dot(still))
        self._kept = None
        self._refreshed = self._factor
        self._set_margins(slice(None), 0)
        return clipped

    def _set_margins(self, rows: Index, j: int) -> None:
        """Bring the sums, where they are kept, up to date with the margins of some rows."""
        clipped = self._clipped
        if clipped is None:
            return
        old = np.array(self._slopes[rows])
        new = np.array(self._v[rows])
        if not self._linear:
            z = self._factor * new + self._rest[rows]
            new = self._data.slopes(self._query.loss, z, rows)
        self._slopes[rows] = new
        touched = clipped.shift(rows, old, new, j)
        if touched is None:
            self._kept = None
        elif self._kept is not None:
            features = touched[touched < self._query.n_features]
            index = (2 * features[:, None] + np.arange(2)).ravel()
            self._kept.update(
                index, self._scores(clipped, features), lambda: self._scores(clipped, slice(None))
            )

    def _scores(self, clipped: ClippedSums, features: Index) -> Vector:
        """Scores of both vertices of each of these features."""
        sums = self._data.split(clipped.sums)[0][features]
        if self._linear:
            sums = self._factor * sums + self._stay[features]
        return np.column_stack([sums, -sums]).ravel()


@dataclass(frozen=True)
class DualVertices(Query):
    """The inner product of the minimiser with each vertex, +radius along every feature, then -radius.

    Guarantee
    ---------
    An entry of a vector moves by no more than the vector in the L2 norm, so each score moves by at most the
    radius times the sensitivity of the minimiser.
    """

    name: ClassVar[str] = "dual vertex scores"
    minimiser: Minimiser
    radius: float

    def __call__(self, data: RecordSet, *public: Vector) -> Vector:
        features, _ = data.split(self.radius * self.minimiser(data, *public))
        return np.concatenate([features, -features])

    def sensitivity(self, neighbours: Neighbours) -> Vector:
        return np.full(2 * self.minimiser.n_features, self.radius * self.minimiser.sensitivity(neighbours))

    def worst_case(self, n_features: int, radius: float, constant: float) -> WorstCase:
        return self.minimiser.worst_case(n_features, radius, constant)

    def open(self, opening: Opening) -> OpenDualVertices:
        """The scores for minimisers with the start w."""
        return OpenDualVertices(self, opening)


class OpenDualVertices:
    """Scores behind ``select``."""

    def __init__(self, query: DualVertices, opening: Opening) -> None:
        if not isinstance(opening.mechanism, Selection):
            raise opening.wrong_kind(query, "selects")
        self._query, self._opening = query, opening
        self._sensitivity = float(query.sensitivity(opening.neighbours)[0])

    def select(self, linear: Vector) -> int:
        """A vertex whose score for a linear term is nearly the largest: costs one event."""
        require_moderate(linear)
        opening = self._opening
        scores = self._query(opening.data, linear, opening.w)
        vertex: int = opening.releases.give(scores, self._sensitivity, opening.mechanism)
        return vertex
