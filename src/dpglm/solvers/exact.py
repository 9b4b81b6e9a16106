"""Fits without a budget: where they start, and the exact minimiser, by accelerated proximal steps."""

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
from ..penalties import L2, Zero
from ..plan import Plan
from ..problem import Problem
from ..queries import ClippedGradient, ScoreAndCurvature, gradient_of
from ..queries.proximal_gradient import Map, Prox, Steps, accelerated, inner, largest_eigenvalue, norm
from .base import Result, Uncertainty
from .newton_steps import Setting, inverse_of

STEPS_WITHOUT_NOISE = 10_000
"""The most that are taken."""

_POWER_STEPS = 40
_SAFETY = 1.05
_SETTLED = 1e-8
_NEAR, _MOST_HALVINGS = 0.1, 100
_KNOWN, _RIDGE, _SHORTER = 5, 1e-13, 0.95


def exact_minimiser(plan: Plan, problem: Problem, curator: Curator, clip: float = math.inf) -> Result:
    """The minimiser of the problem with clipped gradients, in at most as many steps as the plan has."""
    nothing, n = Gaussian(0.0), plan.n_records
    start = constant_start(problem, curator, n, plan.n_features)
    query = gradient_of(problem.loss, clip, n, plan.n_features)
    quadratic, width = ClippedGradient(Squared(), math.inf), problem.width(plan.n_features)
    origin = curator.release(quadratic, nothing, np.zeros(width))
    curvature = largest_curvature(lambda v: (curator.release(quadratic, nothing, v) - origin) / n, width)
    return minimise(
        lambda w: problem.centred(curator.release(query, nothing, w)) / n,
        problem.prox,
        problem.loss.smoothness() * curvature,
        start,
        plan.steps,
        _has_smooth_minimum(problem),
    )


def constant_start(problem: Problem, curator: Curator, n: int, p: int) -> Vector:
    """Where a fit without noise starts: for a loss with a log link at the best constant prediction.

    Elsewhere it is the public start. Where margins are outside of the range of means, such a loss has no
    curvature, and offsets can put all records there.
    """
    start = problem.start(p)
    if problem.loss.kind != "count" or not problem.fit_intercept:
        return start
    query, constant = ClippedGradient(problem.loss, math.inf), problem.constant(p)
    bottom, top = problem.bounds.offset_range if problem.has_offsets else (0.0, 0.0)
    low, high = problem.loss.link(0.0) - top, problem.loss.link(math.inf) - bottom
    for _ in range(_MOST_HALVINGS):
        if not _NEAR < high - low < math.inf:
            break
        middle = (low + high) / 2
        problem.split(start)[1][:] = middle / constant
        falls = float(curator.release(query, Gaussian(0.0), start)[-1]) <= 0
        low, high = (middle, high) if falls else (low, middle)
    return start


def _has_smooth_minimum(problem: Problem) -> bool:
    """Whether a minimiser exists for every table and nothing has a kink, as far as the kinds tell."""
    if isinstance(problem.penalty, Zero):
        return isinstance(problem.loss, Squared)
    return isinstance(problem.penalty, L2) and problem.penalty.strength > 0


def largest_curvature(apply: Map, dimension: int) -> float:
    """Largest eigenvalue of a symmetric positive operator, a little above."""
    return _SAFETY * largest_eigenvalue(apply, dimension, _POWER_STEPS, nearly=0.0)


def minimise(
    gradient: Map, prox: Prox, smoothness: float, w: Vector, max_steps: int, smooth: bool = False
) -> Result:
    """Accelerated proximal steps until one is no longer than 1e-8 of the first.

    A problem that is ``smooth`` and has a minimiser takes far fewer of them: they also go to where the last
    ones lead.
    """
    steps = Steps.of(gradient, prox, 1.0 / smoothness if smoothness > 0 else 1.0)
    if smooth:
        return Result(_extrapolated(steps, w, max_steps), steps.taken)
    w, _ = accelerated(steps, w, _SETTLED, max_steps, relative=True)
    return Result(w, steps.taken)


def _extrapolated(steps: Steps, w: Vector, count: int) -> Vector:
    """Steps with momentum as in ``accelerated``, that start again from where they lead (Anderson, 1965).

    They do if a step from there, or the one after it, is shorter than the last. If not, nothing is lost but
    these two. Where there is no minimiser, they would lead ever further out and look settled.
    """
    ahead, momentum, goal, wait = w, 1.0, 0.0, _KNOWN
    known: list[tuple[Vector, Vector]] = []
    while steps.taken < count:
        new = steps(ahead)
        length = norm(new - ahead)
        goal = goal or _SETTLED * length
        if not goal < length:
            return new
        known = [*known[-_KNOWN:], (ahead, new)]
        wait -= 1
        if wait < 0 and steps.taken + 2 <= count:
            wait, guess = _KNOWN, _leading_to(known)
            for _ in range(2):
                reached = steps(guess)
                now = norm(reached - guess)
                if now < _SHORTER * length:
                    break
                guess = reached
            if now <= goal:
                return reached
            if now < _SHORTER * length:
                known = [*known[-_KNOWN:], (guess, reached)]
                w, ahead, momentum, wait = reached, reached, 1.0, 0
                continue
        if inner(ahead - new, new - w) > 0:
            momentum = 1.0
        following = (1 + math.sqrt(1 + 4 * momentum**2)) / 2
        ahead = new + (momentum - 1) / following * (new - w)
        w, momentum = new, following
    return w


def _leading_to(known: list[tuple[Vector, Vector]]) -> Vector:
    """The affine combination of the ends of steps for which that of the steps themselves is shortest."""
    starts, ends = (np.array(points) for points in zip(*known, strict=True))
    changes, moved = np.diff(ends - starts, axis=0), np.diff(ends, axis=0)
    sizes = np.sqrt(np.einsum("ij,ij->i", changes, changes))
    sizes[sizes == 0] = 1.0
    changes /= sizes[:, None]
    products = np.einsum("ij,kj->ik", changes, changes) + _RIDGE * np.eye(len(changes))
    shares = np.linalg.solve(products, np.einsum("ij,j->i", changes, ends[-1] - starts[-1]))
    guess: Vector = ends[-1] - np.einsum("i,ij->j", shares / sizes, moved)
    return guess


if TYPE_CHECKING:
    from .newton import NewtonPlan

_WIDE = 8.0
_SETTLED_NEWTON, _SINGULAR, _SINGULAR_IF_PRECISE, _UNSEEN = 1e-12, 1e-12, 1e-14, 1e-6
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
        if stalled or decrement <= _SETTLED_NEWTON * first.decrement:
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
