"""Mechanisms that add noise to numbers, to counts of levels, or to what is minimised."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal, Protocol, overload

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtr

from .. import accounting, strict
from ..accounting import Event, Imprecision
from ..arrays import Total, Vector
from ..errors import UnsupportedProblem
from .base import Mechanism
from .grid import MOST_GRID_STEPS, Integers, Numbers, on_grid, power_of_two, public_grid
from .randomness import GAUSSIAN_DISTANCE, Randomness, Shape


@dataclass(frozen=True)
class Additive(Mechanism):
    """Rounds an answer to a public grid and adds a whole number of its steps.

    Guarantee
    ---------
    Noise is a continuous variable rounded to the grid, so what is released is post-processing of the
    continuous mechanism on the rounded answer, whose sensitivity is the answer's plus what rounding adds.
    """

    @abstractmethod
    def _rounding(self, entries: int) -> float:
        """Upper bound, in steps of the grid, on what rounding this many entries adds to the sensitivity."""

    @abstractmethod
    def _integers(self, scale: Integers, shape: Shape, randomness: Randomness) -> Integers:
        """Noise of that scale, rounded to whole numbers."""

    @abstractmethod
    def _log_density(self, noise: Vector) -> Vector:
        """Log-density of each entry of noise of scale 1, up to a constant."""

    @overload
    def draw(self, sensitivity: Vector, shape: Shape, randomness: Randomness) -> tuple[Vector, Vector]: ...
    @overload
    def draw(self, sensitivity: Numbers, shape: Shape, randomness: Randomness) -> tuple[Numbers, Numbers]: ...
    def draw(self, sensitivity: Numbers, shape: Shape, randomness: Randomness) -> tuple[Numbers, Numbers]:
        """Noise alone, for answers that are known only inside compiled code, and the grid to round them to.

        A grid of 0 stands for no noise and no rounding.
        """
        if self.noise == 0:
            return np.zeros(shape), np.zeros(np.shape(sensitivity))
        # With a sensitivity for each, entries are released alone.
        entries = 1 if np.ndim(sensitivity) else math.prod(shape)
        grid, steps = public_grid(sensitivity, self.noise, self._rounding(entries))
        noise = self._integers(steps, shape, randomness)
        return (noise * grid if isinstance(noise, int) else noise * np.asarray(grid)), grid

    def draw_each(
        self, sensitivity: Vector, index: NDArray[np.int64], randomness: Randomness
    ) -> tuple[Vector, Vector]:
        """Noise of numbers that are released alone, and the grid of each sensitivity.

        Number k has the sensitivity ``index[k]``. The noise is that of ``draw(sensitivity[index], ...)``.
        """
        if self.noise == 0:
            return np.zeros(index.shape), np.zeros(sensitivity.shape)
        grid, steps = public_grid(sensitivity, self.noise, self._rounding(1))
        noise = grid[index]
        noise *= self._integers(steps[index], index.shape, randomness)
        return noise, grid

    def grid(self, sensitivity: float, entries: int) -> float:
        """The grid of a release of ``entries`` numbers."""
        return public_grid(sensitivity, self.noise, self._rounding(entries))[0]

    @overload
    def release(self, answer: float, sensitivity: float, randomness: Randomness) -> float: ...
    @overload
    def release(self, answer: Vector | Total, sensitivity: Numbers, randomness: Randomness) -> Vector: ...
    def release(self, answer: Numbers | Total, sensitivity: Numbers, randomness: Randomness) -> Numbers:
        if isinstance(answer, Total):
            return self._on_total(answer, float(sensitivity), randomness)
        if self.noise == 0:
            return answer
        noise, grid = self.draw(sensitivity, np.shape(answer), randomness)
        return on_grid(answer, grid) + noise

    def _on_total(self, answer: Total, sensitivity: float, randomness: Randomness) -> Vector:
        """Noise added to an exact sum: to its whole steps, before they become doubles."""
        if self.noise == 0:
            return np.asarray(answer)
        rounding = self._rounding(answer.size)
        if answer.unit is None:
            grid, scale = public_grid(sensitivity, self.noise, rounding, answer.grid)
            noisy = self._integers(scale, answer.shape, randomness)
            noisy += answer.on(grid)
            released = np.asarray(noisy, dtype=np.float64)
            released *= grid
            return released
        # Grids differ between entries, in their units by a factor of less than two: so twice the rounding.
        grids, scales = public_grid(sensitivity / answer.unit, self.noise, 2 * rounding, answer.grid)
        noisy = answer.on(grids) + self._integers(scales, answer.shape, randomness)
        return noisy.astype(np.float64) * grids * answer.unit

    def require_drawable(self, entries: int) -> None:
        # The scale in steps depends on the noise, not on the sensitivity. Twice the rounding: as on a sum in
        # units.
        public_grid(1.0, self.noise, 2 * self._rounding(entries))

    def log_likelihood(self, released: Numbers, answer: Numbers, sensitivity: Numbers) -> float:
        noise = (np.asarray(released) - np.asarray(answer)) / (self.noise * np.asarray(sensitivity))
        return float(np.sum(self._log_density(noise)))

    def log_likelihoods(self, released: Vector, answers: Vector, sensitivity: Numbers) -> Vector:
        """Log-likelihood of released numbers for each of several exact answers, the rows of ``answers``."""
        noise = (released - answers) / (self.noise * np.asarray(sensitivity))
        likely: Vector = self._log_density(noise).sum(axis=-1)
        return likely

    def worst_cases(self) -> dict[str, tuple[float, float]]:
        return {"one number": (1.0, 0.0)}


@dataclass(frozen=True)
class Gaussian(Additive):
    """Adds N(0, (noise * sensitivity)²), on a grid, to each entry; the sensitivity is in the L2 norm."""

    name: ClassVar[str] = "Gaussian"
    distance: ClassVar[float] = GAUSSIAN_DISTANCE

    @property
    def event(self) -> accounting.Event:
        return accounting.Gaussian(self.noise)

    def _rounding(self, entries: int) -> float:
        # Twice: the price of a Poisson batch sets two records apart, and each has its own rounding.
        return 2 * math.sqrt(entries)

    def _integers(self, scale: Integers, shape: Shape, randomness: Randomness) -> Integers:
        return randomness.gaussian(scale, shape)

    def _log_density(self, noise: Vector) -> Vector:
        return -0.5 * noise**2


@dataclass(frozen=True)
class Laplace(Additive):
    """Adds Laplace noise of scale noise * sensitivity, on a grid; the sensitivity is in the L1 norm."""

    name: ClassVar[str] = "Laplace"

    @property
    def event(self) -> accounting.Event:
        return accounting.Laplace(self.noise)

    def _rounding(self, entries: int) -> float:
        return float(entries)

    def _integers(self, scale: Integers, shape: Shape, randomness: Randomness) -> Integers:
        return randomness.laplace(scale, shape)

    def _log_density(self, noise: Vector) -> Vector:
        return -np.abs(noise)


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
    """Sort key of levels: numbers first, then strings."""
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
        extra = super().imprecision(entries)
        if self.noise > 0:
            extra[Imprecision(self.revealing)] += 1
        return extra

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


_FARTHEST = 40.0  # deviations: the probability of a normal number beyond is below the distance of a draw


class PublicPart(Protocol):
    """The public facts about an objective: a sum over records plus public terms."""

    @property
    def dimension(self) -> int: ...

    def perturbed_error(self, length: float, moved: float) -> float:
        """Upper bound on the distance of what is found from the exact minimiser.

        The linear term is at most ``length`` long, and at most ``moved`` away from the exact one.
        """
        ...


class Perturbable(Protocol):
    """An objective over records that a linear term can be added to."""

    @property
    def query(self) -> PublicPart: ...

    def minimiser(self, linear: Vector) -> Vector:
        """Nearly the minimiser of the objective with that linear term in the sum."""
        ...

    def implied(self, w: Vector) -> tuple[Vector, float]:
        """The linear term that has its minimiser at w, and the log-determinant of the Hessian there."""
        ...


@dataclass(frozen=True)
class LinearTerm(Mechanism):
    """Adds b · w with b ~ N(0, (noise * sensitivity)²) to an objective and releases its minimiser.

    The sensitivity is that of the sum of gradients. The minimiser is found up to a small distance that is
    known beforehand. A second Gaussian release hides that error: its noise, relative to twice the distance,
    is ``finish`` times that of the linear term, so it costs little.

    Parameters
    ----------
    noise : float
        Deviation of the linear term over the sensitivity.
    curvature, slopes, reach, neighbours
        As in `dpglm.accounting.ObjectivePerturbation`.
    finish : float
        How many times more relative noise hides that the minimiser is not exact.

    Guarantee
    ---------
    The linear term lies on a grid, so it is a normal one moved by a bounded length; that and the inexact
    minimisation put the result within a known distance of the exact minimiser for a normal term. Its release
    with noise for twice that distance is priced after the release of the exact one.
    """

    name: ClassVar[str] = "linear term"
    distance: ClassVar[float] = GAUSSIAN_DISTANCE
    curvature: float
    slopes: Literal["any", "signed", "logistic"]
    reach: float
    neighbours: Literal["zero-out", "replace-one"]
    finish: float = 10.0

    def __post_init__(self) -> None:
        strict.keep(self, noise=strict.level, curvature=strict.level, finish=strict.positive)
        _ = self.event  # refuses what has no price

    @property
    def relation(self) -> str:
        return self.neighbours

    @property
    def event(self) -> accounting.Event:
        moved = 2 if self.neighbours == "replace-one" else 1
        objective = accounting.ObjectivePerturbation(
            self.noise * moved, self.curvature, self.slopes, self.reach, self.neighbours
        )
        return accounting.Composed((objective, accounting.Gaussian(self.noise * self.finish)))

    def entries(self, answer: Perturbable) -> int:
        return 2 * answer.query.dimension  # those of the linear term, and of the noise after it

    def release(self, answer: Perturbable, sensitivity: float, randomness: Randomness) -> Vector:
        dimension = answer.query.dimension
        if self.noise == 0:
            return answer.minimiser(np.zeros(dimension))
        grid, scale = self._grid(sensitivity)
        linear = np.multiply(randomness.gaussian(scale, (dimension,)), grid, dtype=np.float64)
        error = self._error(answer.query, sensitivity)
        return Gaussian(self.noise * self.finish).release(answer.minimiser(linear), 2 * error, randomness)

    def require_drawable(self, entries: int) -> None:
        Gaussian(self.noise * self.finish).require_drawable(entries)

    def deviation(self, problem: PublicPart, sensitivity: float) -> float:
        """Deviation of the noise that hides that the minimiser is not exact."""
        return self.noise * self.finish * 2 * self._error(problem, sensitivity) if self.noise else 0.0

    def _error(self, problem: PublicPart, sensitivity: float) -> float:
        """Upper bound on the distance of what is found from the exact minimiser for a normal linear term."""
        root = math.sqrt(problem.dimension)
        grid, scale = self._grid(sensitivity)
        return problem.perturbed_error(_FARTHEST * scale * grid * root, grid / 2 * root)

    def _grid(self, sensitivity: float) -> tuple[float, int]:
        """The grid of the linear term, as fine as can be drawn, and its deviation in whole steps of it."""
        deviation = self.noise * sensitivity
        grid = float(power_of_two(np.asarray(deviation / (MOST_GRID_STEPS - 1))))
        return grid, math.ceil(deviation / grid)

    def log_likelihood(self, released: Vector, answer: Perturbable, sensitivity: float) -> float:
        linear, log_determinant = answer.implied(released)
        return log_determinant - 0.5 * float(np.sum((linear / (self.noise * sensitivity)) ** 2))

    def worst_cases(self) -> dict[str, tuple[Perturbable, Perturbable]]:
        # Its answers are objectives over records: the solver that uses it is audited instead.
        return {}
