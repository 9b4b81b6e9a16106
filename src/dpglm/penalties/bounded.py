"""Elastic net on coefficients that are kept in intervals of their own."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from .. import strict
from ..arrays import Vector
from .base import Ends, Separable


@dataclass(frozen=True)
class Bounded(Separable):
    """l1 * sum of abs(w_j) + l2 / 2 * sum of w_j², with each coefficient kept in [low_j, high_j].

    Parameters
    ----------
    low, high : float or tuple of float
        The ends of the interval of all coefficients, or of each; either may be infinite.
    l1, l2 : float
        Weights of the two parts of the elastic net.

    Examples
    --------
    >>> import numpy as np
    >>> Bounded(low=(0.0, -1.0), high=(math.inf, 1.0), l2=1.0).prox(np.array([-3.0, 3.0]), step=1.0)
    array([0., 1.])
    """

    low: float | tuple[float, ...]
    high: float | tuple[float, ...]
    l1: float = 0.0
    l2: float = 0.0

    def __post_init__(self) -> None:
        strict.level("l1", self.l1)
        strict.level("l2", self.l2)
        for name in ("low", "high"):
            given = getattr(self, name)
            ends = strict.doubles(given)
            if ends is None or ends.ndim > 1 or np.isnan(ends).any():
                raise strict.wrong(name, given, "a number, or one for each coefficient")
            object.__setattr__(self, name, tuple(ends.tolist()) if ends.ndim else float(ends))
        low, high = np.asarray(self.low), np.asarray(self.high)
        if low.ndim and high.ndim and low.shape != high.shape:
            raise ValueError(f"low and high must have one length, got {low.size} and {high.size}")
        if not (np.all(low <= high) and np.all(low < math.inf) and np.all(high > -math.inf)):
            raise ValueError("low must not exceed high for any coefficient")

    @property
    def is_zero(self) -> bool:
        free = np.all(np.asarray(self.low) == -math.inf) and np.all(np.asarray(self.high) == math.inf)
        return bool(free) and self.l1 == 0 and self.l2 == 0

    def prox(self, w: Vector, step: float | Vector) -> Vector:
        for end in (self.low, self.high):
            if isinstance(end, tuple) and len(end) != w.shape[-1]:
                raise ValueError(f"Bounded has {len(end)} ends, the table has {w.shape[-1]} features")
        return super().prox(w, step)

    def scaled(self, factor: float) -> Self:
        return replace(self, l1=factor * self.l1, l2=factor * self.l2)

    def coordinate_form(self) -> tuple[float, float, Ends, Ends]:
        return self.l1, self.l2, _end(self.low), _end(self.high)


def _end(given: float | tuple[float, ...]) -> Ends:
    return _array(given) if isinstance(given, tuple) else given


def _array(given: tuple[float, ...]) -> Vector:
    return np.array(given, dtype=np.float64)
