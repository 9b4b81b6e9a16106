"""The minimiser of a strongly convex objective: what output and objective perturbation release."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from ..arrays import Vector
from ..data.records import Records
from ..errors import UnsupportedProblem
from ..losses import Loss
from ..mechanisms import LinearTerm
from ..penalties import Penalty
from ..privacy import Neighbours
from .base import Opening, Query, WorstCase, require_enforceable
from .certified import FARTHER, Composite, certified_minimiser, fallback_steps

TOLERANCE = 1e-8
"""Norm of the subgradient that is asked for, over what one record adds to the gradient at most."""

_UNIT = 2.0**-53
_SHRINKING = 3.0  # roundings where the quadratic term shrinks the argument and the length of a proximal step
_HOLDING = 6.0  # those of the proximal step of the intercept
_MOST_STEPS = 50_000
_MOST_STEPS_A_ROOT = 200  # of n: the default penalties have a condition of about n


@dataclass(frozen=True)
class Minimiser(Query):
    """The w that minimises mean loss + penalty + quadratic and linear terms.

    The objective is (1/n) sum of loss(x_i · w, y_i) + penalty(w) + quadratic / 2 norm(w)² + linear · w. The
    slope of a record's loss is clipped so that its gradient has norm at most ``clip``: it is the slope of a
    convex loss that is continued linearly. The intercept is the last coefficient; it has no part in the
    penalty and in ``quadratic``, and is held around its start by ``hold`` / 2 (w - start)².

    Parameters
    ----------
    loss : Loss
        Of finite smoothness.
    clip : float
        Largest norm of a record's gradient.
    penalty : Penalty
    n_records, n_features : int
        The public size of the table.
    radius : float
        Largest norm of a row, the constant feature included.
    quadratic : float
        Strength of the quadratic term of the features.
    hold : float, optional
        Strength of the term that holds the intercept; None without an intercept.
    push : float
        Largest norm of the public linear term plus that of the start times the strength.

    Guarantee
    ---------
    The objective is strongly convex with the least strength m of any coefficient. At the minimiser for one
    table the gradient for a neighbour has norm at most G / n if a record is zeroed out, 2G / n if it is
    replaced, so the minimisers are at most that over m apart. The answer is certified to be within ``error``
    of the minimiser, for each of the two tables: twice that is added.
    """

    name: ClassVar[str] = "minimiser"
    loss: Loss
    clip: float
    penalty: Penalty
    n_records: int
    n_features: int
    radius: float
    quadratic: float = 0.0
    hold: float | None = None
    push: float = 0.0

    def __post_init__(self) -> None:
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
        features = self.penalty.strong_convexity + self.quadratic
        return features if self.hold is None else min(features, self.hold)

    @property
    def smoothness(self) -> float:
        """The largest curvature of the mean loss."""
        return self.loss.smoothness() * self.radius**2

    def tolerance(self, push: float) -> float:
        """Norm of the subgradient that certifies an answer, for a linear term of at most that norm."""
        return (TOLERANCE + self._rounding(push)) * self.clip / self.n_records

    def error(self, push: float) -> float:
        """Bound on the distance from the exact minimiser, for a linear term of at most that norm."""
        relative = TOLERANCE + 2 * self._rounding(push)
        if not relative < 1:
            raise UnsupportedProblem(
                "double precision does not find this minimiser closely enough: use a stronger L2 part"
            )
        steps = fallback_steps(self._condition, (self.clip + push) / self.tolerance(push))
        most = max(_MOST_STEPS, _MOST_STEPS_A_ROOT * math.isqrt(self.n_records))
        if steps > most:
            raise UnsupportedProblem(
                f"this minimiser takes up to {steps:,} steps, {most:,} are allowed: use a stronger L2 "
                "part of the penalty, or a stronger quadratic term where the solver has one"
            )
        return relative * self.clip / (self.n_records * self.strength)

    def _rounding(self, push: float) -> float:
        """Bound on the rounding error of a computed subgradient, over what one record adds to it at most."""
        # Rounding of sums of n terms, margins of p terms, the proximal step and the difference it leaves.
        prox = self.penalty.prox_rounding(self.n_features, _SHRINKING if self.quadratic else 0.0)
        if self.hold is not None:
            prox = max(prox, _HOLDING)
        products = FARTHER * (self.n_features + 4 + 2 * prox) * self._condition
        terms = self.n_records + self.n_features + 24 + products
        return _UNIT * self.n_records * terms * (1 + push / self.clip)

    @property
    def _condition(self) -> float:
        return 1 + self.smoothness / self.strength

    def perturbation(self, neighbours: Neighbours) -> dict[str, Any]:
        """The parameters of `dpglm.accounting.ObjectivePerturbation` besides the size of the linear term.

        Where nothing bounds the slope, nothing is known of how the curvature follows from it.
        """
        largest = self._largest_gradient
        return {
            "curvature": self.smoothness / (self.n_records * self.strength),
            "slopes": self.loss.slopes if math.isfinite(largest) else "any",
            "reach": largest / self.clip if math.isfinite(largest) else 1.0,
            "neighbours": neighbours.value,
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
        return self.error(self.push + length / self.n_records) + moved / (self.n_records * self.strength)

    def __call__(self, data: Records, *public: Vector) -> Vector:
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

    def __init__(self, query: Minimiser, data: Records, linear: Vector, start: Vector) -> None:
        if (data.n_records, data.n_features) != (query.n_records, query.n_features):
            raise ValueError("the minimiser is asked of a table of another size than planned")
        # True of every table made with the bounds of the problem: this reveals nothing of its records.
        if not (data.row_norms <= query.radius * (1 + 1e-9)).all():
            raise ValueError("the records were not clipped into the bounds that the minimiser is planned for")
        longest = np.linalg.norm(linear) + query.strength * np.linalg.norm(start)
        if not longest <= query.push * (1 + 1e-12):
            raise ValueError("the linear term or the start is larger than planned")
        self._query, self._data, self._linear, self._start = query, data, linear, start
        with np.errstate(all="ignore"):  # a warning would depend on records
            self._limit = query.clip / data.row_norms

    @property
    def query(self) -> Minimiser:
        return self._query

    def minimiser(self, pushed: Vector | float = 0.0) -> Vector:
        """The minimiser with one more linear term, divided by n, in the objective."""
        query = self._query
        more = np.asarray(pushed) / query.n_records
        linear = self._linear + more
        # As in `error`, which the sensitivity is made of, and in `perturbed_error`.
        push = query.push + float(np.linalg.norm(more))
        function = Composite(
            lambda w: self._slope(w) + linear, self._prox, self._curve, query.smoothness, query.strength
        )
        farthest = (query.clip + push) / query.strength
        return certified_minimiser(function, self._start, query.tolerance(push), farthest)

    def implied(self, w: Vector) -> tuple[Vector, float]:
        """The linear term times n that has its minimiser at w, and the log-determinant of the Hessian there.

        Only the L2 part of the penalty counts: with other parts this is no density, but still a statistic.
        """
        query, data, n = self._query, self._data, self._query.n_records
        strengths = np.full(query.dimension, query.penalty.strong_convexity + query.quadratic)
        centre = np.zeros(query.dimension)
        if query.hold is not None:
            data.split(strengths)[1][:] = query.hold
            data.split(centre)[1][:] = data.split(self._start)[1]
        z = data.margins(w)
        curvature = query.loss.curvature(z, data.y) * (np.abs(data.slopes(query.loss, z)) < self._limit)
        hessian = np.array([data.t_dot(curvature * data.dot(unit)) for unit in np.eye(query.dimension)])
        gradient = self._slope(w) + self._linear + strengths * (w - centre)
        return -n * gradient, float(np.linalg.slogdet(hessian + n * np.diag(strengths))[1])

    def _slope(self, w: Vector) -> Vector:
        """Mean of the clipped gradients."""
        query = self._query
        return self._data.gradient(query.loss, w, query.clip, self._limit) / query.n_records

    def _curve(self, v: Vector) -> Vector:
        """The largest curvature along v."""
        return self._query.loss.smoothness() * self._data.t_dot(self._data.dot(v)) / self._query.n_records

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
