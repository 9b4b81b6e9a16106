"""Box constraint."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

from .. import strict
from .base import Separable


@dataclass(frozen=True)
class Box(Separable):
    """Every coefficient kept in [low, high].

    Parameters
    ----------
    low, high : float
        The ends of the interval; either may be infinite.

    Examples
    --------
    >>> import numpy as np
    >>> Box(low=0.0, high=math.inf).prox(np.array([-1.0, 2.0]), step=1.0)
    array([0., 2.])
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        strict.number("low", self.low, "a number below infinity", lambda low: low < math.inf)
        strict.number("high", self.high, "a number above -infinity", lambda high: high > -math.inf)
        if self.low > self.high:
            raise ValueError(f"low must not exceed high, got low={self.low!r} and high={self.high!r}")

    def scaled(self, factor: float) -> Self:
        return self

    def coordinate_form(self) -> tuple[float, float, float, float]:
        return 0.0, 0.0, self.low, self.high
