"""What a query is: a function of records, beside a bound on how far one record moves it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from ..arrays import Vector
from ..privacy import Neighbours
from ..records import Records
from ..tables import Capability

LARGEST_COEFFICIENT = 1e100
"""Public points stay below this, so that no product with a bounded record overflows."""

LEAST_CLIP, LARGEST_CLIP = 1e-100, 1e100
"""Range of clips. Slopes are at most 1e150 (see ``Records.slopes``), and norms of rows from 1e-150 to about
1e50: no factor that scales a gradient down to its clip leaves the range of doubles."""

LEAST_LIMIT, LARGEST_LIMIT = 1e-200, 1e200
"""Range of the clips of single coordinates, which are cut and not scaled."""


@dataclass(frozen=True)
class WorstCase:
    """Two records whose exchange moves a query's answer by (almost) its whole sensitivity.

    Under zero-out the first record stands against none.
    """

    first: tuple[Vector, float]
    second: tuple[Vector, float]
    public: tuple[Vector, ...]


class Releaser(Protocol):
    """The way out of an opened query; the curator behind it logs every release."""

    def __call__(self, answer: Any, sensitivity: Any, mechanism: Any, follows: bool = False) -> Any:
        """The released answer; ``follows`` makes one round of it and the release just before it."""
        ...

    def sampled(
        self,
        answer: Callable[..., Any],
        keep: Callable[..., None],
        sensitivity: Any,
        mechanism: Any,
        sampling: Any,
    ) -> Any:
        """The released answer of a batch that is drawn here, with what a batch changes in the private state.

        ``answer(batch)`` is the exact answer and the changes, and changes nothing; ``keep(batch, changes)``
        makes them. A batch of None is all records.
        """
        ...

    def noise(self, sensitivity: Vector, mechanism: Any) -> tuple[Vector, Vector] | None:
        """Noise for a block of releases, and their grids: what leaves is the answer on its grid plus noise.

        A grid of 0 leaves the answer as it is. None means that every number must be released by a call.
        """
        ...

    def keep(self, scores: Vector, sensitivity: float, mechanism: Any, structure: str = "auto") -> Any:
        """Scores to ``choose`` from and to ``update``, or None: then all are handed to every call.

        ``structure`` is what they are kept in, as `Exponential.keep` has it.
        """
        ...

    def choose(
        self, kept: Any, score: Callable[[int], float], entries: int, sensitivity: float, mechanism: Any
    ) -> int:
        """The released choice among so many kept scores, ``score`` being the present one of an index."""
        ...

    def choices(
        self, draw: Callable[..., Any], count: int, entries: int, sensitivity: float, mechanism: Any
    ) -> Any:
        """What ``draw(run_on, grid, scale)`` returns after so many choices; None if none may be made so.

        It draws each of them among so many scores with probability proportional to exp(score on the grid /
        scale), by compiled code that ``run_on`` supplies with random words.
        """
        ...


class Exact:
    """Releases what it is given."""

    def __call__(self, answer: Any, sensitivity: Any, mechanism: Any, follows: bool = False) -> Any:
        return answer

    def sampled(
        self,
        answer: Callable[..., Any],
        keep: Callable[..., None],
        sensitivity: Any,
        mechanism: Any,
        sampling: Any,
    ) -> Any:
        exact, changes = answer(None)
        keep(None, changes)
        return exact

    def noise(self, sensitivity: Vector, mechanism: Any) -> None:
        return None

    def keep(self, scores: Vector, sensitivity: float, mechanism: Any, structure: str = "auto") -> None:
        return None

    def choose(
        self, kept: Any, score: Callable[[int], float], entries: int, sensitivity: float, mechanism: Any
    ) -> int:
        raise NotImplementedError("nothing is kept")

    def choices(
        self, draw: Callable[..., Any], count: int, entries: int, sensitivity: float, mechanism: Any
    ) -> None:
        return None


Opened = TypeVar("Opened", covariant=True)


class Openable(Protocol[Opened]):
    """A query with private state that lives on between its releases."""

    def open(self, data: Records, w: Vector, neighbours: Neighbours, releaser: Releaser) -> Opened: ...


class Query(ABC):
    """A function of the records and of public arguments."""

    name: ClassVar[str]
    needs: ClassVar[tuple[Capability, ...]] = ()
    """What a table must offer beyond passes."""

    @abstractmethod
    def __call__(self, data: Records, *public: Vector) -> Vector:
        """The exact answer: for the curator's eyes only."""

    @abstractmethod
    def sensitivity(self, neighbours: Neighbours) -> float | Vector:
        """How far neighbours move the answer: in the L2 norm, or a bound for each entry released alone."""

    @abstractmethod
    def worst_case(self, n_features: int, radius: float, constant: float) -> WorstCase:
        """Records of norm at most ``radius`` that show the sensitivity to be no larger than needed."""


def require_moderate(point: Vector | float) -> None:
    """Refuse a public point so large that products with bounded records could overflow.

    An overflow would turn a bounded contribution into NaN, which no noise hides.
    """
    if isinstance(point, float):  # at every step: NumPy would take longer
        moderate = abs(point) < LARGEST_COEFFICIENT
    else:
        moderate = bool((np.abs(point) < LARGEST_COEFFICIENT).all())
    if not moderate:
        raise FloatingPointError("the coefficients diverged: use a smaller step_size")


def require_enforceable(
    name: str, clip: ArrayLike, least: float = LEAST_CLIP, largest: float = LARGEST_CLIP
) -> None:
    """Refuse a clip that double precision cannot enforce. An infinite one cuts nothing, and has no price."""
    clips = np.ravel(clip)
    wrong = clips[~((clips >= least) & (clips <= largest) | (clips == np.inf))]
    if wrong.size:
        raise ValueError(f"{name} must be from {least:g} to {largest:g}, got {float(wrong[0])!r}")


def opposed_records(n_features: int, radius: float, constant: float) -> WorstCase:
    """Two records with the largest slopes of opposite sign, at a public point that sets them apart.

    They share almost all of their norm in feature 0 and differ in a small feature 1, along which the
    public point is so large that every loss is at the steepest end of its range on both.
    """
    lean = 0.1 * radius
    shared = np.sqrt(radius**2 - lean**2)
    low, high = np.zeros(n_features), np.zeros(n_features)
    low[:2], high[:2] = (shared, -lean), (shared, lean)
    point = np.zeros(n_features + bool(constant))
    point[1] = 1e6 / lean
    return WorstCase((low, 1.0), (high, -1.0), (point,))
