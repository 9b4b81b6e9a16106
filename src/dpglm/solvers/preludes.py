"""What solvers learn of a table first: how long a typical row is, mean and spread of targets."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .. import strict
from ..arrays import Vector
from ..bounds import Coordinates
from ..curator import Curator
from ..errors import UnsupportedProblem
from ..losses import Logistic
from ..mechanisms import Gaussian, Mechanism
from ..penalties import Separable
from ..plan import Plan, Releasable, Release
from ..privacy import Budget, Neighbours
from ..problem import Problem
from ..queries import (
    ClassShares,
    ColumnSizes,
    MeanRow,
    RowAndTargetScale,
    RowScale,
    ScaledRowScale,
    SecondMoments,
)
from .base import Task, equal_releases, noise_of_one_pass
from .record_share import RecordShare, of_sum

_LEAST_OF_SCALES, _MOST_OF_SCALES = 0.02, 0.2
_GOOD_SCALES, _USELESS_SCALES = 0.1, 0.3
_SHORTEST_ROW, _SHORTEST_SCALED = 0.02, 0.001
_LONG = 1.5
_FARTHEST = 0.95
_HOPELESS, _NOISY = 0.1, 0.03
_SPREADS = 2.0

SCALES: Releasable = {query.name: (Gaussian,) for query in (RowScale, RowAndTargetScale, ClassShares)}
"""The queries that `learn` may release."""


class NoiseForecast:
    """What public numbers say of the noise of a fit: for plans."""

    n_records: int
    budget: Budget
    neighbours: Neighbours
    fits: int
    unit: str

    @property
    def _noise(self) -> float:
        return noise_of_one_pass(self.n_records, self.budget, self.neighbours, self.fits)

    @property
    def forecast(self) -> str | None:
        if not self.budget.private:
            return None
        return (
            f"a mean over the {self.unit}s, released once with all of the budget, would have noise of "
            f"{self._noise:.2g} times the largest value of a {self.unit}"
        )

    @property
    def warning(self) -> str | None:
        if not self.budget.private or self._noise <= _NOISY:
            return None
        few, what = ("too few", "what") if self._noise > _HOPELESS else ("few", "much of what")
        return (
            f"{self.n_records} {self.unit}s are {few} for epsilon {self.budget.epsilon:g}: noise will "
            f"hide {what} they say (see the forecast of the plan)"
        )


@dataclass(frozen=True)
class Typical:
    """What was learnt.

    Attributes
    ----------
    norm : float
        Root of the mean squared norm of a row.
    start : float or array
        The intercept to start from, or that of each class: the best constant prediction.
    spread : float
        Standard deviation of targets in units of half their range, where it was learnt; 1 elsewhere.
    records : RecordShare, optional
        The share of the records that counted, where shares of classes were learnt.
    """

    norm: float
    start: float | Vector
    spread: float = 1.0
    records: RecordShare | None = None


def share_of_scales(task: Task) -> float:
    """Share of the budget for the two numbers: 2 %, or what leaves noise of 0.1 in them, up to 20 %.

    It is 0 if even that share would leave noise of more than 0.3: then the numbers are not released.
    """
    wanted = 2.0 * (task.noise / _GOOD_SCALES) ** 2
    if 2.0 * task.noise**2 > _MOST_OF_SCALES * _USELESS_SCALES**2:
        return 0.0
    return min(max(wanted, _LEAST_OF_SCALES), _MOST_OF_SCALES)


def release_of_scales(task: Task, share: float, spread: bool = False) -> Release:
    """The release of the two numbers, or of the size of a row and the share of each class.

    With ``spread`` that of real targets is a third number.
    """
    query = _query(task.problem, None, 1.0, task.table_size, spread)
    entries = 1 + task.problem.outputs if task.problem.outputs > 1 else 2 + _is_spread(query)
    stated = query.sensitivity(task.neighbours)
    return equal_releases(query.name, Gaussian, 1, stated, share=share, entries=entries)


def learn(plan: Plan, problem: Problem, curator: Curator, coordinates: Coordinates | None) -> Typical:
    """Release what the plan has of it; without a release, rows count as long as they may be.

    The mean target, or the shares of classes, are shortened by what noise makes it longer (James and Stein).
    """
    n, p = plan.n_records, plan.n_features
    radius = problem.bounds.radius(p) if coordinates is None else norm_of_coordinates(problem, coordinates)
    if all(release.query not in SCALES for release in plan.releases):
        return Typical(radius, _targets(problem)[0] if problem.outputs == 1 else np.zeros(problem.outputs))
    spread = any(release.query == RowAndTargetScale.name for release in plan.releases)
    query = _query(problem, coordinates, radius, plan.table_size, spread)
    mechanism = plan[query.name].mechanism
    size, *targets = (float(value) / n for value in curator.release(query, mechanism))
    noise = mechanism.noise * query.sensitivity(plan.neighbours) / n
    share = min(max((1.0 + size) / 2, _SHORTEST_ROW), 1.0)
    if problem.outputs > 1:
        counted = of_sum(plan, query.name, math.fsum(targets), math.sqrt(problem.outputs) * noise)
        start = start_from_shares(np.array(targets), noise)
        return Typical(radius * math.sqrt(share), start, records=counted)
    mean, *square = targets
    kept = max(0.0, 1.0 - noise**2 / mean**2) if mean else 0.0
    mean = min(max(kept * mean, -_FARTHEST), _FARTHEST)
    found = spread_of(mean, (1.0 + square[0]) / 2, noise) if spread else 1.0
    return Typical(radius * math.sqrt(share), constant_prediction(problem, mean), found)


def learn_size(plan: Plan, problem: Problem, curator: Curator, typical: Typical, scales: Vector) -> float:
    """The root of the mean squared norm of a row whose columns are scaled, released.

    Rows count as at most half as long again as a typical one before it was scaled.
    """
    radius = min(problem.bounds.radius(plan.n_features), _LONG * typical.norm)
    middle, half = _targets(problem)
    query = ScaledRowScale(None, radius, middle, 1.0 / half, plan.table_size, scales=scales)
    mechanism = plan[query.name].mechanism
    size, _ = curator.release(query, mechanism) / plan.n_records
    noise = mechanism.noise * query.sensitivity(plan.neighbours) / plan.n_records
    return radius * math.sqrt(min(max((1.0 + float(size)) / 2, noise, _SHORTEST_SCALED), 1.0))


def largest_slope(clip: float, problem: Problem, typical: Typical) -> float:
    """What slopes of a record of typical size are clipped to: at most the largest slope.

    Usual are the slopes of targets within two standard deviations of their mean: a declared range may be much
    wider, and noise is proportional to the clip.
    """
    largest = usual = problem.slope_bound()
    if problem.loss.kind == "regression" and problem.bounds.target is not None:
        spread = _SPREADS * typical.spread
        usual = min(largest, spread * problem.loss.slope_at_middle(problem.bounds.target))
    return min(clip * usual, largest)


def spread_of(mean: float, square: float, noise: float) -> float:
    """Standard deviation from noisy means of t and t²; its square is larger by a deviation of the noise.

    A clip that is too small costs more than one that is too large.
    """
    deviation = noise * math.hypot(0.5, 2.0 * mean)
    return min(max(math.sqrt(max(square - mean**2, 0.0) + deviation), _SHORTEST_ROW), 1.0)


def _query(
    problem: Problem, coordinates: Coordinates | None, radius: float, n: int, spread: bool
) -> RowScale | ClassShares:
    if problem.outputs > 1:
        return ClassShares(coordinates, radius, problem.outputs, n)
    middle, half = _targets(problem)
    real = problem.loss.kind == "regression" and problem.bounds.target is not None
    # Offsets are a part of predictions: targets may be spread more than what is left of them.
    kind = RowAndTargetScale if spread and real and not problem.has_offsets else RowScale
    return kind(coordinates, radius, middle, 1.0 / half, n)


def _is_spread(query: RowScale | ClassShares) -> bool:
    return isinstance(query, RowAndTargetScale)


def constant_prediction(problem: Problem, mean: float) -> float:
    """The margin that predicts a mean target, which is given in [-1, 1]."""
    middle, half = _targets(problem)
    if problem.loss.kind == "classification":
        return math.log((1 + mean) / (1 - mean)) if problem.loss.name == "logistic" else mean
    return float(problem.loss.link(middle + half * mean))


def norm_of_coordinates(problem: Problem, coordinates: Coordinates) -> float:
    """The largest norm that features can have in coordinates."""
    middle, half, row = coordinates.middle, coordinates.half, problem.bounds.row_norm
    most = math.sqrt(len(middle))
    if row is None or math.isinf(row):
        return most
    return min(most, row / float(half.min()) + math.hypot(*(middle / half)))


def _targets(problem: Problem) -> tuple[float, float]:
    """Middle and half of the range of targets."""
    bottom, top = problem.bounds.target or (-1.0, 1.0)
    return (bottom + top) / 2, (top - bottom) / 2


_LEAST_CLASS = 1e-6


def start_from_shares(shares: Vector, noise: float) -> Vector:
    """Predictions of each class, with sum 0, from noisy shares of the records.

    Shares are drawn towards equal ones by what noise sets them apart (James and Stein), and none counts as
    less than the deviation of the noise.
    """
    equal = 1.0 / len(shares)
    apart = shares - equal
    square = float(apart @ apart)
    kept = max(0.0, 1.0 - (len(shares) - 1) * noise**2 / square) if square else 0.0
    logs = np.log(np.maximum(equal + kept * apart, min(max(noise, _LEAST_CLASS), equal)))
    start: Vector = logs - logs.mean()
    return start


_GOOD_MEAN = _USELESS_MEAN = 0.2
_LEAST_OF_MEAN, _MOST_OF_MEAN = 0.02, 0.15
_SHORTEST_LEFT, _SMALLEST = 0.1, 0.02
_SURE_OF_MEAN, _LEAST_DEVIATION = 2.0, 0.05


def share_of_mean(task: Task) -> float:
    """Share of the budget for the mean row: what leaves noise of a fifth of a typical row in it.

    It is at least 2 % and at most 15 %. It is 0 without an intercept, which alone can make up for the move,
    and if 15 % would leave noise of more than a fifth of a typical row in one direction.
    """
    if not task.problem.fit_intercept or task.noise > _USELESS_MEAN * math.sqrt(_MOST_OF_MEAN):
        return 0.0
    return float(min(max(task.p * (task.noise / _GOOD_MEAN) ** 2, _LEAST_OF_MEAN), _MOST_OF_MEAN))


def release_of_mean(task: Task, share: float) -> Release:
    """The release of the mean row."""
    return equal_releases(
        MeanRow.name, Gaussian, 1, "twice the size of a typical row" if task.moved == 2 else
        "1.281 x the size of a typical row", share=share, entries=task.p + 1,
    )  # fmt: skip


def centred(
    plan: Plan, curator: Curator, coordinates: Coordinates, typical: Typical
) -> tuple[Coordinates, Typical, Vector]:
    """Coordinates whose middle is the mean row, the size of a typical row, and bounds of their deviations.

    Without a release they stay as they are. Coordinates become twice as wide, so that all rows still lie in
    [-1, 1]. Bounds are in units of the largest deviation that a column of any mean can have.
    """
    if all(release.query != MeanRow.name for release in plan.releases):
        return coordinates, typical, np.ones(plan.n_features)
    query = MeanRow(replace(coordinates, intercept=False), typical.norm, plan.table_size)
    mechanism = plan[query.name].mechanism
    mean, size = query.means(curator.release(query, mechanism), plan.n_records)
    noise = mechanism.noise * query.sensitivity(plan.neighbours) / plan.n_records
    middle, freedom = shortened(mean, noise)
    length, before = float(middle @ middle), typical.norm**2
    # An unbiased estimate (Stein) of what the move takes from the mean squared norm, less one deviation of
    # the noise of the rest: a clip that is too small costs more than one that is too large.
    taken = 2.0 * (float(middle @ mean) - freedom * noise**2) - length
    taken -= noise * math.hypot(query.unit_of_size * before, 2.0 * math.sqrt(length))
    # It is compared with the size that was released beside the mean, of rows that are scaled down, too. That
    # of rows as they are is much larger where few of them are long.
    left = 1.0 - taken / (before * max(size, query.unit_of_size * noise, _SMALLEST))
    left = min(max(left, _SHORTEST_LEFT), 1.0)
    moved = Coordinates(
        coordinates.middle + coordinates.half * middle, 2.0 * coordinates.half, coordinates.intercept
    )
    centre = replace(typical, norm=typical.norm * math.sqrt(left) / 2.0)
    return moved, centre, deviations_of(middle, noise)


def deviations_of(mean: Vector, noise: float) -> Vector:
    """Upper bounds of deviations: a number in [-1, 1] with mean m has variance at most 1 - m².

    The mean counts as nearer to 0 by two deviations of its noise.
    """
    surely = np.maximum(np.abs(mean) - _SURE_OF_MEAN * noise, 0.0)
    deviations: Vector = np.sqrt(np.maximum(1.0 - surely**2, _LEAST_DEVIATION**2))
    return deviations


def shortened(mean: Vector, noise: float) -> tuple[Vector, float]:
    """The mean row, shortened by what noise makes it longer, and its degrees of freedom.

    The mean over all features is kept as it is: noise in it is small, and it is most of the mean of a table
    whose entries are mostly at one end of their ranges. The rest is shortened (James and Stein).
    """
    along = np.full_like(mean, mean.mean())
    rest, others = mean - along, len(mean) - 1
    square, hidden = float(rest @ rest), others * noise**2
    kept = 1.0 - hidden / square if square > hidden else 0.0
    freedom = 1.0 + (kept * others + 2.0 * (1.0 - kept) if kept else 0.0)
    return np.clip(along + kept * rest, -1.0, 1.0), freedom


COLUMNS: Releasable = {query.name: (Gaussian,) for query in (ColumnSizes, ScaledRowScale)}
"""What `learn_columns` releases."""

WIDE = 300
"""From more features than this on, columns are scaled."""

_SHARE_OF_NOISE, _LEAST_OF_SIZES, _MOST_OF_SIZES = 130.0, 0.05, 0.65
_KEPT, _DEVIATIONS, _SHARPNESS = 0.3, 1.5, 2.0
_SURE = 2.0
_LARGE, _LEAST_LARGE = 10.0, 5e-4


class Columns(NamedTuple):
    """What was learnt of the columns.

    Attributes
    ----------
    scales : array
        The factor of each feature, from 0 to 1.
    norm : float
        Root of the mean squared norm of a row whose columns are scaled.
    first : array
        The mean gradient at the start, in unscaled columns, that of the constant feature included.
    clip : float
        What the gradients in it were clipped to.
    """

    scales: Vector
    norm: float
    first: Vector
    clip: float


def share_of_columns(task: Task, asked: bool | None) -> float:
    """Share of the budget for the sizes of columns: 5 %, or more if there is more noise; 0 without them.

    They are released for the logistic loss and a penalty that is a sum over coordinates, by default for wide
    tables. Under replace-one the sizes are free; otherwise the share is half as large.
    """
    problem = task.problem
    served = isinstance(problem.loss, Logistic) and isinstance(problem.penalty, Separable)
    if not served or problem.has_units or not (task.p > WIDE if asked is None else asked):
        return 0.0
    share = min(max(_SHARE_OF_NOISE * task.noise, _LEAST_OF_SIZES), _MOST_OF_SIZES)
    return share if task.moved == 2 else share / 2.0  # where the sizes are not free


def share_of_size(task: Task) -> float:
    """Share of the budget for the size of a row in scaled columns: half of that for the row as it is."""
    return share_of_scales(task) / 2


def releases_of_columns(task: Task, share: float) -> list[Release]:
    """The two releases."""
    stated = "2 x clip" if task.moved == 2 else "sqrt(2) x clip"
    size = task.moved * math.sqrt(2.0)
    entries = 2 * task.dimension
    return [
        equal_releases(ColumnSizes.name, Gaussian, 1, stated, share=share, entries=entries),
        equal_releases(ScaledRowScale.name, Gaussian, 1, size, share=share_of_size(task), entries=2),
    ]


def worth_of_first(task: Task, share: float) -> float:
    """The part of a time that a first step with this share of the budget takes, at no more noise.

    Noise of a step is its length times its deviation. Steps whose lengths are as the squares of the inverse
    deviations leave the least noise for a time. Where the sizes are not free, deviations are larger.
    """
    return share if task.moved == 2 else share / 2.0


def scales_columns(plan: Plan) -> bool:
    """Whether the plan has these releases."""
    return any(release.query == ColumnSizes.name for release in plan.releases)


def learn_columns(plan: Plan, problem: Problem, curator: Curator, typical: Typical, noise: float) -> Columns:
    """Release what the plan has of it.

    ``noise`` is that of one pass with the whole budget, in units of the largest contribution of a record.
    """
    n, p = plan.n_records, plan.n_features
    start = float(typical.start) if problem.fit_intercept else 0.0
    share = 1.0 / (1.0 + math.exp(-start))
    constant = typical.norm / 10.0 if problem.fit_intercept else None
    # Without offsets no record has a larger slope at the start. Rows that are longer than usual are cut.
    clip = max(share, 1.0 - share) * math.hypot(typical.norm, constant or 0.0)
    query = ColumnSizes(problem.loss, clip, constant)
    w = np.zeros(problem.dimension(p))
    problem.split(w)[1][:] = start / (constant or 1.0)
    mechanism = plan[ColumnSizes.name].mechanism
    first, sizes = np.split(curator.release(query, mechanism, w) / n, 2)
    slope = 2.0 * share * (1.0 - share)  # of a usual record
    deviation = mechanism.noise * query.sensitivity(plan.neighbours) / n
    scales = scales_of(sizes[:p] / slope, deviation / slope, noise * typical.norm, typical.norm)
    norm = learn_size(plan, problem, curator, typical, scales)
    return Columns(scales, norm, first, query.clip)


def scales_of(sizes: Vector, deviation: float, noise: float, norm: float) -> Vector:
    """The scale of each column from its released mean absolute value, whose noise has this deviation.

    ``noise`` is that of one pass with the whole budget, ``norm`` the norm of a typical row.
    """
    told_apart = 1.0 / (1.0 + np.exp(-_SHARPNESS * np.clip(sizes / deviation - _DEVIATIONS, -50.0, 50.0)))
    large = max(_LARGE * noise, _LEAST_LARGE * norm)
    surely = np.maximum(sizes - _SURE * deviation, 0.0)
    scales: Vector = np.sqrt((_KEPT + (1.0 - _KEPT) * told_apart) * large / (surely + large))
    return scales


SOURCES = ("bounds", "private", "even")

Source = str | tuple[float, ...]
"""Where second moments come from, one of `SOURCES`, or the declared values."""


_MOST_NOISE = 0.3
_DENSITY = 0.4
_CLEAR = 2e-3
_STEP_NOISE = 0.15


@dataclass(frozen=True, eq=False)
class Moments:
    """Second moments of the features: "bounds", "private" (a release of them), "even", values, or None.

    "even" gives every feature the same share of the largest row norm. None means the bounds if features have
    them, else a release with ``share`` of the budget, unless noise would hide it.
    """

    setting: str | ArrayLike | None
    share: float

    def __post_init__(self) -> None:
        if isinstance(self.setting, str) and self.setting not in SOURCES:
            raise ValueError(f"second_moments must be one of {SOURCES} or values, got {self.setting!r}")

    def source(self, problem: Problem, p: int, noise: float = 0.0) -> Source:
        """Which it is: "bounds", "private", "even" or the declared values.

        A release has a deviation of about 3 p times the ``noise`` of one pass, in units of the mean of all
        moments. If that is too much, none is made by default.
        """
        if self.setting is None:
            if problem.bounds.feature is not None:
                return "bounds"
            return "even" if noise * p > _MOST_NOISE else "private"
        if not isinstance(self.setting, str):
            return tuple(_declared(self.setting, p).tolist())
        if self.setting == "bounds" and not np.isfinite(problem.features(p)).all():
            raise UnsupportedProblem(
                "second_moments='bounds' needs Bounds(feature=...) or Bounds(row_norm=...)"
            )
        return self.setting

    def releases(self, source: Source, task: Task, steps: bool = False) -> tuple[tuple[Release, ...], float]:
        """What the source costs, of a budget of 1 that is yet to be scaled, and how much is left of that.

        With ``steps`` a release beside the bounds is for steps, where it shows how rare columns are.
        """
        served = steps and self.setting is None and source == "bounds" and task.problem.stretch() == 1.0
        beside = served and 0 < task.noise * task.p <= _CLEAR
        if source != "private" and not beside:
            return (), 1.0
        problem, p = task.problem, task.p
        query = in_units_of_bounds(problem, p) if beside else SecondMoments(problem.bounds.radius(p))
        sensitivity = query.sensitivity(task.neighbours)
        release = equal_releases(
            SecondMoments.name, Gaussian, 1, sensitivity, share=self.share, entries=task.p
        )
        return (release,), 1 - self.share


def typical_row(source: Source, problem: Problem, p: int) -> tuple[float, float]:
    """Norm of a typical row, and its density: a typical entry over the one that second moments assume.

    Few entries are near a declared bound of their feature: 0.4 of it is taken to be typical.
    """
    if not isinstance(source, str):
        return math.sqrt(_declared(source, p).sum() + problem.constant(p) ** 2), 1.0
    if source == "bounds" and problem.bounds.feature is not None:
        return _DENSITY * float(np.linalg.norm(problem.features(p))), _DENSITY
    return problem.radius(p), 1.0


def second_moments(source: Source, plan: Plan, problem: Problem, curator: Curator) -> Vector:
    """Second moment of each feature, the constant one included; all positive."""
    p = plan.n_features
    moments = _public_moments(source, problem, p)
    features, _ = problem.split(moments)
    query = SecondMoments(problem.bounds.radius(p))
    if not plan.budget.private:
        values = curator.release(query, Gaussian(0.0)) / plan.n_records
        features[:] = np.maximum(values, np.finfo(float).eps * max(values.max(initial=0.0), 1e-200))
    elif source == "private":
        noisy = curator.release(query, plan[query.name].mechanism) / plan.n_records
        features[:] = np.minimum(np.maximum(noisy, 0.0) + 2.0 * _deviation(query, plan), features)
    return moments


def least_moment(source: Source, plan: Plan, problem: Problem) -> tuple[float, float]:
    """The least positive second moment that `second_moments` of a private fit can find, and its usual share.

    The share is of the sum of all; that of a moment yet to be released is taken to be even.
    """
    p = plan.n_features
    moments = _public_moments(source, problem, p)
    positive = moments > 0
    if source == "private":
        features, _ = problem.split(moments)
        np.minimum(features, 2.0 * _deviation(SecondMoments(problem.bounds.radius(p)), plan), out=features)
        return float(moments.min(initial=math.inf, where=positive)), 1.0 / len(moments)
    least = float(moments.min(initial=math.inf, where=positive))
    return least, least / float(moments.sum())


def _public_moments(source: Source, problem: Problem, p: int) -> Vector:
    """Second moments that are declared, and the largest ones of features of which nothing is."""
    moments = np.square(problem.features(p))
    features, _ = problem.split(moments)
    if source == "even":
        features[:] = problem.bounds.radius(p) ** 2 / p
    elif not isinstance(source, str):
        features[:] = _declared(source, p)
    return moments


def _deviation(query: SecondMoments, plan: Plan) -> float:
    """Deviation of the noise in a released second moment."""
    return plan[query.name].mechanism.noise * query.sensitivity(plan.neighbours) / plan.n_records


def in_units_of_bounds(problem: Problem, p: int) -> SecondMoments:
    """The query for second moments of columns that are scaled to the least of their bounds."""
    limits = problem.bounds.features(p)
    least = float(limits.min())
    return SecondMoments(min(least * math.sqrt(p), problem.bounds.radius(p)), scales=least / limits)


def beside_bounds(plan: Plan, problem: Problem, curator: Curator, additive: Mechanism) -> Vector | None:
    """The second moment of each feature over its squared bound, if it is released beside the bounds.

    For the constant feature it is 1. It is not below what noise might hide, nor so small that
    a step of its inverse length would move predictions far by noise alone: that of the ``additive`` mechanism
    of the slope of a coordinate.
    """
    p = plan.n_features
    if all(release.query != SecondMoments.name for release in plan.releases):
        return None
    query, least = in_units_of_bounds(problem, p), float(problem.bounds.features(p).min())
    mechanism = plan[query.name].mechanism
    noisy = curator.release(query, mechanism) / (plan.n_records * least**2)
    deviation = mechanism.noise * query.sensitivity(plan.neighbours) / (plan.n_records * least**2)
    floor = additive.noise * plan.neighbours.records_moved / (plan.n_records * _STEP_NOISE)
    return problem.join(np.clip(noisy + 2.0 * deviation, min(max(floor, 2.0 * deviation), 1.0), 1.0), 1.0)


def largest_terms(problem: Problem, p: int) -> Vector:
    """What a record can add to the slope of each coordinate, its prediction being in the range of targets."""
    slope = min(problem.loss.lipschitz(problem.bounds.target), 2.0 * problem.slope_bound())
    return slope * problem.features(p)


def require_separable(problem: Problem, solver: str) -> None:
    """Refuse a penalty that coordinates share."""
    if not isinstance(problem.penalty, Separable):
        raise UnsupportedProblem(
            f"{solver} needs a penalty that is a sum over coordinates, "
            f"{type(problem.penalty).__name__} is none: use GradientDescent"
        )


def _are_positive(moments: Vector) -> bool:
    return bool(((moments > 0) & (moments < math.inf)).all())


def _declared(values: ArrayLike, n_features: int) -> Vector:
    moments = strict.doubles(values)
    if moments is None or moments.shape != (n_features,) or not _are_positive(moments):
        raise ValueError(f"second_moments must be {n_features} positive numbers, one for each feature")
    return moments
