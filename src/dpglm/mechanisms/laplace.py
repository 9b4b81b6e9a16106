"""The Laplace mechanism."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

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
