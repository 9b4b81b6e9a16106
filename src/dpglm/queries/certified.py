"""Minimisers with a certificate: a bound on their error that depends on public values alone."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np

from ..arrays import Vector
from .proximal import Map, Prox, Steps, accelerated, inner, largest_eigenvalue, norm
from .refined import Refined

FARTHER = 17 / 16
"""How many times farther from 0 than the minimiser a certified point may be."""

_FLOOR = 2.0**-47  # what doubles reach of the largest gradient
_STAY = 200  # steps between moves of a base
_POWER_STEPS = 20
_NEARLY = 1e-2
_SAFETY = 1.1
_PRECISION = 1e-11
_FEWEST_STEPS = 1_000
_FIRST_BLOCK = 30
_MEMORY = 20
_MOST_NUMBERS = 50_000_000
_PATIENCE = 40
_DIVERGED = 10.0  # a step so many times longer than the first is taken as divergence


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
    prox: Prox
    curve: Map
    smoothness: float
    strength: float

    @property
    def condition(self) -> float:
        """1 + smoothness over strength."""
        return 1 + self.smoothness / self.strength

    def steps(self, length: float, taken: int = 0) -> Steps:
        """Proximal gradient steps."""
        return Steps.of(self.gradient, self.prox, length, taken)

    def subgradient(self, w: Vector, step: float) -> tuple[Vector, float]:
        """Where a proximal step leads, and the norm of a subgradient of the sum there."""
        slope = self.gradient(w)
        new = self.prox(w - step * slope, step)
        return new, norm((w - new) / step + self.gradient(new) - slope)


def certified_minimiser(
    function: Composite, start: Vector, tolerance: float, farthest: float, refined: Refined | None = None
) -> Vector:
    """A point that is at most tolerance / strength from the minimiser.

    Fast steps come first. Their end is accepted if it has a subgradient of norm at most ``tolerance`` and a
    norm that a minimiser can have. Otherwise, after about as many steps as are enough for any table, fallback
    steps follow from the start.

    ``farthest`` bounds the norm of the minimiser and its distance from the start. If ``refined``, the same
    objective in pairs of doubles, is given, only its subgradients count, and it takes the fallback steps.
    """
    with np.errstate(all="ignore"):  # a warning would depend on records
        if refined is None:
            found = _fast(function, start, tolerance, farthest)
            return _fallback(function, start, tolerance, farthest) if found is None else found
        floor = _FLOOR * farthest * function.strength
        near = _fast(function, start, max(tolerance, floor), farthest)
        found = _refine(replace(refined, base=start if near is None else near), tolerance, farthest)
        return _fallback(refined, start, tolerance, farthest) if found is None else found


def fallback_steps(condition: float, nearness: float) -> int:
    """How many fallback steps end ``nearness`` times closer than the start, for any table."""
    fall = -math.log1p(-1 / math.sqrt(max(condition, 2.0)))
    return 1 + math.ceil((math.log(condition) + 2 * math.log(max(nearness, 1.0))) / fall)


def _fallback(function: Composite | Refined, w: Vector, tolerance: float, farthest: float) -> Vector:
    """Accelerated steps: as many as are enough, and as short as is safe, for any table.

    One plain step, then the method of constant momentum (Beck, First-order methods in optimization, 10.7.7).
    Where rounding errors are relative to the distance from a base, the base follows the point.
    """
    root = math.sqrt(function.condition)
    momentum = (root - 1) / (root + 1)
    if isinstance(function, Refined):
        function, w = replace(function, base=w), np.zeros_like(w)
    steps = function.steps(1 / function.smoothness)
    w = ahead = steps(w)
    for k in range(fallback_steps(function.condition, farthest * function.strength / tolerance)):
        before, w = w, steps(ahead)
        ahead = w + momentum * (w - before)
        if isinstance(function, Refined) and k % _STAY == 0:
            function, (w, ahead) = function.moved(w, ahead)
            steps = function.steps(steps.length)
    return function.end(w) if isinstance(function, Refined) else w


def _refine(function: Refined, tolerance: float, farthest: float) -> Vector | None:
    """Extrapolated and accelerated steps from the base in turn; None if they do not lead to a certificate."""
    most = max(_FEWEST_STEPS, fallback_steps(function.condition, farthest * function.strength / tolerance))
    shortest, d = 1 / function.smoothness, np.zeros_like(function.base)
    length = max(shortest, 1 / (largest_curvature(function.curve, len(d)) + function.public.quadratic.max()))
    steps, before, block, tries = function.steps(length), math.inf, _FIRST_BLOCK, 0
    while steps.taken < most:
        found, left, size = function.certify(d)
        if left <= tolerance and size <= FARTHER * farthest:
            return found
        if not left <= 2 * before:  # no numbers, or steps that are too long
            d, left = np.zeros_like(d), math.inf
        if not left <= before / 4 and tries > 0:
            length = max(shortest, length / 2)
        function, (d,) = function.moved(d)
        steps, before, tries = function.steps(length, steps.taken), min(left, before), tries + 1
        goal = tolerance / 4 * length
        d, residual = _extrapolated(steps, d, goal)
        if residual > goal:
            d, _ = accelerated(steps, d, goal, block)
            block *= 2
    return None


def _fast(function: Composite, start: Vector, tolerance: float, farthest: float) -> Vector | None:
    """Accelerated and extrapolated steps in turn; None if they do not lead to a certificate."""
    most = max(_FEWEST_STEPS, fallback_steps(function.condition, farthest * function.strength / tolerance))
    # The certificate divides by the step length: a step lost to rounding would certify any point.
    shortest = 1 / function.smoothness
    steps = function.steps(max(shortest, 1 / largest_curvature(function.curve, len(start))))
    w, first = start, norm(steps(start) - start) / steps.length
    # As precise as is cheap, so that the last digits hardly depend on the path to the minimiser.
    goal = min(max(_PRECISION * first, 1e-4 * tolerance), tolerance / 4)
    limit, before, block = _DIVERGED * first + goal, math.inf, _FIRST_BLOCK
    while steps.taken < most:
        w, residual = accelerated(steps, w, goal * steps.length, block, limit * steps.length)
        diverged = not residual <= limit * steps.length
        if diverged:
            # Steps this short converge; only momentum may overshoot for a while.
            w, limit = start, math.inf if steps.length <= shortest else limit
        elif residual > goal * steps.length:
            w, residual = _extrapolated(steps, w, goal * steps.length)
        slow = residual > before * steps.length / 2
        if not diverged and (slow or residual <= goal * steps.length):
            found, left = function.subgradient(w, steps.length)
            # The tolerance allows for the rounding of points that are no farther out.
            if left <= tolerance and max(norm(w), norm(found)) <= FARTHER * farthest:
                return found
        before = math.inf if diverged else residual / steps.length
        if diverged or slow:
            steps = function.steps(max(shortest, steps.length / 2), steps.taken)
        block = block if diverged else 2 * block
    return None


def largest_curvature(curve: Map, dimension: int) -> float:
    """Largest eigenvalue of a positive linear map, a little above; 1 if it is 0."""
    return _SAFETY * largest_eigenvalue(curve, dimension, _POWER_STEPS, _NEARLY) or 1.0


def _extrapolated(steps: Steps, w: Vector, goal: float) -> tuple[Vector, float]:
    """Anderson mixing while it makes progress; the end of the shortest step, and its length.

    The next point is the mixture of the last ends at which, if steps were linear, the step would be least.
    """
    past = _Past(max(3, min(_MEMORY, _MOST_NUMBERS // len(w))))
    end = steps(w)
    move = end - w
    best, residual, mark, waited = end, norm(move), norm(move), 0
    while residual > goal:
        waited += 1
        if waited == _PATIENCE:
            if residual > mark / 10:
                break
            mark, waited = residual, 0
        point = end - past.share(move)
        following = steps(point)
        if past.moves and not norm(following - point) <= 2 * norm(move):
            past = _Past(past.most)
            point, following = end, steps(end)
        past.add(following - end, following - point - move)
        end, move = following, following - point
        if norm(move) < residual:
            best, residual = end, norm(move)
    return best, residual


@dataclass
class _Past:
    """Differences of the last ends and of the steps to them, and the inner products of the latter."""

    most: int
    ends: list[Vector] = field(default_factory=list)
    moves: list[Vector] = field(default_factory=list)
    products: Vector = field(default_factory=lambda: np.zeros((0, 0)))

    def add(self, end: Vector, move: Vector) -> None:
        self.ends.append(end)
        self.moves.append(move)
        row = np.array([[inner(other, move) for other in self.moves]])
        self.products = np.block([[self.products, row[:, :-1].T], [row]])
        if len(self.moves) > self.most:
            self.ends.pop(0)
            self.moves.pop(0)
            self.products = self.products[1:, 1:]

    def share(self, move: Vector) -> Vector | float:
        """The combination of end differences whose step differences sum to ``move``, in least squares."""
        if not self.moves:
            return 0.0
        ridge = 1e-14 * np.trace(self.products) * np.eye(len(self.moves))
        try:
            weights = np.linalg.solve(self.products + ridge, [inner(other, move) for other in self.moves])
        except np.linalg.LinAlgError:
            return 0.0
        mixed: Vector = np.sum([weight * end for weight, end in zip(weights, self.ends, strict=True)], axis=0)
        return mixed
