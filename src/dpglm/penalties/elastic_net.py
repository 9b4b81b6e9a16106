"""Elastic-net penalty."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Self

from .. import strict
from .base import Separable


@dataclass(frozen=True)
class ElasticNet(Separable):
    """l1 * sum of abs(w_j) + l2 / 2 * sum of w_j².

    Parameters
    ----------
    l1, l2 : float
        Weights of the two parts. scikit-learn's `alpha` and `l1_ratio` are
        `l1 = alpha * l1_ratio` and `l2 = alpha * (1 - l1_ratio)`.

    Examples
    --------
    >>> import numpy as np
    >>> ElasticNet(l1=1.0, l2=1.0).prox(np.array([3.0]), step=1.0)
    array([1.])
    """

    l1: float
    l2: float

    def __post_init__(self) -> None:
        strict.level("l1", self.l1)
        strict.level("l2", self.l2)

    def scaled(self, factor: float) -> Self:
        return replace(self, l1=factor * self.l1, l2=factor * self.l2)

    def coordinate_form(self) -> tuple[float, float, float, float]:
        return self.l1, self.l2, -math.inf, math.inf
