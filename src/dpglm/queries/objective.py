"""The objective of a minimiser over a table, and its door to a mechanism."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ..arrays import Total, Vector
from ..data.record_set import RecordSet
from ..data.terms import Bent, Curved, Gradient, PreciseGradient, Term
from ..errors import UnsupportedProblem
from ..mechanisms import LinearTerm
from ..penalties import Separable
from .base import Opening
from .certified import Composite, certified_minimiser
from .refined import Public, Refined

if TYPE_CHECKING:
    from .minimiser import Minimiser


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
        columns = [Bent(query.loss, w, query.clip, unit) for unit in np.eye(query.dimension)]
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
        moments = np.asarray(self._sum(Curved(v, query.radius)))
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
