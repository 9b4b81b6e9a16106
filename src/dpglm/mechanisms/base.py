"""What a mechanism is: noise for an answer, and the event that it costs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

from ..accounting import Event
from .randomness import Randomness


@dataclass(frozen=True)
class Mechanism(ABC):
    """Noise in units of the sensitivity of what is released."""

    name: ClassVar[str]
    noise: float

    def __post_init__(self) -> None:
        if not self.noise >= 0:
            raise ValueError(f"noise must be at least 0, got {self.noise!r}")

    @property
    @abstractmethod
    def event(self) -> Event:
        """What one release costs."""

    @abstractmethod
    def release(self, answer: Any, sensitivity: Any, randomness: Randomness) -> Any:
        """The answer, made private."""

    @abstractmethod
    def log_likelihood(self, released: Any, answer: Any, sensitivity: Any) -> float:
        """How likely a released value is for an exact answer, up to a constant."""

    @abstractmethod
    def worst_cases(self) -> tuple[tuple[Any, Any], ...]:
        """Pairs of answers at distance 1 that the mechanism tells apart as well as any: for the auditor."""

    def probabilities(self, answer: Any, sensitivity: Any) -> Any:
        """Probability of each possible output, where these are few; None elsewhere."""
        return None
