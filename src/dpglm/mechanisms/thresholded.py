"""Noisy counts of the levels that occur, of which only large ones are released."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from scipy.special import log_ndtr, ndtr

from .. import accounting, strict
from ..accounting import Event, Imprecision
from ..arrays import Vector
from ..errors import UnsupportedProblem
from .base import Mechanism
from .grid import public_grid
from .randomness import GAUSSIAN_DISTANCE, Randomness

Level = float | str


@dataclass(frozen=True)
class Levels:
    """Counts of the levels of each column.

    Attributes
    ----------
    counts : tuple of mappings from levels to counts
        One for each column; which levels there are is as secret as their counts.
    most : int
        The public number of records: no column has more levels.
    """

    counts: tuple[Mapping[Level, float], ...]
    most: int = field(default=1)

    def __array__(self, dtype: object = None, copy: object = None) -> Vector:
        """All counts in one row, for audits: those of each column in the order of its levels."""
        rows = (table[level] for table in self.counts for level in sorted(table, key=in_order))
        return np.array(list(rows), dtype=np.float64)


def in_order(level: Level) -> tuple[bool, float, str]:
    """What levels are sorted by: numbers first, then texts."""
    return (True, 0.0, level) if isinstance(level, str) else (False, float(level), "")


@dataclass(frozen=True)
class Thresholded(Mechanism):
    """Adds Gaussian noise to the count of every level that occurs, and releases those above a threshold.

    The threshold is 1 + cutoff deviations of the noise, so that a level of a single record is released with
    a probability of at most that of N(0, 1) > cutoff, whatever the noise is. The sensitivity is in the L2
    norm, of the counts of levels that both tables have.

    Guarantee
    ---------
    That of a Gaussian release, up to a distance of ``columns`` times that probability. Proof:
    docs/proofs/learning.md.

    Parameters
    ----------
    noise : float
        Deviation of the noise over the sensitivity.
    cutoff : float
        The threshold in deviations of the noise, above a count of one.
    columns : int
        How many columns are released together.
    """

    name: ClassVar[str] = "thresholded Gaussian"
    distance: ClassVar[float] = GAUSSIAN_DISTANCE
    cutoff: float = 7.0
    columns: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        strict.keep(self, cutoff=strict.positive, columns=strict.whole)

    @property
    def event(self) -> Event:
        return accounting.Gaussian(self.noise)

    @property
    def revealing(self) -> float:
        """Upper bound on the probability that a level of one record alone is released, in any column."""
        return self.columns * float(ndtr(-self.cutoff)) * (1 + 1e-9)

    def entries(self, answer: Levels) -> int:
        return self.columns * answer.most  # how many levels there are is secret

    def imprecision(self, entries: int) -> Counter[Event]:
        found = super().imprecision(entries)
        if self.noise > 0:
            found[Imprecision(self.revealing)] += 1
        return found

    def release(self, answer: Levels, sensitivity: float, randomness: Randomness) -> Levels:
        if self.noise == 0:
            return answer
        grid, scale, threshold = self.law(sensitivity)
        released: list[dict[Level, float]] = []
        for table in answer.counts:
            levels = sorted(table, key=in_order)
            drawn = np.asarray(randomness.gaussian(scale, (len(levels),)), dtype=np.float64)
            noisy = [table[level] + grid * step for level, step in zip(levels, drawn.tolist(), strict=True)]
            released.append(
                {level: count for level, count in zip(levels, noisy, strict=True) if count > threshold}
            )
        return Levels(tuple(released), answer.most)

    def require_drawable(self, entries: int) -> None:
        self.law(2.0 * self.columns)  # more than the sensitivity of counts of that many columns

    def law(self, sensitivity: float) -> tuple[float, int, float]:
        """(grid, scale, threshold): a count plus grid * round(scale * Z) is released above the threshold.

        Counts lie on the grid. A step of the grid on top of the threshold covers the rounding of noise.
        """
        grid, scale = public_grid(sensitivity, self.noise, 1.0)
        if grid > 1:
            raise UnsupportedProblem("this much noise cannot be drawn on a grid: the budget is too small")
        return grid, scale, 1.0 + self.cutoff * scale * grid + grid

    def log_likelihood(self, released: Levels, answer: Levels, sensitivity: float) -> float:
        grid, scale, threshold = self.law(sensitivity)
        deviation, total = grid * scale, 0.0
        for seen, table in zip(released.counts, answer.counts, strict=True):
            if any(level not in table for level in seen):
                return -math.inf
            for level, count in table.items():
                if level in seen:
                    total -= 0.5 * ((seen[level] - count) / deviation) ** 2 + math.log(deviation)
                    total -= 0.5 * math.log(2 * math.pi)
                else:
                    total += float(log_ndtr((threshold - count) / deviation))
        return total

    def worst_cases(self) -> dict[str, tuple[Levels, Levels]]:
        """A count that moves, seen above the threshold; and a level that only one record has."""
        far = 2.0 + 2 * self.cutoff * self.noise
        return {
            "one count": (Levels(({"a": far + 1.0},)), Levels(({"a": far},))),
            "an unseen level": (Levels(({"a": 1.0},)), Levels(({},))),
        }
