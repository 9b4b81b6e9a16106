"""What a mechanism is: noise for an answer, and the event that it costs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import strict
from ..accounting import Event, Imprecision
from ..arrays import Vector
from .grid import on_grid
from .randomness import Randomness

Index = NDArray[np.signedinteger]
"""Indices of candidates."""


class Kept(ABC):
    """Scores of all candidates, kept for many selections among them, with updates in between.

    Parameters
    ----------
    scores : array
        Finite scores of all candidates.
    grid : float
        Power of two that scores are rounded to; 0 if they are not.
    scale : float
        Scale of the exponential mechanism; ``noisy`` says whether a structure draws with noise.
    """

    noisy: ClassVar[bool] = True

    def __init__(self, scores: ArrayLike, grid: float = 0.0, scale: float = 0.0) -> None:
        self._grid, self._scale = grid, scale
        self._build(np.asarray(scores, dtype=np.float64))

    def update(
        self, index: ArrayLike, scores: ArrayLike, everything: Callable[[], Vector] | None = None
    ) -> bool:
        """Set the scores at ``index``; where one candidate is named twice, the last score counts.

        Returns True if all candidates were sorted again, by ``everything()`` if given. It must be given if
        other scores have moved within their ``slack`` since they were set.
        """
        places, values = np.asarray(index), np.asarray(scores, dtype=np.float64)
        if places.ndim != 1 or places.shape != values.shape:
            raise ValueError("there must be one score for each candidate")
        return self._set(places, values, everything)

    def slack(self, index: Index) -> Vector:
        """How far each of these scores may move, up or down, before it must be set again."""
        return np.zeros(len(index))

    @abstractmethod
    def draw(self, randomness: Randomness, score: Callable[[int], float] | None = None) -> int:
        """Choose a candidate.

        ``score(j)`` is the present score of candidate j. It is needed if scores have moved within their
        ``slack``.
        """

    def _build(self, scores: Vector) -> None:
        """Keep these scores."""
        self._values = self._rounded(scores)

    def _set(self, index: Index, scores: Vector, everything: Callable[[], Vector] | None) -> bool:
        if index.size and not 0 <= index.min() <= index.max() < self._values.size:
            raise IndexError("there is no such candidate")
        self._values[index] = self._rounded(scores)
        return False

    def _rounded(self, scores: Vector) -> Vector:
        """A copy of the scores, on the grid if there is one."""
        return on_grid(scores, self._grid) if self._grid else scores.copy()


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
        """What one release costs."""

    @property
    def relation(self) -> str | None:
        """The relation that the event is stated for; None if it holds for all."""
        return None

    def entries(self, answer: Any) -> int:
        """How many numbers are drawn to release an answer: its entries, or the candidates of a selection."""
        return int(np.size(answer))

    def imprecision(self, entries: int) -> Counter[Event]:
        """The extra cost of a release of so many entries whose law is not exactly the one accounted for."""
        if self.noise > 0 and self.distance > 0:
            return Counter({Imprecision(self.distance): entries})
        return Counter()

    def require_drawable(self, entries: int) -> None:  # noqa: B027 - most mechanisms have such a limit, not all
        """Refuse noise that cannot be drawn for so many entries, whatever their sensitivity is."""

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
    def worst_cases(self) -> Mapping[str, tuple[object, object]]:
        """Named pairs of answers at distance 1 that are as easy to tell apart as any: for audits."""

    def probabilities(self, answer: Any, sensitivity: Any) -> Vector | None:
        """Probability of each possible output, where these are few; None elsewhere."""
        return None


@dataclass(frozen=True)
class Selection(Mechanism):
    """Chooses one of many candidates by their scores; the sensitivity bounds how far any one score moves."""

    @abstractmethod
    def release(self, answer: ArrayLike, sensitivity: float, randomness: Randomness) -> int:
        """The index chosen."""

    @abstractmethod
    def log_likelihood(self, released: int, answer: ArrayLike, sensitivity: float) -> float: ...

    @abstractmethod
    def worst_cases(self) -> Mapping[str, tuple[Vector, Vector]]: ...

    def keep(self, scores: ArrayLike, sensitivity: float, structure: str = "auto") -> Kept | None:
        """The scores kept for many choices; None where ``release`` of all scores is as fast."""
        if structure != "auto":
            raise ValueError(f"the {self.name} mechanism keeps no scores: structure must be 'auto'")
        return None


def opposed_scores(gaps: Mapping[str, float]) -> dict[str, tuple[Vector, Vector]]:
    """Worst cases for selections: of two candidates so far apart, one rises while the other falls."""
    return {name: (np.array([1.0 - gap, -1.0]), np.array([-gap, 0.0])) for name, gap in gaps.items()}
