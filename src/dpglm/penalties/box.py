"""Box constraint."""

from __future__ import annotations

import math
from dataclasses import dataclass

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
        if not self.low < math.inf:
            raise ValueError(f"low must be a number below infinity, got {self.low!r}")
        if not self.high > -math.inf:
            raise ValueError(f"high must be a number above -infinity, got {self.high!r}")
        if self.low > self.high:
            raise ValueError(f"low must not exceed high, got low={self.low!r} and high={self.high!r}")

    def coordinate_form(self) -> tuple[float, float, float, float]:
        return 0.0, 0.0, self.low, self.high
