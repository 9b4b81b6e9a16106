"""The base class of mechanisms: noise for an answer, and the event that it costs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from .. import strict
from ..accounting import Event, Imprecision
from ..arrays import Vector
from .randomness import Randomness


@dataclass(frozen=True)
class Mechanism(ABC):
    """Noise in units of the sensitivity of what is released.

    What an answer is, and how its sensitivity is stated, depends on the kind of mechanism.
    """

    name: ClassVar[str]
    distance: ClassVar[float] = 0.0
    noise: float

    def __post_init__(self) -> None:
        strict.keep(self, noise=strict.level)

    @property
    @abstractmethod
    def event(self) -> Event:
        """The event that accountants price for one release."""

    @property
    def relation(self) -> str | None:
        """The relation that the event is stated for; None if it holds for all."""
        return None

    def entries(self, answer: Any) -> int:
        """Number of draws for one release: the entries of the answer, or the candidates of a selection."""
        return int(np.size(answer))

    def imprecision(self, entries: int) -> Counter[Event]:
        """The extra cost of ``entries`` draws whose law is not exactly the one accounted for."""
        if self.noise > 0 and self.distance > 0:
            return Counter({Imprecision(self.distance): entries})
        return Counter()

    def require_drawable(self, entries: int) -> None:  # noqa: B027 - most mechanisms have such a limit, not all
        """Refuse noise that cannot be drawn for this many entries, whatever their sensitivity is."""

    def scaled(self, factor: float) -> Self:
        """Return the mechanism with all noise multiplied by a factor."""
        return replace(self, noise=self.noise * factor)

    @abstractmethod
    def release(self, answer: Any, sensitivity: Any, randomness: Randomness) -> Any:
        """The answer, made private."""

    @abstractmethod
    def log_likelihood(self, released: Any, answer: Any, sensitivity: Any) -> float:
        """Log-likelihood of a released value for an exact answer, up to a constant."""

    @abstractmethod
    def worst_cases(self) -> Mapping[str, tuple[object, object]]:
        """Named pairs of answers at distance 1 that are as easy to tell apart as any: for audits."""

    def probabilities(self, answer: Any, sensitivity: Any) -> Vector | None:
        """Probability of each possible output, where these are few; None elsewhere."""
        return None
