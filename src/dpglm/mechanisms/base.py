"""What a mechanism is: noise for an answer, and the event that it costs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from .. import strict
from ..accounting import Event, Imprecision
from .randomness import Randomness


class Kept(Protocol):
    """Scores in a structure from which a choice is drawn; ``noisy`` says whether with noise or without."""

    noisy: ClassVar[bool]

    def update(self, index: Any, scores: Any, everything: Callable[[], Any]) -> bool:
        """Set some of the scores; whether all, as ``everything`` gives them, were set in fact."""
        ...

    def room(self, index: Any) -> Any:
        """How far each of these scores may move before it must be set again."""
        ...

    def draw(self, randomness: Randomness, score: Callable[[int], float]) -> int:
        """The index chosen, ``score`` being the present score of an index."""
        ...


@dataclass(frozen=True)
class Mechanism(ABC):
    """Noise in units of the sensitivity of what is released."""

    name: ClassVar[str]
    distance: ClassVar[float] = 0.0
    noise: float

    def __post_init__(self) -> None:
        strict.store(self, noise=strict.level("noise", self.noise))

    @property
    @abstractmethod
    def event(self) -> Event:
        """What one release costs."""

    @property
    def relation(self) -> str | None:
        """The relation that the event is a price for; None if the price is the same for all."""
        return None

    @property
    def imprecision(self) -> Event | None:
        """What one number drawn costs besides, if its law is not exactly the one that the event prices."""
        return Imprecision(self.distance) if self.noise > 0 and self.distance > 0 else None

    def draw(self, sensitivity: Any, shape: tuple[int, ...], randomness: Randomness) -> tuple[Any, Any]:
        """Noise alone, for answers that are known only inside compiled code, and the grid to round them to.

        A grid of 0 stands for no noise and no rounding.
        """
        raise ValueError(f"the {self.name} mechanism does not add noise to its answer")

    def keep(self, scores: Any, sensitivity: float, structure: str = "auto") -> Kept | None:
        """The scores of a selection kept for many choices; None where ``release`` serves as well."""
        if structure != "auto":
            raise ValueError(f"the {self.name} mechanism keeps no scores: structure must be 'auto'")
        return None

    @abstractmethod
    def release(self, answer: Any, sensitivity: Any, randomness: Randomness) -> Any:
        """The answer, made private."""

    @abstractmethod
    def log_likelihood(self, released: Any, answer: Any, sensitivity: Any) -> float:
        """How likely a released value is for an exact answer, up to a constant."""

    @abstractmethod
    def worst_cases(self) -> dict[str, tuple[Any, Any]]:
        """Named pairs of answers at distance 1 that the mechanism tells apart as well as any: for audits."""

    def probabilities(self, answer: Any, sensitivity: Any) -> Any:
        """Probability of each possible output, where these are few; None elsewhere."""
        return None


def one_score_each(index: Any, scores: Any, count: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """What a structure of so many candidates is asked to set, refused if it has no such candidates."""
    index, scores = np.asarray(index), np.asarray(scores, dtype=np.float64)
    if index.ndim != 1 or index.shape != scores.shape:
        raise ValueError("there must be one score for each candidate")
    if index.size and not 0 <= index.min() <= index.max() < count:
        raise IndexError("there is no such candidate")
    return index.astype(np.int64, copy=False), scores
