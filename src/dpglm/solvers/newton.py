"""Newton's method: few rounds, each a release of gradient, Hessian and score covariance together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import numpy as np

from .. import strict
from ..accounting import gaussian_mu
from ..arrays import Vector, on_column_grids, one_blas_thread
from ..bounds import Bounds
from ..curator import Curator
from ..errors import UnsupportedProblem
from ..losses import Logistic, Loss, Squared
from ..mechanisms import Gaussian
from ..penalties import L2, Penalty, Zero
from ..plan import Plan, Releasable, Release
from ..privacy import Budget, Neighbours
from ..problem import Problem
from ..queries import Deviance, Moments
from . import newton_steps as algebra
from .audit_cases import AuditCase, opposed
from .base import Result, Solver, Task, Uncertainty, equal_releases
from .exact import exact
from .iterates import Iterates
from .newton_steps import Deviations, Estimate, Round, Setting, State, name_of
from .record_share import RecordShare, of_moments

MOST_ROUNDS, MOST_FEATURES = 8, 1_000
_SHARES = {
    2: (0.3, 0.7),
    3: (0.1, 0.3, 0.6),
    4: (0.05, 0.1, 0.25, 0.6),
    5: (0.05, 0.1, 0.15, 0.2, 0.5),
}
ENOUGH, _PLENTY = 25.0, 50.0
_LEAST_LEVERAGE, _MOST_LEVERAGE, _LEAST_CLIP, _MOST_CLIP = 1.2, 8.0, 2.0, 5.0
_ALLOWED = 0.8
_FREE_LEVERAGE = 1 / 512
_FREE = 0.3
_DEVIATIONS, _DEVIATIONS_OF_COUNTS = 2.2, 10.0
_LENGTH, _LENGTH_LINEAR = (1.4, 68.0), (1.3, 216.0)
_STEPS_WITHOUT_NOISE = 100
_CROWD = 1_000


@dataclass(frozen=True)
class NewtonPlan(Plan):
    """Plan of `Newton`; ``clip`` is 0 for counts, whose slopes are bounded by the declared ranges alone."""

    solver: ClassVar[str] = "Newton"
    may_release: ClassVar[Releasable] = {
        Moments.name: (Gaussian,),
        **{name_of(k): (Gaussian,) for k in range(2, MOST_ROUNDS + 1)},
        Deviance.name: (Gaussian,),
    }

    leverage: float
    clip: float
    last_leverage: float
    last_clip: float
    combine: float
    regression: bool
    intervals: bool

    @property
    def pays_for_deviance(self) -> bool:
        """Whether the deviance is released."""
        return any(release.query == Deviance.name for release in self.releases)

    @property
    def _counts(self) -> list[int]:
        return [len(self.releases) - self.pays_for_deviance]

    @property
    def forecast(self) -> str | None:
        if not self.budget.private:
            return None
        length, enough = self.forecast_length, self._enough
        if self.clip == 0 and enough >= ENOUGH:
            return f"n mu / d^1.5 is {enough:.3g}: how long intervals will be depends on the mean target"
        if length is None:
            return (
                f"undetermined, no interval will be finite: n mu / d^1.5 is {enough:.3g}, and should be "
                f"{ENOUGH:g}"
            )
        if not self.intervals:
            return (
                f"n mu / d^1.5 is {enough:.3g}: from {ENOUGH:g} on noise leaves the coefficients to be seen"
            )
        return f"determined, with intervals about {length:.3g} times as long as without noise"

    @property
    def _enough(self) -> float:
        return self._enough_at(_mu(self.budget, self.fits))

    def _enough_at(self, mu: float) -> float:
        return self.n_records * mu / math.pow(self.n_features + 1, 1.5)

    @property
    def forecast_length(self) -> float | None:
        """Expected length of intervals over that without privacy; None if the fit will not be determined.

        The root of 1 + a x exp(b d / (n mu)): x is the variance of the noise of the gradient over that of the
        scores, if residuals are clipped at k of their deviations, and the exponential stands for the noise of
        start and Hessian. a and b were fitted to lengths that `experiments/inference_length.py` measures; for
        a regression they are those of residuals with a deviation of 0.15 times half the range of targets.
        """
        if not self.budget.private or self._enough < ENOUGH or self.clip == 0:
            return None
        mu, d, price = _mu(self.budget, self.fits), self.n_features + 1, _price(self.neighbours)
        k, a, b = (self.last_clip, *_LENGTH_LINEAR) if self.regression else (_DEVIATIONS, *_LENGTH)
        x = price**2 * self.last_leverage * d * k**2 / (self.n_records * mu**2)
        return math.sqrt(1 + a * x * math.exp(b * price / 2 * d / (self.n_records * mu)))

    @property
    def hopeless(self) -> str | None:
        if not (self.intervals and self.budget.private) or self._enough >= ENOUGH:
            return None
        ways = [
            f"{count:,} feature{'s' * (count != 1)}" if name == "features" else f"epsilon {count:.2g}"
            for name, count in (("features", self._most_features), ("epsilon", self._least_epsilon))
            if count
        ]
        if (needed := self.n_records * ENOUGH / self._enough) < 1e12:
            digit = 10 ** (len(str(int(needed))) - 2)
            ways.append(f"{math.ceil(needed / digit) * digit:,} {self.unit}s")
        return (
            f"noise would hide every coefficient of Newton: {self._size} too few for "
            f"{self.n_features} features at epsilon {self.budget.epsilon:g}, n mu / d^1.5 is "
            f"{self._enough:.3g} and should be {ENOUGH:g}. {_either(ways)} would do; "
            "Newton(intervals=False) fits anyway, without intervals"
        )

    @property
    def _size(self) -> str:
        return f"1 {self.unit} is" if self.n_records == 1 else f"{self.n_records:,} {self.unit}s are"

    @property
    def _most_features(self) -> int:
        """The largest number of features with which the fit would be determined."""
        return max(0, math.floor(math.pow(self.n_records * _mu(self.budget, self.fits) / ENOUGH, 2 / 3)) - 1)

    @property
    def _least_epsilon(self) -> float:
        """The least epsilon, of two digits, with which the fit would be determined; 0 if there is none."""
        for epsilon in (float(f"{digits}e{power}") for power in range(-4, 2) for digits in range(10, 100)):
            mu = _mu(Budget(epsilon, self.budget.delta), self.fits)
            if epsilon > self.budget.epsilon and self._enough_at(mu) >= ENOUGH:
                return epsilon
        return 0.0

    @property
    def warning(self) -> str | None:
        if self.forecast is None or not self.forecast.startswith("undetermined"):
            return None
        return (
            f"{self._size} too few for epsilon {self.budget.epsilon:g} and "
            f"{self.n_features} features: noise will hide the coefficients (see the forecast of the plan)"
        )


@dataclass(frozen=True)
class Newton(Solver[NewtonPlan]):
    """Rounds of Newton's method for smooth losses, with standard errors if there is no penalty.

    The first round releases second moments, for a start and a metric. Each later round releases gradient,
    Hessian and the covariance of the scores together, for the price of the gradient (replace-one). The last
    ones make the estimate, and its covariance.

    Parameters
    ----------
    rounds : int, optional
        Passes over the table, from 2 to 8. By default 5 or, for a classification with little budget, 3.
    leverage : float, optional
        Records whose leverage is above this multiple of the average are weighted down in the last round. By
        default from 1.2 to 8, as noise allows. A larger value brings the fit nearer to that of the whole
        table where the model is wrong, and makes intervals longer.
    clip : float, optional
        Residuals of a regression are clipped softly at this many of their deviations in the last round; by
        default from 2 to 5, as noise allows.
    deviance_share : float, optional
        Share of the budget for the deviance of the fit; by default it is not released.
    intervals : bool
        Whether coefficients come with standard errors, which there are only without a penalty. Without them,
        an L2 penalty is allowed.

    Notes
    -----
    It is for narrow tables: the noise in a coefficient grows with the number of features d, and a fit is
    *determined*, has finite intervals, if n mu is about 25 d**1.5 or more. With an infinite epsilon it
    returns the exact minimiser, and the usual sandwich covariance.
    """

    plan_type: ClassVar[type[Plan]] = NewtonPlan
    takes_weights: ClassVar[bool] = True
    takes_offsets: ClassVar[bool] = True
    takes_units: ClassVar[bool] = True
    path: ClassVar[tuple[str, ...]] = ("steps", "gram")

    rounds: int | None = None
    leverage: float | None = None
    clip: float | None = None
    deviance_share: float | None = None
    intervals: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rounds is not None and strict.whole("rounds", self.rounds, 2) > MOST_ROUNDS:
            raise ValueError(f"rounds must be a whole number from 2 to {MOST_ROUNDS}, got {self.rounds!r}")
        if self.leverage is not None:
            strict.positive("leverage", self.leverage)
        strict.flag("intervals", self.intervals)

    def plan_for(self, task: Task) -> NewtonPlan:
        _require_suited(task, self.intervals)
        linear, counts = task.problem.loss.kind == "regression", task.problem.loss.kind == "count"
        if counts and (self.deviance_share, self.clip) != (None, None):
            raise UnsupportedProblem(
                f"Newton releases no deviance of {task.problem.loss.name}, and its slopes are bounded by the "
                "declared ranges: leave deviance_share and clip out"
            )
        if not task.private:
            none = math.inf
            return NewtonPlan(
                *task.facts, (), _STEPS_WITHOUT_NOISE, none, none, none, none, 0.0, linear, self.intervals
            )
        mu = _mu(task.budget, task.fits)
        rounds = self.rounds or _default_rounds(task, mu)
        kept = 1.0 - (self.deviance_share or 0.0)
        shares = [kept * share for share in _shares(rounds)]
        # As generous as noise of four fifths of the sampling error in the last round alone allows.
        allowed = _ALLOWED * mu * math.sqrt(shares[-1] * task.n) / _price(task.neighbours)
        leverage, clip = _default_limits(task, allowed, float(self.clip or 0.0))
        last = float(self.leverage or leverage), float(clip if counts else self.clip or clip)
        combine = FAR_LINEAR if linear else FAR
        if last != (leverage, clip):
            combine = 0.0  # the other rounds estimate something else
        releases = self._releases(task, shares, leverage, last[0])
        plan = NewtonPlan(
            *task.facts, releases, rounds, leverage, clip, *last, combine, linear, self.intervals
        )
        return plan.calibrated()

    def _releases(self, task: Task, shares: list[float], leverage: float, last: float) -> tuple[Release, ...]:
        setting, d = Setting.of(task.problem, task.n, task.p, task.table_size), task.dimension
        releases = [
            equal_releases(
                Moments.name, Gaussian, 1, setting.moments.sensitivity(task.neighbours), share=shares[0],
                entries=(d + 1) * (d + 2) // 2,
            )
        ]  # fmt: skip
        for k, share in enumerate(shares[1:], start=2):
            query = setting.derivatives(last if k == len(shares) else leverage, 1.0, task.neighbours)
            sensitivity = query.sensitivity(task.neighbours)
            releases.append(
                equal_releases(name_of(k), Gaussian, 1, sensitivity, share=share, entries=d * (d + 2))
            )
        if self.deviance_share is not None:
            most = "the largest loss that counts"
            releases.append(equal_releases(Deviance.name, Gaussian, 1, most, share=self.deviance_share))
        return tuple(releases)

    @classmethod
    def run(
        cls, plan: NewtonPlan, problem: Problem, curator: Curator, stops: Sequence[int] | None = None
    ) -> Result:
        if not plan.budget.private:
            return exact(plan, problem, curator)
        with one_blas_thread():
            setting = Setting.of(problem, plan.n_records, plan.n_features, plan.table_size)
            return Run(plan, problem, curator, setting).result(Iterates(stops))

    @classmethod
    def audit_cases(cls) -> tuple[AuditCase, ...]:
        """A crowd that fixes the metric, and a record of full leverage with the largest residual."""
        rows, record = np.resize([1.0, -1.0], (_CROWD, 1)), np.ones(1)
        numbers = Problem(Squared(), Zero(), Bounds(feature=1.0, target=(-1.0, 1.0)), fit_intercept=False)
        labels = Problem(Logistic(), Zero(), Bounds(feature=1.0))
        half = np.resize([1.0, 1.0, -1.0, -1.0], _CROWD)
        return (
            AuditCase(
                cls(rounds=2, leverage=1.0), numbers, (rows, np.zeros(_CROWD)), (record, 1.0), (record, -1.0)
            ),
            AuditCase(cls(rounds=3, deviance_share=0.2), labels, (rows, half), (record, 1.0), (-record, 1.0)),
            opposed(cls(rounds=2), 1, fit_intercept=True, crowd=7),
            opposed(cls(rounds=2), 1, fit_intercept=True, crowd=7).with_weights(weight=3.0, offset=0.5),
            AuditCase(
                cls(rounds=2, leverage=1.0), numbers, (rows, np.zeros(_CROWD)), (record, 1.0), (record, -1.0)
            ).with_units(first=1, second=25),
        )


def _either(ways: list[str]) -> str:
    """Ways in words: one or the other."""
    return " or ".join([", ".join(ways[:-1]), ways[-1]] if len(ways) > 1 else ways).capitalize()


def _shares(rounds: int) -> tuple[float, ...]:
    """Shares of the budget: the last round, which makes the estimate, has the largest."""
    if rounds in _SHARES:
        return _SHARES[rounds]
    return (0.05, *[0.45 / (rounds - 2)] * (rounds - 2), 0.5)


def _default_rounds(task: Task, mu: float) -> int:
    """How many rounds: few for a classification with little budget."""
    bears_noise = task.problem.loss.kind in ("regression", "count")
    return 5 if bears_noise or task.n * mu >= _PLENTY * task.dimension**1.5 else 3


def _default_limits(task: Task, allowed: float, own_clip: float) -> tuple[float, float]:
    """Leverage and clip, 0 for counts, whose product with noise comes to what is allowed."""
    d, kind = task.dimension, task.problem.loss.kind
    deviations = {"regression": _LEAST_CLIP, "count": _DEVIATIONS_OF_COUNTS}.get(kind, _DEVIATIONS)
    room = min(allowed / deviations, 1e100) ** 2 / d
    # As with the clip below, the limit grows where noise is far below what is allowed.
    free = room * min(deviations / own_clip if own_clip else 1.0, 1.0) ** 2 * _FREE_LEVERAGE
    leverage = min(max(room, _LEAST_LEVERAGE), max(_MOST_LEVERAGE, free))
    deviations = allowed / math.sqrt(leverage * d)
    # Beyond that the clip grows where noise is below a third of what is allowed: it vanishes in the end.
    clip = max(min(max(_LEAST_CLIP, deviations), _MOST_CLIP), deviations * _FREE)
    return leverage, 0.0 if kind == "count" else clip


def _price(neighbours: Neighbours) -> float:
    """Sensitivity of the joint release over the weight of the gradient and its largest norm."""
    return 2.0 if neighbours is Neighbours.REPLACE_ONE else math.sqrt(1.5)


def _mu(budget: Budget, fits: int) -> float:
    """The budget of one fit as that of a Gaussian mechanism."""
    with np.errstate(all="ignore"):
        return gaussian_mu(budget.epsilon, budget.delta) / math.sqrt(fits)


def serves(loss: Loss, penalty: Penalty) -> bool:
    """Whether Newton, without intervals, fits the loss with the penalty."""
    softened = loss.softened(1.0)
    stated = softened.form is not None and math.isfinite(softened.joint_constant())
    return stated and (penalty.is_zero or type(penalty) is L2)


def _require_suited(task: Task, intervals: bool) -> None:
    """Refuse what Newton's rounds do not serve, and name what does."""
    problem = task.problem
    if not (problem.penalty.is_zero or type(problem.penalty) is L2):
        raise UnsupportedProblem(
            f"Newton takes no penalty but L2, not {type(problem.penalty).__name__}: use GradientDescent"
        )
    if intervals and not problem.penalty.is_zero:
        raise UnsupportedProblem(
            'Newton fits without a penalty: use C=float("inf"), penalty=None, alpha=0 or LinearRegression. '
            "Newton(intervals=False) takes an L2 penalty and states no errors"
        )
    if not serves(problem.loss, Zero()):
        raise UnsupportedProblem(
            f"Newton needs a loss that states its joint_constant, as logistic, squared and tweedie do: "
            f"{problem.loss.name} states none"
        )
    if task.private:
        problem.slope_bound()  # refuses targets in absurd units
    if task.p > MOST_FEATURES:
        raise UnsupportedProblem(
            f"Newton is for at most {MOST_FEATURES} features, the table has {task.p}: use GradientDescent"
        )


_TYPICAL = 1.5
_DAMPED = 4.0
_CLEAR = 2.0
FAR, FAR_LINEAR = 3.0, 1.5
_RARE = 0.1
_FLOOR_OF_COUNTS = 2.0  # means differ by orders of magnitude: a Hessian that noise makes small leads too far


@dataclass(frozen=True, eq=False)
class Run:
    """The rounds of a private fit."""

    plan: NewtonPlan
    problem: Problem
    curator: Curator
    setting: Setting

    def result(self, iterates: Iterates) -> Result:
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
            iterates.add(k, partial(self._in_records, found.w))
        reason, clip = self._reason(last, round_.unit, share), round_.unit
        scale = self.setting.to_records * self.setting.unit
        privacy = scale @ found.noise @ scale.T
        covariance = privacy + scale @ found.sampling @ scale.T
        stated = Uncertainty(
            covariance, privacy, not reason, reason, self._estimand(), self._deviance(found.w, clip)
        )
        w = self._in_records(found.w)
        return Result(
            w, self.plan.steps, uncertainty=stated if self.plan.intervals else None, records=records,
            iterates=iterates.models,
        )  # fmt: skip

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
