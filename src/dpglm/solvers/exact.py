"""Exact minimisers of fits without a budget: accelerated, Newton's, coordinate-wise and dual steps."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ..arrays import Vector
from ..bounds import Coordinates
from ..curator import Curator
from ..losses import Loss, Squared
from ..mechanisms import Gaussian
from ..penalties import L2, Zero
from ..plan import Plan
from ..privacy import Neighbours
from ..problem import Problem
from ..queries import (
    ClippedGradient,
    CoordinateRule,
    CoordinateSums,
    DualForm,
    DualStep,
    ScoreAndCurvature,
    gradient_of,
)
from ..queries.proximal_gradient import Map, Prox, Steps, accelerated, inner, largest_eigenvalue, norm
from .base import Result, Uncertainty
from .newton_steps import Setting, inverse_of

if TYPE_CHECKING:
    from .coordinate_descent import CoordinateDescentPlan
    from .dual_coordinate_descent import DualCoordinateDescentPlan
    from .newton import NewtonPlan

STEPS_WITHOUT_NOISE = 10_000
"""The most that are taken."""

_POWER_STEPS = 40
_SAFETY = 1.05
_SETTLED = 1e-8
_NEAR, _MOST_HALVINGS = 0.1, 100
_KNOWN, _RIDGE, _SHORTER = 5, 1e-13, 0.95

_SETTLED_COORDINATES, _MEMORY = 1e-7, 5
_TOLERANCE, _PATIENCE, _MORE_PATIENCE, _MOST_COEFFICIENTS = 1e-11, 200, 4, 500
_PASSES_A_ROUND, _PASSES_IN_ONE_ORDER = 5, 20
_LEAST_WORK = 5000  # of a call, however few steps it takes

_WIDE = 8.0
_SETTLED_NEWTON, _SINGULAR, _SINGULAR_IF_PRECISE, _UNSEEN = 1e-12, 1e-12, 1e-14, 1e-6
_LONGEST_OF_COUNTS, _MOST_TIMES = 4.0, 1024.0
_STALLED, _LONG, _ROUGH_STEPS = 1e-8, 1e-4, 25
_DEPENDENT = "the features are linearly dependent"
_NOT_REACHED = "the minimum was not reached, and there is none if classes can be separated"


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


def exact(plan: NewtonPlan, problem: Problem, curator: Curator) -> Result:
    """Find the minimiser without noise by Newton's method, and the sandwich covariance.

    Steps take the exact gradient and a Hessian in coordinates that is precise to about six digits: so each
    step removes all but a millionth of the distance, once it is short. Where that is not enough, as for
    features that vary by a millionth of their size, the Hessian is that of the records' own features.
    """
    n, p = plan.n_records, plan.n_features
    wider, start = problem.loss.wider(), constant_start(problem, curator, n, p)
    if wider is not None:
        start = exact(replace(plan, intervals=False), replace(problem, loss=wider), curator).w
    setting = _without_bounds(problem, curator, n, p)
    w, steps, reached = _ExactNewton(problem, curator, setting, plan.neighbours).minimiser(start, plan.steps)
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


class _ExactNewton:
    """Newton's steps without noise, in coordinates."""

    def __init__(self, problem: Problem, curator: Curator, setting: Setting, neighbours: Neighbours) -> None:
        self._problem, self._curator, self._setting = problem, curator, setting
        self._counts = problem.loss.kind == "count"
        self._gradient = ClippedGradient(problem.loss, math.inf)
        self._rough = setting.derivatives(1.0, 1e9, neighbours)
        self._fine = _in_own_features(problem.loss, setting)
        self._back = setting.to_records
        self._forth, self._ridge = inverse_of(self._back), np.diag(setting.ridge)
        self._precise, self._longer = False, 1.0
        self._longest = _LONGEST_OF_COUNTS if self._counts else math.inf
        self._first: _Progress | None = None

    def minimiser(self, w: Vector, most: int) -> tuple[Vector, int, bool]:
        """The last point, the number of steps, and whether it is the minimiser."""
        step, fell = np.zeros(self._setting.dimension), 0.0
        for steps in range(1, most + 1):
            slope = self._slope(w)
            if float(slope @ step) > fell / 2:  # too far: go back by half of the last step
                if self._first is not None and math.sqrt(fell) <= _STALLED * self._first.decrement:
                    return w, steps, True
                step, fell = step / 2, fell / 2
                w = w - self._back @ step
                continue
            hessian, newton, rank = self._step(w, slope, steps)
            if hessian is None:
                step, self._longer = self._longer * newton, min(2 * self._longer, _MOST_TIMES)
                fell = -float(step @ slope)
                w = w + self._back @ step
                continue
            decrement = math.sqrt(max(-float(newton @ slope), 0.0))
            if self._first is None or rank > self._first.rank:
                self._first = _Progress(decrement, hessian, newton, rank)
            first = self._first
            short = rank == first.rank and first.length(newton) <= _LONG * first.length(first.step)
            stalled = short and decrement <= _STALLED * first.decrement and decrement**2 > fell / 4
            if stalled or decrement <= _SETTLED_NEWTON * first.decrement:
                # Steps that stay long while slopes vanish: classes are separable, and there is no minimum.
                return w, steps if short else most, short
            share = self._share(newton)
            fell, step = share * decrement**2, share * newton
            w = w + self._back @ step
        return w, most, False

    def _slope(self, w: Vector) -> Vector:
        released = self._curator.release(self._gradient, Gaussian(0.0), w)
        slope: Vector = self._back.T @ released + self._setting.ridge * (self._forth @ w)
        return slope

    def _step(self, w: Vector, slope: Vector, steps: int) -> tuple[Vector | None, Vector, int]:
        """The Hessian, Newton's step and the rank; a step by a bound of the curvature where there is none."""
        eye, back = np.eye(self._setting.dimension), self._back
        released = self._curator.release(self._rough, Gaussian(0.0), eye, self._forth @ w)
        hessian = self._rough.parts(released).hessian + self._ridge
        newton, seen, rank = _newton_step(hessian, slope)
        if not self._precise and seen and steps <= _ROUGH_STEPS:
            return hessian, newton, rank
        own = self._fine.parts(self._curator.release(self._fine, Gaussian(0.0), eye, w)).hessian
        hessian = back.T @ own @ back + self._ridge
        newton, seen, rank = _newton_step(hessian, slope, _SINGULAR_IF_PRECISE)
        if not self._precise and self._first is not None:
            self._first = replace(self._first, rank=rank)
        self._precise = True
        if seen or self._first is not None or not self._counts:
            return hessian, newton, rank
        # Margins outside of the range of means have no curvature: a bound of it leads back.
        bounding = back.T @ (self._problem.loss.smoothness() * self._squares) @ back + self._ridge
        newton, _, rank = _newton_step(bounding, slope)
        return None, newton, rank

    @cached_property
    def _squares(self) -> Vector:
        return _squares(self._setting, self._curator)

    def _share(self, newton: Vector) -> float:
        """How much of a step is taken.

        Where means of most records are outside of their range, the curvature of few leads too far.
        """
        share, longest = 1.0, self._longest
        if np.abs(newton).sum() > longest:
            moved = self._back @ newton
            square = float(moved @ self._squares @ moved) / self._setting.n
            share = longest / max(longest, math.sqrt(max(square, 0.0)))
        self._longest = 2 * longest
        return share


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


def coordinate_minimiser(
    plan: CoordinateDescentPlan, query: CoordinateSums, rule: CoordinateRule, w: Vector, curator: Curator
) -> Result:
    """Find the minimiser by cyclic passes, extrapolated (Bertrand and Massias, 2021).

    Every few passes the next point is the combination of the last ones whose moves nearly cancel; it is
    kept if the following pass moves less than the one before.
    """
    everything = np.arange(len(w))
    scale = 1.0 / np.sqrt(rule.step)
    nothing = Gaussian(0.0)
    opened, path, fallback, change, first = curator.open(query, w, nothing), [w], w, math.inf, 0.0
    done, passes = 0, max(1, plan.steps // len(w))
    while done < passes:
        done += 1
        moves, w = opened.descend(everything, rule)
        moved = float(np.linalg.norm(moves * scale))
        first = first or moved
        if moved <= _SETTLED_COORDINATES * first:
            break
        if len(path) == 1 and moved > change:
            opened, path, w, moved = curator.open(query, fallback, nothing), [], fallback, math.inf
        path.append(w)
        change = moved
        if len(path) > _MEMORY:
            fallback, w = w, _combined(np.array(path), scale)
            opened, path = curator.open(query, w, nothing), [w]
    return Result(w, done * len(w))


def _combined(path: Vector, scale: Vector) -> Vector:
    """The combination of points, with weights of sum 1, whose successive differences nearly cancel."""
    differences = np.diff(path, axis=0) * scale
    gram = differences @ differences.T
    gram += 1e-12 * np.trace(gram) * np.eye(len(gram))
    weights = np.linalg.solve(gram, np.ones(len(gram)))
    combined: Vector = weights / weights.sum() @ path[1:]
    return combined


def dual_minimiser(
    plan: DualCoordinateDescentPlan, form: DualForm, query: DualStep, curator: Curator
) -> Result:
    """Find the minimiser by dual passes in random order, and Newton steps if these are slow.

    They end when the duality gap vanishes.

    Records that a pass leaves unchanged, at an end of their range, are skipped until the next round. After
    each round the L2 part of the intercept is centred at its present value, or beyond it if it keeps moving
    one way: in the limit that part is 0. Newton steps are for few features and for slopes that jump, where
    passes are slow.
    """
    n = plan.n_records
    v = np.zeros(len(form.l2))
    opened = curator.open(query, form.point(v), Gaussian(0.0))
    steps, stride, before = 0, 1.0, 0.0
    jumps = not math.isfinite(query.loss.smoothness())
    work, patience = 0, _PATIENCE * n if jumps and len(v) <= _MOST_COEFFICIENTS else math.inf
    while True:
        moving, visits = np.arange(n), 0
        while len(moving) and visits < _PASSES_A_ROUND * n:
            order = moving[curator.order(len(moving))]
            passes = min(n // len(moving), _PASSES_IN_ONE_ORDER)
            v, moving, taken = opened.ascend(v, form, order, passes)
            visits += taken
            work += max(taken, _LEAST_WORK)
        steps += visits
        w = form.point(v)
        gap, objective = opened.gap(w, form.around(w))
        if gap > _TOLERANCE * abs(objective) and work >= patience:
            w, v, taken = opened.polish(w, form.around(w), _TOLERANCE)
            gap, objective = opened.gap(w, form.around(w))
            steps, work, patience = steps + taken, work + taken, _MORE_PATIENCE * (work + taken)
        if gap <= _TOLERANCE * abs(objective) or steps >= plan.steps:
            return Result(w, steps, gap)
        if form.intercept:
            move = form.around(w).centre - form.centre
            stride = 2 * stride if move * before > 0 and abs(move) > abs(before) / 2 else 1.0
            form, before = replace(form, centre=form.centre + stride * move), move
