"""The curve of objective perturbation, from the map that carries one law to the other.

`objective` bounds the privacy loss at every point by its worst value there. Here the whole path counts: along
the direction of a record the law is that of a normal variable moved by a shift that rises, no faster than the
curvature allows, from 0 to mu (docs/proofs/objective_perturbation.md, section 6). A half-line then costs what
it costs with a plain Gaussian; the determinant helps only sets that leave out a tail, where the shift must be
smaller. What they gain is bounded by dynamic programming over the shift.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from ..arrays import Vector
from .events import ObjectivePerturbation
from .gaussian import density, hockey_stick
from .objective import largest_curvature

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
