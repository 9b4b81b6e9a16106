"""Steps that released gradients show to be too long are shortened."""

from __future__ import annotations

import math

import numpy as np

from ..arrays import Vector

_DEVIATIONS = 3.0
_MOST_MOMENTUM = 0.95


class Secant:
    """Step size and momentum, from what two released gradients in turn say of the curvature between them.

    A step is at most the inverse of that curvature, less what noise makes of it. Momentum grows by as much as
    steps get shorter, so that all steps together go as far.
    """

    def __init__(self, step_size: float, momentum: float, noise: float) -> None:
        self.step_size, self.momentum = step_size, momentum
        self._noise = noise * math.sqrt(2.0)
        self._last: tuple[Vector, Vector] | None = None

    def see(self, w: Vector, gradient: Vector) -> None:
        """Take the gradient at w into account, which has noise in each entry."""
        if self._last is not None:
            move, change = w - self._last[0], gradient - self._last[1]
            length = float(np.linalg.norm(move))
            if length > 0:
                curvature = (float(np.vdot(move, change)) / length - _DEVIATIONS * self._noise) / length
                if curvature * self.step_size > 1.0:
                    shorter = 1.0 / curvature
                    reach = self.step_size / (1.0 - self.momentum)
                    most = max(self.momentum, _MOST_MOMENTUM)
                    self.step_size, self.momentum = shorter, min(1.0 - shorter / reach, most)
        self._last = w, gradient
