"""The largest of scores that are kept, without noise: a heap of stale upper bounds."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import numpy as np

from ..arrays import Vector
from .base import Index, Kept
from .randomness import Randomness


class Heap(Kept):
    """A binary heap of upper bounds of the scores; a bound is lowered only at the top.

    An update raises the bound of a candidate whose score exceeds it, and leaves it alone otherwise. A draw
    looks at the top: a bound that is stale becomes the present score and sinks, until the top is current.
    Of equal scores the first is the largest. This is Algorithm 3 of Raff, Khanna and Lu, "Scaling up
    differentially private LASSO regularized logistic regression via faster Frank-Wolfe iterations",
    arXiv:2310.19978, with a binary heap for a Fibonacci heap.

    Guarantee
    ---------
    None: there is no noise.

    Attributes
    ----------
    looks : int
        How many stale tops all draws have looked at.
    """

    noisy: ClassVar[bool] = False

    def draw(self, randomness: Randomness, score: Callable[[int], float] | None = None) -> int:
        largest, looks = self._kernels.top(self._values, self._bounds, self._order, self._place)
        self.looks += looks
        return int(largest)

    def _build(self, scores: Vector) -> None:
        from ..kernels import heap  # compiled code is loaded by those who use it

        super()._build(scores)
        self._kernels = heap
        self._bounds = self._values.copy()
        self._order = np.arange(self._values.size)
        self._place = self._order.copy()
        self._kernels.build(self._bounds, self._order, self._place)
        self.looks = 0

    def _set(self, index: Index, scores: Vector, everything: Callable[[], Vector] | None) -> bool:
        super()._set(index, scores, everything)
        places = index.astype(np.int64, copy=False)
        self._kernels.lift(places, self._values, self._bounds, self._order, self._place)
        return False
