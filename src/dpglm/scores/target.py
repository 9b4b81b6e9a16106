"""The target itself."""

from __future__ import annotations

from dataclasses import dataclass

from ..arrays import Vector
from .base import Score


@dataclass(frozen=True, eq=False)
class TargetValue(Score):
    """The target of a record, within its declared range: its sums give the mean and the variance."""

    target: tuple[float, float]

    @property
    def range(self) -> tuple[float, float]:
        return self.target

    def value(self, margins: Vector, y: Vector) -> Vector:
        return y
