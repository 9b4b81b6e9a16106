"""No penalty."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

from .base import Separable


@dataclass(frozen=True)
class Zero(Separable):
    """No penalty at all."""

    def scaled(self, factor: float) -> Self:
        return self

    def coordinate_form(self) -> tuple[float, float, float, float]:
        return 0.0, 0.0, -math.inf, math.inf
