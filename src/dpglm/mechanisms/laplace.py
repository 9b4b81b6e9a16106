"""The Laplace mechanism."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .. import accounting
from .additive import Additive
from .randomness import Randomness


@dataclass(frozen=True)
class Laplace(Additive):
    """Adds Laplace noise of scale noise * sensitivity, on a grid; the sensitivity is in the L1 norm."""

    name: ClassVar[str] = "Laplace"

    @property
    def event(self) -> accounting.Event:
        return accounting.Laplace(self.noise)

    def _rounding(self, entries: int) -> float:
        return float(entries)

    def _integers(self, scale: Any, shape: tuple[int, ...], randomness: Randomness) -> Any:
        return randomness.laplace(scale, shape)

    def log_likelihood(self, released: Any, answer: Any, sensitivity: Any) -> float:
        return -float(
            np.sum(np.abs((np.asarray(released) - answer) / (self.noise * np.asarray(sensitivity))))
        )

    def worst_cases(self) -> dict[str, tuple[Any, Any]]:
        return {"one number": (1.0, 0.0)}
