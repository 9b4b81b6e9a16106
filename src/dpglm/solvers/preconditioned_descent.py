"""Gradient descent in the metric of a private Gram matrix."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np

from ..arrays import Vector, on_column_grids, one_blas_thread
from ..bounds import Bounds, Coordinates
from ..curator import Curator
from ..errors import UnsupportedProblem
from ..losses import Logistic, Loss, Squared
from ..mechanisms import Gaussian
from ..penalties import L2, Penalty, Zero
from ..plan import Plan, Releasable, Release
from ..problem import Problem
from ..queries import (
    Gram,
    MetricGradient,
    MetricMultinomialGradient,
    Recalibration,
    metric_gradient_of,
)
from .audit_cases import (
    AuditCase,
    mean_row_case,
    opposed,
    opposed_classes,
    recalibration_case,
    target_spread_case,
)
from .base import Result, Solver, Task, equal_releases, require_smooth
from .exact import STEPS_WITHOUT_NOISE, exact_minimiser
from .iterates import Iterates, Quadratic, StepGuard, descend, optimism_of
from .preludes import (
    MeanRowPrelude,
    NoiseForecast,
    PrivateSetting,
    RowScalePrelude,
    largest_slope,
    norm_of_coordinates,
    releases_of,
    run_preludes,
)
from .recalibration import Expected, recalibrated, release_of_recalibration, share_of_recalibration
from .record_share import RecordShare, of_gram

MOST_FEATURES = 1_000
GRAM_SHARE = 0.15
_MOST_MOMENTUM = 0.8
_CROWD = 119


@dataclass(frozen=True)
class PreconditionedDescentPlan(NoiseForecast, Plan):
    """Plan of `PreconditionedDescent`.

    ``leverage`` is the length in the metric from which on rows are weighted down, in units of the root of the
    effective dimension. ``clip`` is in units of the largest usual slope times that length, ``time`` the sum
    of the lengths of all steps if all dimensions are effective.
    """

    solver: ClassVar[str] = "preconditioned descent"
    may_release: ClassVar[Releasable] = {
        **RowScalePrelude.queries, **MeanRowPrelude.queries, Gram.name: (Gaussian,),
        MetricGradient.name: (Gaussian,), MetricMultinomialGradient.name: (Gaussian,),
        Recalibration.name: (Gaussian,),
    }  # fmt: skip

    clip: float
    time: float
    leverage: float


@dataclass(frozen=True)
class PreconditionedDescent(Solver[PreconditionedDescentPlan]):
    """Gradient descent in the metric of a private Gram matrix: for tables of at most 1,000 features.

    The first release is the size of a typical row, with the mean target and the spread of real targets. The
    second is the mean row, by which rows are moved if there is an intercept. The third is the Gram matrix of
    the moved rows, scaled down to their typical size. Directions that noise does not hide get
    steps of their own length. Then come gradients in that metric, clipped there; the mean of the last half of
    the iterates is returned. Records whose rows are long in the metric, as those of a rare level, are
    weighted down to a typical length, so that their slopes are not cut more than those of others. A logistic
    regression ends with two rounds of Newton's method for its scale and intercept, if their noise is small.

    Parameters
    ----------
    steps : int, optional
        Number of gradients. By default from 8 to 60, as the budget allows and the clip needs.
    clip : float, optional
        Largest norm of a record's gradient in the metric, in units of the largest usual slope times the
        length from which on rows are weighted down. The usual slopes are those of targets within two standard
        deviations; no clip is above the largest slope. By default it falls as noise hides more directions,
        from 1 to 0.12 for labels and from 25 to 0.02 for real targets.
    gram_share : float
        Share of the budget for the Gram matrix.

    Notes
    -----
    Features are scaled by their declared bounds, so their units do not matter. It serves smooth losses with
    an L2 penalty or none. With an infinite epsilon it returns the exact minimiser.
    """

    plan_type: ClassVar[type[Plan]] = PreconditionedDescentPlan
    path: ClassVar[tuple[str, ...]] = ("steps", "ridge", "sparse", "gram")
    takes_outputs: ClassVar[bool] = True
    takes_weights: ClassVar[bool] = True
    takes_offsets: ClassVar[bool] = True
    takes_units: ClassVar[bool] = True

    steps: int | None = None
    clip: float | None = None
    gram_share: float = GRAM_SHARE

    def plan_for(self, task: Task) -> PreconditionedDescentPlan:
        _require_suited(task)
        if not task.private:
            return PreconditionedDescentPlan(*task.facts, (), STEPS_WITHOUT_NOISE, math.inf, 0.0, math.inf)
        clip = float(self.clip or clip_share(task))
        preludes = RowScalePrelude(task), MeanRowPrelude(task)
        scales, mean = (prelude.share for prelude in preludes)
        last = share_of_recalibration(task, clip) if task.problem.fit_intercept else 0.0
        leverage = usual_leverage(task)
        left = 1.0 - scales - mean - last - self.gram_share
        if left <= 0:
            raise ValueError(
                f"gram_share must leave a part of the budget for gradients: {scales + mean + last:.2g} of it "
                f"is for size and mean of rows and for the recalibration, got {self.gram_share!r}"
            )
        time = allowed_noise(task) * math.sqrt(left) / (task.noise * clip * leverage * task.width)
        steps = self.steps or usual_steps(task, clip, time)
        for length in (1e-3, 1e3):
            task.enforced(clip * leverage * task.problem.slope_bound() * length)
        gradient_name = (MetricGradient if task.problem.outputs == 1 else MetricMultinomialGradient).name
        releases = [
            *releases_of(preludes),
            release_of_gram(task, self.gram_share),
            equal_releases(
                gradient_name, Gaussian, steps, f"{task.moved} x clip", share=left,
                entries=task.dimension,
            ),
        ]  # fmt: skip
        if last:
            releases.append(release_of_recalibration(task, last))
        return PreconditionedDescentPlan(
            *task.facts, tuple(releases), steps, clip, time, leverage
        ).calibrated()

    @classmethod
    def run(
        cls, plan: PreconditionedDescentPlan, problem: Problem, curator: Curator,
        stops: Sequence[int] | None = None,
    ) -> Result:  # fmt: skip
        if not plan.budget.private:
            return exact_minimiser(plan, problem, curator)
        coordinates = problem.bounds.coordinates(plan.n_features, problem.fit_intercept)
        setting = run_preludes(plan, problem, curator, replace(coordinates, intercept=False))
        assert setting.coordinates is not None
        coordinates = replace(setting.coordinates, intercept=problem.fit_intercept)
        with one_blas_thread():
            metric = learn_metric(plan, problem, curator, coordinates, setting, plan.leverage)
        smoothness, leverage = problem.bend(), plan.leverage * math.sqrt(metric.rank)
        query = metric_gradient_of(
            problem.loss, coordinates, metric.transform,
            largest_slope(plan.clip, problem, setting) * leverage, leverage, plan.table_size,
        )  # fmt: skip
        time = plan.time * metric.dimension / metric.rank
        longest = longest_step(problem, setting)
        step = min(longest, time / plan.steps) / smoothness
        # The curvature of labels is below its bound.
        most = _MOST_MOMENTUM if problem.loss.kind == "classification" else 0.0
        momentum = min(max(0.0, 1.0 - plan.steps * longest / time), most)
        mechanism = plan[query.name].mechanism
        noise = mechanism.noise * query.sensitivity(plan.neighbours) / plan.n_records
        gradients, iterates = curator.open(query, metric.start, mechanism), Iterates(stops)
        _, mean = descend(
            lambda w: problem.centred(gradients.release(w)) / plan.n_records + metric.pull(w),
            lambda w, step: w, metric.start, plan.steps, StepGuard(step, momentum, noise),
            iterates=iterates, finish=metric.to_records.__matmul__, tail_share=0.5,
        )  # fmt: skip
        found = np.ravel(metric.to_records @ mean)
        expected = Expected(metric.spread(mean), problem.penalty.strong_convexity)
        found = recalibrated(plan, problem, curator, found, setting, expected)
        optimism = optimism_of(problem, setting.spread)
        quadratic = Quadratic(metric.to_records, metric.unit_ridge, optimism)
        iterates.add_models(lambda: quadratic.ridge_models(found))
        iterates.add_models(lambda: quadratic.sparse_models(problem, found))
        records = setting.records or metric.records
        return Result(found, plan.steps, records=records, iterates=iterates.models)

    @classmethod
    def audit_cases(cls) -> tuple[AuditCase, ...]:
        """Opposed gradients, orthogonal rows for Gram matrices, targets far apart, and opposite rows."""
        gradients = opposed(cls(steps=2, gram_share=0.02), 2, crowd=7)
        gram = replace(gradients, solver=cls(steps=1, gram_share=0.95), second=(np.array([0.6, 0.8]), 1.0))
        empty = np.zeros((_CROWD, 2)), np.resize([1.0, -1.0], _CROWD)
        numbers = Problem(Squared(), Zero(), Bounds(row_norm=1.0, target=(-1.0, 1.0)), fit_intercept=False)
        twice = replace(gram, solver=cls(steps=1, gram_share=0.75), problem=numbers, bystanders=empty)
        constant = opposed(cls(steps=1), 1, fit_intercept=True, crowd=7)
        classes = opposed_classes(cls(steps=2, gram_share=0.02), crowd=7)
        spread = target_spread_case(cls(steps=1, gram_share=0.02))
        mean = mean_row_case(cls(steps=1, gram_share=0.02))
        persons = gradients.with_units(3, 30), gram.with_units(30, 3), mean.with_units(first=1, second=20)
        last = recalibration_case(cls(steps=1, clip=0.1, gram_share=0.02))
        return gradients, gram, constant, classes, *persons, spread, mean, last, twice


def serves(loss: Loss, penalty: Penalty) -> bool:
    """Whether the solver fits the loss with the penalty."""
    smooth = math.isfinite(loss.smoothness()) and loss.kind != "count"
    return smooth and (penalty.is_zero or type(penalty) is L2)


def _require_suited(task: Task) -> None:
    """Refuse what the solver does not serve, and name what does."""
    problem = task.problem
    require_smooth(problem, PreconditionedDescent.__name__)
    if not serves(problem.loss, problem.penalty):
        raise UnsupportedProblem(
            "PreconditionedDescent takes an L2 penalty or none, and losses for labels and real targets: use "
            "GradientDescent"
        )
    if task.p > MOST_FEATURES:
        raise UnsupportedProblem(
            f"PreconditionedDescent is for at most {MOST_FEATURES} features, the table has {task.p}: use "
            "GradientDescent"
        )


CONSTANT = 0.3
_LONG_IN_METRIC, _HIDDEN_BY_NOISE = 1.25, 4.0
_OUTWEIGHS, _MOST_BEYOND = 2.0**32, 1e100
_ROUNDING = 1e-10


@dataclass(frozen=True, eq=False)
class Metric:
    """The metric, and what follows from it.

    Attributes
    ----------
    transform : array of shape (d, d)
        Takes coordinates to the metric.
    inverse : array of shape (d, d)
        Takes coefficients of coordinates to coefficients in the metric.
    rank : float
        The effective dimension: the expected squared norm of a record.
    start : array of shape (d,) or (d, outputs)
        Coefficients in the metric of the best constant prediction.
    to_records : array of shape (d, d)
        Takes coefficients in the metric to those of the records' own features.
    ridge, unit_ridge : array of shape (d, d)
        Curvature in the metric of the penalty, and of an L2 penalty of strength 1.
    records : RecordShare, optional
        The share of the records that counted, if the Gram matrix tells.
    """

    transform: Vector
    inverse: Vector
    rank: float
    start: Vector
    to_records: Vector
    ridge: Vector
    unit_ridge: Vector
    records: RecordShare | None

    @property
    def dimension(self) -> int:
        return len(self.start)

    def pull(self, w: Vector) -> Vector:
        """Gradient of the penalty."""
        pulled: Vector = self.ridge @ w
        return pulled

    def spread(self, w: Vector) -> float:
        """About the deviation of margins, or more: rows have second moments of at most 1 in the metric."""
        by_features = self.transform @ w
        by_features[-1] = 0.0
        return float(np.linalg.norm(self.inverse @ by_features))


class _Axes(NamedTuple):
    """Axes of a matrix of second moments: eigenvalues, what they are raised to, and eigenvectors."""

    values: Vector
    raised: Vector
    vectors: Vector

    @classmethod
    def of(cls, matrix: Vector, floor: float) -> _Axes:
        """Eigenvalues are raised to the floor: what noise hides is not stretched beyond it."""
        values, vectors = np.linalg.eigh(matrix)
        least = max(floor, _ROUNDING * float(np.abs(values).max()))
        return cls(values, np.maximum(values, least), vectors)

    def rank(self, floor: float) -> float:
        """The expected squared norm of a record, of which half the floor may be in a hidden direction."""
        return float(np.sum(np.maximum(self.values, floor / 2) / self.raised))


def release_of_gram(task: Task, share: float) -> Release:
    """The release of one Gram matrix, or of two that have half of the share each."""
    d = task.p + task.problem.fit_intercept
    return equal_releases(
        Gram.name, Gaussian, gram_rounds(task), "the squared size of a typical row", share=share,
        entries=d * (d + 1) // 2,
    )  # fmt: skip


def learn_metric(
    plan: Plan, problem: Problem, curator: Curator, coordinates: Coordinates, setting: PrivateSetting,
    leverage: float,
) -> Metric:  # fmt: skip
    """Release the Gram matrix and make a metric of it, in which a second one is released.

    Where there are two, columns are divided by the upper bounds of their deviations first. ``leverage`` is
    the length, in units of a typical one, up to which rows count.
    """
    n, p, d = plan.n_records, plan.n_features, coordinates.dimension
    mechanism, twice = plan[Gram.name].mechanism, plan[Gram.name].count > 1
    deviations = setting.deviations if twice and setting.deviations is not None else np.ones(p)
    # If variances are in proportion to their bounds, scaled rows are longer by this.
    size = setting.norm * math.sqrt(p) / float(np.linalg.norm(deviations))
    largest = norm_of_coordinates(problem, coordinates) / float(deviations.min())
    constant = CONSTANT * size if problem.fit_intercept else 0.0
    norm = math.hypot(min(leverage * size, max(largest, size)), constant)
    scale = np.append(1.0 / deviations, np.full(d - p, constant))
    query = Gram(coordinates, norm, np.diag(scale), plan.table_size)
    gram = query.matrix(curator.release(query, mechanism)) / n
    noise = mechanism.noise * query.sensitivity(plan.neighbours) / n
    unit = np.append(1.0 / np.square(coordinates.half), np.zeros(d - p))
    penalty = problem.penalty.strong_convexity * unit * np.square(scale)
    # Beyond this the matrices below would be singular, and a coefficient is its gradient over its penalty.
    strongest = _OUTWEIGHS * problem.bend() * norm**2
    beyond = np.minimum(np.maximum(penalty / strongest, 1.0), _MOST_BEYOND)
    penalty = np.minimum(penalty, strongest)
    # A penalty that outweighs all records, as that of a feature in a large unit, would hide the others.
    shrunk = 1.0 / np.sqrt(np.maximum(penalty / (problem.bend() * norm**2), 1.0))
    bent = np.diag(penalty / problem.bend())
    floor = noise * math.sqrt(d)
    axes = _Axes.of(shrunk[:, None] * (gram + bent) * shrunk, floor)
    rank = axes.rank(floor)
    to_metric = shrunk[:, None] * axes.vectors / np.sqrt(axes.raised)
    to_scaled = np.sqrt(axes.raised)[:, None] * axes.vectors.T / shrunk
    if twice:
        longest = _LONG_IN_METRIC * leverage * math.sqrt(rank)
        second = Gram(coordinates, longest, scale[:, None] * to_metric, plan.table_size)
        seen = second.matrix(curator.release(second, mechanism)) / n + to_metric.T @ bent @ to_metric
        noise_seen = mechanism.noise * second.sensitivity(plan.neighbours) / n
        variances = noise**2 / np.outer(axes.raised, axes.raised), np.full((d, d), noise_seen**2)
        # Where the first matrix is clear, its rows were cut less.
        clear = axes.values >= _HIDDEN_BY_NOISE * floor
        precision = variances[1] / np.maximum(variances[0] + variances[1], np.finfo(float).tiny)
        weight = np.where(np.outer(clear, clear), 1.0, precision)
        both = weight * np.diag(axes.values / axes.raised) + (1.0 - weight) * seen
        noises = weight**2 * variances[0] + (1.0 - weight) ** 2 * variances[1]
        hidden = noises.mean(axis=1)[np.ones(d, dtype=np.bool_) if clear.all() else ~clear]
        floor = min(math.sqrt(d * float(hidden.max())), 1.0)
        axes = _Axes.of(both, floor)
        rank = axes.rank(floor)
        to_metric = to_metric @ axes.vectors / np.sqrt(axes.raised)
        to_scaled = np.sqrt(axes.raised)[:, None] * axes.vectors.T @ to_scaled
    transform = on_column_grids(scale[:, None] * to_metric)
    inverse = to_scaled / scale
    start = np.zeros(d if problem.outputs == 1 else (d, problem.outputs))
    if problem.fit_intercept:
        start[-1] = setting.start
        start = inverse @ start
    strengths = penalty / np.square(scale), unit
    ridge, unit_ridge = (transform.T @ (strength[:, None] * transform) for strength in strengths)
    to_records = _to_records(problem, p, coordinates) @ (transform / beyond[:, None])
    return Metric(
        transform, inverse, rank, start, to_records, ridge, unit_ridge,
        of_gram(plan, problem, query, gram, noise),
    )  # fmt: skip


def _to_records(problem: Problem, p: int, coordinates: Coordinates) -> Vector:
    """The matrix that takes coefficients of coordinates to those of the records' own features."""
    matrix = np.diag(1.0 / np.append(coordinates.half, np.ones(coordinates.dimension - p)))
    if problem.fit_intercept:
        matrix[-1, :p] = -coordinates.middle / coordinates.half
        matrix[-1] /= problem.constant(p)
    return matrix


_HIDDEN = 1.3
_TWO_ROUNDS = 0.3
_CLIP, _LEAST_CLIP_OF_LABELS = 0.22, 0.12
_CLIP_OF_HIDDEN, _LEAST_CLIP_OF_TARGETS, _LARGEST_CLIP_OF_TARGETS = 0.42, 0.02, 25.0
_ALLOWED_NOISE, _MOST_ALLOWED, _ALLOWED_NOISE_OF_LABELS = 0.5, 0.95, 0.75
LEAST_STEPS, _LEAST_STEPS_OF_TARGETS, MOST_STEPS = 10, 8, 60
_STEPS_OF_TARGETS, _STEPS_OF_LABELS, _STEPS_OF_CLASSES = 12, 18, 44
_USUAL_RANK = 1.5
_LITTLE_NOISE = 0.009
_LONGEST_STEP_OF_RARE = 3.0


def _hidden(task: Task) -> float:
    """About 1 where noise hides half of the directions of the Gram matrix."""
    return float(_HIDDEN * task.noise * task.width**1.5)


def gram_rounds(task: Task) -> int:
    """How many Gram matrices are released, of which the second is in the metric of the first.

    It says more of directions that noise hid in the first, unless noise hides most of them in both. For
    labels it pushed small groups to the more frequent label.
    """
    targets = task.problem.loss.kind == "regression"
    return 2 if targets and _hidden(task) <= _TWO_ROUNDS else 1


def clip_share(task: Task) -> float:
    """The clip in units of the largest usual slope times the root of the effective dimension.

    It falls as noise hides more of the directions. Slopes of labels are all alike at the start, so a smaller
    clip than 0.12 gains nothing for them; of residuals, little more than the sign counts where noise hides
    most directions.
    """
    hidden = _hidden(task)
    if task.problem.loss.kind == "classification":
        return min(max(_CLIP / math.sqrt(hidden), _LEAST_CLIP_OF_LABELS), 1.0)
    clip = min(_CLIP / math.sqrt(hidden), _CLIP_OF_HIDDEN / hidden)
    return min(max(clip, _LEAST_CLIP_OF_TARGETS), _LARGEST_CLIP_OF_TARGETS)


def allowed_noise(task: Task) -> float:
    """Noise of predictions in directions that the metric does not resolve, in units of the usual slopes.

    For real targets it grows where most directions are such, from where their clip begins to fall faster.
    """
    if task.problem.loss.kind == "classification":
        return _ALLOWED_NOISE_OF_LABELS
    later = math.sqrt(_hidden(task)) * _CLIP / _CLIP_OF_HIDDEN
    return min(_ALLOWED_NOISE * max(1.0, later), _MOST_ALLOWED)


def longest_step(problem: Problem, setting: PrivateSetting) -> float:
    """The longest step in units of the inverse curvature.

    If one label is rare, the curvature of its constant prediction is below the bound by cosh²(start / 2); the
    root of that leaves room for records whose prediction is less certain.
    """
    if not isinstance(problem.loss, Logistic):
        return 1.0
    return min(math.cosh(float(setting.start) / 2), _LONGEST_STEP_OF_RARE)


def usual_leverage(task: Task) -> float:
    """The length in the metric, in units of a typical one, from which on rows are weighted down.

    It grows as noise vanishes, so that a penalty outweighs no record whose row is long.
    """
    return max(1.0, math.sqrt(_LITTLE_NOISE / _hidden(task)))


def usual_steps(task: Task, clip: float, time: float) -> int:
    """The number of steps: what the time needs, and not more than gradients that are clipped so much do.

    Where noise is so small that few passes of Newton's method would do as well, the number grows as its
    logarithm: directions of records that are weighted down are flat, and need more steps to the same error.

    For real targets it is a multiple of four. Long rows are scaled down in the Gram matrix, so that the
    curvature along a direction may be twice that of the metric, where iterates alternate between two points:
    the mean of an even number of them, the last half, is between these.
    """
    loss, hidden = task.problem.loss, _hidden(task)
    more = math.log(hidden) / math.log(_LITTLE_NOISE) if hidden < _LITTLE_NOISE else 1.0
    if loss.kind == "classification":
        enough = _STEPS_OF_LABELS if loss.outputs == 1 else _STEPS_OF_CLASSES
        return _steps(more * enough, clip, time, LEAST_STEPS)
    least = math.ceil(more * _LEAST_STEPS_OF_TARGETS)
    return 4 * math.ceil(_steps(more * _STEPS_OF_TARGETS, clip, time, least) / 4)


def _steps(enough: float, clip: float, time: float, least: int) -> int:
    most = min(max(math.ceil(enough / clip), least), MOST_STEPS)
    return min(max(math.ceil(_USUAL_RANK * time), LEAST_STEPS), most)
