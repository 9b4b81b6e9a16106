"""Squared L2 penalty."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Self

from .. import strict
from .base import Separable


@dataclass(frozen=True)
class L2(Separable):
    """strength / 2 * sum of w_j²: the ridge penalty.

    Parameters
    ----------
    strength : float
        Weight of the penalty beside the mean loss; also its strong convexity.

    Examples
    --------
    >>> import numpy as np
    >>> L2(1.0).prox(np.array([3.0]), step=2.0)
    array([1.])
    """

    strength: float

    def __post_init__(self) -> None:
        strict.level("strength", self.strength)

    def scaled(self, factor: float) -> Self:
        return replace(self, strength=factor * self.strength)

    def coordinate_form(self) -> tuple[float, float, float, float]:
        return 0.0, self.strength, -math.inf, math.inf
