"""Proximal gradient steps to a minimiser, with a bound on its error that depends on public values alone."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from ..arrays import Vector, exact_product, exact_sum

Map = Callable[[Vector], Vector]
Prox = Callable[[Vector, float], Vector]


FARTHER = 17 / 16
"""How many times farther from 0 than the minimiser a certified point may be."""

_SNAP = 2.0**-51
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


@dataclass
class Steps:
    """Proximal gradient steps of one length, counted: ``step`` is a function of a point and a length."""

    step: Prox
    length: float
    taken: int = 0

    @classmethod
    def of(cls, gradient: Map, prox: Prox, length: float, taken: int = 0) -> Self:
        """Steps along a gradient, each followed by a proximal step."""
        return cls(lambda w, step: prox(w - step * gradient(w), step), length, taken)

    def __call__(self, w: Vector) -> Vector:
        self.taken += 1
        return self.step(w, self.length)


def accelerated(
    steps: Steps, w: Vector, goal: float, count: int, limit: float = math.inf, relative: bool = False
) -> tuple[Vector, float]:
    """Steps with momentum that restarts (O'Donoghue and Candes, 2015), and the length of the last one.

    They end when one is no longer than the goal, or longer than a limit. If ``relative``, the goal is in
    units of the first step.
    """
    ahead, momentum, residual = w, 1.0, math.inf
    for k in range(count):
        new = steps(ahead)
        residual = norm(new - ahead)
        if relative and k == 0:
            goal *= residual
        if not goal < residual <= limit:
            return new, residual
        if inner(ahead - new, new - w) > 0:
            momentum = 1.0
        following = (1 + math.sqrt(1 + 4 * momentum**2)) / 2
        ahead = new + (momentum - 1) / following * (new - w)
        w, momentum = new, following
    return w, residual


def largest_eigenvalue(curve: Map, dimension: int, most: int, nearly: float) -> float:
    """Largest eigenvalue of a positive linear map, from below, by at most so many power iterations.

    They end early when one changes the value by no more than the share ``nearly``.
    """
    v = np.random.default_rng(0).standard_normal(dimension)
    value = 0.0
    for _ in range(most):
        v = curve(v / norm(v))
        before, value = value, norm(v)
        if not value > 0:
            return 0.0
        if abs(value - before) <= nearly * value:
            break
    return value


def norm(v: Vector) -> float:
    """The Euclidean norm."""
    return math.sqrt(inner(v, v))


def inner(v: Vector, w: Vector) -> float:
    """The inner product; not by BLAS, which would start threads for it."""
    return float(np.einsum("i,i->", v, w))


Pair = tuple[Vector, Vector]
"""Numbers, each the sum of two doubles, of which the second is at most half a unit of the first."""


@dataclass(frozen=True, eq=False)
class Public:
    """The public part of an objective: for each coordinate, what is added to the mean loss.

    That is quadratic / 2 (w - centre)² + linear w + l1 abs(w), with w kept in [low, high].
    """

    quadratic: Vector
    centre: Vector
    linear: Vector
    l1: Vector
    low: Vector
    high: Vector


@dataclass(frozen=True, eq=False)
class Refined:
    """A mean loss plus a public part. A point is a base plus a vector d, both of doubles.

    All errors are relative to d, so that steps near the base are as precise as if it were 0.

    Attributes
    ----------
    base : array
    total : callable
        The sum over the records of their gradients at a point, in pairs.
    n_records : int
    public : Public
    curve : callable
        A linear map that bounds the curvature of the mean loss.
    smoothness, strength : float
        Largest and least curvature of all but the L1 part and the interval, for any table.
    """

    base: Vector
    total: Callable[[Pair], Pair]
    n_records: int
    public: Public
    curve: Map
    smoothness: float
    strength: float

    @property
    def condition(self) -> float:
        """Smoothness over strength."""
        return self.smoothness / self.strength

    def steps(self, length: float, taken: int = 0) -> Steps:
        """Proximal gradient steps of d."""
        return Steps(self._step, length, taken)

    def moved(self, d: Vector, *others: Vector) -> tuple[Refined, list[Vector]]:
        """The same with the point at d as the base, and the vectors as seen from there."""
        base, left = self._point(d)
        shift = _difference((base, left), self.base)
        return replace(self, base=base), [left, *(other - shift + left for other in others)]

    def certify(self, d: Vector, _: float = 0.0) -> tuple[Vector, float, float]:
        """The point, rounded, the norm of the least subgradient at the point, and the norm of the point."""
        w = self._point(d)
        g, public = self._gradient(w), self.public
        more, less = (_value(_plus(g, (sign * public.l1, 0.0 * public.l1))) for sign in (1, -1))
        # The subdifferential of a coordinate is the interval from least to most.
        least = np.where(w[0] > 0, more, less)
        most = np.where(w[0] < 0, less, more)
        least = np.where(_equal(w, public.low), -math.inf, least)
        most = np.where(_equal(w, public.high), math.inf, most)
        return w[0], norm(np.clip(0.0, least, np.maximum(least, most))), norm(w[0])

    def end(self, d: Vector) -> Vector:
        """The point, rounded."""
        return self._point(d)[0]

    def _point(self, d: Vector) -> Pair:
        """Base plus d; where rounding of d may have moved it from 0 or from an end of the interval, that."""
        w = exact_sum(self.base, d)
        public, near = self.public, _SNAP * np.abs(d)
        for place, counts in ((public.low, True), (public.high, True), (0.0 * d, public.l1 > 0)):
            with np.errstate(invalid="ignore"):
                here = counts & (np.abs(_difference(w, place)) <= near)
            w = np.where(here, place, w[0]), np.where(here, 0.0, w[1])
        return self._inside(w)

    def _gradient(self, w: Pair) -> Pair:
        """Gradient of all but the L1 part."""
        public = self.public
        slope = _plus(_over(self.total(w), float(self.n_records)), (public.linear, 0.0 * public.linear))
        return _plus(slope, _times(_plus(w, (-public.centre, 0.0 * public.centre)), public.quadratic))

    def _step(self, d: Vector, length: float) -> Vector:
        w = self._point(d)
        ahead = _plus(w, _times(self._gradient(w), -length))
        cut = exact_product(self.public.l1, length)
        lower, upper = _plus(ahead, (-cut[0], -cut[1])), _plus(ahead, cut)
        above, below = lower[0] > 0, upper[0] < 0
        new = tuple(np.where(above, a, np.where(below, b, 0.0)) for a, b in zip(lower, upper, strict=True))
        return _difference(self._inside((new[0], new[1])), self.base)

    def _inside(self, w: Pair) -> Pair:
        """The nearest point of the intervals."""
        for end, sign in ((self.public.low, 1.0), (self.public.high, -1.0)):
            outside = sign * _difference(w, end) < 0
            w = np.where(outside, end, w[0]), np.where(outside, 0.0, w[1])
        return w


def _value(a: Pair) -> Vector:
    return a[0] + a[1]


def _difference(a: Pair, b: Vector) -> Vector:
    """The difference, rounded once; infinite where b is."""
    high, low = exact_sum(a[0], -b)
    return np.where(np.isfinite(b), high + (low + a[1]), -b)


def _equal(a: Pair, b: Vector) -> NDArray[np.bool_]:
    same: NDArray[np.bool_] = (a[0] == b) & (a[1] == 0)
    return same


def _plus(a: Pair, b: Pair) -> Pair:
    high, low = exact_sum(a[0], b[0])
    more, least = exact_sum(a[1], b[1])
    high, low = exact_sum(high, low + more)
    return exact_sum(high, low + least)


def _times(a: Pair, b: Vector | float) -> Pair:
    high, low = exact_product(a[0], b)
    return exact_sum(high, low + a[1] * b)


def _over(a: Pair, b: float) -> Pair:
    first = a[0] / b
    high, low = exact_product(first, b)
    return exact_sum(first, ((a[0] - high) - low + a[1]) / b)


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
            minimiser = _fast(function, start, tolerance, farthest)
            return _fallback(function, start, tolerance, farthest) if minimiser is None else minimiser
        floor = _FLOOR * farthest * function.strength
        near = _fast(function, start, max(tolerance, floor), farthest)
        minimiser = _refine(replace(refined, base=start if near is None else near), tolerance, farthest)
        return _fallback(refined, start, tolerance, farthest) if minimiser is None else minimiser


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
    count = max(_FEWEST_STEPS, fallback_steps(function.condition, farthest * function.strength / tolerance))
    shortest, d = 1 / function.smoothness, np.zeros_like(function.base)
    length = max(shortest, 1 / (largest_curvature(function.curve, len(d)) + function.public.quadratic.max()))
    steps, before, block, tries = function.steps(length), math.inf, _FIRST_BLOCK, 0
    while steps.taken < count:
        point, slope, size = function.certify(d)
        if slope <= tolerance and size <= FARTHER * farthest:
            return point
        if not slope <= 2 * before:  # no numbers, or steps that are too long
            d, slope = np.zeros_like(d), math.inf
        if not slope <= before / 4 and tries > 0:
            length = max(shortest, length / 2)
        function, (d,) = function.moved(d)
        steps, before, tries = function.steps(length, steps.taken), min(slope, before), tries + 1
        goal = tolerance / 4 * length
        d, residual = _extrapolated(steps, d, goal)
        if residual > goal:
            d, _ = accelerated(steps, d, goal, block)
            block *= 2
    return None


def _fast(function: Composite, start: Vector, tolerance: float, farthest: float) -> Vector | None:
    """Accelerated and extrapolated steps in turn; None if they do not lead to a certificate."""
    count = max(_FEWEST_STEPS, fallback_steps(function.condition, farthest * function.strength / tolerance))
    # The certificate divides by the step length: a step lost to rounding would certify any point.
    shortest = 1 / function.smoothness
    steps = function.steps(max(shortest, 1 / largest_curvature(function.curve, len(start))))
    w, first = start, norm(steps(start) - start) / steps.length
    # As precise as is cheap, so that the last digits hardly depend on the path to the minimiser.
    goal = min(max(_PRECISION * first, 1e-4 * tolerance), tolerance / 4)
    limit, before, block = _DIVERGED * first + goal, math.inf, _FIRST_BLOCK
    while steps.taken < count:
        w, residual = accelerated(steps, w, goal * steps.length, block, limit * steps.length)
        diverged = not residual <= limit * steps.length
        if diverged:
            # Steps this short converge; only momentum may overshoot for a while.
            w, limit = start, math.inf if steps.length <= shortest else limit
        elif residual > goal * steps.length:
            w, residual = _extrapolated(steps, w, goal * steps.length)
        slow = residual > before * steps.length / 2
        if not diverged and (slow or residual <= goal * steps.length):
            end, slope = function.subgradient(w, steps.length)
            # The tolerance allows for the rounding of points that are no farther out.
            if slope <= tolerance and max(norm(w), norm(end)) <= FARTHER * farthest:
                return end
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
