"""Clipped partial derivatives of coordinates, and scores by which a greedy method selects one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ..arrays import Vector, cache_lines
from ..data.record_set import RecordSet
from ..data.records import Records
from ..data.sums import ClippedSums, UpdatedSums, cut_to_grid
from ..kernels.arguments import Fields, Form, NoiseBlock, ScoreRule
from ..losses import Loss
from ..mechanisms import Additive, Exponential, Gaussian, Randomness, Round
from ..mechanisms.selection import Binned, ScoreStructure
from ..privacy import Neighbours
from ..tables import Columns, Index
from .base import (
    LARGEST_COEFFICIENT,
    LARGEST_LIMIT,
    LEAST_LIMIT,
    Draws,
    Opening,
    Query,
    require_enforceable,
    require_moderate,
)
from .streamed_scores import StreamedScores

RULES = {"gs": 0, "gs-s": 0, "gs-r": 1, "gs-q": 2}
"""Greedy rules; GS is GS-s of a penalty without kinks."""

MOST_PULL = 2.0**35
"""Largest pull of the penalty on a coefficient, over its clip, beside which rounding does not show."""

_SCORE_ERROR = 2.0**-12
_LEAST_CURVATURE, _LARGEST_CURVATURE = 1e-220, 1e220
_LEAST_RATIO, _LARGEST_RATIO = 1e-130, 1e130  # squares of scores are normal numbers, also over n


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
        size = max(abs(moved) - step * float(self.l1[j]), 0.0)
        shrunk = math.copysign(size, moved) / (1 + step * float(self.l2[j]))
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


@dataclass(frozen=True, eq=False)
class CoordinateScores(Query):
    """Score of coordinate j: n times the estimated progress of a step along it, from its clipped slope g_j.

    With M_j the curvature along coordinate j and psi its penalty, the rules are

    * GS-s: the least abs(g_j + s) over subgradients s of psi at w_j, over sqrt(M_j);
    * GS-r: sqrt(M_j) abs(prox(w_j - g_j / M_j) - w_j), the prox with step 1 / M_j;
    * GS-q: sqrt(2 q_j), q_j the largest decrease of g_j a + M_j a²/2 + psi(w_j + a) - psi(w_j).

    Guarantee
    ---------
    One record adds to n g_j a number in [-C_j, C_j], and every score is 1/sqrt(M_j)-Lipschitz in g_j: score
    j moves by at most C_j / sqrt(M_j) if the record is zeroed out, twice that if it is replaced. A selection
    takes the largest of these numbers for all.

    Resident records keep their state between steps (`OpenScores`), others are read once in each step
    (`StreamedScores`): the law is the same.

    Parameters
    ----------
    loss : Loss
    clip, curvature : array of shape (dimension,)
        C_j and M_j.
    rule : {"gs", "gs-s", "gs-r", "gs-q"}
    form : tuple of four floats
        (l1, l2, low, high) of the penalty of each coordinate but the intercept.
    reach : array of shape (dimension,)
        Public bound on the size of a record's term before it is cut.
    n_records : int
        The public n; by default the size of the table.
    """

    name: ClassVar[str] = "coordinate scores"
    loss: Loss
    clip: Vector
    curvature: Vector
    rule: str
    form: tuple[float, float, float, float]
    reach: Vector
    n_records: int = 0

    def __post_init__(self) -> None:
        require_enforceable("clip of a coordinate", self.clip, LEAST_LIMIT, LARGEST_LIMIT)
        require_enforceable("curvature of a coordinate", self.curvature, _LEAST_CURVATURE, _LARGEST_CURVATURE)
        ratio = self.clip / np.sqrt(self.curvature)
        require_enforceable("clip over the root of the curvature", ratio, _LEAST_RATIO, _LARGEST_RATIO)

    def __call__(self, data: RecordSet, *public: Vector) -> Vector:
        (w,) = public
        exact = self.open(Opening.exact(data, w, Round(Exponential(0.0), Gaussian(0.0))))
        return np.asarray(exact.step()[0])

    def sensitivity(self, neighbours: Neighbours) -> Vector:
        return self.clip / np.sqrt(self.curvature) * neighbours.records_moved * (1 + _SCORE_ERROR)

    def open(self, opening: Opening) -> OpenScores | StreamedScores:
        """Start at w; of resident records the margins, slopes and sums are kept from now on."""
        return OpenScores(self, opening) if opening.is_resident else StreamedScores(self, opening)

    def scores(
        self, n: int, p: int, sums: Vector, points: Vector, index: NDArray[np.signedinteger]
    ) -> Vector:
        """Scores of some coordinates from n g_j; ``points`` has the rows (w_j, M_j)."""
        from ..kernels.greedy import scores  # compiled code is loaded by those who use it

        values: Vector = scores(RULES[self.rule], n, sums, points, *self.form, p, index)
        return values

    def require_inside(self, coefficients: Vector | float) -> None:
        """Refuse a public point outside the penalty's interval, where its value is infinite."""
        _, _, low, high = self.form
        one = isinstance(coefficients, float)  # at every step: NumPy would take longer
        if not (
            low <= coefficients <= high if one else np.all((low <= coefficients) & (coefficients <= high))
        ):
            raise ValueError("the scores of a point outside the penalty's interval are not defined")

    def require_precise(self, n: int, j: int | slice, w_j: float | Vector) -> None:
        """Refuse a public point at which the rounding of a score could exceed what is allowed for it."""
        l1, l2, _, _ = self.form
        size = abs(w_j) if isinstance(w_j, float) else np.abs(w_j)
        excess = n * (l1 + l2 * size) - MOST_PULL * self.clip[j]
        if not (excess <= 0 if isinstance(excess, float) else (excess <= 0).all()):
            raise FloatingPointError(
                "the penalty is so large beside the clip that rounding would show: use a larger clip"
            )


class OpenScores:
    """Private state (margins, slopes, sums, scores) behind ``step`` and ``move``."""

    def __init__(self, query: CoordinateScores, opening: Opening) -> None:
        if not isinstance(opening.mechanism, Round):
            raise opening.wrong_kind(query, "selects, then adds noise")
        data, w, moved = opening.resident, opening.w, opening.neighbours.records_moved
        self._query, self._data = query, data
        self._releases, self._round = opening.releases, opening.mechanism
        self._n = query.n_records or data.table_size
        query.require_precise(self._n, slice(data.n_features), data.split(w)[0])
        query.require_inside(data.split(w)[0])
        self._all: NDArray[np.signedinteger] = np.arange(
            len(w), dtype=np.int32 if len(w) < 2**31 else np.int64
        )
        self._z = data.margins(w)
        self._largest = float(query.sensitivity(opening.neighbours).max())
        self._sensitivity = query.clip * moved
        self._slopes = data.slopes(query.loss, self._z)
        self._clipped = data.sums(query.clip, query.reach)
        self._clipped.shift(slice(None), np.zeros_like(self._slopes), self._slopes)
        self._points, self._roots = self._clipped.scratch, np.sqrt(query.curvature)
        self._points[:] = np.column_stack([w, query.curvature])
        self._sums = np.empty(0)
        self._kept: ScoreStructure | None = None
        self._compiled: CompiledScores | None = None
        self._current = False

    def step(self) -> tuple[int, float]:
        """A coordinate j whose score is nearly the largest, and its slope n g_j, made private: one round."""
        if not self._current:
            self._sums = self._clipped.sums
        if not self._releases.in_blocks:
            self._current = True
            answer = self._scores(self._all), self._sums.copy()
            sensitivities = self._largest, self._sensitivity
            released: tuple[int, float] = self._releases.give(answer, sensitivities, self._round)
            return released
        draws = self._releases.spend(self._round, entries=len(self._all))
        j = self._selected(draws)
        sensitivity = draws.padded(self._sensitivity[j])
        return j, self._round.additive.release(float(self._sums[j]), sensitivity, draws.randomness)

    def _selected(self, draws: Draws) -> int:
        """A choice among the scores, which are kept for the next one where that is worth it."""
        if not self._current or self._kept is None:
            scores, sensitivity = self._scores(self._all), draws.padded(self._largest)
            self._kept, self._current = self._round.selection.keep(scores, sensitivity), True
            if self._kept is None:
                return self._round.selection.release(scores, sensitivity, draws.randomness)
            self._track(self._kept, self._all)
            self._compiled = CompiledScores.of(
                self._query, RULES[self._query.rule], self._n, self._data, self._clipped, self._kept,
                self._z, self._slopes, self._roots, 2 * _SCORE_ERROR * self._largest,
            )  # fmt: skip
        if self._compiled is not None:
            return self._compiled.draw(draws.randomness)
        return self._kept.draw(draws.randomness, lambda j: float(self._scores(self._all[j : j + 1])[0]))

    def move(self, j: int, value: float) -> None:
        """Set coordinate j of the public point: costs nothing."""
        require_moderate(value)
        if j < self._data.n_features:
            self._query.require_precise(self._n, j, value)
            self._query.require_inside(float(value))
            if self._current and self._compiled is not None:
                if self._compiled.move(j, value):
                    self._sort_anew(self._compiled.bins)
                return
        rows, entries = self._data.column(j)
        z = self._z[rows] + (value - self._points[j, 0]) * entries
        self._z[rows], self._points[j, 0] = z, value
        old, new = np.array(self._slopes[rows]), self._data.slopes(self._query.loss, z, rows)
        self._slopes[rows] = new
        touched = self._clipped.shift(rows, old, new, j)
        if touched is None:
            self._current = False
        elif self._current and self._kept is not None:
            sorted_anew = self._kept.update(touched, self._scores(touched), lambda: self._scores(self._all))
            self._track(self._kept, self._all if sorted_anew else touched)

    def _sort_anew(self, kept: Binned) -> None:
        """Set all scores and tracked ranges."""
        kept.set_all(self._scores(self._all))
        self._track(kept, self._all)

    def _track(self, kept: ScoreStructure, index: NDArray[np.signedinteger]) -> None:
        """List these coordinates again once their sums may have moved their scores beyond their slack."""
        slack = kept.slack(index) - 2 * _SCORE_ERROR * self._largest
        self._clipped.track(index, slack * self._roots[index])

    def _scores(self, index: NDArray[np.signedinteger]) -> Vector:
        return self._query.scores(self._n, self._data.n_features, self._sums, self._points, index)


@dataclass(frozen=True, eq=False)
class CompiledScores:
    """The state of `OpenScores`, for `kernels.greedy`.

    Attributes
    ----------
    query : CoordinateScores
    rule : int
        The code of its rule.
    n : int
        The public n.
    data : Records
    sums : UpdatedSums
    bins : Binned
    z, slopes : array of shape (n_records,)
        Margins and slopes; they are updated.
    roots : array of shape (dimension,)
        Roots of the curvatures.
    margin : float
        What is taken from the slack of a score for its rounding.
    """

    query: CoordinateScores
    rule: int
    n: int
    data: Records
    sums: UpdatedSums
    bins: Binned
    z: Vector
    slopes: Vector
    roots: Vector
    margin: float

    @classmethod
    def of(
        cls, query: CoordinateScores, rule: int, n: int, data: Records, sums: ClippedSums,
        kept: ScoreStructure, z: Vector, slopes: Vector, roots: Vector, margin: float,
    ) -> Self | None:  # fmt: skip
        """The same; None where there is no compiled code for this table, structure or loss."""
        if query.loss.form is None or not (isinstance(sums, UpdatedSums) and isinstance(kept, Binned)):
            return None
        return cls(query, rule, n, data, sums, kept, z, slopes, roots, margin)

    def draw(self, randomness: Randomness) -> int:
        """A coordinate by its present score."""
        return randomness.run(*self._for_draws)

    def move(self, j: int, value: float) -> bool:
        """Set coordinate j, a feature of the table; True if all scores must be set again."""
        kernel, before, after = self._for_moves
        return bool(kernel(j, value, *self.data.stored_column(j), *before, self.sums.next_mark(), *after))

    # What stays the same is put together once, in plain tuples: these calls are made at every step.
    @cached_property
    def _for_draws(self) -> tuple[Any, ...]:
        from ..kernels import greedy  # compiled code is loaded by those who use it

        kept = self.sums.kept
        one = np.empty(1, dtype=kept.touched.dtype)
        return greedy.draw, tuple(self._rule), kept.state, kept.points, one, tuple(self.bins.parts[1:])

    @cached_property
    def _for_moves(self) -> tuple[Any, Fields, Fields]:
        from ..kernels import greedy

        values, *bins = self.bins.parts
        margins = tuple(Form.of(self.query.loss)), self.data.y, self.z, self.slopes
        kept, rule = tuple(self.sums.kept), tuple(self._rule)
        return greedy.move, (margins, kept), (rule, values, tuple(bins), self.roots, self.margin)

    @cached_property
    def _rule(self) -> ScoreRule:
        return ScoreRule(self.rule, self.n, *self.query.form, self.data.n_features)
