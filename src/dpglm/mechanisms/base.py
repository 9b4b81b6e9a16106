"""What a mechanism is: noise for an answer, and the event that it costs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol, Self

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

    def slack(self, index: Any) -> Any:
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
        strict.keep(self, noise=strict.level)

    @property
    @abstractmethod
    def event(self) -> Event:
        """What one release costs."""

    @property
    def relation(self) -> str | None:
        """The relation that the event is a price for; None if the price is the same for all."""
        return None

    def entries(self, answer: Any) -> int:
        """How many numbers are drawn to release an answer: its entries, or the candidates of a selection."""
        return int(np.size(answer))

    def imprecision(self, entries: int) -> Counter[Event]:
        """What a release of so many entries costs besides, if their law is not exactly the priced one."""
        if self.noise > 0 and self.distance > 0:
            return Counter({Imprecision(self.distance): entries})
        return Counter()

    def scaled(self, factor: float) -> Self:
        """The same mechanism with all noise multiplied."""
        return replace(self, noise=self.noise * factor)

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


@dataclass(frozen=True)
class Selection(Mechanism):
    """Chooses one of many candidates by their scores; the sensitivity bounds how far any one score moves."""

    @abstractmethod
    def release(self, answer: Any, sensitivity: Any, randomness: Randomness) -> int:
        """The index chosen."""

    def keep(self, scores: Any, sensitivity: float, structure: str = "auto") -> Kept | None:
        """The scores kept for many choices; None where ``release`` of all scores is as fast."""
        if structure != "auto":
            raise ValueError(f"the {self.name} mechanism keeps no scores: structure must be 'auto'")
        return None


def one_score_each(index: Any, scores: Any, count: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """What a structure of so many candidates is asked to set, refused if it has no such candidates."""
    index, scores = np.asarray(index), np.asarray(scores, dtype=np.float64)
    if index.ndim != 1 or index.shape != scores.shape:
        raise ValueError("there must be one score for each candidate")
    if index.size and not 0 <= index.min() <= index.max() < count:
        raise IndexError("there is no such candidate")
    return index.astype(np.int64, copy=False), scores
