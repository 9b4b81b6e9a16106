"""The exponential mechanism over scores that are kept: a draw that does not look at every candidate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from .randomness import Randomness


class Binned:
    """Candidates in bins of width 1 in log-weight, by composition and rejection.

    A draw takes candidate j with probability proportional to exp(rounded score_j / scale): it chooses a bin
    by an upper bound of its mass, one of its members evenly, and keeps that one with the probability that
    makes up for the bound, or else starts again, a few times on average. A new score moves its candidate over
    the boundaries between its old bin and its new one, by a swap for each; sums are never kept, so nothing
    drifts. The bound holds for all scores below the edge of a bin: one that moves within its ``room`` needs
    no update, if its present value is told when it is proposed.

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

    noisy: ClassVar[bool] = True

    def __init__(self, scores: Any, grid: float, scale: float) -> None:
        from ..kernels import binned, bins  # compiled code is loaded by those who use it

        self._kernels = binned
        count = np.size(scores)
        self._values = np.empty(count)
        self._bins = bins.empty(count, np.array([grid, 1 / scale, 0.0]))
        self._build(scores)

    def update(self, index: Any, scores: Any, everything: Callable[[], Any] | None = None) -> bool:
        """Set the scores of the candidates ``index``; where one is named twice, the last score counts.

        Returns whether all were sorted anew. If other scores have moved within their ``room`` since they were
        set, ``everything`` must give all of them.
        """
        index, scores = np.asarray(index), np.asarray(scores, dtype=np.float64)
        if index.ndim != 1 or index.shape != scores.shape:
            raise ValueError("there must be one score for each candidate")
        sort, _ = self._kernels.update(index, scores, self._values, *self._bins)
        if sort:
            self._build(everything() if everything else self._values)
        return bool(sort)

    def slack(self, index: Any) -> Any:
        """How far each of these scores may move, up or down, before it needs an update."""
        return self._kernels.slack(index, self._values, self._bins.line)

    def draw(self, randomness: Randomness, score: Callable[[int], float] | None = None) -> int:
        """Choose a candidate; ``score`` tells the present score of one, if any moved without an update."""
        kernels = self._kernels
        if score is None:
            return randomness.run(kernels.draw, self._values, *self._bins)
        while True:
            j, k = divmod(randomness.run(kernels.draw_bin, *self._bins), kernels.BINS)
            if randomness.run(kernels.accept, score(j), k, self._bins.line):
                return j

    def _build(self, scores: Any) -> None:
        scores = np.ascontiguousarray(scores, dtype=np.float64)
        self._kernels.build(scores, self._values, *self._bins)
