"""Newton's method without noise: the minimiser and its usual covariance."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from ..arrays import Vector
from ..bounds import Coordinates
from ..curator import Curator
from ..losses import Loss, Squared
from ..mechanisms import Gaussian
from ..problem import Problem
from ..queries import ClippedGradient, ScoreAndCurvature
from .base import Result, Uncertainty
from .newton_rounds import inverse_of
from .newton_run import Setting
from .noise_free import constant_start

if TYPE_CHECKING:
    from .newton import NewtonPlan

_WIDE = 8.0
_SETTLED, _SINGULAR, _SINGULAR_IF_PRECISE, _UNSEEN = 1e-12, 1e-12, 1e-14, 1e-6
_LONGEST_OF_COUNTS, _MOST_TIMES = 4.0, 1024.0
_STALLED, _LONG, _ROUGH_STEPS = 1e-8, 1e-4, 25
_DEPENDENT = "the features are linearly dependent"
_NOT_REACHED = "the minimum was not reached, and there is none if classes can be separated"


def exact(plan: NewtonPlan, problem: Problem, curator: Curator) -> Result:
    """The minimiser without noise, and the sandwich covariance.

    Steps take the exact gradient and a Hessian in coordinates that is precise to about six digits: so each
    step removes all but a millionth of the distance, once it is short. Where that is not enough, as for
    features that vary by a millionth of their size, the Hessian is that of the records' own features.
    """
    n, p, nothing = plan.n_records, plan.n_features, Gaussian(0.0)
    wider, start = problem.loss.wider(), constant_start(problem, curator, n, p)
    if wider is not None:
        easier = exact(replace(plan, intervals=False), replace(problem, loss=wider), curator)
        start = easier.w
    setting = _without_bounds(problem, curator, n, p)
    d, back = setting.dimension, setting.to_records
    forth, ridge = inverse_of(back), np.diag(setting.ridge)
    gradient, rough = ClippedGradient(problem.loss, math.inf), setting.derivatives(1.0, 1e9, plan.neighbours)
    fine = _in_own_features(problem.loss, setting)
    w, steps, step, fell, precise = start, 0, np.zeros(d), 0.0, False
    first: _Progress | None = None
    reached, longer = False, 1.0
    longest = _LONGEST_OF_COUNTS if problem.loss.kind == "count" else math.inf
    squares = cache(lambda: _squares(setting, curator))
    while steps < plan.steps:
        steps += 1
        slope = back.T @ curator.release(gradient, nothing, w) + setting.ridge * (forth @ w)
        if float(slope @ step) > fell / 2:  # too far: go back by half of the last step
            if first is not None and math.sqrt(fell) <= _STALLED * first.decrement:
                reached = True
                break
            step, fell = step / 2, fell / 2
            w = w - back @ step
            continue
        hessian = rough.parts(curator.release(rough, nothing, np.eye(d), forth @ w)).hessian + ridge
        newton, seen, rank = _newton_step(hessian, slope)
        if precise or not seen or steps > _ROUGH_STEPS:
            own = fine.parts(curator.release(fine, nothing, np.eye(d), w)).hessian
            hessian = back.T @ own @ back + ridge
            newton, seen, rank = _newton_step(hessian, slope, _SINGULAR_IF_PRECISE)
            first = first if precise or first is None else replace(first, rank=rank)
            precise = True
            if not seen and first is None and problem.loss.kind == "count":
                # Margins outside of the range of means have no curvature: a bound of it leads back.
                bounding = back.T @ (problem.loss.smoothness() * squares()) @ back + ridge
                newton, _, _ = _newton_step(bounding, slope)
                step, longer = longer * newton, min(2 * longer, _MOST_TIMES)
                fell = -float(step @ slope)
                w = w + back @ step
                continue
        decrement = math.sqrt(max(-float(newton @ slope), 0.0))
        if first is None or rank > first.rank:
            first = _Progress(decrement, hessian, newton, rank)
        short = rank == first.rank and first.length(newton) <= _LONG * first.length(first.step)
        stalled = short and decrement <= _STALLED * first.decrement and decrement**2 > fell / 4
        if stalled or decrement <= _SETTLED * first.decrement:
            # Steps that stay long while slopes vanish: classes are separable, and there is no minimum.
            reached, steps = short, steps if short else plan.steps
            break
        # Where means of most records are outside of their range, the curvature of few leads too far.
        share = 1.0
        if np.abs(newton).sum() > longest:
            moved = back @ newton
            share = longest / max(longest, math.sqrt(max(float(moved @ squares() @ moved) / n, 0.0)))
        fell, step, longest = share * decrement**2, share * newton, 2 * longest
        w = w + back @ step
    stated = _sandwich(problem, curator, setting, w, reached) if plan.intervals else None
    return Result(w, steps, uncertainty=stated)


@dataclass(frozen=True, eq=False)
class _Progress:
    """Where a fit without noise began: what later steps are compared with."""

    decrement: float
    hessian: Vector
    step: Vector
    rank: int

    def length(self, step: Vector) -> float:
        """How far a step moves predictions."""
        return math.sqrt(max(float(step @ self.hessian @ step), 0.0))


def _newton_step(hessian: Vector, slope: Vector, singular: float = _SINGULAR) -> tuple[Vector, bool, int]:
    """Newton's step, whether the Hessian sees all of the slope, and its rank."""
    values, vectors = np.linalg.eigh(hessian)
    kept = values > singular * max(float(values[-1]), 0.0)
    along = vectors.T @ slope
    seen = bool(np.abs(along[~kept]).max(initial=0.0) <= _UNSEEN * np.abs(along).max(initial=0.0))
    return -vectors[:, kept] @ (along[kept] / values[kept]), seen, int(kept.sum())


def _in_own_features(loss: Loss, setting: Setting) -> ScoreAndCurvature:
    """Gradient, Hessian and scores without weights, in the features of the records: a pass for each."""
    return ScoreAndCurvature(loss, setting.coordinates, math.inf, 1.0, setting.n)


def _squares(setting: Setting, curator: Curator) -> Vector:
    """The second moments of the records' own features."""
    query, d = _in_own_features(Squared(), setting), setting.dimension
    return query.parts(curator.release(query, Gaussian(0.0), np.eye(d), np.zeros(d))).hessian


def _without_bounds(problem: Problem, curator: Curator, n: int, p: int) -> Setting:
    """The scales of a problem; from second moments of the records if there are no bounds."""
    setting = Setting.of(problem, n, p)
    if np.isfinite(setting.coordinates.half).all():
        return setting
    moments = _squares(setting, curator)
    squares, middle = np.diag(moments)[:p] / n, np.zeros(p)
    if problem.fit_intercept:
        middle = moments[-1, :p] / (n * setting.constant)
    spread = np.sqrt(np.maximum(squares - middle**2, _SINGULAR * squares))
    half = np.where(spread > 0, _WIDE * spread, 1.0)
    return replace(setting, coordinates=Coordinates(middle, half, problem.fit_intercept))


def _sandwich(problem: Problem, curator: Curator, setting: Setting, w: Vector, reached: bool) -> Uncertainty:
    """The usual covariance of a minimiser, which the model need not be right for."""
    query = _in_own_features(problem.loss, setting)
    parts = query.parts(curator.release(query, Gaussian(0.0), np.eye(len(w)), w))
    size = np.sqrt(np.maximum(np.diag(parts.hessian), 0.0))
    scaled = parts.hessian / np.outer(np.where(size > 0, size, 1.0), np.where(size > 0, size, 1.0))
    regular = bool((size > 0).all()) and float(np.linalg.eigvalsh(scaled)[0]) > _SINGULAR
    scale = 1.0 / np.where(size > 0, size, 1.0)
    inverse = np.linalg.pinv(scaled, hermitian=True) * np.outer(scale, scale)
    return Uncertainty(
        inverse @ parts.scores @ inverse,
        np.zeros_like(inverse),
        regular and reached,
        "" if regular and reached else _DEPENDENT if reached else _NOT_REACHED,
        "the fit of the whole table",
    )
