"""Private gradient descent, on all records or on Poisson batches."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, NamedTuple

import numpy as np

from .. import strict
from ..arrays import Vector
from ..bounds import Coordinates
from ..curator import Curator
from ..mechanisms import Gaussian
from ..mechanisms.sampling import Poisson
from ..penalties import Separable
from ..plan import Plan, Releasable, Release
from ..problem import Problem
from ..queries import ClippedGradient, InterceptSlope, MultinomialGradient, Recalibration, gradient_of
from . import count_descent
from .audit_cases import (
    AuditCase,
    class_shares_case,
    column_sizes_case,
    counts_case,
    opposed,
    opposed_classes,
    recalibration_case,
    row_scale_case,
    target_spread_case,
)
from .base import (
    CROSSING_STEP,
    MOST_PRIVATE_STEPS,
    PREDICTION_NOISE,
    Result,
    Solver,
    Task,
    clip_of_gradients,
    equal_releases,
    require_smooth,
)
from .exact import STEPS_WITHOUT_NOISE, exact_minimiser
from .iterates import Iterates, StepGuard, descend, sparse_models
from .preludes import (
    WIDE,
    ColumnSizesPrelude,
    NoiseForecast,
    Prelude,
    PrivateSetting,
    RowScalePrelude,
    ScaledRowScalePrelude,
    largest_slope,
    releases_any,
    releases_of,
    run_preludes,
    worth_of_first,
)
from .recalibration import (
    Expected,
    recalibrated,
    recalibrates,
    release_of_recalibration,
    share_of_recalibration,
)

LONGEST_STEP = 1.5
_LEAST_CLIP, _CLIP_NOISE = 0.12, 6e-4
_LEAST_CLIP_OF_LABELS, _MOST_LEAST_CLIP, _FEW = 0.2, 0.5, 10_000
_CLIP_OF_TARGETS, _LARGE_CLIP_OF_TARGETS = 4e-4, 25.0  # in units of the usual slopes
_NOISE_OF_TARGETS = 0.2  # in units of the usual slopes over the smoothness
_CONSTANT, _CONSTANT_OF_REFITTED = 0.25, 0.1
_LEAST_STEPS = 10
_MOST_SCALED = 1_000  # features by whose bounds columns are scaled: rows are written in these coordinates
_CLIP_OF_NARROW = 0.2
_LEAST_LENGTH = 1.5
_LEAST_LEFT = 1 / 3
_USUAL_SPREAD, _DOUBT, _WEAK = 1.0, (0.4, 2.0), 0.01
_LITTLE_NOISE, _MOST_STEPS, _MOST_MOMENTUM = 5e-5, 1000, 0.95


class _Usual(NamedTuple):
    """Constants for one kind of loss.

    The clip is that at the noise `_CLIP_NOISE`, but for real targets; lengths of steps are in units of the
    inverse curvature of a typical row.
    """

    clip: float
    most_steps: int
    finest_step: float
    longest_step: float
    most_momentum: float


_LABELS = _Usual(0.2, 100, 8.0, 16.0, 0.8)
_NUMBERS = _Usual(0.25, 150, 0.25, LONGEST_STEP, 0.0)


@dataclass(frozen=True)
class GradientDescentPlan(NoiseForecast, Plan):
    """Plan of `GradientDescent`.

    If the size of a typical row is released, ``clip`` is in units of the gradient norm of such a row with the
    largest usual slope, and ``step_size`` in units of the inverse of its curvature. ``momentum`` is
    Nesterov's. ``first_step`` is the length of the first step, along the gradient that is released with the
    sizes of columns, in the same units and for a gradient of norm ``clip``; 0 without that release.

    For counts and amounts ``clip`` is in units of the usual slope that follows from the released mean,
    ``step_size`` in units of the inverse of twice the curvature there, and like ``momentum`` it is the
    largest: noise may allow less.
    """

    solver: ClassVar[str] = "gradient descent"
    may_release: ClassVar[Releasable] = {
        **RowScalePrelude.queries, ClippedGradient.name: (Gaussian,), MultinomialGradient.name: (Gaussian,),
        InterceptSlope.name: (Gaussian,), Recalibration.name: (Gaussian,), **ColumnSizesPrelude.queries,
        **ScaledRowScalePrelude.queries,
    }  # fmt: skip

    clip: float
    step_size: float
    average: bool
    momentum: float
    first_step: float

    def __post_init__(self) -> None:
        super().__post_init__()
        strict.number("momentum", self.momentum, "at least 0 and below 1", lambda share: 0 <= share < 1)
        strict.number("first_step", self.first_step, "at least 0", lambda length: 0 <= length < math.inf)

    @property
    def learns_scales(self) -> bool:
        """Whether the size of a typical row is released first."""
        return releases_any(self, RowScalePrelude)


@dataclass(frozen=True)
class GradientDescent(Solver[GradientDescentPlan]):
    """w <- prox(w - step_size * (clipped mean gradient + noise)), ``steps`` times.

    Parameters
    ----------
    steps : int, optional
        Number of steps. By default it follows from the budget: from 10 to 150, for labels to 100; from 1 to
        500, or 200 if the table is not in memory, if ``clip`` or ``step_size`` is given.
    clip : float, optional
        Largest L2 norm of one record's gradient; longer ones are scaled down to it.
    step_size : float, optional
        Length of a step.
    batch_size : int, optional
        Expected size of a Poisson batch; by default every step reads all records.
    average : bool
        Return the mean of the last quarter of the iterates instead of the last one.
    scale_columns : bool, optional
        Release how large columns are with a first gradient, and scale them: see below. By default this is
        done for tables of more than 300 features.

    Notes
    -----
    If neither ``clip`` nor ``step_size`` is given, both are sized by a typical row: a small share of the
    budget, 2 % for most tables, is spent on the mean squared norm of rows and on the mean target, from which
    the intercept starts, and on the spread of real targets, which sizes the clip. If one of them is given,
    the other follows from the declared bounds.

    Columns can be scaled for the logistic loss and a penalty that is a sum over coordinates, if neither
    ``clip`` nor ``step_size`` nor ``batch_size`` is given, the size of a row is released, and persons have
    one record each; otherwise ``scale_columns`` has no effect. Columns that noise hides, and columns that
    take most of the norm of a row, are made smaller (docs/defaults.md).

    A logistic regression that is sized by a typical row ends with two rounds of Newton's method for its scale
    and intercept, if their noise is small and gradients are clipped.

    With an infinite epsilon the solver returns the exact minimiser, found by accelerated steps;
    ``steps`` is then a limit, and no gradient is clipped unless ``clip`` is given.
    """

    plan_type: ClassVar[type[Plan]] = GradientDescentPlan
    path: ClassVar[tuple[str, ...]] = ("steps", "sparse")
    takes_outputs: ClassVar[bool] = True
    takes_weights: ClassVar[bool] = True
    takes_offsets: ClassVar[bool] = True
    takes_units: ClassVar[bool] = True

    steps: int | None = None
    clip: float | None = None
    step_size: float | None = None
    batch_size: int | None = None
    average: bool = True
    scale_columns: bool | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.scale_columns is not None:
            strict.flag("scale_columns", self.scale_columns)

    def plan_for(self, task: Task) -> GradientDescentPlan:
        if self.step_size is None or not task.private:
            require_smooth(task.problem, type(self).__name__)
        if task.private and self.clip is None and self.step_size is None:
            if count_descent.serves(task.problem):
                return self._for_counts(task)
            if RowScalePrelude(task).share > 0:
                return self._for_typical_rows(task)
        return self._for_declared_bounds(task)

    def _for_typical_rows(self, task: Task) -> GradientDescentPlan:
        """The plan that releases the size of a typical row first, and sizes clip and steps by it."""
        columns: tuple[Prelude, ...] = ()
        if self.batch_size is None:
            asked = self.scale_columns
            columns = ColumnSizesPrelude(task, asked), ScaledRowScalePrelude(task, asked)
        preludes = RowScalePrelude(task), *columns
        scales, sizes, size = [*(prelude.share for prelude in preludes), 0.0, 0.0][:3]
        last = 0.0
        if 1.0 - scales - sizes - size >= _LEAST_LEFT:
            last = share_of_recalibration(task, typical_clip(task))
        rest, worth = 1.0 - scales - last - sizes - size, worth_of_first(task, sizes)
        part = worth / (worth + rest)
        steps, clip, step_size, momentum = typical_settings(task, worth + rest, self.steps, 1.0 - part)
        # A first step that the others could not have made, they could not correct either.
        first_step = part * min(settled_time(task, worth + rest, clip), longest_time(task.problem))
        steps = int(self.steps or steps)
        query = gradient_of(task.problem.loss, clip, task.table_size, task.p)
        releases = [*releases_of(preludes), self._gradients(task, query.name, steps, rest)]
        if last:
            releases.append(release_of_recalibration(task, last))
        return GradientDescentPlan(
            *task.facts, tuple(releases), steps, clip, step_size, self.average, momentum, first_step
        ).calibrated()

    def _for_declared_bounds(self, task: Task) -> GradientDescentPlan:
        """The plan by given settings, by the declared bounds, or without noise."""
        problem, step_size = task.problem, 0.0
        if task.private:
            # With given steps the step size is the same for every kind of table, and so is the fit.
            most = MOST_PRIVATE_STEPS if self.steps else task.affordable(MOST_PRIVATE_STEPS)
            steps, clip, step_size = default_settings(problem, task.p, task.noise, self.clip, most)
            step_size, clip = float(self.step_size or step_size), task.enforced(clip)
        else:
            steps, clip = STEPS_WITHOUT_NOISE, task.enforced(self.clip or math.inf)
        steps = int(self.steps or steps)
        query = gradient_of(problem.loss, clip, task.table_size, task.p)
        sensitivity = query.sensitivity(task.neighbours)
        releases = (self._gradients(task, query.name, steps, 1.0, sensitivity),)
        plan = GradientDescentPlan(*task.facts, releases, steps, clip, step_size, self.average, 0.0, 0.0)
        plan = plan.calibrated()
        if task.private:
            release = plan[query.name]
            noise = release.mechanism.noise * sensitivity / (clip * task.table_size)
            slope = clip * task.table_size / (task.n * _rate_of(release))
            task.require_reach(problem.start(task.p), steps, step_size * slope, noise)
        return plan

    def _gradients(
        self, task: Task, name: str, steps: int, share: float, sensitivity: float | None = None
    ) -> Release:
        """The releases of gradients; without a sensitivity, the clip is not known yet."""
        stated = f"{task.moved} x clip" if sensitivity is None else sensitivity
        return equal_releases(
            name, Gaussian, steps, stated, share=share, sampling=task.batches(self.batch_size),
            entries=task.dimension,
        )  # fmt: skip

    def _for_counts(self, task: Task) -> GradientDescentPlan:
        """The plan for counts and amounts."""
        steps = self.steps or count_descent.STEPS
        releases = count_descent.releases(task, steps, task.batches(self.batch_size))
        momentum = count_descent.MOST_MOMENTUM
        plan = GradientDescentPlan(*task.facts, releases, steps, 1.0, 1.0, self.average, momentum, 0.0)
        return plan.calibrated()

    @classmethod
    def run(
        cls, plan: GradientDescentPlan, problem: Problem, curator: Curator, stops: Sequence[int] | None = None
    ) -> Result:
        if not plan.budget.private:
            return exact_minimiser(plan, problem, curator, plan.clip)
        if plan.learns_scales and count_descent.serves(problem):
            return count_descent.run(plan, problem, curator, stops)
        query, step_size, w, setting, scales = _started(plan, problem, curator)
        release = plan[query.name]
        batch = plan.n_records * _rate_of(release)

        def gradient(w: Vector) -> Vector:
            released = curator.release(query, release.mechanism, w, sampling=release.sampling)
            return problem.centred(released / batch)

        def finished(w: Vector) -> Vector:
            found = problem.scaled(w, scales)
            if query.constant is not None:
                problem.split(found)[1][:] *= query.constant / problem.constant(plan.n_features)
            return found

        guarded = plan.learns_scales and not isinstance(release.sampling, Poisson)
        noise = release.mechanism.noise * query.sensitivity(plan.neighbours) / batch if guarded else math.inf
        iterates = Iterates(stops)
        w, mean = descend(
            gradient, partial(problem.prox_in_scale, scales=scales), w, plan.steps,
            StepGuard(step_size, plan.momentum, noise), iterates=iterates, finish=finished,
        )  # fmt: skip
        # A mean of points at the end of an interval may be rounded out of it.
        found = problem.prox(finished(mean), 0.0) if plan.average else finished(w)
        if recalibrates(plan):
            expected = Expected(_USUAL_SPREAD, _counted_penalty(problem, plan.n_features), _DOUBT)
            found = recalibrated(plan, problem, curator, found, setting, expected)
            found = problem.prox(found, 0.0)
        iterates.add_models(lambda: sparse_models(problem, found))
        return Result(found, plan.steps, records=setting.records, iterates=iterates.models)

    @classmethod
    def audit_cases(cls) -> tuple[AuditCase, ...]:
        last = recalibration_case(cls(steps=1), n_features=20)  # on a narrow table nothing would be clipped
        last = replace(last, second=(last.second[0], last.first[1]))  # opposite gradients
        return (
            opposed(cls(steps=2, clip=0.1, step_size=0.1), 2),
            opposed(cls(steps=2, clip=0.1, step_size=0.1, batch_size=2), 1),
            opposed(cls(steps=2, clip=0.1, step_size=0.1), 1, fit_intercept=True, crowd=7),
            opposed(cls(steps=1, clip=0.1, step_size=0.1, batch_size=1), 1, crowd=3),
            row_scale_case(cls(steps=1)),
            target_spread_case(cls(steps=1)),
            opposed_classes(cls(steps=2, clip=0.1, step_size=0.1)),
            opposed_classes(cls(steps=2, clip=0.1, step_size=0.1, batch_size=2)),
            class_shares_case(cls(steps=1)),
            opposed(cls(steps=2, clip=0.1, step_size=0.1), 2).with_weights(weight=3.0, offset=0.5),
            opposed(cls(steps=2, clip=0.1, step_size=0.1), 2).with_units(first=5, second=1),
            opposed(cls(steps=1, clip=0.1, step_size=0.1, batch_size=1), 1, crowd=3).with_units(2, 40),
            row_scale_case(cls(steps=1)).with_units(first=1, second=20),
            column_sizes_case(cls(steps=1, scale_columns=True)),
            column_sizes_case(cls(steps=1, scale_columns=True)).with_weights(weight=3.0, offset=0.5),
            counts_case(cls(steps=1)),
            counts_case(cls(steps=1)).with_weights(weight=3.0, offset=0.5),
            counts_case(cls(steps=1)).with_units(first=1, second=20),
            last,
        )


def _rate_of(release: Release) -> float:
    """The share of the records that a batch has on average."""
    return release.sampling.rate if isinstance(release.sampling, Poisson) else 1.0


def _started(
    plan: GradientDescentPlan, problem: Problem, curator: Curator
) -> tuple[ClippedGradient | MultinomialGradient, float, Vector, PrivateSetting, Vector | None]:
    """The query of every step, the step size, the start, what was learnt first, and scales of columns.

    If there are scales, the start is in coefficients of scaled columns.
    """
    w, table = problem.start(plan.n_features), (plan.table_size, plan.n_features)
    if not plan.learns_scales:
        public = PrivateSetting.public(problem, plan.n_features, None)
        return gradient_of(problem.loss, plan.clip, *table), plan.step_size, w, public, None
    limits = None if releases_any(plan, ColumnSizesPrelude) else _unequal_limits(problem, plan.n_features)
    coordinates = None if limits is None else Coordinates(np.zeros_like(limits), limits, intercept=False)
    setting = run_preludes(plan, problem, curator, coordinates)
    columns = setting.columns
    norm, scales = (setting.norm, None) if columns is None else (columns.norm, columns.scales)
    if limits is not None:
        least = float(limits.min())
        norm, scales = norm * least, least / limits
        features = problem.split(w)[0]
        features[:] = features / scales
    # Where the fit is recalibrated at the end, gradients need not spend their clip on it.
    share = _CONSTANT_OF_REFITTED if recalibrates(plan) else _CONSTANT
    constant = share * norm if problem.fit_intercept else None
    radius = math.hypot(norm, constant or 0.0)
    slope, long = _slope_and_length(plan, problem, setting)
    clip, longest = slope * radius, long * radius if math.isfinite(long) else None
    curvature = problem.loss.smoothness() * radius**2
    if columns is not None:
        length = plan.first_step / curvature * clip / columns.clip
        features = problem.split(w)[0]
        features[:] = features / columns.scales - length * columns.scales * problem.split(columns.first)[0]
        w = problem.prox_in_scale(w, length, columns.scales)
    query = gradient_of(problem.loss, clip, *table, constant, scales, longest)
    if constant is not None:
        problem.split(w)[1][:] = setting.start / constant
    return query, plan.step_size / curvature, w, setting, scales


def _counted_penalty(problem: Problem, p: int) -> float:
    """The L2 penalty that counts in the recalibration, 0 if it is weak.

    Most of the size of coefficients is noise then, and a penalty of noise would make margins too short.
    """
    l2 = problem.penalty.strong_convexity
    return l2 if l2 > _WEAK * problem.smoothness(p) else 0.0


def _unequal_limits(problem: Problem, p: int) -> Vector | None:
    """Declared bounds of features that columns are scaled by: None if they are equal, or cannot be."""
    if problem.bounds.feature is None or problem.outputs > 1 or p > _MOST_SCALED:
        return None
    limits = problem.bounds.features(p)
    unequal = isinstance(problem.penalty, Separable) and float(limits.min()) < float(limits.max())
    return limits if unequal else None


def _slope_and_length(
    plan: GradientDescentPlan, problem: Problem, setting: PrivateSetting
) -> tuple[float, float]:
    """What slopes of a typical row are clipped to, and how long a row of full weight is, in typical rows.

    Slopes of labels have a bound, so rows no longer than typical are not clipped in the end. Those of numbers
    are clipped by less and less, on longer and longer rows. While the clip is below the usual slopes it is
    small for any row, and weights would only cost what long rows say.
    """
    clip, largest = plan.clip, problem.slope_bound()
    if problem.loss.kind != "regression":
        return clip * largest, 1.0 if plan.n_features <= WIDE else 1.0 / clip
    usual = largest_slope(1.0, problem, setting)
    slope = min(clip * usual, largest * max(1.0, clip / _LARGE_CLIP_OF_TARGETS))
    return slope, max(_LEAST_LENGTH, math.sqrt(slope / usual)) if clip >= 1.0 else math.inf


def _usual(problem: Problem) -> _Usual:
    return _LABELS if problem.loss.kind == "classification" else _NUMBERS


def typical_clip(task: Task) -> float:
    """The clip in units of the gradient norm of a typical row with the largest usual slope."""
    if task.problem.loss.kind == "regression":
        clip = max(_CLIP_OF_TARGETS / task.noise, _LEAST_CLIP)
        # Beyond this noise falls with the budget, and the clip still grows.
        return float(min(clip, math.sqrt(clip * _LARGE_CLIP_OF_TARGETS)))
    labels = task.problem.loss.kind == "classification"
    clip = _usual(task.problem).clip * (_CLIP_NOISE / task.noise) ** (1 / 3)
    # Where steps cannot take all of the time that noise leaves, a larger clip costs nothing.
    free = PREDICTION_NOISE * task.problem.stretch() / (task.noise * longest_time(task.problem))
    least, most = (_least_clip_of_labels(task.n), 1.0) if labels else (_LEAST_CLIP, 2.0)
    width = task.noise * task.width**1.5
    narrow = _CLIP_OF_NARROW / math.sqrt(width) if labels else 0.0
    return float(max(min(max(clip, narrow), 1.0), min(free, most), least))


def _least_clip_of_labels(n: int) -> float:
    """A small clip counts records by their labels alone; with few records, each has to say more."""
    return float(min(_LEAST_CLIP_OF_LABELS * max(1.0, (_FEW / n) ** 0.25), _MOST_LEAST_CLIP))


def settled_time(task: Task, share: float, clip: float) -> float:
    """The sum of the lengths of all steps, in units of a typical row, with a share of the budget."""
    problem, noise = task.problem, task.noise / math.sqrt(share)
    allowed = _NOISE_OF_TARGETS if problem.loss.kind == "regression" else PREDICTION_NOISE
    time = allowed * problem.stretch() / (noise * clip)
    if problem.penalty.strong_convexity > 0:
        time = min(time, max(1.0, 5 * problem.smoothness(task.p) / problem.penalty.strong_convexity))
    return time


def longest_time(problem: Problem) -> float:
    """The longest time that all steps can take, in units of a typical row."""
    usual = _usual(problem)
    return usual.most_steps * longest_step(problem) / (1.0 - usual.most_momentum)


def longest_step(problem: Problem) -> float:
    """The longest of the steps, in units of a typical row."""
    return max(_usual(problem).longest_step, CROSSING_STEP * problem.stretch())


def typical_settings(
    task: Task, share: float, given: int | None, part: float = 1.0
) -> tuple[int, float, float, float]:
    """(steps, clip, step_size, momentum) in units of a typical row, with a share of the budget.

    The steps take a part of the time. They are derived in docs/defaults.md.
    """
    problem = task.problem
    usual = _usual(problem)
    clip = typical_clip(task)
    for length in (1e-3, 1.0):
        task.enforced(clip * problem.slope_bound() * problem.radius(task.p) * length)
    time = part * settled_time(task, share, clip)
    more = max(1.0, math.sqrt(_LITTLE_NOISE / task.noise)) if task.p <= WIDE else 1.0
    most = min(usual.most_steps * more, _MOST_STEPS)
    steps = given or min(max(math.ceil(time / usual.finest_step), _LEAST_STEPS), task.affordable(int(most)))
    longest = longest_step(problem)
    plenty = _MOST_MOMENTUM * max(0.0, 1.0 - task.noise / _LITTLE_NOISE)
    momentum = min(max(0.0, 1.0 - steps * longest / time), max(usual.most_momentum, plenty))
    return steps, clip, min(time / steps, longest), momentum


def default_settings(
    problem: Problem, p: int, noise: float, clip: float | None, most: int = MOST_PRIVATE_STEPS
) -> tuple[int, float, float]:
    """(steps, clip, step_size) of gradient descent; a clip that is given is kept (docs/defaults.md).

    There are at most ``most`` steps.
    """
    clip, fraction = clip_of_gradients(problem, p, noise, clip)
    smoothness, stretch = problem.smoothness(p), problem.stretch()
    time = PREDICTION_NOISE * stretch / (noise * fraction)
    if problem.penalty.strong_convexity > 0:
        time = min(time, max(1.0, 5 * smoothness / problem.penalty.strong_convexity))
    steps = min(max(math.ceil(time), 1), most)
    return steps, clip, min(time / steps, max(LONGEST_STEP, CROSSING_STEP * stretch)) / smoothness
