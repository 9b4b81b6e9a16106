"""The mean of the last iterates: it has less noise than the last one, and hardly more bias."""

from __future__ import annotations

import math

import numpy as np

from ..arrays import Vector


def tail_of(steps: int, share: float = 0.25) -> Vector:
    """1 for each iterate that the mean is over, the last share of them, 0 for the others."""
    return (np.arange(steps) >= steps - math.ceil(steps * share)).astype(np.float64)


class Tail:
    """The mean of the last share, by default a quarter, of so many iterates, which are added one by one."""

    def __init__(self, steps: int, start: Vector, share: float = 0.25) -> None:
        weights = tail_of(steps, share)
        self._count, self._left, self._sum = float(weights.sum()), iter(weights), np.zeros_like(start)

    def add(self, w: Vector) -> None:
        """Take the next iterate into account."""
        if next(self._left):
            self._sum += w

    @property
    def mean(self) -> Vector:
        """The mean, once all iterates are added."""
        return self._sum / self._count
