"""Fits without a budget: where they start, and the exact minimiser, by accelerated proximal steps."""

from __future__ import annotations

import math

import numpy as np

from ..arrays import Vector
from ..curator import Curator
from ..losses import Squared
from ..mechanisms import Gaussian
from ..penalties import L2, Zero
from ..plan import Plan
from ..problem import Problem
from ..queries import ClippedGradient, gradient_of
from ..queries.proximal_gradient import Map, Prox, Steps, accelerated, inner, largest_eigenvalue, norm
from .base import Result

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
