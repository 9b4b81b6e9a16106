"""L1 penalty."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Self

from .. import strict
from .base import Separable


@dataclass(frozen=True)
class L1(Separable):
    """strength * sum of abs(w_j): the lasso's penalty.

    Parameters
    ----------
    strength : float
        Weight of the penalty beside the mean loss.

    Examples
    --------
    >>> import numpy as np
    >>> L1(1.0).prox(np.array([3.0, -2.0]), step=1.0)
    array([ 2., -1.])
    """

    strength: float

    def __post_init__(self) -> None:
        strict.level("strength", self.strength)

    def scaled(self, factor: float) -> Self:
        return replace(self, strength=factor * self.strength)

    def coordinate_form(self) -> tuple[float, float, float, float]:
        return self.strength, 0.0, -math.inf, math.inf
