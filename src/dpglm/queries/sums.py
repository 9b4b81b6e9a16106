"""Sums over the records of a vector of bounded norm."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from ..arrays import Vector, on_column_grids
from ..bounds import Coordinates
from ..data.bounded_numbers import (
    MISSING,
    SIZE_WEIGHT,
    CellRows,
    CellTally,
    ClassSizes,
    ClassTally,
    LossValues,
    MeanRows,
    RowAndTargetSizes,
    RowSizes,
    ScoreRows,
)
from ..data.products import grid_of_factors
from ..data.terms import InterceptGradient, SizedGradient, SquaredRow
from ..losses import Loss
from ..privacy import Neighbours
from ..scores import PublicModel, Score
from .base import LARGEST_LIMIT, LEAST_LIMIT, BoundedSum, Query, WorstCase, require_enforceable

_FARTHEST = (71.0 + 8.0 * math.sqrt(2.0)) / 16.0
_ROUNDING = 2.0**-53

LARGEST_WEIGHT = math.sqrt(((1 + math.sqrt(5)) / 2) ** 5) / 2
"""Up to this weight, 1.665, a square adds nothing to the distance of two records."""

_WEIGHTS = {Neighbours.REPLACE_ONE: (1.2, 1.6), Neighbours.ZERO_OUT: (0.5, 1.0)}


@dataclass(frozen=True, eq=False)
class RowScale(BoundedSum, RowSizes):
    """Sums over the records of 2 v - 1 and of t: v is norm² / radius² of a row, t its target in [-1, 1].

    Parameters
    ----------
    coordinates : Coordinates or None
        Norms are those of the features in these coordinates, or of the rows themselves.
    radius : float
        The largest norm of a row.
    target_middle, target_scale : float
        t is target_scale * (target - target_middle), cut to [-1, 1].
    n_records : int
        The public size of the table: it decides on the grid that the numbers are rounded to.

    Guarantee
    ---------
    v is cut to [0, 1] and t to [-1, 1], so that a record adds a point of the square [-1, 1]², and a null
    record adds 0. Zeroing a record out moves the sums by at most sqrt(2), replacing it by at most 2 sqrt(2),
    the diagonal. Numbers are rounded to a grid on which the corners lie.
    """

    name: ClassVar[str] = "row size and mean target"
    takes_units: ClassVar[bool] = True

    @property
    def limit(self) -> float:
        return math.sqrt(2.0) * (1 + 2.0**-50)

    def worst_case(self, n_features: int, radius: float, constant: float) -> WorstCase:
        long = np.zeros(n_features)
        long[0] = radius
        return WorstCase((long, 1.0), (np.zeros(n_features), -1.0), ())


@dataclass(frozen=True, eq=False)
class ScaledRowScale(RowScale):
    """The sums of `RowScale` for rows whose column j is multiplied by a public scale j, from 0 to 1.

    Rows longer than ``radius`` count as that long.

    Guarantee
    ---------
    That of `RowScale`: a scaled row is a function of one record, and what is added is cut.
    """

    name: ClassVar[str] = "row size in scaled columns"
    takes_units: ClassVar[bool] = False  # nobody asks it of them


@dataclass(frozen=True, eq=False)
class RowAndTargetScale(RowScale, RowAndTargetSizes):
    """Sums over the records of 2 v - 1, t and 2 t² - 1, with v and t as in `RowScale`.

    Guarantee
    ---------
    A record adds a point (s, t, 2 t² - 1) with s and t in [-1, 1], and a null record adds 0. The point has
    norm at most sqrt(3), which is what zeroing it out can move the sums by. Between two points, t moves by
    a and its square by a b, with b the sum of both and a + b at most 2: the last two numbers move by at most
    the root of the maximum of a² (1 + 4 (2 - a)²), which is (71 + 8 sqrt(2)) / 16 at a = (6 - sqrt(2)) / 4.
    Rounding to the grid moves these two numbers of both records by at most half a step each.
    """

    name: ClassVar[str] = "row size, mean and spread of targets"

    @property
    def limit(self) -> float:
        return math.sqrt(3.0) * (1 + 2.0**-50)

    @property
    def distance(self) -> float:
        return (math.sqrt(4.0 + _FARTHEST) + math.sqrt(2.0) * self.grid) * (1 + 2.0**-50)

    def worst_case(self, n_features: int, radius: float, constant: float) -> WorstCase:
        rows = super().worst_case(n_features, radius, constant)
        return replace(rows, second=(rows.second[0], 1.0 - (6.0 - math.sqrt(2.0)) / 4.0))


@dataclass(frozen=True, eq=False)
class ClassShares(BoundedSum, ClassSizes):
    """Sums over the records of 2 v - 1, v being norm² / radius² of a row, and of 1 for each class.

    Parameters
    ----------
    coordinates, radius, n_records :
        As in `RowScale`.
    classes : int
        The number of classes.

    Guarantee
    ---------
    v is cut to [0, 1], and a record counts for one class at most: it adds a point (s, e) with s in [-1, 1]
    and e a unit vector or 0. Zeroing it out moves the sums by at most sqrt(2), replacing it by at most
    sqrt(4 + 2). Numbers are rounded to a grid on which these points lie.
    """

    name: ClassVar[str] = "row size and class shares"
    takes_units: ClassVar[bool] = True

    @property
    def limit(self) -> float:
        return math.sqrt(2.0) * (1 + 2.0**-50)

    @property
    def distance(self) -> float:
        return math.sqrt(6.0) * (1 + 2.0**-50)

    def worst_case(self, n_features: int, radius: float, constant: float) -> WorstCase:
        long = np.zeros(n_features)
        long[0] = radius
        return WorstCase((long, 0.0), (np.zeros(n_features), 1.0), ())


@dataclass(frozen=True, eq=False)
class MeanRow(BoundedSum, MeanRows):
    """Sums over the records of z and of 0.8 rho (2 v - 1), with z a row in public coordinates.

    z is scaled down to norm rho if it is longer, and v is its squared norm over rho².

    Parameters
    ----------
    coordinates : Coordinates
        Of features, without an intercept.
    norm : float
        The bound rho.
    n_records : int
        The public size of the table: it decides on the grid that the numbers are rounded to.

    Guarantee
    ---------
    Two records of norms a rho and b rho move the sums by at most rho (a + b) sqrt(1 + 2.56 (a - b)²), which
    is at most 2 rho for a and b in [0, 1]: the size costs nothing beside the row. What one record adds has
    norm at most rho sqrt(1 + 0.64), which is what zeroing it out can move the sums by. A person adds a mean
    of what its records may add. Rounding is added.
    """

    name: ClassVar[str] = "mean row and its size"
    takes_units: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_enforceable("norm", self.norm)

    @property
    def limit(self) -> float:
        return (math.hypot(1.0, SIZE_WEIGHT) * self.norm * self._padding + self.rounding) * (1 + 2.0**-50)

    @property
    def distance(self) -> float:
        return (2.0 * self.norm * self._padding + 2.0 * self.rounding) * (1 + 2.0**-50)

    @property
    def _padding(self) -> float:
        """What rounding adds to the norm of coordinates, as a factor."""
        return 1 + (self.coordinates.dimension + 16) * _ROUNDING

    def means(self, released: Vector, n_records: int) -> tuple[Vector, float]:
        """The means of z and of v."""
        means = released / n_records
        return means[:-1], 0.5 + self.unit_of_size * float(means[-1])

    @property
    def unit_of_size(self) -> float:
        """How much the mean of v changes with the last number."""
        return 1.0 / (2.0 * SIZE_WEIGHT * self.norm)

    def worst_case(self, n_features: int, radius: float, constant: float) -> WorstCase:
        row = np.zeros(n_features)
        row[0] = radius
        return WorstCase((row, 1.0), (-row, 1.0), ())


@dataclass(frozen=True, eq=False)
class SecondMoments(BoundedSum, SquaredRow):
    """Sum over the records of x_j², for every feature j at once.

    If there are ``scales``, column j is multiplied by scale j first, which is from 0 to 1.

    Guarantee
    ---------
    Rows have norm at most R, after their columns are scaled, so the squares of one row are non-negative
    numbers with sum at most R² and L2 norm at most R². Zeroing a record out moves the vector by at most R²;
    replacing it moves it by the distance of two such vectors, at most sqrt(2) R² since their inner product
    is >= 0.
    """

    name: ClassVar[str] = "column second moments"
    takes_units: ClassVar[bool] = True

    @property
    def limit(self) -> float:
        return self.radius**2

    @property
    def distance(self) -> float:
        return math.sqrt(2.0) * self.limit

    def worst_case(self, n_features: int, radius: float, constant: float) -> WorstCase:
        corner = radius * np.eye(n_features)
        return WorstCase((corner[0], 1.0), (corner[1], 1.0), ())


@dataclass(frozen=True, eq=False)
class ColumnSizes(BoundedSum):
    """Sums over the records of their clipped gradient g at w, and of the absolute values of its entries.

    Gradients are those of `ClippedGradient`. The sums of g come first, then those of abs(g).

    Guarantee
    ---------
    A record adds (g, abs(g)) with norm(g) at most C, which has norm at most sqrt(2) C: what zeroing it out
    can move the sums by. Let h replace g. Each entry contributes (g - h)² + (abs(g) - abs(h))², which is at
    most 2 g² + 2 h²: it is 2 (g - h)² if both have the same sign, and 2 g² + 2 h² if not. Together these are
    at most 4 C². So replacing a record moves the sums by at most 2 C, as it moves the gradient alone: the
    sizes cost nothing (docs/proofs/bounded_sums.md).
    """

    name: ClassVar[str] = "clipped gradient and column sizes"
    loss: Loss
    clip: float
    constant: float | None = None

    def __post_init__(self) -> None:
        require_enforceable("clip", self.clip)

    def term(self, *public: Vector) -> SizedGradient:
        (w,) = public
        return SizedGradient(self.loss, w, self.clip, constant_feature=self.constant)

    @property
    def limit(self) -> float:
        return self.clip * (math.sqrt(2.0) * (1 + 2.0**-50))

    @property
    def distance(self) -> float:
        return 2.0 * self.clip


@dataclass(frozen=True, eq=False)
class InterceptSlope(BoundedSum):
    """The sum over the records of slope * constant feature, cut to [-clip, clip].

    Guarantee
    ---------
    One record adds a number in [-C, C], so the sum moves by at most C if it is zeroed out, 2 C if it is
    replaced.
    """

    name: ClassVar[str] = "intercept slope"
    takes_units: ClassVar[bool] = True
    loss: Loss
    clip: float

    def __post_init__(self) -> None:
        require_enforceable("clip", self.clip, LEAST_LIMIT, LARGEST_LIMIT)

    def term(self, *public: Vector) -> InterceptGradient:
        (w,) = public
        return InterceptGradient(self.loss, w, self.clip)

    @property
    def limit(self) -> float:
        return self.clip


@dataclass(frozen=True, eq=False)
class Deviance(BoundedSum):
    """Sum over the records of their loss at w, each cut to [0, most].

    Parameters
    ----------
    loss : Loss
        The logistic or the log-cosh loss.
    coordinates : Coordinates
    most : float
        What the loss of a record is cut to.
    n_records : int
        The public size of the table: it decides on the grid that values are rounded to.

    Guarantee
    ---------
    A record adds a number in [0, most], rounded to a grid on which ``most`` lies: both neighbours move the
    sum by at most ``most``, up to a step of the grid.
    """

    name: ClassVar[str] = "deviance"
    takes_units: ClassVar[bool] = True
    loss: Loss
    coordinates: Coordinates
    most: float
    n_records: int

    def term(self, *public: Vector) -> LossValues:
        (w,) = public
        point = on_column_grids(w[:, None])[:, 0]
        return LossValues(self.loss, self.coordinates, self.most, self.n_records, point)

    @property
    def limit(self) -> float:
        return self.most + grid_of_factors(self.most, self.n_records)

    @property
    def distance(self) -> float:
        return self.limit

    def worst_case(self, n_features: int, radius: float, constant: float) -> WorstCase:
        low, high = np.zeros(n_features), np.zeros(n_features)
        low[0], high[0] = -radius, radius
        if self.loss.kind != "classification":
            high[0] = 0.0
        point = np.zeros(n_features + bool(constant))
        point[0] = 1e6 * math.sqrt(self.most) * self.coordinates.half[0] / radius
        return WorstCase((low, 1.0), (high, 1.0 if self.loss.kind == "classification" else 0.0), (point,))


@dataclass(frozen=True, eq=False)
class ScoreSums(BoundedSum, ScoreRows):
    """Sums over the records of (counted, v, weight (1 - v²)), with v the score of a record in [-1, 1].

    Parameters
    ----------
    score : Score
    model : PublicModel
    n_records : int
        The public size of the table: it decides on the grid that numbers are rounded to.
    counted, weight : float
        What a record adds to the first sum, and the factor of the last one.

    Guarantee
    ---------
    A null record adds 0. For a weight of at most 1.665 two records with scores u and v are at most 2 apart:
    (u - v)² (1 + weight² (u + v)²) <= 4. A record and a null record are at most
    (counted² + max(1, weight²))**0.5 apart, which is what zeroing a record out moves the sums by; replacing
    it moves them by at most the larger of both. A grid step for each entry covers rounding.
    """

    name: ClassVar[str] = "score sums"

    def __post_init__(self) -> None:
        if not 0 <= self.weight <= LARGEST_WEIGHT:
            raise ValueError(f"weight must be from 0 to {LARGEST_WEIGHT:.4g}, got {self.weight!r}")

    @classmethod
    def weighed(cls, score: Score, model: PublicModel, n: int, neighbours: Neighbours) -> ScoreSums:
        """The query with weights that suit a relation: all three sums at about the price of the second."""
        return cls(score, model, n, *_WEIGHTS[neighbours])

    @property
    def limit(self) -> float:
        return self._norm + 3 * self.grid

    @property
    def distance(self) -> float:
        return max(2.0, self._norm) + 3 * self.grid

    @property
    def _norm(self) -> float:
        """Largest norm of (counted, v, weight (1 - v²)): at an end of 0 <= v² <= 1, in which it is convex."""
        return math.hypot(self.counted, max(1.0, self.weight))

    def worst_case(self, n_features: int, radius: float, constant: float) -> WorstCase:
        row = np.full(n_features, radius / math.sqrt(n_features))
        return WorstCase((row, 1.0), (row, -1.0), ())


@dataclass(frozen=True, eq=False)
class CellSums(BoundedSum, CellRows):
    """For each cell ``counted`` times its number of records; then the sum of amounts in each, if there are.

    Parameters
    ----------
    of : CellsOf
    model : PublicModel
    n_records : int
        The public size of the table: it decides on the grid that numbers are rounded to.
    counted : float
        What a record adds to the count of its cell.

    Guarantee
    ---------
    A record adds ``counted`` and an amount a of at most 1 in absolute value to one cell, a null record adds
    nothing: zeroing it out moves the sums by at most (counted² + 1)**0.5, or by ``counted`` without amounts.
    Records of two cells are sqrt(2) times that apart; records of the same cell as far as their amounts, at
    most ``spread``. A grid step for each entry of both records covers rounding.
    """

    name: ClassVar[str] = "cell sums"

    @property
    def limit(self) -> float:
        return self._norm + 2 * self.grid

    @property
    def distance(self) -> float:
        return max(math.sqrt(2.0) * self._norm, self.of.spread) + 2 * self.grid

    @property
    def _norm(self) -> float:
        return math.hypot(self.counted, 1.0) if self.of.has_amounts else self.counted

    def worst_case(self, n_features: int, radius: float, constant: float) -> WorstCase:
        row = np.full(n_features, radius / math.sqrt(n_features))
        return WorstCase((row, -1.0), (-row, 1.0), ())


@dataclass(frozen=True, eq=False)
class RecordCount(Query):
    """The number of records, null records included, whatever their weights are.

    Guarantee
    ---------
    A record that is added or removed moves the count by 1. Where the number of records is public nothing
    moves it, and a count has no use. It is a whole number: exact.
    """

    name: ClassVar[str] = "record count"

    def __call__(self, data: Any, *public: Vector) -> Vector:
        return np.array([float(data.n_records)])

    def sensitivity(self, neighbours: Neighbours) -> float:
        return 1.0

    def worst_case(self, n_features: int, radius: float, constant: float) -> WorstCase:
        return WorstCase((np.zeros(n_features), 1.0), (np.zeros(n_features), 1.0), ())


@dataclass(frozen=True, eq=False)
class ClassCounts(BoundedSum, ClassTally):
    """The number of records of each class, whatever their weights are; targets are codes of classes.

    Parameters
    ----------
    classes : int
        The number of classes.
    n_records : int
        The public size of the table.

    Guarantee
    ---------
    A record adds a unit vector, or 0 if it is null or of no class. Zeroing it out moves the counts by at most
    1 in the L2 norm, replacing it by at most sqrt(2). Counts are multiples of the grid: exact.
    """

    name: ClassVar[str] = "class counts"
    takes_units: ClassVar[bool] = True

    @property
    def limit(self) -> float:
        return 1.0

    @property
    def distance(self) -> float:
        return math.sqrt(2.0)

    def worst_case(self, n_features: int, radius: float, constant: float) -> WorstCase:
        return WorstCase((np.zeros(n_features), 0.0), (np.zeros(n_features), 1.0), ())


@dataclass(frozen=True, eq=False)
class CellCounts(BoundedSum, CellTally):
    """For each column, and each code that is counted there, the number of records that have it.

    Parameters
    ----------
    codes : tuple of tuples of int
        For each column the codes that are counted.
    n_records : int
        The public size of the table.

    Guarantee
    ---------
    A record has one code in each column, so it adds 0 or a unit vector to the counts of a column. Replacing
    it moves these by at most sqrt(2), or by 1 if only one code is counted; the squares of all columns add up.
    A null record is counted, as one whose cells are all missing: zeroing a record out is replacing it. A
    record that is added or removed moves the counts of each column by at most 1. What a person adds is a mean
    of what its records may add. Counts are multiples of the grid: exact.
    """

    name: ClassVar[str] = "cell counts"
    takes_units: ClassVar[bool] = True

    @property
    def limit(self) -> float:
        return math.sqrt(sum(min(1, len(codes)) for codes in self.codes)) * (1 + 2.0**-50)

    @property
    def distance(self) -> float:
        return math.sqrt(sum(min(2, len(codes)) for codes in self.codes)) * (1 + 2.0**-50)

    def sensitivity(self, neighbours: Neighbours) -> float:
        return self.distance if neighbours.size_is_public else self.limit

    def worst_case(self, n_features: int, radius: float, constant: float) -> WorstCase:
        others = np.array([0 if codes == (MISSING,) else codes[-1] for codes in self.codes], dtype=np.float64)
        return WorstCase((others, 0.0), (np.full(len(self.codes), float(MISSING)), 0.0), ())
