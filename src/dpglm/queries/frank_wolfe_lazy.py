"""Frank-Wolfe steps whose selections compute few sums, or go to few heavy columns."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..arrays import Vector, cache_lines
from ..data.records import Records
from ..data.sums import WeightedSums
from ..kernels.arguments import Bins, Calendar, Followed, Form, Leading, Pending, Terms, Words
from ..losses import Loss
from ..threads import parallel_over_rows, parallel_sum_over_rows

if TYPE_CHECKING:
    from ..data.sparse import ColumnCache
    from .frank_wolfe import VertexScores


RunOn = Callable[..., None]  # `Randomness.run_on`

_TAIL_WIDTH = 0.5
_LEADING_WIDTH = 0.5
_LIGHT = 4.0
_DRIFT = 2.0**-4
_MOST_LEADING = 1 << 12
_SMALLEST_FACTOR = 2.0**-200
_SAFE = 1 + 2.0**-20

_WORDS_AHEAD = 1 << 18
_SHARP, _SHARPEST = 40.0, 512.0
_MOST_HEADS = 1 << 10
_LIGHT_SHARE = 0.25
_MOST_ROWS, _MOST_STEPS, _LARGEST_RADIUS, _FARTHEST = 1 << 28, 1 << 17, 2.0**16, 100.0
_FAR = 3.0
_STEEPER = 1 + 2.0**-21
_AT_ONCE, _ROWS_A_BLOCK = 256, 1 << 13
_MOST_PENDING = 512
_ENDLESS = 100.0
_AHEAD = 64
_MOST_ROUNDING = 0.5


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


def hold_proposed(
    columns: ColumnCache, words: Words, at: int, left: int, factor: float, followed: Followed,
    leading: Leading, bins: Bins,
) -> bool:  # fmt: skip
    """Extract the leading columns, and all that the words at hand will lead to in the steps that are left.

    False, without extraction, if more words are needed to see them. What is selected does not depend on when
    columns are extracted.
    """
    from ..kernels import frank_wolfe_lazy  # compiled code is loaded by those who use it

    wanted = np.zeros(len(columns.held.columns), dtype=np.uint8)
    wanted[leading.columns] = 1
    found = frank_wolfe_lazy.foresee(
        words, at, left + left // 16 + 16, factor, followed, leading, bins, wanted
    )  # fmt: skip
    if found < left and len(words) - at < _WORDS_AHEAD:
        return False
    columns.hold(wanted)
    return True


def heads_of(
    loss: Loss,
    weighed: WeightedSums,
    inverse: float,
    radius: float,
    reach: float,
    entry: float,
    n: int,
    steps: int,
) -> NDArray[np.int64]:
    """The columns whose moves shall stay pending: none if that would not pay, or be exact.

    The heaviest is the first. A column that is no head is proposed as if its score were its weight. The heads
    are such that all of these add at most a quarter to the proposals. There are none if rounding, of slopes
    and by ``entry`` for each entry, could move a sum by more than half a scale.
    """
    from ..kernels.pending_moves import SLOPES

    none = np.empty(0, dtype=np.int64)
    slope, constants = loss.lipschitz(), (loss.smoothness(), loss.curvature_lipschitz())
    if not max(slope, *constants, weighed.largest) <= 1:
        return none
    if not _SHARP <= weighed.heaviest * (slope * inverse) <= _SHARPEST:
        return none
    if slope * weighed.largest > weighed.cut.limit or reach > _FARTHEST:
        return none
    if n > _MOST_ROWS or steps > _MOST_STEPS or radius > _LARGEST_RADIUS:
        return none
    places = weighed.sums[:, 1] * (slope * inverse)
    heavy = np.flatnonzero(places > 1)
    heavy = heavy[np.argsort(places[heavy], kind="stable")]
    added = np.cumsum(np.expm1(np.minimum(places[heavy], _ENDLESS)))
    heads = heavy[np.searchsorted(added, _LIGHT_SHARE * len(places)) :]
    if len(heads) > _MOST_HEADS:
        return none
    rounded = weighed.counts[heads].max(initial=0) * (1 / SLOPES + entry)
    return heads[::-1] if rounded * inverse <= _MOST_ROUNDING else none


class PendingMoves:
    """Private state of compiled steps whose moves of head columns stay pending.

    Parameters
    ----------
    columns : ColumnCache
    state : array of shape (n, 8), stored by columns
        In the order of `Followed.rows`; here number 1 counts the pending moves that v knows, and the last
        four are part of the margin, slope, curvature, and part of no head, at the reference. A pass reads
        some of these of every row.
    line : array
        Of `Bins`.
    loss : Loss
    weighed : WeightedSums
    heads : array
        From `heads_of`.
    base, radius : float
        As in `LazyVertices`.
    entry : float
        What rounding adds to a sum for each entry.
    work : array
    """

    def __init__(
        self, columns: ColumnCache, state: Vector, line: Vector, loss: Loss, weighed: WeightedSums,
        heads: NDArray[np.int64], base: float, radius: float, entry: float, work: NDArray[np.int64],
    ) -> None:  # fmt: skip
        from ..kernels import bins, frank_wolfe_lazy  # compiled code is loaded by those who use it
        from ..kernels.frank_wolfe_lazy import sort
        from ..kernels.pending_moves import UNIT, by_blocks

        self._columns, self._line, self._work, self._counts = columns, line, work, weighed.counts
        n, p, h = len(state), len(weighed.counts), len(heads)
        self._terms = Terms(Form.of(loss), base, weighed.cut)
        wanted = np.zeros(p, dtype=np.uint8)
        wanted[heads] = 1
        columns.hold(wanted, weighed.counts)
        table, numbers = columns.held.table.columns, heads.astype(np.uint64)
        led = frank_wolfe_lazy.some_columns(table, numbers, n)
        sums = weighed.sums
        sums[:, 1] *= _SAFE * loss.lipschitz()
        sums[:, 1] += self._counts * (entry + UNIT) + line[0]
        values = np.zeros((h, 2), dtype=np.int64)
        values[:, 0] = np.rint(sums[heads, 0] / UNIT)
        sums[:, 0], sums[heads, 1] = 0.0, -1.0 - np.arange(h)
        state[:, 1] = 0.0
        self._leading = Leading(heads.astype(np.uint32), np.zeros((h, 4)), *led, math.inf, np.zeros(2))
        self._followed = Followed(state, sums, math.inf)
        self._pending = Pending(
            leading=self._leading,
            blocks=by_blocks(table, numbers, n, _ROWS_A_BLOCK),
            lengths=self._counts[heads].astype(np.int64),
            active=np.zeros(h, dtype=np.uint8),
            sums=np.zeros((h, 3), dtype=np.int64),
            block=np.zeros((2, h, h), dtype=np.int64),
            coefs=np.zeros((h, 2)),
            which=np.empty(0, dtype=np.int32),
            pushes=np.empty(0),
            masks=np.empty((h, 0), dtype=np.uint64),
            counts=np.zeros(4, dtype=np.int64),
            moved=np.zeros((h, 2), dtype=np.int64),
            values=values,
            scalars=np.zeros(3, dtype=np.int64),
            most=np.zeros(8),
            scratch=np.empty(h),
            numbers=np.empty((2, h), dtype=np.uint64),
            xs=np.empty((2, h)),
            pairs=np.zeros((h, h)),
            steep=_STEEPER * loss.lipschitz(),
            beta=loss.smoothness(),
            gamma=loss.curvature_lipschitz(),
            largest=weighed.largest,
            entry=entry,
            tiny=2.0**-36 * (radius + 1),
        )
        self._bins = bins.empty(p, line)
        self._sort = sort

    def take_steps(
        self, words: Words, at: int, done: int, choices: NDArray[np.int64], pushes: Vector, factors: Vector
    ) -> tuple[int, int]:
        """Steps from number ``done`` on; the next word and step (see ``Randomness.run_on``)."""
        from ..kernels import frank_wolfe_pending as kernels

        if len(self._pending.which) == 0:
            self._begin(len(choices), factors[0])
        while True:
            at, done, why = kernels.run(
                words, at, done, choices, pushes, factors, self._columns.held, self._terms, self._followed,
                self._pending, self._bins, self._work,
            )  # fmt: skip
            if why == kernels.DONE:
                self._make_moves()
                return at, done
            if why == kernels.STALE:
                self._refer(done, factors[done], abs(pushes[done] * factors[done + 1]))
            elif why == kernels.FULL:
                self._make_moves()
            elif why == kernels.SHORT:
                return at, done
            else:  # coins of heads take any number of words: which columns will be proposed is not foreseen
                self._columns.hold_all()

    def _begin(self, steps: int, factor: float) -> None:
        from ..kernels.pending_moves import masks_for

        self._steps, most = steps, min(steps, _MOST_PENDING)
        self._pending = self._pending._replace(
            which=np.empty(most, dtype=np.int32),
            pushes=np.empty(most),
            masks=masks_for(len(self._leading.columns), most),
        )
        self._refer(0, factor, 0.0)
        lines = self._leading.lines
        lines[:, 0] = self._pending.sums[:, 0] / 2.0**24
        lines[:, 3] = np.abs(lines[:, 0])
        self._sort(self._followed, self._leading, self._bins)

    def _refer(self, done: int, factor: float, step: float) -> None:
        """Make all moves, and let the present margins be the reference.

        Only sums are computed if the next step is so large that the reference after it would be too far.
        """
        from ..kernels.pending_moves import refer_all, refer_slopes

        pending, h = self._pending, len(self._leading.columns)
        level = self._level(done, step)
        rows, found = self._followed.rows, []

        def slopes(start: int, stop: int, out: NDArray[np.int64]) -> None:
            mine, scratch = self._apart()
            refer_slopes(start, stop, factor, rows, mine, self._terms, out, scratch, *np.empty((2, _AT_ONCE)))

        def everything(start: int, stop: int, out: NDArray[np.int64]) -> None:
            (mine, scratch), most = self._apart(level), np.zeros(6)
            sums, block = out[: 3 * h].reshape(h, 3), out[3 * h :].reshape(2, h, h)
            refer_all(start, stop, factor, level, rows, mine, self._terms, sums, block, most, scratch)
            found.append(most)

        blocks, entries = len(pending.blocks.begins), len(self._leading.entries)
        if level == 0:
            pending.sums[:] = parallel_sum_over_rows(slopes, blocks, entries, (h, 3))
        else:
            total = parallel_sum_over_rows(everything, blocks, entries, (3 * h + 2 * h * h,))
            pending.sums[:], block = total[: 3 * h].reshape(h, 3), total[3 * h :].reshape(2, h, h)
            pending.block[:level], pending.most[:6] = block[:level], np.max(found, axis=0)
        pending.most[7] = factor
        self._work[3] += entries
        self._forget_moves()
        pending.counts[1:3] = level, 0
        pending.coefs[:, 0] += pending.coefs[:, 1]
        pending.coefs[:, 1] = 0.0

    def _level(self, done: int, step: float) -> int:
        """Which sums a new reference needs; before the first and where heads become active, all."""
        from ..kernels.pending_moves import BENDS

        pending = self._pending
        own = np.diagonal(pending.block[1]).max() / BENDS * step**2
        if own * self._line[1] > _FAR:
            return 0
        moved = pending.coefs.any(axis=1)
        if pending.active.any() and not np.any(moved > pending.active):
            return 1
        pending.active[:] = moved | self._likely(min(_AHEAD + 2 * done, self._steps - done))
        return 2

    def _likely(self, steps: int) -> NDArray[np.bool_]:
        """All heads but rare ones, of which one is expected to be selected in so many steps."""
        from ..kernels.pending_moves import UNIT

        exponents = np.abs(self._pending.values[:, 0]) * (UNIT * self._line[1])
        largest = exponents.max()
        chances = np.exp(exponents - largest)
        together = chances.sum() + len(self._counts) * math.exp(-largest)
        order = np.argsort(chances, kind="stable")
        likely = np.empty(len(order), dtype=np.bool_)
        likely[order] = np.cumsum(chances[order]) > together / steps
        return likely

    def _apart(self, level: int = 0) -> tuple[Pending, Vector]:
        """Scratch space of a thread: for a pass of that level, and for a block of rows."""
        pending, h = self._pending, len(self._leading.columns)
        mine = pending._replace(
            scratch=np.empty(h), numbers=np.empty((2, h), dtype=np.uint64), xs=np.empty((2, h)),
            pairs=np.zeros((level * h, h)),
        )  # fmt: skip
        return mine, np.empty(pending.blocks.size)

    def _forget_moves(self) -> None:
        """Empty the list of moves: all rows know them."""
        self._pending.masks[:] = 0
        self._pending.counts[0] = self._pending.counts[3] = 0

    def _make_moves(self) -> None:
        """Make all moves; the reference stays."""
        from ..kernels.pending_moves import make_moves

        def work(start: int, stop: int) -> None:
            make_moves(start, stop, self._followed.rows, *self._apart())

        parallel_over_rows(work, len(self._pending.blocks.begins), len(self._leading.entries))
        self._forget_moves()
