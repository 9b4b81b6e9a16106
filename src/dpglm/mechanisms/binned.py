"""The exponential mechanism over scores that are kept: a draw that does not look at every candidate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..arrays import Vector
from .base import Index, Kept
from .randomness import Randomness


class Binned(Kept):
    """Candidates in bins of width 1 in log-weight, by composition and rejection.

    A draw takes candidate j with probability proportional to exp(rounded score_j / scale): it chooses a bin
    by an upper bound of its mass and one of its members uniformly, and accepts that one with the probability
    that corrects for the bound. Otherwise it starts again, a few times on average. A new score moves its
    candidate over the boundaries between its old bin and its new one, by a swap for each; sums are never
    kept, so nothing drifts. The bound holds for all scores below the edge of a bin: a score that moves within
    its ``slack`` needs no update, if ``draw`` is given its present value.

    Guarantee
    ---------
    That of `Exponential` with this grid and scale, after any updates. Proof: docs/proofs/binned_selection.md.
    """

    def __init__(self, scores: ArrayLike, grid: float, scale: float) -> None:
        from ..kernels import binned, bins  # compiled code is loaded by those who use it

        self._kernels = binned
        count = np.size(scores)
        self._values = np.empty(count)
        self._bins = bins.empty(count, np.array([grid, 1 / scale, 0.0]))
        super().__init__(scores, grid, scale)

    @property
    def parts(self) -> tuple[Any, ...]:
        """The rounded scores and the parts of the bins, for compiled code that uses them by itself."""
        return (self._values, *self._bins)

    def slack(self, index: Index) -> Vector:
        return np.asarray(self._kernels.slack(index, self._values, self._bins.line))

    def draw(self, randomness: Randomness, score: Callable[[int], float] | None = None) -> int:
        kernels = self._kernels
        if score is None:
            return randomness.run(kernels.draw, self._values, *self._bins)
        while True:
            j, k = divmod(randomness.run(kernels.draw_bin, *self._bins), kernels.BINS)
            if randomness.run(kernels.accept, score(j), k, self._bins.line):
                return int(j)

    def set_all(self, scores: Vector) -> None:
        """Set the scores of all candidates, and sort them anew."""
        self._build(scores)

    def _build(self, scores: Vector) -> None:
        self._kernels.build(np.ascontiguousarray(scores, dtype=np.float64), self._values, *self._bins)

    def _set(self, index: Index, scores: Vector, everything: Callable[[], Vector] | None) -> bool:
        sort, _ = self._kernels.update(index, scores, self._values, *self._bins)
        if sort:
            self._build(everything() if everything else self._values)
        return bool(sort)
