"""The minimiser of a strongly convex objective: what output and objective perturbation release."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from ..arrays import Vector, bits_of_terms
from ..data.record_set import RecordSet
from ..errors import UnsupportedProblem
from ..kernels.arguments import PAIRED
from ..losses import Loss
from ..penalties import Penalty, Separable
from ..privacy import Neighbours
from .base import Opening, Query, WorstCase, require_enforceable
from .certified import FARTHER, fallback_steps
from .objective import Objective, OpenMinimiser

TOLERANCE = 1e-8
"""Norm of the subgradient that is asked for, over what one record adds to the gradient at most."""

CLOSE = 2.0**-12
"""The same times the condition, where noise of the minimiser's own hides what is left of its error."""

_UNIT = 2.0**-53
_PAIR_UNIT = 2.0**-96  # terms of a gradient in pairs of doubles, off by 2**-104 times a few
_COLUMN_UNIT = 2.0**-100  # margins, for each column
_SHRINKING = 3.0  # roundings where the quadratic term shrinks the argument and the length of a proximal step
_HOLDING = 6.0  # those of the proximal step of the intercept
_MOST_STEPS = 50_000
_MOST_STEPS_A_ROOT = 200  # of n: the default penalties have a condition of about n


@dataclass(frozen=True, eq=False)
class Minimiser(Query):
    """The w that minimises mean loss + penalty + quadratic and linear terms.

    The objective is (1/n) sum of loss(x_i · w, y_i) + penalty(w) + quadratic / 2 norm(w)² + linear · w. The
    slope of a record's loss is clipped so that its gradient has norm at most ``clip``: it is the slope of a
    convex loss that is continued linearly. The intercept is the last coefficient; it has no part in the
    penalty and in ``quadratic``, and is held around its start by ``hold`` / 2 (w - start)². If there are
    ``scales``, column j is multiplied by scale j first, and w are coefficients of the products.

    Parameters
    ----------
    loss : Loss
        Of finite smoothness.
    clip : float
        Largest norm of a record's gradient.
    penalty : Penalty
    n_records, n_features : int
        The public size of the table, n the number that sums are divided by.
    radius : float
        Largest norm of a row, its columns scaled and the constant feature included.
    quadratic : float
        Strength of the quadratic term of the features.
    hold : float, optional
        Strength of the term that holds the intercept; None without an intercept.
    push : float
        Largest norm of the public linear term plus that of the start times the strength.
    fall : float
        How far the loss of a record at a margin of 0 is above its infimum, at most (`Loss.fall`).
    table_size : int
        The most records that there can be, if their number is private; by default n.
    rows_per_unit : int
        How many records a person has at most: each is rounded by itself.
    scales : array, optional
        Public factors of the columns, from 0 to 1.
    constant : float, optional
        The constant feature beside scaled columns; by default that of the records.
    table_radius : float, optional
        Largest norm of a row as it is in the table, where columns are scaled.

    Guarantee
    ---------
    The objective is strongly convex with the least strength m of any coefficient. At the minimiser for one
    table the gradient for a neighbour has norm at most G / n if a record is zeroed out, 2G / n if it is
    replaced, so the minimisers are at most that over m apart. The answer is certified to be within ``error``
    of the minimiser, for each of the two tables: twice that is added.
    """

    name: ClassVar[str] = "minimiser"
    takes_units: ClassVar[bool] = True
    loss: Loss
    clip: float
    penalty: Penalty
    n_records: int
    n_features: int
    radius: float
    quadratic: float = 0.0
    hold: float | None = None
    push: float = 0.0
    fall: float = math.inf
    table_size: int = 0
    rows_per_unit: int = 1
    scales: Vector | None = None
    constant: float | None = None
    table_radius: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "table_size", max(self.table_size, self.n_records))
        if not math.isfinite(self.radius):
            raise UnsupportedProblem(
                "no minimiser is private if rows have no bound: Bounds must limit their norm"
            )
        require_enforceable("clip", self.clip)
        # No gradient is longer, and a random linear term is accounted for with a clip that can be reached.
        object.__setattr__(self, "clip", min(self.clip, self._largest_gradient))
        if not math.isfinite(self.clip):
            raise UnsupportedProblem(f"the slopes of {self.loss.name} have no bound: clip must be finite")
        if self.hold is not None and self.hold > self.strength:
            raise ValueError(
                f"hold must be at most the strength {self.strength:g} of the L2 part, got {self.hold!r}"
            )
        if not self.strength > 0:
            raise UnsupportedProblem(
                "a minimiser without an L2 part can move any distance when one record changes, so no noise "
                "hides a record: use a penalty with one, such as L2, ElasticNet or Submodular(..., l2=...)"
            )

    @property
    def strength(self) -> float:
        """The least strong convexity in any coordinate."""
        return self._weakest if self.hold is None else min(self._weakest, self.hold)

    @property
    def _weakest(self) -> float:
        """The least strength of the L2 part of a feature."""
        return self.penalty.strong_convexity + self.quadratic

    @property
    def smoothness(self) -> float:
        """The largest curvature of the mean loss."""
        return self._curvature * self._excess

    @property
    def _curvature(self) -> float:
        """The largest curvature of the loss of a record."""
        return self.loss.smoothness() * self.radius**2

    @property
    def _excess(self) -> float:
        """How many times n the number of records can be."""
        return self.table_size / self.n_records

    @property
    def refined(self) -> bool:
        """Whether subgradients are computed in pairs of doubles."""
        return self.loss.form in PAIRED and isinstance(self.penalty, Separable)

    def tolerance(self, push: float, closely: bool = False) -> float:
        """Norm of the subgradient that certifies an answer, for a linear term of at most that norm.

        It is smaller if the answer is to be ``closely`` at the minimiser.
        """
        relative = min(TOLERANCE, CLOSE / self.condition) if closely else TOLERANCE
        if not self.refined:
            relative += self._rounding(push)
        return relative * self.clip / self.n_records

    def farthest(self, push: float) -> float:
        """Bound on the norm of the minimiser, and on its distance from the start."""
        near = (self.clip * self._excess + push) / self.strength
        if not self.refined:
            return near
        fall = (self.fall + self.clip * self.push / self.strength) * self._excess
        return min(near, 2 * push / self.strength + math.sqrt(2 * fall / self.strength))

    def error(self, push: float, closely: bool = False) -> float:
        """Bound on the distance from the exact minimiser, for a linear term of at most that norm."""
        unit = self.clip / (self.n_records * self.strength)
        tolerance, farthest = self.tolerance(push, closely), self.farthest(push)
        # The norm of a computed subgradient is rounded, too.
        error = tolerance * (1 + 1e-6) / self.strength + self._rounding(push) * unit
        if self.refined:
            error += _UNIT * FARTHER * farthest  # the answer has no second limb
        if not error < unit:
            raise UnsupportedProblem(
                "double precision does not find this minimiser closely enough: use a stronger L2 part"
            )
        steps = fallback_steps(self.condition, farthest * self.strength / tolerance)
        most = max(_MOST_STEPS, _MOST_STEPS_A_ROOT * math.isqrt(self.table_size))
        if steps > most:
            raise UnsupportedProblem(
                f"this minimiser takes up to {steps:,} steps, {most:,} are allowed: use a stronger L2 "
                "part of the penalty, or a stronger quadratic term where the solver has one"
            )
        return error

    def _rounding(self, push: float) -> float:
        """Bound on the rounding error of a computed subgradient, over what one record adds to it at most."""
        limbs = 3 if self.refined else 2
        grid = 2 * math.sqrt(self.dimension) * 2.0 ** (-limbs * bits_of_terms(self.table_size))
        grid *= self.rows_per_unit
        if self.refined:
            # Slopes and terms; margins; the public part. All in units of the clip.
            reach = FARTHER * self.farthest(push)
            most = self.loss.smoothness() * self.radius / self.clip
            terms = _PAIR_UNIT * (1 + most + (push + self.strongest * reach) / self.clip)
            margins = _COLUMN_UNIT * (self.n_features + 16) * most * self.radius * reach
            return self.table_size * (terms + margins + grid)
        # Terms, margins of p terms, the proximal step and the difference it leaves.
        prox = self.penalty.prox_rounding(self.n_features, _SHRINKING if self.quadratic else 0.0)
        if self.hold is not None:
            prox = max(prox, _HOLDING)
        products = FARTHER * (self.n_features + 4 + 2 * prox) * self.condition
        rounded = _UNIT * (self.n_features + 32 + products) * (1 + push / self.clip)
        return self.table_size * (rounded + grid)

    @property
    def strengths(self) -> Vector:
        """The strength of the L2 part of each feature, of which that of the intercept is no more."""
        own = self.penalty.coordinate_form()[1] if isinstance(self.penalty, Separable) else None
        least = self.penalty.strong_convexity if own is None else own
        return np.broadcast_to(np.asarray(least + self.quadratic), self.n_features)

    @property
    def strongest(self) -> float:
        """The largest strength of the L2 part of a feature."""
        return float(self.strengths.max(initial=self._weakest))

    @property
    def condition(self) -> float:
        """Largest over least curvature of the objective, for any table."""
        # In pairs of doubles the quadratic part of the penalty is one of the smooth part.
        return (self.smoothness + (self.strongest if self.refined else self.strength)) / self.strength

    def perturbation(self, neighbours: Neighbours) -> dict[str, Any]:
        """The parameters of `dpglm.accounting.ObjectivePerturbation` besides the size of the linear term.

        Where nothing bounds the slope, nothing is known of how the curvature follows from it.
        """
        largest = self._largest_gradient
        return {
            "curvature": self._curvature / (self.n_records * self.strength),
            "slopes": self.loss.slopes if math.isfinite(largest) else "any",
            "reach": largest / self.clip if math.isfinite(largest) else 1.0,
            "neighbours": neighbours.priced_as,
        }

    @property
    def _largest_gradient(self) -> float:
        """Largest norm of a record's gradient before it is clipped."""
        return self.loss.lipschitz() * self.radius

    @property
    def dimension(self) -> int:
        """Length of the answer."""
        return self.n_features + (self.hold is not None)

    def perturbed_error(self, length: float, moved: float) -> float:
        """Bound on the distance from the exact minimiser with a linear term in the sum over the records.

        The term has norm at most ``length``, and is at most ``moved`` from the intended one.
        """
        moved += 3 * _UNIT * length  # divided by n, and added to another
        error = self.error(self.push + length / self.n_records, closely=True)
        return error + moved / (self.n_records * self.strength)

    def __call__(self, data: RecordSet, *public: Vector) -> Vector:
        linear, start = public
        return Objective(self, data, linear, start).minimiser()

    def sensitivity(self, neighbours: Neighbours) -> float:
        moved = neighbours.records_moved * self.clip / (self.n_records * self.strength)
        return moved + 2 * self.error(self.push)

    def worst_case(self, n_features: int, radius: float, constant: float) -> WorstCase:
        """Two records of opposite gradients, the linear term pulling to where the slopes of both are full."""
        case = super().worst_case(n_features, radius, constant)
        linear = np.zeros(n_features + bool(constant))
        linear[1] = -self.push
        return replace(case, public=(linear, np.zeros_like(linear)))

    def open(self, opening: Opening) -> OpenMinimiser:
        """The objective with its start at w, to be minimised with a random linear term.

        A mechanism that is priced for another objective is refused.
        """
        return OpenMinimiser(self, opening)
