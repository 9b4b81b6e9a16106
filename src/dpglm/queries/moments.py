"""The second moments of whole records: of all pairs of features, and of features and target."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..arrays import Total, Vector, on_column_grids
from ..bounds import Coordinates
from ..data.metric import LARGEST_ENTRY
from ..data.products import GramRows, MomentRows, OuterRows, symmetric
from ..data.record_set import RecordSet
from ..privacy import Neighbours
from .base import Query, WorstCase, require_enforceable, require_moderate

_ROUNDING = 2.0**-53


class OuterProducts(Query):
    """Upper triangle of the sum of z z', its diagonal divided by sqrt(2), for numbers z of a record.

    z is scaled down to norm ``norm`` if it is longer.

    Guarantee
    ---------
    Half the squared Frobenius norm of z z' - t t' is (norm(z)⁴ + norm(t)⁴) / 2 - (z·t)², at most rho⁴ for
    records of norm up to rho: the sum moves by at most rho² if a record is replaced. If it is zeroed out, by
    norm(z)² / sqrt(2), at most rho² / sqrt(2). Rounding is part of rho.
    """

    takes_units: ClassVar[bool] = True
    coordinates: Coordinates
    norm: float
    n_records: int

    @property
    @abstractmethod
    def _term(self) -> OuterRows: ...

    @property
    @abstractmethod
    def _owed(self) -> float:
        """Minus the inner product of two worst records without their features."""

    @property
    def _reach(self) -> float:
        """The number that z has for the first feature where its coordinate is 1."""
        return 1.0

    @property
    def size(self) -> int:
        """Length of z."""
        return self._term.size

    def __call__(self, data: RecordSet, *public: Vector) -> Total:
        return data.cross_products(self._term)

    def sensitivity(self, neighbours: Neighbours) -> float:
        longest = self.norm * (1 + (self.size + 16) * _ROUNDING) + math.sqrt(self.size) * self._term.grid / 2
        return longest**2 * math.sqrt(neighbours.records_moved / 2) * (1 + 2.0**-48)

    def matrix(self, released: Vector) -> Vector:
        """The released matrix of second moments."""
        return symmetric(released, self.size)

    def worst_case(self, n_features: int, radius: float, constant: float) -> WorstCase:
        # Orthogonal records: what targets and constants multiply to is made up for by the features.
        unit = self.coordinates.half[0] / (radius * self._reach)
        cosine = min(max(self._owed * unit**2, -1.0), 1.0)
        first, second = np.zeros(n_features), np.zeros(n_features)
        first[0], second[:2] = radius, (radius * cosine, radius * math.sqrt(1 - cosine**2))
        return WorstCase((first, 1.0), (second, -1.0), ())


@dataclass(frozen=True, eq=False)
class Moments(OuterProducts):
    """The second moments of z = (coordinates, target).

    A record is z: its features in public coordinates, which lie in [-1, 1], a constant 1 if there is an
    intercept, and its target, moved and scaled. Its sensitivity is that of `OuterProducts`.

    Parameters
    ----------
    coordinates : Coordinates
    norm : float
        Bound on the norm of z.
    target_middle, target_scale : float
        The last entry of z is target_scale * (target - target_middle).
    n_records : int
        The public size of the table: it decides on the grid that z is rounded to.
    largest_offset : float
        If it is finite, coordinates are multiplied by exp(offset - largest_offset), at most 1.
    """

    name: ClassVar[str] = "moment matrix"
    coordinates: Coordinates
    norm: float
    target_middle: float
    target_scale: float
    n_records: int
    largest_offset: float = math.inf

    @property
    def _owed(self) -> float:
        return self.target_scale**2 - self.coordinates.intercept

    @property
    def _term(self) -> MomentRows:
        return MomentRows(
            self.coordinates, self.n_records, self.norm, self.target_middle, self.target_scale,
            self.largest_offset,
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Gram(OuterProducts):
    """The second moments of z = coordinates @ transform.

    Its sensitivity is that of `OuterProducts`, whatever the matrix is.

    Parameters
    ----------
    coordinates : Coordinates
    norm : float
        Bound on the norm of z: longer records are scaled down.
    transform : array of shape (d, k)
        Public. It is rounded to grids on which products with coordinates are exact.
    n_records : int
        The public size of the table: it decides on the grid that z is rounded to.
    """

    name: ClassVar[str] = "Gram matrix"
    coordinates: Coordinates
    norm: float
    transform: Vector
    n_records: int

    def __post_init__(self) -> None:
        require_enforceable("norm", self.norm)
        require_moderate(self.transform, LARGEST_ENTRY)
        object.__setattr__(self, "transform", on_column_grids(self.transform))

    @property
    def _owed(self) -> float:
        constant = self.transform[-1] if self.coordinates.intercept else np.zeros(1)
        return -float(constant @ constant)

    @property
    def _reach(self) -> float:
        return float(np.linalg.norm(self.transform[0]))

    @property
    def _term(self) -> GramRows:
        return GramRows(self.coordinates, self.n_records, self.norm, self.transform)
