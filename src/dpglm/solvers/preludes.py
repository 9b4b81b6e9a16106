"""Preludes: private settings that solvers release before their main loop, and what follows from them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple, Protocol

import numpy as np

from ..arrays import Vector
from ..bounds import Coordinates
from ..curator import Curator
from ..losses import Logistic
from ..mechanisms import Gaussian
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
)
from .base import Task, equal_releases, noise_of_one_pass
from .record_share import RecordShare, of_sum

_HOPELESS, _NOISY = 0.1, 0.03

# The size of a row, and mean and spread of targets.
_LEAST_OF_SCALES, _MOST_OF_SCALES = 0.02, 0.2
_GOOD_SCALES, _USELESS_SCALES = 0.1, 0.3
_SHORTEST_ROW, _SHORTEST_SCALED = 0.02, 0.001
_LONG, _FARTHEST, _SPREADS, _LEAST_CLASS = 1.5, 0.95, 2.0, 1e-6

# The mean row.
_GOOD_MEAN = _USELESS_MEAN = 0.2
_LEAST_OF_MEAN, _MOST_OF_MEAN = 0.02, 0.15
_SHORTEST_LEFT, _SMALLEST = 0.1, 0.02
_SURE_OF_MEAN, _LEAST_DEVIATION = 2.0, 0.05

# The sizes of columns.
WIDE = 300
"""From more features than this on, columns are scaled."""

_SHARE_OF_NOISE, _LEAST_OF_SIZES, _MOST_OF_SIZES = 130.0, 0.05, 0.65
_KEPT, _DEVIATIONS, _SHARPNESS, _SURE = 0.3, 1.5, 2.0, 2.0
_LARGE, _LEAST_LARGE = 10.0, 5e-4


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


@dataclass(frozen=True, eq=False)
class PrivateSetting:
    """What the preludes of a fit have released of its table so far.

    Attributes
    ----------
    norm : float
        Root of the mean squared norm of a row.
    start : float or array
        The intercept to start from, or that of each class: the best constant prediction.
    coordinates : Coordinates, optional
        The coordinates of features that rows are seen in; without it, they are seen as they are.
    spread : float
        Standard deviation of targets in units of half their range, where it was learnt; 1 elsewhere.
    records : RecordShare, optional
        The share of the records that counted, where shares of classes were learnt.
    deviations : array, optional
        Upper bounds of deviations of coordinates, where their mean was learnt.
    columns : Columns, optional
        The scales of columns, where they were learnt.
    """

    norm: float
    start: float | Vector
    coordinates: Coordinates | None = None
    spread: float = 1.0
    records: RecordShare | None = None
    deviations: Vector | None = None
    columns: Columns | None = None

    @classmethod
    def public(cls, problem: Problem, p: int, coordinates: Coordinates | None) -> PrivateSetting:
        """What is known without a release: rows count as long as they may be."""
        radius = (
            problem.bounds.radius(p) if coordinates is None else norm_of_coordinates(problem, coordinates)
        )
        start = _targets(problem)[0] if problem.outputs == 1 else np.zeros(problem.outputs)
        return cls(radius, start, coordinates)


class Prelude(Protocol):
    """A setting that a solver releases before its main loop, for a share of the budget.

    A share of 0 means that it is not released. To learn it takes no more than the plan and what was released
    before.
    """

    queries: ClassVar[Releasable]

    @property
    def share(self) -> float:
        """Share of the budget, in squared mu."""

    def release(self) -> Release:
        """The release that the share pays for."""

    @classmethod
    def learn(cls, plan: Plan, problem: Problem, curator: Curator, setting: PrivateSetting) -> PrivateSetting:
        """Release it, and return the setting that follows."""


def releases_of(preludes: Iterable[Prelude]) -> list[Release]:
    """The releases of those that have a share of the budget."""
    return [prelude.release() for prelude in preludes if prelude.share]


def run_preludes(
    plan: Plan, problem: Problem, curator: Curator, coordinates: Coordinates | None = None
) -> PrivateSetting:
    """Release every prelude of a plan in turn, and return what is then known."""
    setting = PrivateSetting.public(problem, plan.n_features, coordinates)
    for prelude in PRELUDES:
        if releases_any(plan, prelude):
            setting = prelude.learn(plan, problem, curator, setting)
    return setting


def releases_any(plan: Plan, prelude: type[Prelude]) -> bool:
    """Whether a plan has the release of a prelude."""
    return any(release.query in prelude.queries for release in plan.releases)


@dataclass(frozen=True)
class RowScalePrelude:
    """The size of a typical row and the mean target, or the share of each class.

    With ``spread`` that of real targets is a third number.
    """

    queries: ClassVar[Releasable] = {
        query.name: (Gaussian,) for query in (RowScale, RowAndTargetScale, ClassShares)
    }
    task: Task
    spread: bool = True

    @property
    def share(self) -> float:
        """Share of the budget: 2 %, or what leaves noise of 0.1 in the numbers, up to 20 %.

        It is 0 if even that share would leave noise of more than 0.3: then the numbers are not released.
        """
        noise = self.task.noise
        if 2.0 * noise**2 > _MOST_OF_SCALES * _USELESS_SCALES**2:
            return 0.0
        return min(max(2.0 * (noise / _GOOD_SCALES) ** 2, _LEAST_OF_SCALES), _MOST_OF_SCALES)

    def release(self, share: float | None = None) -> Release:
        """The release, for its own share of the budget or another one."""
        task, outputs = self.task, self.task.problem.outputs
        query = _query(task.problem, None, 1.0, task.table_size, self.spread)
        entries = 1 + outputs if outputs > 1 else 2 + isinstance(query, RowAndTargetScale)
        stated = query.sensitivity(task.neighbours)
        share = self.share if share is None else share
        return equal_releases(query.name, Gaussian, 1, stated, share=share, entries=entries)

    @classmethod
    def learn(cls, plan: Plan, problem: Problem, curator: Curator, setting: PrivateSetting) -> PrivateSetting:
        """Release the numbers.

        The mean target, or the shares of classes, are shortened by what noise makes it longer (James, Stein).
        """
        spread = any(release.query == RowAndTargetScale.name for release in plan.releases)
        query = _query(problem, setting.coordinates, setting.norm, plan.table_size, spread)
        (size, *targets), noise = _released(plan, curator, query)
        norm = setting.norm * math.sqrt(min(max((1.0 + size) / 2, _SHORTEST_ROW), 1.0))
        if problem.outputs > 1:
            counted = of_sum(plan, query.name, math.fsum(targets), math.sqrt(problem.outputs) * noise)
            start = start_from_shares(np.array(targets), noise)
            return replace(setting, norm=norm, start=start, records=counted)
        mean, *square = targets
        kept = max(0.0, 1.0 - noise**2 / mean**2) if mean else 0.0
        mean = min(max(kept * mean, -_FARTHEST), _FARTHEST)
        found = spread_of(mean, (1.0 + square[0]) / 2, noise) if spread else 1.0
        return replace(setting, norm=norm, start=constant_prediction(problem, mean), spread=found)


def _released(plan: Plan, curator: Curator, query: RowScale | ClassShares) -> tuple[list[float], float]:
    """The means over the records that a query releases, and the deviation of their noise."""
    mechanism, n = plan[query.name].mechanism, plan.n_records
    means = [float(value) / n for value in curator.release(query, mechanism)]
    return means, mechanism.noise * query.sensitivity(plan.neighbours) / n


def largest_slope(clip: float, problem: Problem, setting: PrivateSetting) -> float:
    """What slopes of a record of typical size are clipped to: at most the largest slope.

    Usual are the slopes of targets within two standard deviations of their mean: a declared range may be much
    wider, and noise is proportional to the clip.
    """
    largest = usual = problem.slope_bound()
    if problem.loss.kind == "regression" and problem.bounds.target is not None:
        spread = _SPREADS * setting.spread
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


@dataclass(frozen=True)
class MeanRowPrelude:
    """The mean row, which becomes the middle of coordinates and bounds their spread (docs/defaults.md)."""

    queries: ClassVar[Releasable] = {MeanRow.name: (Gaussian,)}
    task: Task

    @property
    def share(self) -> float:
        """Share of the budget: what leaves noise of a fifth of a typical row in it, from 2 % to 15 %.

        It is 0 without an intercept, which alone can make up for the move, and if 15 % would leave noise of
        more than a fifth of a typical row in one direction.
        """
        task = self.task
        if not task.problem.fit_intercept or task.noise > _USELESS_MEAN * math.sqrt(_MOST_OF_MEAN):
            return 0.0
        return float(min(max(task.p * (task.noise / _GOOD_MEAN) ** 2, _LEAST_OF_MEAN), _MOST_OF_MEAN))

    def release(self) -> Release:
        """The release of the mean row and its size."""
        times = "twice" if self.task.moved == 2 else "1.281 x"
        return equal_releases(
            MeanRow.name, Gaussian, 1, f"{times} the size of a typical row", share=self.share,
            entries=self.task.p + 1,
        )  # fmt: skip

    @classmethod
    def learn(cls, plan: Plan, problem: Problem, curator: Curator, setting: PrivateSetting) -> PrivateSetting:
        """Move coordinates to the mean row, which also tells the size of a moved row and bounds deviations.

        Coordinates become twice as wide, so that all rows still lie in [-1, 1]. Bounds are in units of the
        largest deviation that a column of any mean can have.
        """
        coordinates = setting.coordinates
        assert coordinates is not None
        query = MeanRow(coordinates, setting.norm, plan.table_size)
        mechanism = plan[query.name].mechanism
        mean, size = query.means(curator.release(query, mechanism), plan.n_records)
        noise = mechanism.noise * query.sensitivity(plan.neighbours) / plan.n_records
        middle, freedom = shortened(mean, noise)
        length, before = float(middle @ middle), setting.norm**2
        # An unbiased estimate (Stein) of what the move takes from the mean squared norm, less one deviation
        # of the noise of the rest: a clip that is too small costs more than one that is too large.
        taken = 2.0 * (float(middle @ mean) - freedom * noise**2) - length
        taken -= noise * math.hypot(query.unit_of_size * before, 2.0 * math.sqrt(length))
        # It is compared with the size that was released beside the mean, of rows that are scaled down, too.
        # That of rows as they are is much larger where few of them are long.
        left = 1.0 - taken / (before * max(size, query.unit_of_size * noise, _SMALLEST))
        norm = setting.norm * math.sqrt(min(max(left, _SHORTEST_LEFT), 1.0)) / 2.0
        centre = coordinates.middle + coordinates.half * middle
        moved = Coordinates(centre, 2.0 * coordinates.half, coordinates.intercept)
        return replace(setting, norm=norm, coordinates=moved, deviations=deviations_of(middle, noise))


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


@dataclass(frozen=True)
class ColumnSizesPrelude:
    """How large columns are, from a release of gradients that is also a first step.

    It is for wide tables of labels. Most columns of such tables, as those of words, are nearly empty, and a
    few are in nearly every record. Noise is the same for all. Columns that the release does not tell from
    noise are made smaller, because their coefficients will be noise. Columns that are large against noise are
    made smaller too, because they take most of the norm of a row. docs/defaults.md derives the rule.
    """

    queries: ClassVar[Releasable] = {ColumnSizes.name: (Gaussian,)}
    task: Task
    asked: bool | None

    @property
    def share(self) -> float:
        """Share of the budget: 5 %, or more if there is more noise; 0 without them.

        They are released for the logistic loss and a penalty that is a sum over coordinates, by default for
        wide tables. Under replace-one the sizes are free; otherwise the share is half as large.
        """
        task, problem = self.task, self.task.problem
        served = isinstance(problem.loss, Logistic) and isinstance(problem.penalty, Separable)
        if not served or problem.has_units or not (task.p > WIDE if self.asked is None else self.asked):
            return 0.0
        share = min(max(_SHARE_OF_NOISE * task.noise, _LEAST_OF_SIZES), _MOST_OF_SIZES)
        return share if task.moved == 2 else share / 2.0  # where the sizes are not free

    def release(self) -> Release:
        """The release of gradients and sizes."""
        stated, entries = "2 x clip" if self.task.moved == 2 else "sqrt(2) x clip", 2 * self.task.dimension
        return equal_releases(ColumnSizes.name, Gaussian, 1, stated, share=self.share, entries=entries)

    @classmethod
    def learn(cls, plan: Plan, problem: Problem, curator: Curator, setting: PrivateSetting) -> PrivateSetting:
        """Release the sizes of columns at the start, and scale them."""
        n, p = plan.n_records, plan.n_features
        start = float(setting.start) if problem.fit_intercept else 0.0
        share = 1.0 / (1.0 + math.exp(-start))
        constant = setting.norm / 10.0 if problem.fit_intercept else None
        # Without offsets no record has a larger slope at the start. Rows that are longer than usual are cut.
        clip = max(share, 1.0 - share) * math.hypot(setting.norm, constant or 0.0)
        query = ColumnSizes(problem.loss, clip, constant)
        w = np.zeros(problem.dimension(p))
        problem.split(w)[1][:] = start / (constant or 1.0)
        mechanism = plan[ColumnSizes.name].mechanism
        first, sizes = np.split(curator.release(query, mechanism, w) / n, 2)
        slope = 2.0 * share * (1.0 - share)  # of a usual record
        deviation = mechanism.noise * query.sensitivity(plan.neighbours) / n
        noise = noise_of_one_pass(n, plan.budget, plan.neighbours, plan.fits) * setting.norm
        scales = scales_of(sizes[:p] / slope, deviation / slope, noise, setting.norm)
        return replace(setting, columns=Columns(scales, setting.norm, first, query.clip))


@dataclass(frozen=True)
class ScaledRowScalePrelude:
    """The size of a row whose columns are scaled."""

    queries: ClassVar[Releasable] = {ScaledRowScale.name: (Gaussian,)}
    task: Task
    asked: bool | None

    @property
    def share(self) -> float:
        """Share of the budget: half of that for the row as it is, if columns are scaled."""
        return (
            RowScalePrelude(self.task).share / 2 if ColumnSizesPrelude(self.task, self.asked).share else 0.0
        )

    def release(self) -> Release:
        """The release of the size."""
        size = self.task.moved * math.sqrt(2.0)
        return equal_releases(ScaledRowScale.name, Gaussian, 1, size, share=self.share, entries=2)

    @classmethod
    def learn(cls, plan: Plan, problem: Problem, curator: Curator, setting: PrivateSetting) -> PrivateSetting:
        """Release the root of the mean squared norm of a row.

        Rows count as at most half as long again as a typical one before it was scaled.
        """
        assert setting.columns is not None
        radius = min(problem.bounds.radius(plan.n_features), _LONG * setting.norm)
        middle, half = _targets(problem)
        query = ScaledRowScale(
            None, radius, middle, 1.0 / half, plan.table_size, scales=setting.columns.scales
        )
        (size, _), noise = _released(plan, curator, query)
        norm = radius * math.sqrt(min(max((1.0 + size) / 2, noise, _SHORTEST_SCALED), 1.0))
        return replace(setting, columns=setting.columns._replace(norm=norm))


PRELUDES: tuple[type[Prelude], ...] = (
    RowScalePrelude, MeanRowPrelude, ColumnSizesPrelude, ScaledRowScalePrelude,
)  # fmt: skip
"""Those that a fit releases before its main loop, in their order."""


def worth_of_first(task: Task, share: float) -> float:
    """The part of a time that a first step with this share of the budget takes, at no more noise.

    Noise of a step is its length times its deviation. Steps whose lengths are as the squares of the inverse
    deviations leave the least noise for a time. Where the sizes are not free, deviations are larger.
    """
    return share if task.moved == 2 else share / 2.0


def scales_of(sizes: Vector, deviation: float, noise: float, norm: float) -> Vector:
    """The scale of each column from its released mean absolute value, whose noise has this deviation.

    ``noise`` is that of one pass with the whole budget, ``norm`` the norm of a typical row.
    """
    told_apart = 1.0 / (1.0 + np.exp(-_SHARPNESS * np.clip(sizes / deviation - _DEVIATIONS, -50.0, 50.0)))
    large = max(_LARGE * noise, _LEAST_LARGE * norm)
    surely = np.maximum(sizes - _SURE * deviation, 0.0)
    scales: Vector = np.sqrt((_KEPT + (1.0 - _KEPT) * told_apart) * large / (surely + large))
    return scales
