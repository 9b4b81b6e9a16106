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
        if self.noise == 0:
            return answer
        return answer + randomness.gaussian(self.noise * sensitivity, np.shape(answer) or None)

    def log_likelihood(self, released: Any, answer: Any, sensitivity: Any) -> float:
        deviations = (np.asarray(released) - answer) / (self.noise * np.asarray(sensitivity))
        return -0.5 * float(np.sum(deviations**2))

    def worst_cases(self) -> tuple[tuple[Any, Any], ...]:
        return ((1.0, 0.0),)
