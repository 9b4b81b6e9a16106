"""Frank-Wolfe steps where selections go to few heavy columns: see kernels/pending.py."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..arrays import Vector
from ..data.parts import over_rows, sum_over_rows
from ..kernels.arguments import Followed, Form, Leading, Pending, Terms, Words
from ..losses import Loss
from ..tables import Weighed
from .foresight import hold_proposed

if TYPE_CHECKING:
    from ..tables import ColumnsOnDemand

_SHARP, _SHARPEST = 24.0, 512.0
_MOST_HEADS = 1 << 10
_LIGHT_SHARE = 0.25
_MOST_ROWS, _MOST_STEPS, _FARTHEST = 1 << 28, 1 << 17, 100.0
_FAR = 3.0
_SAFE = 1 + 2.0**-20
_AT_ONCE = 256
_ENDLESS = 100.0


def heads_of(
    loss: Loss, weighed: Weighed, inverse: float, reach: float, n: int, steps: int
) -> NDArray[np.int64]:
    """The columns whose moves shall stay pending: none if that would not pay, or be exact.

    A column that is no head is proposed as if its score were its weight. The heads are such that all of these
    add at most a quarter to the proposals.
    """
    none = np.empty(0, dtype=np.int64)
    slope, constants = loss.lipschitz(), (loss.smoothness(), loss.curvature_lipschitz())
    if not max(slope, *constants, weighed.largest) <= 1:
        return none
    places = weighed.sums[:, 1] * (slope * inverse)
    if not _SHARP <= float(places.max(initial=0.0)) <= _SHARPEST:
        return none
    if slope * weighed.largest > weighed.cut.limit or reach > _FARTHEST:
        return none
    if n > _MOST_ROWS or steps > _MOST_STEPS:
        return none
    heavy = np.flatnonzero(places > 1)
    heavy = heavy[np.argsort(places[heavy], kind="stable")]
    added = np.cumsum(np.expm1(np.minimum(places[heavy], _ENDLESS)))
    heads = heavy[np.searchsorted(added, _LIGHT_SHARE * len(places)) :]
    return np.sort(heads) if len(heads) <= _MOST_HEADS else none


class PendingMoves:
    """Private state of compiled steps whose moves of head columns stay pending.

    Parameters
    ----------
    columns : ColumnsOnDemand
    state : array of shape (n, 8)
        In the order of `Followed.rows`; here number 1 counts the pending moves that v knows, and the last
        four are part of the margin, slope, curvature, and part of no head, at the reference.
    line : array
        Of `Bins`.
    loss : Loss
    weighed : Weighed
    heads : array
        From `heads_of`.
    base, radius, reach, wobble, clip : float
        The first two as in `LazyVertices`; the largest part of a margin, and the rounding of margins.
    work : array
    """

    def __init__(
        self, columns: ColumnsOnDemand, state: Vector, line: Vector, loss: Loss, weighed: Weighed,
        heads: NDArray[np.int64], base: float, radius: float, reach: float, wobble: float, clip: float,
        work: NDArray[np.int64],
    ) -> None:  # fmt: skip
        from ..kernels import bins, leading  # compiled code is loaded by those who use it
        from ..kernels.steps import sort

        self._columns, self._line, self._work, self._counts = columns, line, work, weighed.counts
        n, p, h = len(state), len(weighed.counts), len(heads)
        self._terms = Terms(Form.of(loss), base, weighed.cut)
        wanted = np.zeros(p, dtype=np.uint8)
        wanted[heads] = 1
        columns.hold(wanted, weighed.counts)
        led = leading.some_columns(columns.held.table.columns, heads.astype(np.uint64), n)
        entry = _SAFE * (2 * weighed.grid + 2.0**-45 * clip)
        sums = weighed.sums
        sums[:, 1] *= _SAFE * loss.lipschitz()
        sums[:, 1] += self._counts * entry + line[0]
        sums[:, 0], sums[heads, 1] = 0.0, -1.0 - np.arange(h)
        state[:, 1] = 0.0
        rounded = loss.smoothness() * (wobble + 2.0**-30 * (radius + reach + abs(base) + 1))
        self._leading = Leading(heads.astype(np.uint32), np.zeros((h, 4)), *led, math.inf)
        self._followed = Followed(state, sums, np.empty(p), math.inf)
        self._pending = Pending(
            self._leading, self._counts[heads].astype(np.int64), np.zeros((h, 3), dtype=np.int64),
            np.zeros((2, h, h), dtype=np.int64), np.zeros((h, 2)), np.empty(0, dtype=np.int32), np.empty(0),
            np.empty((h, 0), dtype=np.uint64), np.zeros(3, dtype=np.int64), np.zeros((h, 2), dtype=np.int64),
            np.zeros((h, 2), dtype=np.int64), np.zeros(3, dtype=np.int64), np.zeros(6), np.empty(h),
            loss.smoothness(), loss.curvature_lipschitz(), entry + _SAFE * rounded, 2.0**-36 * (radius + 1),
        )  # fmt: skip
        self._bins = bins.empty(p, line)
        self._sort = sort
        self._level = 2

    def take_steps(
        self, words: Words, at: int, done: int, choices: NDArray[np.int64], pushes: Vector, factors: Vector
    ) -> tuple[int, int]:
        """Steps from number ``done`` on; the next word and step (see ``Randomness.run_on``)."""
        from ..kernels import pending_steps as kernels

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
                self._refer(factors[done], abs(pushes[done] * factors[done + 1]))
            elif why == kernels.SHORT or not hold_proposed(
                self._columns, self._counts, words, at, len(choices) - done, factors[done], self._followed,
                self._leading, self._bins,
            ):  # fmt: skip
                return at, done

    def _begin(self, steps: int, factor: float) -> None:
        from ..kernels.pending import masks_for

        self._pending = self._pending._replace(
            which=np.empty(steps, dtype=np.int32),
            pushes=np.empty(steps),
            masks=masks_for(len(self._leading.columns), steps),
        )
        self._refer(factor, 0.0)
        lines = self._leading.lines
        lines[:, 0] = self._pending.sums[:, 0] / 2.0**24
        lines[:, 3] = np.abs(lines[:, 0])
        self._sort(self._followed, self._leading, self._bins)

    def _refer(self, factor: float, step: float) -> None:
        """Make all moves, and let the present margins be the reference.

        Only sums are computed if the next step is so large that the reference after it would be too far.
        """
        from ..kernels.pending import BENDS, refer_all, refer_slopes

        pending, h = self._pending, len(self._leading.columns)
        if self._level < 2:
            own = np.diagonal(pending.block[1]).max() / BENDS * step**2
            self._level = 0 if own * self._line[1] > _FAR else 1
        level, rows, found = self._level, self._followed.rows, []

        def slopes(start: int, stop: int, out: NDArray[np.int64]) -> None:
            mine = pending._replace(scratch=np.empty(h))
            scratch = np.empty((2, _AT_ONCE))
            refer_slopes(start, stop, factor, rows, mine, self._terms, out, *scratch)

        def everything(start: int, stop: int, out: NDArray[np.int64]) -> None:
            mine, most = pending._replace(scratch=np.empty(h)), np.zeros(6)
            sums, block = out[: 3 * h].reshape(h, 3), out[3 * h :].reshape(2, h, h)
            refer_all(start, stop, factor, level, rows, mine, self._terms, sums, block, most)
            found.append(most)

        n, entries = len(rows), len(self._leading.entries)
        if level == 0:
            pending.sums[:] = sum_over_rows(slopes, n, entries, (h, 3))
        else:
            total = sum_over_rows(everything, n, entries, (3 * h + 2 * h * h,))
            pending.sums[:], block = total[: 3 * h].reshape(h, 3), total[3 * h :].reshape(2, h, h)
            pending.block[:level], pending.most[:4] = block[:level], np.max(found, axis=0)[:4]
            self._level = 1
        pending.most[5] = factor
        self._work[3] += entries
        self._forget_moves(level)

    def _forget_moves(self, level: int) -> None:
        pending = self._pending
        pending.coefs[:, 0] += pending.coefs[:, 1]
        pending.coefs[:, 1] = 0.0
        pending.masks[:] = 0
        pending.counts[:] = 0, level, 0

    def _make_moves(self) -> None:
        from ..kernels.pending import make_moves

        pending, h = self._pending, len(self._leading.columns)
        n, entries = len(self._followed.rows), len(self._leading.entries)

        def work(start: int, stop: int) -> None:
            make_moves(start, stop, self._followed.rows, pending._replace(scratch=np.empty(h)))

        over_rows(work, n, entries)
        self._forget_moves(0)
