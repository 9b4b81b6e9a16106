"""What solvers learn of a table first: how long a typical row is, mean and spread of targets."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..arrays import Vector
from ..bounds import Bounds, Coordinates
from ..curator import Curator
from ..losses import Logistic, Squared
from ..mechanisms import Gaussian
from ..penalties import Zero
from ..plan import Plan, Releasable, Release
from ..privacy import Budget, Neighbours
from ..problem import Problem
from ..queries import ClassShares, RowAndTargetScale, RowScale, ScaledRowScale
from .base import AnySolver, AuditCase, Task, equal_releases, noise_of_one_pass
from .classes import start_from_shares
from .record_share import RecordShare, of_sum

_LEAST_SHARE, _MOST_SHARE = 0.02, 0.2
_GOOD, _USELESS = 0.1, 0.3
_SHORTEST, _SHORTEST_SCALED = 0.02, 0.001
_LONG = 1.5
_FARTHEST = 0.95
_HOPELESS, _NOISY = 0.1, 0.03
_CROWD = 99
_DEVIATIONS = 2.0

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
    wanted = 2.0 * (task.noise / _GOOD) ** 2
    if 2.0 * task.noise**2 > _MOST_SHARE * _USELESS**2:
        return 0.0
    return min(max(wanted, _LEAST_SHARE), _MOST_SHARE)


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
    share = min(max((1.0 + size) / 2, _SHORTEST), 1.0)
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
        spread = _DEVIATIONS * typical.spread
        usual = min(largest, spread * problem.loss.slope_at_middle(problem.bounds.target))
    return min(clip * usual, largest)


def spread_of(mean: float, square: float, noise: float) -> float:
    """Standard deviation from noisy means of t and t²; its square is larger by a deviation of the noise.

    A clip that is too small costs more than one that is too large.
    """
    deviation = noise * math.hypot(0.5, 2.0 * mean)
    return min(max(math.sqrt(max(square - mean**2, 0.0) + deviation), _SHORTEST), 1.0)


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


def of_scales(solver: AnySolver) -> AuditCase:
    """A long row with one label against an empty row with the other, among enough records for the release."""
    problem = Problem(Logistic(), Zero(), Bounds(row_norm=1.0), fit_intercept=False)
    crowd = np.zeros((_CROWD, 1)), np.resize([1.0, -1.0], _CROWD)
    return AuditCase(solver, problem, crowd, (np.ones(1), 1.0), (np.zeros(1), -1.0))


def of_spread(solver: AnySolver) -> AuditCase:
    """A long row with the largest target against an empty row whose target is the farthest from it."""
    problem = Problem(Squared(), Zero(), Bounds(feature=1.0, target=(-1.0, 1.0)), fit_intercept=False)
    crowd = np.zeros((_CROWD, 1)), np.zeros(_CROWD)
    return AuditCase(solver, problem, crowd, (np.ones(1), 1.0), (np.zeros(1), -0.15))


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
