"""Minimisers found with a certificate: how close they are is known from public values alone."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Map = Callable[[Vector], Vector]

_POWER_STEPS = 20
_SAFETY = 1.05
_PRECISION = 1e-11
_MOST_STEPS = 20_000
_FIRST_BLOCK = 30
_MEMORY = 20
_PATIENCE = 40
_SURE_STEP = 1.9  # below 2: a gradient step of that over the smoothness brings no two points apart


@dataclass(frozen=True)
class Composite:
    """A smooth convex function plus one with a proximal step, of which the sum is strongly convex.

    Attributes
    ----------
    gradient : callable
        Gradient of the smooth part.
    prox : callable
        Proximal step of the other part, for a point and a step.
    curve : callable
        A linear map that bounds the curvature of the smooth part.
    smoothness : float
        Largest curvature of the smooth part for any table.
    strength : float
        Strong convexity of the other part.
    """

    gradient: Map
    prox: Callable[[Vector, float], Vector]
    curve: Map
    smoothness: float
    strength: float

    def subgradient(self, w: Vector, step: float) -> tuple[Vector, float]:
        """Where a proximal step leads, and the norm of a subgradient of the sum there."""
        slope = self.gradient(w)
        new = self.prox(w - step * slope, step)
        return new, _norm((w - new) / step + self.gradient(new) - slope)


def certified_minimiser(function: Composite, start: Vector, tolerance: float, farthest: float) -> Vector:
    """A point that is at most tolerance / strength from the minimiser.

    Fast steps come first, and their end counts if it has a subgradient of norm at most ``tolerance``. If it
    has not, as many plain proximal steps follow, from the start, as are enough for any table.

    Parameters
    ----------
    function : Composite
    start : Vector
    tolerance : float
        The norm of a subgradient that is small enough.
    farthest : float
        How far the minimiser may be from the start, at most.
    """
    found = _fast(function, start, tolerance)
    if found is not None:
        return found
    w, step = start, _SURE_STEP / function.smoothness
    nearness = max(farthest * function.strength / tolerance, 1.0)
    for _ in range(math.ceil(math.log(nearness) / math.log1p(step * function.strength))):
        w = function.prox(w - step * function.gradient(w), step)
    return w


def _fast(function: Composite, start: Vector, tolerance: float) -> Vector | None:
    """Accelerated and extrapolated steps in turn; None if they do not lead to a certificate."""
    # The certificate divides by the step: one that is lost beside the point would certify anything.
    shortest = 1 / function.smoothness
    step = max(shortest, 1 / largest_curvature(function.curve, len(start)))
    steps = _Steps(function, step)
    w, first, before = start, _norm(steps(start) - start), math.inf
    # As precise as is cheap, so that the way to the minimiser hardly shows in the last digits.
    goal = min(max(_PRECISION * first, 1e-4 * step * tolerance), step * tolerance / 4)
    block = _FIRST_BLOCK
    while steps.taken < _MOST_STEPS:
        w, residual = _accelerated(steps, w, goal, block)
        if not residual <= 10 * first:
            if step <= shortest:
                return None
            step = max(shortest, step / 2)
            steps, w = _Steps(function, step, steps.taken), start
            continue
        if residual > goal:
            w, residual = _extrapolated(steps, w, goal)
        if residual <= goal or residual > before / 2:
            w, norm = function.subgradient(w, step)
            if norm <= tolerance:
                return w
        before, block = residual, 2 * block
    return None


def largest_curvature(curve: Map, dimension: int) -> float:
    """Largest eigenvalue of a positive linear map, a little above; 1 if it is 0."""
    v = np.random.default_rng(0).standard_normal(dimension)
    value = 0.0
    for _ in range(_POWER_STEPS):
        v = curve(v / _norm(v))
        value = _norm(v)
        if not value > 0:
            return 1.0
    return _SAFETY * value


@dataclass
class _Steps:
    """Proximal gradient steps, counted."""

    function: Composite
    length: float
    taken: int = field(default=0)

    def __call__(self, w: Vector) -> Vector:
        self.taken += 1
        return self.function.prox(w - self.length * self.function.gradient(w), self.length)


def _accelerated(steps: _Steps, w: Vector, goal: float, count: int) -> tuple[Vector, float]:
    """Steps with momentum that restarts (O'Donoghue and Candes, 2015), and the length of the last one."""
    ahead, momentum, residual = w, 1.0, math.inf
    for _ in range(count):
        new = steps(ahead)
        residual = _norm(new - ahead)
        if not residual > goal:
            return new, residual
        if np.dot(ahead - new, new - w) > 0:
            momentum = 1.0
        following = (1 + math.sqrt(1 + 4 * momentum**2)) / 2
        ahead = new + (momentum - 1) / following * (new - w)
        w, momentum = new, following
    return w, residual


def _extrapolated(steps: _Steps, w: Vector, goal: float) -> tuple[Vector, float]:
    """Steps extrapolated from the last ones (Anderson's mixing), as long as they pay; the shortest and where.

    The next point is the mixture of the last ends at which, if steps were linear, the step would be least.
    """
    ends: list[Vector] = []  # differences of successive ends
    moves: list[Vector] = []  # and of the steps to them
    end = steps(w)
    move = end - w
    best, residual, mark, waited = end, _norm(move), _norm(move), 0
    while residual > goal:
        waited += 1
        if waited == _PATIENCE:
            if residual > mark / 10:
                break
            mark, waited = residual, 0
        point = end - _mixture(np.array(moves), move) @ np.array(ends) if moves else end
        following = steps(point)
        if moves and not _norm(following - point) <= 2 * _norm(move):
            ends.clear()
            moves.clear()
            point, following = end, steps(end)
        ends.append(following - end)
        moves.append(following - point - move)
        if len(moves) > _MEMORY:
            ends.pop(0)
            moves.pop(0)
        end, move = following, following - point
        if _norm(move) < residual:
            best, residual = end, _norm(move)
    return best, residual


def _mixture(moves: Vector, move: Vector) -> Vector:
    """The weights with which differences of steps make up a step, as nearly as they can."""
    square = moves @ moves.T
    square[np.diag_indices_from(square)] += 1e-14 * np.trace(square) + 1e-300
    return np.asarray(np.linalg.solve(square, moves @ move))


def _norm(v: Vector) -> float:
    return float(np.linalg.norm(v))
