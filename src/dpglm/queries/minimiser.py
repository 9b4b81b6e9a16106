"""The minimiser of a strongly convex objective: what output and objective perturbation release."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from ..arrays import Total, Vector, bits_of_terms
from ..data.record_set import RecordSet
from ..data.terms import Gradient, GramProduct, HessianProduct, PreciseGradient, Term
from ..errors import UnsupportedProblem
from ..kernels.arguments import PAIRED
from ..losses import Loss
from ..mechanisms import LinearTerm
from ..penalties import Penalty, Separable
from ..privacy import Neighbours
from .base import Opening, Query, WorstCase, require_enforceable
from .proximal_gradient import FARTHER, Composite, Public, Refined, certified_minimiser, fallback_steps

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


class Objective:
    """The objective of a `Minimiser` over a table: not private."""

    def __init__(self, query: Minimiser, data: RecordSet, linear: Vector, start: Vector) -> None:
        if (data.table_size, data.n_features) != (query.table_size, query.n_features):
            raise ValueError("the minimiser is asked of a table of another size than planned")
        if not data.radius <= (query.table_radius or query.radius) * (1 + 1e-9):
            raise ValueError("the records were not clipped into the bounds that the minimiser is planned for")
        longest = np.linalg.norm(linear) + query.strength * np.linalg.norm(start)
        if not longest <= query.push * (1 + 1e-12):
            raise ValueError("the linear term or the start is larger than planned")
        self._query, self._data, self._linear, self._start = query, data, linear, start

    @property
    def query(self) -> Minimiser:
        return self._query

    def minimiser(self, pushed: Vector | None = None) -> Vector:
        """The minimiser; with one more linear term, divided by n, closely."""
        query, linear, push = self._query, self._linear, self._query.push
        if pushed is not None:
            more = pushed / query.n_records
            linear, push = linear + more, push + float(np.linalg.norm(more))
        function = Composite(
            lambda w: self._slope(w) + linear, self._prox, self._curve, query.smoothness, query.strength
        )
        # As in `error`, which the sensitivity is made of, and in `perturbed_error`.
        tolerance = query.tolerance(push, closely=pushed is not None)
        refined = self._refined(linear) if query.refined else None
        return certified_minimiser(function, self._start, tolerance, query.farthest(push), refined)

    def _refined(self, linear: Vector) -> Refined:
        """The objective in pairs of doubles."""
        query, p = self._query, self._query.n_features
        assert isinstance(query.penalty, Separable)
        l1, _, low, high = query.penalty.coordinate_form()
        ends = [np.empty(query.dimension) for _ in range(5)]
        for end, value in zip(ends, (query.strengths, 0.0, l1, low, high), strict=True):
            end[:p] = value
        if query.hold is not None:
            for end, one in zip(ends, (query.hold, self._start[p], 0.0, -math.inf, math.inf), strict=True):
                end[p] = one
        quadratic, centre, *rest = ends
        return Refined(
            self._start, self._total, query.n_records, Public(quadratic, centre, linear, *rest), self._curve,
            query.smoothness + query.strongest, query.strength,
        )  # fmt: skip

    def _total(self, w: tuple[Vector, Vector]) -> tuple[Vector, Vector]:
        """Sum of the clipped gradients, in pairs."""
        query = self._query
        return self._sum(PreciseGradient(query.loss, np.array(w), query.clip), finely=2).twofold()

    def _sum(self, term: Term, finely: int = 0) -> Total:
        """The sum of a term over the records as the query sees them."""
        query = self._query
        return self._data.total(replace(term, scales=query.scales, constant_feature=query.constant), finely)

    def implied(self, w: Vector) -> tuple[Vector, float]:
        """The linear term times n that has its minimiser at w, and the log-determinant of the Hessian there.

        Only the L2 part of the penalty counts: with other parts this is no density, but still a statistic.
        """
        query, data, n = self._query, self._data, self._query.n_records
        strengths = np.zeros(query.dimension)
        data.split(strengths)[0][:] = query.strengths
        centre = np.zeros(query.dimension)
        if query.hold is not None:
            data.split(strengths)[1][:] = query.hold
            data.split(centre)[1][:] = data.split(self._start)[1]
        columns = [HessianProduct(query.loss, w, query.clip, unit) for unit in np.eye(query.dimension)]
        hessian = np.array([self._sum(column) for column in columns])
        gradient = self._slope(w) + self._linear + strengths * (w - centre)
        return -n * gradient, float(np.linalg.slogdet(hessian + n * np.diag(strengths))[1])

    def _slope(self, w: Vector) -> Vector:
        """Mean of the clipped gradients."""
        query = self._query
        total = self._sum(Gradient(query.loss, w, query.clip), finely=1)
        return np.asarray(total) / query.n_records

    def _curve(self, v: Vector) -> Vector:
        """The largest curvature along v."""
        query = self._query
        moments = np.asarray(self._sum(GramProduct(v, query.radius)))
        return query.loss.smoothness() * moments / query.n_records

    def _prox(self, w: Vector, step: float) -> Vector:
        query, p = self._query, self._query.n_features
        shrink = 1 + step * query.quadratic
        features = query.penalty.prox(w[:p] / shrink, step / shrink)
        if query.hold is None:
            return features
        intercept, start = w[p:], self._start[p:]
        return np.concatenate([features, (intercept + step * query.hold * start) / (1 + step * query.hold)])


class OpenMinimiser:
    """An objective behind ``release``."""

    def __init__(self, query: Minimiser, opening: Opening) -> None:
        facts = query.perturbation(opening.neighbours)
        if not isinstance(opening.mechanism, LinearTerm) or any(
            getattr(opening.mechanism, name) != fact for name, fact in facts.items()
        ):
            raise ValueError("the linear term is priced for another objective")
        if opening.data.has_units:
            raise UnsupportedProblem("a random linear term is priced for records, not for persons")
        self._objective = Objective(query, opening.data, np.zeros_like(opening.w), opening.w)
        self._sensitivity = opening.neighbours.records_moved * query.clip
        self._opening = opening

    def release(self) -> Vector:
        """The minimiser with a random linear term: costs one event.

        The sensitivity in whose units that term is drawn is that of the sum of gradients.
        """
        opening = self._opening
        w: Vector = opening.releases.give(self._objective, self._sensitivity, opening.mechanism)
        return w
