"""How far the prediction of a number is off."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from ..arrays import Vector
from ..losses import Loss
from .base import Score


def predicted(loss: Loss, target: tuple[float, float] | None, margins: Vector) -> Vector:
    """Predictions from margins, cut to the declared range of targets."""
    means = loss.mean(margins)
    return means if target is None else np.clip(means, *target)


@dataclass(frozen=True, eq=False)
class _Error(Score):
    """A function of target - prediction, both within declared ranges; by default the same one."""

    loss: Loss
    target: tuple[float, float]
    limits: tuple[float, float] | None = None

    @property
    def range(self) -> tuple[float, float]:
        (low, high), (least, most) = self.target, self.limits or self.target
        return 0.0, float(self._of(np.array([max(high - least, most - low)]))[0])

    def value(self, margins: Vector, y: Vector) -> Vector:
        return self._of(y - predicted(self.loss, self.limits or self.target, margins[:, 0]))

    @abstractmethod
    def _of(self, errors: Vector) -> Vector: ...


@dataclass(frozen=True, eq=False)
class SquaredError(_Error):
    """(target - prediction)²."""

    def _of(self, errors: Vector) -> Vector:
        return np.square(errors)


@dataclass(frozen=True, eq=False)
class AbsoluteError(_Error):
    """abs(target - prediction)."""

    def _of(self, errors: Vector) -> Vector:
        return np.abs(errors)
