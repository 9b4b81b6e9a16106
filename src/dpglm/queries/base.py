"""What a query is: a function of records, beside a bound on how far one record moves it."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from ..arrays import Total, Vector
from ..data.products import CrossProducts
from ..data.record_set import RecordSet
from ..data.records import Records
from ..data.terms import Term
from ..errors import UnsupportedProblem
from ..mechanisms import Mechanism, Randomness
from ..mechanisms.sampling import Sampling
from ..privacy import Neighbours
from ..tables import Capability

State = TypeVar("State")
Opened = TypeVar("Opened", covariant=True)
Sensitivity = TypeVar("Sensitivity", float, Vector, tuple[float, Vector])
Batch = Any  # what `RecordSet.batch` returns, or None for all records
BatchAnswer = Callable[[Batch], tuple[Vector | Total, State]]
Keep = Callable[[Batch, State], None]

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


@dataclass(frozen=True)
class Draws:
    """What trusted code needs to draw a release that is logged already.

    Attributes
    ----------
    randomness : Randomness
    rounding : float
        Factor by which rounding can enlarge a sensitivity.
    private : bool
        Whether noise is drawn: then every sensitivity must be finite.
    """

    randomness: Randomness
    rounding: float
    private: bool = True

    def padded(self, sensitivity: Sensitivity) -> Sensitivity:
        """The sensitivity enlarged by what rounding can add: noise is scaled to this."""
        if isinstance(sensitivity, tuple):
            score, value = sensitivity
            return self.padded(score), self.padded(value)
        one = isinstance(sensitivity, float)  # at every step: NumPy would take longer
        if self.private and not (math.isfinite(sensitivity) if one else np.isfinite(sensitivity).all()):
            raise UnsupportedProblem("a release without a finite sensitivity has no price: set a finite clip")
        return sensitivity * self.rounding


class Releases(Protocol):
    """How answers leave the curator: each method logs a release before it makes it.

    ``in_blocks`` states whether trusted code may call ``spend``. It is False where every exact answer must be
    seen, as in audits; then each answer is handed to ``give`` or ``sampled``.
    """

    @property
    def in_blocks(self) -> bool: ...

    def give(self, answer: object, sensitivity: Sensitivity, mechanism: Mechanism) -> Any:
        """The answer as the mechanism releases it: one release."""
        ...

    def spend(self, mechanism: Mechanism, entries: int, count: int = 1) -> Draws:
        """Log ``count`` releases of so many entries each, and let trusted code draw them."""
        ...

    def sampled(
        self, answer: BatchAnswer[State], keep: Keep[State], sensitivity: float, mechanism: Mechanism,
        sampling: Sampling,
    ) -> Vector:  # fmt: skip
        """The released answer of a batch that is drawn here.

        ``answer(batch)`` returns the exact answer and the changes of the private state, without making them;
        ``keep(batch, changes)`` makes them. A batch of None is all records.
        """
        ...


class Exact:
    """Releases without noise and without a log: for exact evaluation."""

    in_blocks: ClassVar[bool] = False

    def give(self, answer: object, sensitivity: Sensitivity, mechanism: Mechanism) -> Any:
        return answer

    def spend(self, mechanism: Mechanism, entries: int, count: int = 1) -> Draws:
        raise TypeError("an exact evaluation draws nothing")

    def sampled(
        self, answer: BatchAnswer[State], keep: Keep[State], sensitivity: float, mechanism: Mechanism,
        sampling: Sampling,
    ) -> Vector:  # fmt: skip
        exact, changes = answer(None)
        keep(None, changes)
        return np.asarray(exact)


@dataclass(frozen=True, eq=False)
class Opening:
    """What a query is opened with.

    Attributes
    ----------
    data : RecordSet
    w : array
        The public point at which the private state starts.
    neighbours : Neighbours
    releases : Releases
        How its answers leave the curator.
    mechanism : Mechanism
        What releases all of them.
    """

    data: RecordSet
    w: Vector
    neighbours: Neighbours
    releases: Releases
    mechanism: Mechanism

    @classmethod
    def exact(cls, data: RecordSet, w: Vector, mechanism: Mechanism) -> Self:
        """For exact evaluation."""
        return cls(data, w, Neighbours.REPLACE_ONE, Exact(), mechanism)

    @property
    def is_resident(self) -> bool:
        """Whether records can be kept track of one by one; if not, they are read in passes."""
        return isinstance(self.data, Records)

    @property
    def resident(self) -> Records:
        """The records, if they are resident: state of each can be kept between releases."""
        if not isinstance(self.data, Records):
            raise UnsupportedProblem(
                f"{type(self.data).__name__} records are read in passes: none is resident"
            )
        return self.data

    def wrong_kind(self, query: Query, needed: str) -> ValueError:
        """The error for a mechanism of another kind than the query's sensitivity is for."""
        return ValueError(f"{query.name} is released by a mechanism that {needed}, not {self.mechanism.name}")


class Openable(Protocol[Opened]):
    """A query with private state that is kept between its releases, all by one mechanism."""

    def open(self, opening: Opening) -> Opened: ...


class Query(ABC):
    """A function of the records and of public arguments."""

    name: ClassVar[str]
    needs: ClassVar[tuple[Capability, ...]] = ()
    """What a table must offer beyond passes."""
    takes_units: ClassVar[bool] = False
    """Whether its sensitivity holds for all records of a person (docs/proofs/persons.md)."""

    @abstractmethod
    def __call__(self, data: Any, *public: Vector) -> Vector | Total:
        """The exact answer: not private."""

    @abstractmethod
    def sensitivity(self, neighbours: Neighbours) -> float | Vector:
        """How far neighbours move the answer: in the L2 norm, or a bound for each entry released alone."""

    def worst_case(self, n_features: int, radius: float, constant: float) -> WorstCase:
        """Records of norm at most ``radius`` that show the sensitivity to be no larger than needed.

        By default two records with the largest slopes of opposite sign, at a public point that sets them
        apart. They share almost all of their norm in feature 0 and differ in a small feature 1, along which
        the public point is so large that every loss is at the steepest end of its range on both.
        """
        lean = 0.1 * radius
        shared = np.sqrt(radius**2 - lean**2)
        low, high = np.zeros(n_features), np.zeros(n_features)
        low[:2], high[:2] = (shared, -lean), (shared, lean)
        point = np.zeros(n_features + bool(constant))
        point[1] = 1e6 / lean
        return WorstCase((low, 1.0), (high, -1.0), (point,))


class BoundedSum(Query):
    """The sum over the records of a vector of bounded norm, which is 0 for a null record.

    Guarantee
    ---------
    Zeroing a record out moves the sum by what the record adds, which has norm at most ``limit``. Replacing it
    moves the sum by the difference of what two records add, which has norm at most ``distance``. Both bounds
    are of the sum as it is computed, rounding included, but for the rounding that the curator allows for.
    Proof: docs/proofs/bounded_sums.md.
    """

    @property
    @abstractmethod
    def limit(self) -> float:
        """Largest norm of what a record adds."""

    @property
    def distance(self) -> float:
        """Largest distance of what two records add: twice the limit, where nothing smaller is proven."""
        return 2.0 * self.limit

    def sensitivity(self, neighbours: Neighbours) -> float:
        return self.distance if neighbours is Neighbours.REPLACE_ONE else self.limit

    def term(self, *public: Vector) -> Term:
        """What a record adds at a public point; a query that is a term adds itself up."""
        assert isinstance(self, Term)
        return self

    def __call__(self, data: Any, *public: Vector) -> Total:
        term = self.term(*public)
        total: Total = data.cross_products(term) if isinstance(term, CrossProducts) else data.total(term)
        return total


def require_moderate(point: Vector | float, largest: float = LARGEST_COEFFICIENT) -> None:
    """Refuse a public point so large that products with bounded records could overflow.

    An overflow would turn a bounded contribution into NaN, which no noise hides.
    """
    # At every step: NumPy would take longer for one number.
    if isinstance(point, float):
        moderate = abs(point) < largest
    else:  # NaN is neither
        least = np.minimum.reduce(point, axis=None, initial=0.0)
        moderate = bool(least > -largest and np.maximum.reduce(point, axis=None, initial=0.0) < largest)
    if not moderate:
        raise FloatingPointError("the coefficients diverged: use a smaller step_size")


def require_enforceable(
    name: str, clip: ArrayLike, least: float = LEAST_CLIP, largest: float = LARGEST_CLIP
) -> None:
    """Refuse a clip that double precision cannot enforce. An infinite one cuts nothing, and has no price."""
    clips = np.ravel(np.asarray(clip, dtype=np.float64))
    wrong = clips[~((clips >= least) & (clips <= largest) | (clips == np.inf))]
    if wrong.size:
        raise ValueError(f"{name} must be from {least:g} to {largest:g}, got {float(wrong[0])!r}")
