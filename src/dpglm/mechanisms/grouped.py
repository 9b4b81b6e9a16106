"""The exponential mechanism over scores in groups: a draw of a group by its sum, then of a member."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..arrays import Vector
from .base import Index, Kept
from .randomness import Randomness


class Grouped(Kept):
    """About sqrt(p) groups of about sqrt(p) consecutive candidates, with the sum of the weights of each.

    The weight of candidate j is exp((rounded score_j - reference) / scale). An update adds up the groups of
    its candidates anew from all of their members, never by differences, so nothing drifts. A draw halves the
    set of groups by coins until one is left, and then its members. If the sum of all weights leaves a wide
    range, the largest score becomes the reference. It takes the place of Algorithm 4 of Raff, Khanna and Lu,
    arXiv:2310.19978, whose groups drift.

    Guarantee
    ---------
    That of `Exponential` with this grid and scale, after any updates.
    Proof: docs/proofs/grouped_selection.md.
    """

    def draw(self, randomness: Randomness, score: Callable[[int], float] | None = None) -> int:
        return randomness.run(self._kernels.draw, self._weights, self._sums)

    def _build(self, scores: Vector) -> None:
        from ..kernels import grouped  # compiled code is loaded by those who use it

        super()._build(scores)
        self._kernels = grouped
        count = self._values.size
        size = 1 << ((count - 1).bit_length() + 1) // 2
        groups = -(-count // size)
        self._weights = np.zeros((groups, size))
        self._sums = np.zeros(2 << (groups - 1).bit_length())
        self._refer()

    def _set(self, index: Index, scores: Vector, everything: Callable[[], Vector] | None) -> bool:
        super()._set(index, scores, everything)
        if not self._kernels.LOWEST <= self._weigh(index) <= self._kernels.HIGHEST:
            self._refer()
        return False

    def _refer(self) -> None:
        """Weigh all candidates against the largest score."""
        self._reference = float(self._values.max())
        self._weigh(np.arange(self._values.size))

    def _weigh(self, index: Index) -> float:
        """Weigh these candidates; returns the sum of all weights."""
        index = index.astype(np.int64, copy=False)
        return self._kernels.weigh(
            index, self._values, self._weights, self._sums, self._reference, self._scale
        )
