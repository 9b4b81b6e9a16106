"""How Newton's rounds are asked for, with noise and without."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ..arrays import Vector, on_column_grids
from ..bounds import Coordinates
from ..curator import Curator
from ..losses import Loss
from ..privacy import Neighbours
from ..problem import Problem
from ..queries import Deviance, Moments, ScoreAndCurvature
from . import newton_rounds as algebra
from .base import Result, Uncertainty
from .newton_rounds import Deviations, Estimate, Round, State
from .path import visit
from .record_share import RecordShare, of_moments

if TYPE_CHECKING:
    from .newton import NewtonPlan

_TYPICAL = 1.5
_DAMPED = 4.0
_CLEAR = 2.0
FAR, FAR_LINEAR = 3.0, 1.5
_RARE = 0.1
_LARGEST_LOSS = 3.0
_OUTWEIGHS = 1e7
_FLOOR_OF_COUNTS = 2.0  # means differ by orders of magnitude: a Hessian that noise makes small leads too far


def name_of(round_: int) -> str:
    """The name of the release of a round after the first."""
    return f"{ScoreAndCurvature.name}, round {round_}"


@dataclass(frozen=True, eq=False)
class Setting:
    """The public scales of a problem.

    Attributes
    ----------
    coordinates : Coordinates
    radius : float
        Largest norm of the features in these coordinates.
    middle, half : float
        The range of targets: a target is middle + half * t for t in [-1, 1].
    constant : float
        The constant feature of the records.
    strength : float
        Strength of the L2 penalty.
    top : float
        The largest offset, if the start allows for offsets; else infinite.
    table_size : int
        The most records that there can be, if n is a released count; else n.
    """

    coordinates: Coordinates
    radius: float
    middle: float
    half: float
    constant: float
    loss: Loss
    strength: float
    n: int
    top: float = math.inf
    table_size: int = 0

    @classmethod
    def of(cls, problem: Problem, n: int, p: int, table_size: int = 0) -> Setting:
        """The scales of a problem over n records of p features."""
        coordinates = problem.bounds.coordinates(p, problem.fit_intercept)
        middle, half, norm = coordinates.middle, coordinates.half, problem.bounds.row_norm
        farthest = math.inf if norm is None else norm / half.min() + float(np.linalg.norm(middle / half))
        bottom, top = problem.bounds.target or (-1.0, 1.0)
        if not problem.fit_intercept or problem.loss.kind == "count":
            bottom, top = -max(-bottom, top), max(-bottom, top)  # a count is proportional to its exposure
        return cls(
            coordinates, min(math.sqrt(p), farthest), (bottom + top) / 2, (top - bottom) / 2,
            problem.constant(p), problem.loss, problem.penalty.strong_convexity, n,
            problem.bounds.offset_range[1] if problem.loss.kind == "count" else math.inf,
            max(n, table_size),
        )  # fmt: skip

    @property
    def dimension(self) -> int:
        return self.coordinates.dimension

    @property
    def is_linear(self) -> bool:
        """Whether the margin itself predicts the target."""
        return self.loss.kind == "regression"

    @property
    def is_count(self) -> bool:
        """Whether the margin is the logarithm of the predicted target."""
        return self.loss.kind == "count"

    @property
    def unit(self) -> float:
        """What a margin of 1 is in coefficients of a round."""
        return self.half if self.is_linear else 1.0

    @property
    def ridge(self) -> Vector:
        """Curvature of the penalty along each coordinate: none along the intercept.

        What outweighs the records by ten million outweighs them: more would cost matrices their digits.
        """
        features = self.n * np.minimum(self.strength / np.square(self.coordinates.half), _OUTWEIGHS)
        return np.append(features, np.zeros(int(self.coordinates.intercept)))

    @property
    def target_weight(self) -> float:
        """Weight of the target among second moments: what a start from them wants."""
        return math.sqrt(self.dimension) / 2

    @property
    def moments(self) -> Moments:
        """The query of the first round."""
        norm = math.sqrt(self.radius**2 + self.coordinates.intercept + self.target_weight**2)
        weight = self.target_weight / self.half
        return Moments(self.coordinates, norm, self.middle, weight, self.table_size, self.top)

    def derivatives(self, leverage: float, clip: float, neighbours: Neighbours) -> ScoreAndCurvature:
        """The query of a later round; ``clip`` is in units of half the range of targets."""
        loss = self.loss.softened(clip * self.half)
        weight = ScoreAndCurvature.weight_for(loss, neighbours)
        longest = math.sqrt(leverage * self.dimension)
        return ScoreAndCurvature(loss, self.coordinates, longest, weight, self.table_size)

    def deviance(self, clip: float) -> Deviance:
        """The query of the deviance, at the same clip."""
        loss = self.loss.softened(clip * self.half)
        most = _LARGEST_LOSS * loss.lipschitz() ** 2
        return Deviance(loss, self.coordinates, most, self.table_size)

    def point(self, w: Vector) -> Vector:
        """Coefficients that predict targets from those that predict t in [-1, 1]."""
        if not self.is_linear:
            return w
        point: Vector = self.half * w
        if self.coordinates.intercept:
            point[-1] += self.middle
        return point

    @property
    def to_records(self) -> Vector:
        """The matrix that takes coefficients of the coordinates to those of the records' own features."""
        d, p = self.dimension, len(self.coordinates.middle)
        matrix = np.zeros((d, d))
        matrix[:p, :p] = np.diag(1.0 / self.coordinates.half)
        if self.coordinates.intercept:
            matrix[-1, :p] = -self.coordinates.middle / self.coordinates.half / self.constant
            matrix[-1, -1] = 1.0 / self.constant
        return matrix


@dataclass(frozen=True, eq=False)
class Run:
    """The rounds of a private fit."""

    plan: NewtonPlan
    problem: Problem
    curator: Curator
    setting: Setting

    def result(self) -> Result:
        """Coefficients, and their covariance, in the records' own features."""
        state, share, records = self._start()
        rounds: list[Round] = []
        for k in range(2, self.plan.steps + 1):
            round_ = self._round(k, state)
            rounds.append(round_)
            last, step = round_.estimate()
            found = self._combined(rounds, last)
            state = self._next(round_, last, step)
            if self._near(last, round_):
                state = replace(state, w=found.w, covariance=found.sampling + found.noise)
            visit(k, partial(self._in_records, found.w))
        reason, clip = self._reason(last, round_.unit, share), round_.unit
        scale = self.setting.to_records * self.setting.unit
        privacy = scale @ found.noise @ scale.T
        covariance = privacy + scale @ found.sampling @ scale.T
        stated = Uncertainty(
            covariance, privacy, not reason, reason, self._estimand(), self._deviance(found.w, clip)
        )
        w = self._in_records(found.w)
        return Result(
            w, self.plan.steps, uncertainty=stated if self.plan.intervals else None, records=records
        )

    def _in_records(self, w: Vector) -> Vector:
        """Coefficients of the records' own features."""
        return self.setting.to_records @ self.setting.point(w)

    def _combined(self, rounds: list[Round], last: Estimate) -> Estimate:
        """The estimate of the last round with those before it that started near enough."""
        estimates = []
        for one in rounds[:-1]:
            improved = one.with_curvature_of(rounds[-1], self.setting.is_linear)
            estimate, _ = improved.estimate()
            if self._near(estimate, improved):
                estimates.append(estimate)
        return algebra.combined([*estimates, last])

    def _near(self, estimate: Estimate, round_: Round) -> bool:
        """Whether noise left the curvature clear, and the step was short."""
        return estimate.curvature > _CLEAR and estimate.step < self.plan.combine * round_.unit

    def _start(self) -> tuple[State, float, RecordShare | None]:
        """The start that second moments give, and the shares of positive labels and of records that count."""
        setting, query = self.setting, self.setting.moments
        mechanism = self.plan[query.name].mechanism
        noise = mechanism.noise * query.sensitivity(self.plan.neighbours)
        moments = query.matrix(self.curator.release(query, mechanism))
        records = of_moments(self.plan, self.problem, query, moments, noise)
        if setting.is_linear:
            return algebra.linear_start(moments, noise, setting.target_weight, setting.n), 0.5, records
        if setting.is_count:
            top = setting.top if math.isfinite(setting.top) else 0.0
            start, mean = algebra.count_start(
                moments, noise, setting.target_weight, setting.n, setting.coordinates.intercept
            )
            if setting.coordinates.intercept:
                start.w[-1] += setting.loss.link(mean * setting.half) - top
            return start, 0.5, records
        start, share = algebra.logistic_start(
            moments, noise, setting.target_weight, setting.n, setting.coordinates.intercept
        )
        return start, share, records

    def _round(self, k: int, state: State) -> Round:
        """Release what a round asks for."""
        plan, setting, d = self.plan, self.setting, self.setting.dimension
        last = k == plan.steps
        leverage, deviations = (plan.last_leverage, plan.last_clip) if last else (plan.leverage, plan.clip)
        typical = math.sqrt(min(leverage, _TYPICAL) * d)
        clip = min(deviations * math.sqrt(state.variance) + typical * state.error, 2.0)
        query = setting.derivatives(leverage, clip, plan.neighbours)
        clip = query.loss.slope_unit() / setting.unit
        state = replace(state, w=self._exact_point(state.w))
        mechanism = plan[name_of(k)].mechanism
        parts = query.parts(self.curator.release(query, mechanism, state.transform, setting.point(state.w)))
        each = mechanism.noise * query.sensitivity(plan.neighbours)
        noise = Deviations(clip * each / (query.weight * query.leverage), each, clip**2 * each / query.weight)
        parts = parts._replace(gradient=clip * parts.gradient, scores=clip**2 * parts.scores)
        floor = _FLOOR_OF_COUNTS if setting.is_count else 1.0
        return Round(state, parts, noise, typical, clip if setting.is_linear else 1.0, setting.ridge, floor)

    def _next(self, round_: Round, estimate: Estimate, step: Vector) -> State:
        """Where the next round starts."""
        state, parts = round_.state, round_.parts
        most = round_.unit if self.setting.is_linear else _DAMPED / round_.typical
        after = algebra.moved(round_, step, most, estimate)
        found = float(np.trace(parts.scores)) + math.sqrt(2 * len(step)) * round_.noise.scores
        hessian, _ = algebra.floored(parts.hessian, round_.least)
        largest = 2 * state.variance + state.error**2
        variance = min(max(found / float(np.trace(hessian)), 0.05 * state.variance), largest)
        return replace(after, variance=variance)

    def _exact_point(self, w: Vector) -> Vector:
        """Coefficients next to w at which the margins of records are exact."""
        setting = self.setting
        point = on_column_grids(setting.point(w)[:, None])[:, 0]
        if not setting.is_linear:
            return point
        if setting.coordinates.intercept:
            point[-1] -= setting.middle
        return point / setting.half

    def _reason(self, estimate: Estimate, unit: float, share: float) -> str:
        """Why the last round determines nothing; empty if it does."""
        if estimate.curvature <= 1:
            return "noise hides the curvature of the loss in some direction"
        if estimate.step >= unit * (FAR_LINEAR if self.setting.is_linear else FAR):
            return "the last step was so long that its error cannot be stated"
        if self.plan.steps <= 3 and not _RARE < share < 1 - _RARE:
            return "one label is rare, and so few rounds cannot tell how far they are off"
        return ""

    def _estimand(self) -> str:
        plan = self.plan
        words = f"rows of leverage above {plan.last_leverage:.3g} times the average are weighted down"
        if self.setting.is_linear and self.setting.loss.softened(1.0) != self.setting.loss:
            words += f" and residuals are clipped softly at {plan.last_clip:.3g} deviations"
        return f"{words}: the fit is that of the whole table if the model holds"

    def _deviance(self, w: Vector, clip: float) -> tuple[float, float] | None:
        """Twice the sum of losses and the deviation of its noise, if the plan releases it."""
        if not self.plan.pays_for_deviance:
            return None
        setting, mechanism = self.setting, self.plan[Deviance.name].mechanism
        query = setting.deviance(clip)
        released = self.curator.release(query, mechanism, setting.point(w))
        return 2 * float(released[0]), 2 * mechanism.noise * query.sensitivity(self.plan.neighbours)
