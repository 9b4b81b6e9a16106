"""Frank-Wolfe steps whose selections compute few sums: see kernels/frank_wolfe_lazy.py."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..arrays import Vector, cache_lines
from ..data.records import Records
from ..data.sums import WeightedSums
from ..kernels.arguments import Calendar, Followed, Form, Leading, Terms, Words
from .foresight import hold_proposed
from .pending import PendingMoves, heads_of

if TYPE_CHECKING:
    from .vertices import VertexScores

RunOn = Callable[..., None]  # `Randomness.run_on`

_TAIL_WIDTH = 0.5
_LEADING_WIDTH = 0.5
_LIGHT = 4.0
_DRIFT = 2.0**-4
_MOST_LEADING = 1 << 12
_SMALLEST_FACTOR = 2.0**-200
_SAFE = 1 + 2.0**-20


def rounding_of_margins(reach: float, base: float) -> float:
    """Bound on the rounding of margins up to ``reach`` plus an intercept, or of slopes over smoothness."""
    return 2.0**-46 * (reach + abs(base) + 1)


class LazyVertices:
    """Private state of compiled Frank-Wolfe steps from given margins.

    How far followed margins may lag behind the true ones, and which columns are leading, affects speed only,
    not probabilities.

    Parameters
    ----------
    query : VertexScores
    data : Records
    parts : array of shape (n_records,)
        What the coefficients add to each margin.
    base : float
        What the intercept adds to the margins of records that count.
    radius : float
        Radius of the ball.
    grid, scale : float
        Law of the selections.
    """

    def __init__(
        self, query: VertexScores, data: Records, parts: Vector, base: float, radius: float, grid: float,
        scale: float,
    ) -> None:  # fmt: skip
        self._query, self._data, self._base, self._radius = query, data, base, radius
        self._columns = data.on_demand
        self._state = cache_lines(data.n_records)
        self._state[:, 0], self._state[:, 2], self._state[:, 3] = parts, data.y, data.scale
        self._line = np.array([grid, 1 / scale, 0.0])
        self._leading: Leading
        # Proposals, true sums, entries read for these and to follow rows, entries of features selected.
        self.work = np.zeros(5, dtype=np.int64)

    @property
    def parts(self) -> Vector:
        """What the coefficients add to each margin."""
        return self._state[:, 0].copy()

    def run(self, steps: Vector, run_on: RunOn) -> NDArray[np.int64]:
        """Take steps of these sizes; the vertices selected, numbered as in `VertexScores`."""
        choices = np.empty(len(steps), dtype=np.int64)
        done = 0
        while done < len(steps):
            # A new block before the factor of v becomes too small.
            factors = np.cumprod(np.append(1.0, 1 - steps[done:]))
            count = max(int(np.count_nonzero(factors >= _SMALLEST_FACTOR)) - 1, 1)
            block = slice(done, done + count)
            factors = factors[: count + 1]
            pushes = steps[block] * self._radius / factors[1:]
            weighed = self._weigh()
            heads = heads_of(
                self._query.loss, weighed, float(self._line[1]), self._radius, self._reach(weighed),
                self._rounding(weighed), self._data.n_records, count,
            )  # fmt: skip
            if heads.size:
                pending = self._pending_moves(weighed, heads)
                run_on(pending.take_steps, count, choices[block], pushes, factors)
            else:
                self._settle(count, weighed)
                run_on(*self._arguments(choices[block], factors, pushes))
            self._state[:, 0] *= factors[-1]
            done += count
        return choices

    def _arguments(self, choices: NDArray[np.int64], factors: Vector, pushes: Vector) -> tuple[object, ...]:
        """What ``run_on`` needs for a block: what draws, the number of its draws, and its own arguments."""
        from ..kernels import frank_wolfe_lazy

        plan = frank_wolfe_lazy.empty_calendar(factors, self._state.view(np.int32))
        frank_wolfe_lazy.schedule_all(self._state, self._followed.slack, self._leading.slack, plan)
        return self._take_steps, len(choices), choices, pushes, plan

    def _take_steps(
        self, words: Words, at: int, done: int, choices: NDArray[np.int64], pushes: Vector, plan: Calendar
    ) -> tuple[int, int]:
        """Steps from number ``done`` on; the next word and step (see ``Randomness.run_on``).

        Columns that are lacking are extracted from the rows.
        """
        from ..kernels import frank_wolfe_lazy

        lacks = not self._has_models
        while True:
            if lacks and not hold_proposed(
                self._columns, words, at, len(choices) - done, plan.factors[done], self._followed,
                self._leading, self._bins,
            ):  # fmt: skip
                return at, done
            if not self._has_models:
                self._start_models()
            at, done, lacks = frank_wolfe_lazy.run(
                words, at, done, choices, pushes, self._columns.held, self._terms, self._followed,
                self._leading, self._bins, plan, self.work,
            )  # fmt: skip
            if not lacks:
                return at, done

    def _start_models(self) -> None:
        """Set the models of the leading columns, which must be held."""
        from ..kernels import frank_wolfe_lazy

        columns, n = self._leading.columns.astype(np.uint64), self._data.n_records
        begins, entries = frank_wolfe_lazy.some_columns(self._columns.held.table.columns, columns, n)
        self._leading = self._leading._replace(begins=begins, entries=entries)
        frank_wolfe_lazy.start_leading(self._state, self._leading, self._terms)
        self._has_models = True

    def _weigh(self) -> WeightedSums:
        """Sums of all columns at the present margins, and their weights."""
        state = self._state
        z = state[:, 0] + (np.where(state[:, 3] > 0, self._base, 0.0) if self._base else 0.0)
        return self._data.weighed(self._data.slopes(self._query.loss, z), self._query.clip)

    def _reach(self, weighed: WeightedSums) -> float:
        """The largest absolute value that the coefficients can add to a margin."""
        return max(self._radius * weighed.largest, float(np.abs(self._state[:, 0]).max()))

    def _rounding(self, weighed: WeightedSums) -> float:
        """What rounding adds to a sum for each entry, where moves stay pending."""
        loss, reach = self._query.loss, self._reach(weighed)
        margin = rounding_of_margins(reach, self._base) + 2.0**-30 * (
            self._radius + reach + abs(self._base) + 1
        )
        return _SAFE * (2 * weighed.grid + 2.0**-45 * self._query.clip + loss.smoothness() * margin)

    def _pending_moves(self, weighed: WeightedSums, heads: NDArray[np.int64]) -> PendingMoves:
        entry, self._state = self._rounding(weighed), np.asfortranarray(self._state)
        return PendingMoves(
            self._columns, self._state, self._line, self._query.loss, weighed, heads, self._base,
            self._radius, entry, self.work,
        )  # fmt: skip

    def _settle(self, steps: int, weighed: WeightedSums | None = None) -> None:
        """Set followed margins to the true ones, and choose how far they may lag in the coming steps."""
        from ..kernels import bins  # compiled code is loaded by those who use it
        from ..kernels.frank_wolfe_lazy import sort, widen

        n, p = self._data.n_records, self._query.n_features
        if not self._state.flags.c_contiguous:  # there were pending moves before
            by_columns, self._state = self._state, cache_lines(n)
            self._state[:] = by_columns
        loss, state = self._query.loss, self._state
        state[:, 1] = state[:, 0]
        weighed = weighed or self._weigh()
        sums = weighed.sums
        # What rounding can add: of margins and slopes by weight, of terms for each entry, of scores for all.
        reach = self._reach(weighed)
        wobble = rounding_of_margins(reach, self._base)
        added_up = 4.0 * steps * n * 2.0**-52 * (loss.lipschitz() + 2 * loss.smoothness() * reach)
        slack, leading_slack, columns = self._choose_leading(weighed, added_up, 2 * reach)
        leading_sums, weights = sums[columns].T
        entry = _SAFE * (2 * weighed.grid + 2.0**-45 * self._query.clip)
        bend = _SAFE * loss.smoothness() * (slack + wobble)
        widen(bend, weighed.least, entry, float(n), self._line[0], sums)
        lines = np.zeros((len(columns), 4))
        dtype = self._columns.held.table.rows.entries.dtype
        self._terms = Terms(Form.of(loss), self._base, weighed.cut)
        self._followed = Followed(state, sums, slack)
        self._leading = Leading(
            columns.astype(np.uint32), lines, np.zeros(1, dtype=np.uint64), np.empty((0, 2), dtype=dtype),
            leading_slack, np.zeros(2),
        )  # fmt: skip
        self._has_models = not columns.size
        if columns.size:
            state[:, 4] = state[:, 0]  # what the models take, also if they start with the first step
            second_order = 0.5 * loss.curvature_lipschitz() * (leading_slack + wobble) ** 2
            bend = _SAFE * (second_order + loss.smoothness() * wobble + added_up)
            lines[:, 0], lines[:, 2] = leading_sums, weights * bend + n * entry + self._line[0]
            lines[:, 2] += _DRIFT / self._line[1]
            self._leading.drift[1] = _SAFE * loss.smoothness() * weighed.largest * self._line[1] / _DRIFT
            lines[:, 3] = np.abs(lines[:, 0]) + lines[:, 2]
            sums[columns, 1] = -1.0 - np.arange(len(columns))
        self._bins = bins.empty(p, self._line)
        sort(self._followed, self._leading, self._bins)
        if columns.size and self._columns.held.columns[columns].all():
            self._start_models()

    def _choose_leading(
        self, weighed: WeightedSums, added_up: float, farthest: float
    ) -> tuple[float, float, NDArray[np.int64]]:
        """How far margins may lag, for sums and for leading columns, and which columns are leading.

        Bounds are then half a scale above scores. There are no leading columns where the error of their
        models would not be small: if terms are cut, if the curvature jumps, or if the rounding of many
        changes would add up to too much. No margin lags by more than ``farthest``, so no lag is larger.
        """
        loss, weights, inverse = self._query.loss, weighed.sums[:, 1], float(self._line[1])
        heaviest = weighed.heaviest * inverse
        columns = np.empty(0, dtype=np.int64)
        leading_slack = math.inf
        bounded = math.isfinite(loss.lipschitz()) and math.isfinite(loss.curvature_lipschitz())
        uncut = bounded and loss.lipschitz() * weighed.largest <= weighed.cut.limit
        if uncut and added_up * heaviest <= _LEADING_WIDTH / 2 and heaviest > _LIGHT:
            square = _least_of(2 * _LEADING_WIDTH, loss.curvature_lipschitz() * heaviest, farthest * farthest)
            leading_slack = math.sqrt(square)
            heaviest = _LIGHT
            columns = np.flatnonzero(weights > _LIGHT / inverse)
            if len(columns) > _MOST_LEADING:
                columns = columns[np.argsort(weights[columns])]
                heaviest = float(weights[columns[-_MOST_LEADING - 1]]) * inverse
                columns = columns[-_MOST_LEADING:]
        return _least_of(_TAIL_WIDTH, loss.smoothness() * heaviest, farthest), leading_slack, columns


def _least_of(width: float, rate: float, farthest: float) -> float:
    """The lesser of width / rate, which may be infinite, and ``farthest``."""
    return width / rate if rate * farthest > width else farthest
