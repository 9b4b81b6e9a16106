"""The largest of scores that are kept, without noise: a heap of stale upper bounds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from .base import one_score_each
from .randomness import Randomness


class Heap:
    """A binary heap of upper bounds of the scores, which are made to fall only where they are at the top.

    An update raises the bound of a candidate whose score exceeds it, and leaves it alone otherwise. A draw
    looks at the top: a bound that is stale becomes the present score and sinks, until the top is current.
    Of equal scores the first is the largest. This is Algorithm 3 of Raff, Khanna and Lu, "Scaling up
    differentially private LASSO regularized logistic regression via faster Frank-Wolfe iterations", with a
    binary heap for a Fibonacci heap.

    Guarantee
    ---------
    None: there is no noise.

    Parameters
    ----------
    scores : array
        Scores of all candidates, none of them NaN.

    Attributes
    ----------
    looks : int
        How many stale tops all draws have looked at.
    """

    noisy: ClassVar[bool] = False

    def __init__(self, scores: Any) -> None:
        from ..kernels import heap  # compiled code is loaded by those who use it

        self._kernels = heap
        self._scores = np.array(scores, dtype=np.float64)
        self._bounds = self._scores.copy()
        self._order = np.arange(self._scores.size)
        self._place = self._order.copy()
        self._kernels.build(self._bounds, self._order, self._place)
        self.looks = 0

    def update(self, index: Any, scores: Any, everything: Callable[[], Any] | None = None) -> bool:
        """Set the scores of the candidates ``index``; where one is named twice, the last score counts."""
        index, scores = one_score_each(index, scores, self._scores.size)
        self._scores[index] = scores
        self._kernels.lift(index, self._scores, self._bounds, self._order, self._place)
        return False

    def slack(self, index: Any) -> Any:
        """0: every score that moves must be set."""
        return np.zeros(len(index))

    def draw(self, randomness: Randomness, score: Callable[[int], float] | None = None) -> int:
        """The candidate with the largest score; nothing is drawn."""
        largest, looks = self._kernels.top(self._scores, self._bounds, self._order, self._place)
        self.looks += looks
        return largest
