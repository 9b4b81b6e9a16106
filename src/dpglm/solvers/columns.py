"""The metric of wide tables of labels: a scale for each column, from a release that is also a first step.

Most columns of such tables, as those of words, are nearly empty, and a few are in nearly every record. Noise
is the same for all. The first release of gradients also says how large columns are (`ColumnSizes`). Columns
that it does not tell from noise are made smaller, because their coefficients will be noise. Columns that are
large against noise are made smaller too, because they take most of the norm of a row. The rule is derived in
docs/defaults.md.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ..arrays import Vector
from ..curator import Curator
from ..losses import Logistic
from ..mechanisms import Gaussian
from ..penalties import Separable
from ..plan import Plan, Releasable, Release
from ..problem import Problem
from ..queries import ColumnSizes, ScaledRowScale
from .base import AnySolver, AuditCase, Task, equal_releases
from .typical import Typical, learn_size, of_scales, share_of_scales

COLUMNS: Releasable = {query.name: (Gaussian,) for query in (ColumnSizes, ScaledRowScale)}
"""What `learn_columns` releases."""

WIDE = 300
"""From more features than this on, columns are scaled."""

_SHARE_OF_NOISE, _LEAST_SHARE, _MOST_SHARE = 130.0, 0.05, 0.65
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
    share = min(max(_SHARE_OF_NOISE * task.noise, _LEAST_SHARE), _MOST_SHARE)
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


def of_columns(solver: AnySolver) -> AuditCase:
    """The case of `of_scales` with two features, of which each of the records has one."""
    case = of_scales(solver)
    _, targets = case.bystanders
    crowd, (first, second) = np.zeros((len(targets), 2)), np.eye(2)
    return replace(case, bystanders=(crowd, targets), first=(first, 1.0), second=(second, -1.0))


def scales_of(sizes: Vector, deviation: float, noise: float, norm: float) -> Vector:
    """The scale of each column from its released mean absolute value, whose noise has this deviation.

    ``noise`` is that of one pass with the whole budget, ``norm`` the norm of a typical row.
    """
    told_apart = 1.0 / (1.0 + np.exp(-_SHARPNESS * np.clip(sizes / deviation - _DEVIATIONS, -50.0, 50.0)))
    large = max(_LARGE * noise, _LEAST_LARGE * norm)
    surely = np.maximum(sizes - _SURE * deviation, 0.0)
    scales: Vector = np.sqrt((_KEPT + (1.0 - _KEPT) * told_apart) * large / (surely + large))
    return scales
