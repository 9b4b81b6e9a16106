"""The price of objective perturbation (docs/proofs/objective_perturbation.md).

The privacy loss of a record is at most a convex function of one standard normal variable. For a record that
is in against one that is not, the logarithm of the determinant is part of it; in the other order it helps.
The two bounds are joined to one curve that is convex in e^x, as composition needs.

*The curve of objective perturbation, from the map that carries one law to the other.*

`objective` bounds the privacy loss at every point by its worst value there. Here the whole path counts: along
the direction of a record the law is that of a normal variable moved by a shift that rises, no faster than the
curvature allows, from 0 to mu (docs/proofs/objective_perturbation.md, section 6). A half-line then costs what
it costs with a plain Gaussian; the determinant helps only sets that leave out a tail, where the shift must be
smaller. What they gain is bounded by dynamic programming over the shift.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr

from ..arrays import Vector
from .curves import Profile, density, hockey_stick, mills_difference, symmetric, tail_difference
from .events import ObjectivePerturbation

# Cells of [0, 1] on which the concave log-determinant is replaced by a tangent.
_CELLS = 512
_SAMPLES = np.geomspace(1e-6, 60.0, 1500)
_FAR_LEFT = -5.0


def objective_profile(event: ObjectivePerturbation) -> Profile:
    """Return the curve of one objective perturbation."""
    mu = 1 / event.noise
    if event.neighbours == "zero-out":
        return _zero_out(event, mu)
    stretch = math.log1p(largest_curvature(event))
    corners = _two_sided_corners if event.slopes == "any" else _corners

    def bound(x: Vector) -> Vector:
        return _continued(corners, mu, x - stretch)

    # a table with a null record lies between two neighbours
    between = min(1.0, 2 * float(_zero_out(event, mu).forward(np.zeros(1))[0]))
    start = min(between, float(bound(np.zeros(1))[0]))
    return symmetric(_joined(bound, bound, start)[0])


def largest_curvature(event: ObjectivePerturbation) -> float:
    """Return the largest curvature of a record over that of the quadratic term."""
    if event.slopes != "logistic":
        return event.curvature
    t = min(0.5, 1 / event.reach)
    return 4 * event.curvature * t * (1 - t)


@dataclass(frozen=True)
class LinesCurve:
    """E[(1 - e^{x - f(Z)})_+] for standard normal Z and f a maximum of lines, the first of them level.

    By parts this is the integral of f' e^{x-f} Phi(-z) from f(z) = x on. With R Mills' ratio, a line of slope
    m from z on has phi(z) (R(z) - R(z + m)), and every later corner, where the slope rises from m to m',
    adds e^{x-f} phi(z) (R(z + m) - R(z + m')): a sum of positive terms.

    Attributes
    ----------
    slopes, heights : array
        f(z) = max_k heights[k] + slopes[k] z; the slopes rise from 0, and no line lies below the others.
    levels : array
        Values of f at its corners.
    log_rest : array
        ``log_rest[k]`` is the logarithm of what all corners after line k add, over e^x.
    """

    slopes: Vector
    heights: Vector
    levels: Vector
    log_rest: Vector

    def __call__(self, x: Vector) -> Vector:
        above = np.maximum(x, self.levels[0])
        line = np.searchsorted(self.levels, above, side="right")
        slope = self.slopes[line]
        value = tail_difference((above - self.heights[line]) / slope, slope)
        value += np.exp(above + self.log_rest[line])
        # below its least value f is never reached: 1 - e^x E e^-f
        short = np.minimum(x - self.levels[0], 0.0)
        bound: Vector = np.minimum(-np.expm1(short) + np.exp(short) * value, 1.0)
        return bound


def lines_curve(slopes: Vector, heights: Vector) -> LinesCurve:
    """Return the curve of the maximum of some lines whose slopes rise from 0."""
    hull: list[int] = []
    for k in range(len(slopes)):
        while len(hull) > 1 and _is_below(slopes, heights, hull[-2], hull[-1], k):
            hull.pop()
        hull.append(k)
    slopes, heights = slopes[hull], heights[hull]
    rise = np.diff(slopes)
    corner = -np.diff(heights) / rise
    levels = np.maximum.accumulate(heights[1:] + slopes[1:] * corner)
    near = np.clip(corner, _FAR_LEFT, 1e6)
    with np.errstate(divide="ignore"):
        log_gain = np.log(mills_difference(near + slopes[:-1], rise))
        log_gain -= near**2 / 2 + math.log(2 * math.pi) / 2
        far = corner < _FAR_LEFT
        log_gain[far] = np.log(_gain(corner[far], slopes[:-1][far], slopes[1:][far]))
    rest = np.logaddexp.accumulate((log_gain - levels)[::-1])[::-1]
    return LinesCurve(slopes, heights, levels, np.append(rest, -math.inf))


def _is_below(slopes: Vector, heights: Vector, i: int, j: int, k: int) -> bool:
    """Return whether line j nowhere exceeds the maximum of lines i and k."""
    share = (slopes[j] - slopes[i]) / (slopes[k] - slopes[i])
    return bool(heights[j] <= (1 - share) * heights[i] + share * heights[k])


def _gain(z: Vector, before: Vector, after: Vector) -> Vector:
    return np.maximum(tail_difference(z, after) - tail_difference(z, before), 0.0)


def _zero_out(event: ObjectivePerturbation, mu: float) -> Profile:
    forward = _with_record(event, mu)

    def backward(x: Vector) -> Vector:
        return _two_sided(mu, x) if event.slopes == "any" else hockey_stick(mu, x)

    start = min(float(half(np.zeros(1))[0]) for half in (forward, backward))
    return Profile(*_joined(forward, backward, start))


def _with_record(event: ObjectivePerturbation, mu: float) -> LinesCurve:
    """Return the bound for a record that is in: the loss is max_t log(1 + c(t)) + (t mu)^2/2 + t mu z."""
    if event.slopes != "logistic":
        ends = np.array([0.0, mu])
        return lines_curve(ends, math.log1p(event.curvature) + ends**2 / 2)
    # knots are dense at both ends, where the logarithm bends most
    t = np.sin(np.linspace(0.0, math.pi / 2, _CELLS + 1)) ** 2
    middle = (t[1:] + t[:-1]) / 2
    share = middle / event.reach
    inside = 1 + 4 * event.curvature * share * (1 - share)
    tangent = 4 * event.curvature * (1 - 2 * share) / event.reach / inside
    half = tangent * np.diff(t) / 2
    height = np.full(_CELLS + 1, -math.inf)
    height[:-1] = np.log(inside) - half
    height[1:] = np.maximum(height[1:], np.log(inside) + half)
    return lines_curve(mu * t, height + (mu * t) ** 2 / 2)


def _two_sided(mu: float, x: Vector) -> Vector:
    """E[(1 - e^{x - mu^2/2 - mu |Z|})_+]: 2 E_{e^x}(N(mu, 1) || N(0, 1)) from x = mu^2/2 on."""
    short = np.minimum(x - mu * mu / 2, 0.0)
    return -np.expm1(short) + 2 * np.exp(short) * hockey_stick(mu, np.maximum(x, mu * mu / 2))


def _corners(mu: float, x: Vector) -> Vector:
    return hockey_stick(2 * mu, x) + 2 * hockey_stick(mu, x)


def _two_sided_corners(mu: float, x: Vector) -> Vector:
    return _two_sided(2 * mu, x) + _two_sided(math.sqrt(2) * mu, x)


def _continued(curve: Callable[[float, Vector], Vector], mu: float, x: Vector) -> Vector:
    """Continue the bound of a loss that is never negative to x < 0: 1 - e^x + e^x curve(0)."""
    short = np.minimum(x, 0.0)
    inside: Vector = np.minimum(curve(mu, np.maximum(x, 0.0)), 1.0)
    return -np.expm1(short) + np.exp(short) * inside


@dataclass(frozen=True)
class Bridged:
    """Half of a curve, from ``start`` at x = 0 on a straight line in e^x to the bound at x = ``end``."""

    curve: Callable[[Vector], Vector]
    start: float
    end: float
    value: float

    def __call__(self, x: Vector) -> Vector:
        share = np.expm1(np.minimum(x, self.end)) / math.expm1(self.end)
        line = self.start + share * (self.value - self.start)
        return np.where(x < self.end, line, self.curve(x))


def _joined(
    forward: Callable[[Vector], Vector], backward: Callable[[Vector], Vector], start: float
) -> tuple[Bridged, Bridged]:
    """Return both halves of a convex curve below two bounds and below ``start`` at x = 0.

    The lines from the start touch the bounds where their slope is least. If they do not make a convex corner,
    the start is lowered to the line that touches both bounds.
    """
    gap = np.expm1(_SAMPLES)
    up, down = forward(_SAMPLES), backward(_SAMPLES)

    def bend(value: float) -> float:
        return float(np.min((up - value) / gap) + np.min((down - value) / gap)) + 1 - value

    lowered = bend(start) < 0
    if lowered:
        start = brentq(bend, 0.0, start)
    right, high = _touching(forward, start)
    left, low = _touching(backward, start)
    if lowered:
        # the chord through both points, at e^x = 1; the left one is (e^-left, 1 - e^-left + e^-left low)
        before, after = -math.expm1(-left), math.expm1(right)
        start = (high * before + (before + math.exp(-left) * low) * after) / (before + after)
    return Bridged(forward, start, right, high), Bridged(backward, start, left, low)


def _touching(curve: Callable[[Vector], Vector], start: float) -> tuple[float, float]:
    """Return the point of a bound, nearly, that the line of least slope from the start goes through."""
    x = _SAMPLES
    for _ in range(3):
        value = curve(x)
        k = int(np.argmin((value - start) / np.expm1(x)))
        point = float(x[k]), float(value[k])
        x = np.linspace(x[max(k - 1, 0)], x[min(k + 1, len(x) - 1)], 65)
    return point


_WIDTH = 5.0
"""How far below the right end of a set gains are followed; what lies further is charged in full."""

_CELL = 0.05
_MOVES = 8
"""Grid steps of the shift in a cell of the line, at full curvature."""

_LEAST_SHIFTS, _MOST_SHIFTS = 60, 1200
_LARGEST_MU = 8.0
_TURNS = 32


def transport_bounds(event: ObjectivePerturbation, t: Vector) -> tuple[Vector, Vector]:
    """Return points x, and upper bounds on the curve of either order there.

    Parameters
    ----------
    event : ObjectivePerturbation
    t : array
        Points wanted, as multiples of mu; bounds are returned at 0 and from the least point on where the
        argument holds.
    """
    mu = 1 / event.noise
    if mu > _LARGEST_MU:
        return np.zeros(1), np.ones(1)
    path = _Path(mu, max(largest_curvature(event), mu / 12))
    signed = event.slopes != "any"
    variation = hockey_stick(mu, np.zeros(1)) if signed else path.without_record(np.zeros(1))
    if event.neighbours == "zero-out":
        x = np.append(path.least, mu * t[t * mu > path.least])
        other = hockey_stick(mu, x) if signed else path.without_record(x)
        return np.append(0.0, x), np.append(variation, np.maximum(path.bound(x), other))
    # D against the table without the record, then that against D': the split that is exact for Gaussians
    first = mu * t - mu * mu / 2
    first = np.append(path.least, first[first > path.least])
    x = 2 * first + mu * mu
    second = hockey_stick(mu, x - first) if signed else path.without_record(x - first)
    variation = hockey_stick(2 * mu, np.zeros(1)) if signed else 2 * variation
    return np.append(0.0, x), np.append(variation, path.bound(first) + np.exp(first) * second)


@dataclass(frozen=True)
class _Path:
    """Shifts that rise along the line, from 0 or -mu to at most mu, with a slope of at most ``curvature``."""

    mu: float
    curvature: float

    @property
    def least(self) -> float:
        """From this x on every set ends below -mu, where densities rise."""
        return math.log1p(self.curvature) + self.mu**2 / 2

    def bound(self, x: Vector) -> Vector:
        """Return an upper bound on E_{e^x} of the law with the record against the law without it, x >= least.

        Shifts of either sign gain no more there than those that are never negative.
        """
        if not len(x):
            return x
        cell = min(_CELL, self.mu * _MOVES / (_LEAST_SHIFTS * self.curvature))
        shifts = min(_MOST_SHIFTS, math.ceil(self.mu * _MOVES / (self.curvature * cell)))
        grid = self.mu * np.arange(shifts + 1) / shifts
        # the largest end at which the density, as steep as it may be, reaches the level
        end = -(x - math.log1p(self.curvature)) / self.mu - self.mu / 2
        level = np.exp(x)
        falls = self._falls(grid[:-1], end, level, cell)
        reached = ndtr(end[:, None] + grid[1:]) - (level * ndtr(end))[:, None]
        best = (reached + falls).max(axis=1) + 1e-13 * level * ndtr(end + self.mu)
        bound: Vector = np.clip(best, hockey_stick(self.mu, x), hockey_stick(self.mu, np.zeros(1)))
        return bound

    def without_record(self, x: Vector) -> Vector:
        """Return an upper bound on E_{e^x} in the other order for shifts of either sign, x >= 0.

        To the right of 0 the shift is at most its value there plus c u, to the left of 0 at least that minus
        c |u|; both tails are far from 0 together only if the shift has the room to change its sign.
        """
        middle = self.mu * np.arange(-_TURNS, _TURNS + 1) / _TURNS
        tails = np.array([self._right_tail(x, shift) for shift in middle])
        both = (tails[1:] + tails[::-1][:-1]).max(
            axis=0
        )  # shift at 0 in [k, k + 1]: at most k + 1, at least k
        # within mu/2 of 0 a shift of the wrong sign may count, where x < mu^2/2
        near = self.mu / math.sqrt(2 * math.pi) * np.maximum(-np.expm1(x - self.mu**2 / 2), 0.0)
        bound: Vector = np.minimum(both + near + 1e-18, 1.0)
        return bound

    def _right_tail(self, x: Vector, shift: float) -> Vector:
        """Return the integral over u > 0 of (phi(u) - e^x phi(u + t))_+ for the largest shift t there."""
        u = np.arange(0.0, 9.0 + _CELL, _CELL)
        largest = np.clip(shift + self.curvature * u[1:], 0.0, self.mu)
        with np.errstate(divide="ignore", invalid="ignore"):
            turn = np.where(largest > 0, x[:, None] / largest - largest / 2, np.inf)
        left = np.clip(turn, u[:-1], u[1:])
        right = u[1:]
        level = np.exp(x)[:, None]
        gain = (ndtr(-left) - ndtr(-right)) - level * (ndtr(-left - largest) - ndtr(-right - largest))
        tail: Vector = np.maximum(gain, 0.0).sum(axis=1) + ndtr(-u[-1])
        return tail

    def _falls(self, shift: Vector, end: Vector, level: Vector, cell: float) -> Vector:
        """Return the most that Phi(u + shift) - e^x Phi(u) can fall before the end, for each final shift."""
        rise = self.curvature * cell / (self.mu / len(shift))  # grid steps of the shift in a cell
        moves = math.floor(rise) + 1
        cells = math.ceil(_WIDTH / cell)
        begin = end - cells * cell
        fall = np.repeat((level * ndtr(begin))[:, None], len(shift), axis=1)
        for _ in range(cells):
            stop = begin + cell
            all_flat, saved = self._fall_in_cell(begin, stop, shift, level)
            before = fall + all_flat
            fall = before.copy()
            for steps in range(1, min(moves, len(shift) - 1) + 1):
                share = min((steps - 1) / rise, 1.0)
                moved = (before - share * saved)[:, :-steps]
                np.maximum(fall[:, steps:], moved, out=fall[:, steps:])
            begin = stop
        return fall

    def _fall_in_cell(
        self, begin: Vector, stop: Vector, shift: Vector, level: Vector
    ) -> tuple[Vector, Vector]:
        """Return the fall at a constant shift, and at least what a shift that always rises takes off it.

        The fall is the integral of (e^x phi(u) - phi(u + shift))_+, positive from u = -x/shift - shift/2 on.
        """
        with np.errstate(divide="ignore"):
            turn = -np.log(level)[:, None] / shift - shift / 2
        left = np.clip(turn, begin[:, None], stop[:, None])
        right = stop[:, None]
        fall = level[:, None] * (ndtr(right) - ndtr(left)) - (ndtr(right + shift) - ndtr(left + shift))
        first = np.exp(-begin[:, None] * shift - shift**2 / 2)
        last = np.exp(-right * shift - shift**2 / 2)
        slack = np.minimum(self.curvature * last, np.maximum(level[:, None] - first, 0.0))
        width = (stop - begin)[:, None]
        return np.maximum(fall, 0.0), density(begin)[:, None] * width * slack
