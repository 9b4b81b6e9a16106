"""The exponential mechanism over scores that are kept: a draw that does not look at every candidate."""

from __future__ import annotations

from typing import Any

import numpy as np

from .randomness import Randomness


class Binned:
    """Candidates in bins of width 1 in log-weight, by composition and rejection.

    A draw takes candidate j with probability proportional to exp(rounded score_j / scale): it chooses a bin
    by an upper bound of its mass, one of its members evenly, and keeps that one with the probability that
    makes up for the bound, or else starts again, 3 times or fewer on average. A new score moves its candidate
    over the boundaries between its old bin and its new one, by a swap for each; sums are never kept, so
    nothing drifts.

    Guarantee
    ---------
    That of `Exponential` with this grid and scale, after any updates. Proof: docs/proofs/binned_selection.md.

    Parameters
    ----------
    scores : array
        Finite scores of all candidates.
    grid : float
        Power of two that scores are rounded to.
    scale : float
        Scale of the mechanism.
    """

    def __init__(self, scores: Any, grid: float, scale: float) -> None:
        from .binned_kernels import BINS, build  # compiled code is loaded by those who use it

        scores = np.ascontiguousarray(scores, dtype=np.float64)
        self._values = np.empty(scores.size)
        self._perm = np.empty(scores.size, dtype=np.uint32)
        self._position = np.empty(scores.size, dtype=np.uint32)
        self._start = np.empty(BINS + 1, dtype=np.int64)
        self._line = np.array([grid, 1 / scale, 0.0])
        build(scores, self._values, self._perm, self._position, self._start, self._line)

    def update(self, index: Any, scores: Any) -> None:
        """Set the scores of the candidates ``index``; where one is named twice, the last score counts."""
        from .binned_kernels import update

        index, scores = np.asarray(index), np.asarray(scores, dtype=np.float64)
        if index.ndim != 1 or index.shape != scores.shape:
            raise ValueError("there must be one score for each candidate")
        update(index, scores, self._values, self._perm, self._position, self._start, self._line)

    def draw(self, randomness: Randomness) -> int:
        """Choose a candidate."""
        from .binned_kernels import draw

        return randomness.run(draw, self._values, self._perm, self._start, self._line)
