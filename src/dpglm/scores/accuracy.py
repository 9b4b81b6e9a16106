"""Whether the predicted class is the right one."""

from __future__ import annotations

from dataclasses import dataclass

from ..arrays import Vector
from .base import Score


@dataclass(frozen=True, eq=False)
class Accuracy(Score):
    """1 if the predicted class is that of the record, else 0."""

    @property
    def range(self) -> tuple[float, float]:
        return 0.0, 1.0

    def value(self, margins: Vector, y: Vector) -> Vector:
        right = (margins[:, 0] > 0) == (y > 0) if margins.shape[1] == 1 else margins.argmax(axis=1) == y
        found: Vector = right.astype(float)
        return found
