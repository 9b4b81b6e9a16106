"""The Laplace mechanism."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .. import accounting
from .base import Mechanism
from .randomness import Randomness


@dataclass(frozen=True)
class Laplace(Mechanism):
    """Adds Laplace noise of scale noise * sensitivity; the sensitivity is in the L1 norm."""

    name: ClassVar[str] = "Laplace"

    @property
    def event(self) -> accounting.Event:
        return accounting.Laplace(self.noise)

    def release(self, answer: Any, sensitivity: Any, randomness: Randomness) -> Any:
        if self.noise == 0:
            return answer
        return answer + randomness.laplace(self.noise * sensitivity, np.shape(answer) or None)

    def log_likelihood(self, released: Any, answer: Any, sensitivity: Any) -> float:
        return -float(
            np.sum(np.abs((np.asarray(released) - answer) / (self.noise * np.asarray(sensitivity))))
        )

    def worst_cases(self) -> tuple[tuple[Any, Any], ...]:
        return ((1.0, 0.0),)
