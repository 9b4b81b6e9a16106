"""What one record adds to a sum over the records: a number times its row, or times the squares of the row.

A term is a value: with the coefficients in it, it can be sent to where the records are.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ..arrays import Vector
from ..losses import Loss

if TYPE_CHECKING:
    from .records import Records


@dataclass(frozen=True, eq=False)
class Term(ABC):
    """A vector for each record.

    Attributes
    ----------
    square : bool
        Whether the entries of row times factor are squared.
    columns : bool
        Whether there is a sum for each column of the table, or for the constant feature alone.
    cuts : array or None
        What each entry of row times factor is cut to, the constant feature being the last.
    needs_norms : bool
        Whether it takes the norms of the rows.
    sizes : bool
        Whether the absolute values of all entries are summed up too: their sums follow.
    scales : array or None
        Public factors that the columns of the table are multiplied by first.
    constant_feature : float or None
        Another constant feature than that of the records.
    """

    square: ClassVar[bool] = False
    columns: ClassVar[bool] = True
    needs_norms: ClassVar[bool] = False
    sizes: ClassVar[bool] = False
    scales: Vector | None = field(default=None, kw_only=True)
    constant_feature: float | None = field(default=None, kw_only=True)

    @property
    def cuts(self) -> Vector | None:
        return None

    @property
    @abstractmethod
    def limit(self) -> float:
        """Largest norm of what a record adds; infinite if there is none, which has no private sum."""

    @abstractmethod
    def factors(self, rows: Records) -> Vector:
        """The number that each row is multiplied by."""

    def part(self, start: int, stop: int) -> Term:
        """The term for a range of the records."""
        return self

    def entries(self, n_features: int) -> int:
        """How many numbers the sum has: one for each feature and one for the constant feature."""
        return (n_features + 1) * (1 + self.sizes)


@dataclass(frozen=True, eq=False)
class Clipped(Term):
    """A multiple of each row that follows from its prediction at w, scaled down to norm at most ``clip``."""

    needs_norms: ClassVar[bool] = True

    loss: Loss
    w: Vector
    clip: float

    @property
    def limit(self) -> float:
        return self.clip

    @property
    def is_compiled(self) -> bool:
        """Whether compiled code computes the whole of it."""
        return self.loss.form is not None and math.isfinite(self.clip)


@dataclass(frozen=True, eq=False)
class Gradient(Clipped):
    """The gradient of each record at w, scaled down to norm at most ``clip``.

    Before the clip, a row with a norm above ``longest`` has the weight longest / norm.
    """

    longest: float | None = None

    def factors(self, rows: Records) -> Vector:
        return rows.clipped(rows.slopes(self.loss, rows.margins(self.w)), self.clip)


@dataclass(frozen=True, eq=False)
class SizedGradient(Gradient):
    """The same gradient, and the absolute values of its entries."""

    sizes: ClassVar[bool] = True
    is_compiled: ClassVar[bool] = False  # passes for terms of any kind add it up


@dataclass(frozen=True, eq=False)
class DualMoves(Clipped):
    """Dual step times row, scaled down to norm at most ``clip``, from the dual variables at w.

    Each record's step, as it is added, is written to ``steps``.
    """

    alpha: Vector
    weight: Vector
    steps: Vector

    def factors(self, rows: Records) -> Vector:
        with np.errstate(over="ignore", invalid="ignore"):
            steps = rows.dual_steps(self.loss, self.alpha, rows.margins(self.w), self.weight)
        self.steps[:] = rows.clipped(steps, self.clip)
        return self.steps

    def part(self, start: int, stop: int) -> DualMoves:
        here = slice(start, stop)
        return replace(self, alpha=self.alpha[here], weight=self.weight[here], steps=self.steps[here])


@dataclass(frozen=True, eq=False)
class PreciseGradient(Clipped):
    """The same gradients from terms and coefficients of twice the precision.

    w has shape (2, p), its rows to be added. The loss is smooth and has a compiled form, and the sum has two
    finer grids.
    """

    def factors(self, rows: Records) -> Vector:
        return Gradient(self.loss, self.w[0] + self.w[1], self.clip).factors(rows)


@dataclass(frozen=True, eq=False)
class InterceptGradient(Term):
    """The derivative along the intercept at w, cut to [-clip, clip]."""

    columns: ClassVar[bool] = False

    loss: Loss
    w: Vector
    clip: float

    @property
    def limit(self) -> float:
        return self.clip

    def factors(self, rows: Records) -> Vector:
        if not rows.constant:
            return np.zeros(rows.n_records)
        most = self.clip / rows.constant
        return rows.shared(np.clip(rows.slopes(self.loss, rows.margins(self.w)), -most, most))


@dataclass(frozen=True, eq=False)
class SquaredRow(Term):
    """The squares of each row, whose norm is at most ``radius``; the constant feature has none."""

    square: ClassVar[bool] = True

    radius: float

    @property
    def limit(self) -> float:
        return self.radius**2

    def factors(self, rows: Records) -> Vector:
        return np.sqrt(rows.parted(np.ones(rows.n_records)))  # squared with the row


@dataclass(frozen=True, eq=False)
class GramProduct(Term):
    """Row times the product of the row with v: the sum is the second moments times v.

    Rows have norm at most ``radius``.
    """

    v: Vector
    radius: float

    @property
    def limit(self) -> float:
        return self.radius**2 * float(np.linalg.norm(self.v))

    def factors(self, rows: Records) -> Vector:
        return rows.parted(rows.dot(self.v))


@dataclass(frozen=True, eq=False)
class HessianProduct(Term):
    """Row times the product of the row with v and the curvature of the clipped loss at w: not private.

    The sum is the Hessian of the clipped losses times v.
    """

    needs_norms: ClassVar[bool] = True

    loss: Loss
    w: Vector
    clip: float
    v: Vector
    limit: ClassVar[float] = math.inf  # none is needed where nothing is private

    def factors(self, rows: Records) -> Vector:
        z = rows.margins(self.w)
        with np.errstate(divide="ignore"):
            unclipped = np.abs(rows.slopes(self.loss, z)) < self.clip / rows.row_norms
        curvature: Vector = self.loss.curvature(z, rows.y) * unclipped
        return rows.shared(curvature) * rows.dot(self.v)


@dataclass(frozen=True, eq=False)
class ScoreCovarianceProduct(Term):
    """Row times the product of the row with v and the squared slope at w: not private.

    The sum is the covariance of the scores times v. The score of a person is the sum of those of its records.
    """

    loss: Loss
    w: Vector
    v: Vector
    limit: ClassVar[float] = math.inf

    def factors(self, rows: Records) -> Vector:
        slopes, along = rows.shared(rows.slopes(self.loss, rows.margins(self.w))), rows.dot(self.v)
        alone: Vector = np.square(slopes) * along
        persons = rows.persons
        if persons is None:
            return alone
        return np.where(persons.several, slopes * persons.spread(persons.sums(slopes * along)), alone)


@dataclass(frozen=True, eq=False)
class CutGradient(Term):
    """The derivatives along all coordinates at w, each cut to its own limit, which must be finite.

    A derivative is multiplied by the share of its record before it is cut.
    """

    loss: Loss
    w: Vector
    clips: Vector

    @property
    def limit(self) -> float:
        return float(np.linalg.norm(self.clips))

    @property
    def cuts(self) -> Vector:
        return self.clips

    def factors(self, rows: Records) -> Vector:
        return rows.shared(rows.slopes(self.loss, rows.margins(self.w)))


@dataclass(frozen=True, eq=False)
class FixedFactors(Term):
    """Rows times given factors, of norm at most ``limit``."""

    r: Vector
    limit: float = math.inf
    cuts: Vector | None = None

    def factors(self, rows: Records) -> Vector:
        return self.r

    def part(self, start: int, stop: int) -> FixedFactors:
        return replace(self, r=self.r[start:stop])
