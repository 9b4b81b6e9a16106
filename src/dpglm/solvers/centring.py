"""Rows are moved by their mean, which is released first and bounds their spread (docs/defaults.md)."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from ..arrays import Vector
from ..bounds import Bounds, Coordinates
from ..curator import Curator
from ..losses import Logistic
from ..mechanisms import Gaussian
from ..penalties import Zero
from ..plan import Plan, Release
from ..problem import Problem
from ..queries import MeanRow
from .base import AnySolver, AuditCase, Task, equal_releases
from .typical import Typical

_GOOD = _USELESS = 0.2
_LEAST_SHARE, _MOST_SHARE = 0.02, 0.15
_SHORTEST, _SMALLEST = 0.1, 0.02
_DEVIATIONS, _LEAST_DEVIATION = 2.0, 0.05
_CROWD = 99


def share_of_mean(task: Task) -> float:
    """Share of the budget for the mean row: what leaves noise of a fifth of a typical row in it.

    It is at least 2 % and at most 15 %. It is 0 without an intercept, which alone can make up for the move,
    and if 15 % would leave noise of more than a fifth of a typical row in one direction.
    """
    if not task.problem.fit_intercept or task.noise > _USELESS * math.sqrt(_MOST_SHARE):
        return 0.0
    return float(min(max(task.p * (task.noise / _GOOD) ** 2, _LEAST_SHARE), _MOST_SHARE))


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
    left = min(max(left, _SHORTEST), 1.0)
    moved = Coordinates(
        coordinates.middle + coordinates.half * middle, 2.0 * coordinates.half, coordinates.intercept
    )
    centre = replace(typical, norm=typical.norm * math.sqrt(left) / 2.0)
    return moved, centre, deviations_of(middle, noise)


def deviations_of(mean: Vector, noise: float) -> Vector:
    """Upper bounds of deviations: a number in [-1, 1] with mean m has variance at most 1 - m².

    The mean counts as nearer to 0 by two deviations of its noise.
    """
    surely = np.maximum(np.abs(mean) - _DEVIATIONS * noise, 0.0)
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


def of_mean(solver: AnySolver) -> AuditCase:
    """Two opposite rows of unequal length, among enough records for the release.

    The second is so long that the mean row and its size move by 98 % of their sensitivity. Gradients and the
    first release move by most of theirs, too.
    """
    problem = Problem(Logistic(), Zero(), Bounds(row_norm=1.0), fit_intercept=True)
    crowd = np.zeros((_CROWD, 1)), np.resize([1.0, -1.0], _CROWD)
    return AuditCase(solver, problem, crowd, (np.ones(1), 1.0), (np.full(1, 2.0 - math.sqrt(5.0)), 1.0))
