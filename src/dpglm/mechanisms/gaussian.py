"""The Gaussian mechanism."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .. import accounting
from .base import Mechanism
from .randomness import Randomness


@dataclass(frozen=True)
class Gaussian(Mechanism):
    """Adds N(0, (noise * sensitivity)²) to each entry; the sensitivity is in the L2 norm."""

    name: ClassVar[str] = "Gaussian"

    @property
    def event(self) -> accounting.Event:
        return accounting.Gaussian(self.noise)

    def release(self, answer: Any, sensitivity: Any, randomness: Randomness) -> Any:
        return answer + self.draw(sensitivity, np.shape(answer), randomness)[0]

    def draw(self, sensitivity: Any, shape: tuple[int, ...], randomness: Randomness) -> tuple[Any, Any]:
        grid = np.zeros(np.shape(sensitivity))
        if self.noise == 0:
            return np.zeros(shape), grid
        return randomness.gaussian(self.noise * sensitivity, shape or None), grid

    def log_likelihood(self, released: Any, answer: Any, sensitivity: Any) -> float:
        deviations = (np.asarray(released) - answer) / (self.noise * np.asarray(sensitivity))
        return -0.5 * float(np.sum(deviations**2))

    def worst_cases(self) -> dict[str, tuple[Any, Any]]:
        return {"one number": (1.0, 0.0)}
