"""Frank-Wolfe steps where selections go to few heavy columns: see kernels/pending_moves.py."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..arrays import Vector
from ..data.sums import WeightedSums
from ..kernels.arguments import Followed, Form, Leading, Pending, Terms, Words
from ..losses import Loss
from ..threads import parallel_over_rows, parallel_sum_over_rows

if TYPE_CHECKING:
    from ..data.sparse import ColumnCache

_SHARP, _SHARPEST = 40.0, 512.0
_MOST_HEADS = 1 << 10
_LIGHT_SHARE = 0.25
_MOST_ROWS, _MOST_STEPS, _LARGEST_RADIUS, _FARTHEST = 1 << 28, 1 << 17, 2.0**16, 100.0
_FAR = 3.0
_SAFE, _STEEPER = 1 + 2.0**-20, 1 + 2.0**-21
_AT_ONCE, _ROWS_A_BLOCK = 256, 1 << 13
_MOST_PENDING = 512
_ENDLESS = 100.0
_AHEAD = 64
_MOST_ROUNDING = 0.5


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
