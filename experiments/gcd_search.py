"""Tuning of one algorithm on one problem, over a grid of passes, steps and clips."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass
from functools import cached_property

import numpy as np
from gcd_competitors import StochasticGradient, coordinate_descent, sgd_noise
from gcd_problems import NEIGHBOURS, Task, Vector
from scipy.stats import norm

from dpglm.losses import Squared
from dpglm.mechanisms import Laplace
from dpglm.solvers import GreedyCoordinateDescent, Solver

GCD, GCD_S, GCD_Q, CD, SGD = "DP-GCD", "DP-GCD gs-s", "DP-GCD gs-q", "DP-CD", "DP-SGD"
RULES = {GCD: "gs-r", GCD_S: "gs-s", GCD_Q: "gs-q"}
RUNS, FRESH_RUNS = 5, 20
FIRST_FRESH_SEED = 100
LARGEST_DRAW = 1.2e8
STILL, NOISY = 0.01, 3.0


@dataclass(frozen=True)
class Grid:
    """Values of the hyperparameters."""

    passes: tuple[float, ...]
    steps: tuple[float, ...]
    clips: tuple[float, ...]


@dataclass(frozen=True)
class Scale:
    """How much work to do: the grids, and how many settings have all runs, overall and of each pass.

    Settings of the default rule of DP-GCD all have them on problems of at most ``thorough`` features.
    """

    coordinate: Grid
    gradient: Grid
    greedy: Grid
    finalists: int
    finalists_per_pass: int
    thorough: int

    def grid(self, algorithm: str) -> Grid:
        return {CD: self.coordinate, SGD: self.gradient}.get(algorithm, self.greedy)


@dataclass(frozen=True)
class Setting:
    """One choice of hyperparameters."""

    passes: float
    step: float
    clip: float


@dataclass(frozen=True)
class Row:
    """The figures of one setting. ``fresh`` is the mean gap on other seeds, NaN if these were not run."""

    passes: float
    step: float
    clip: float
    runs: int
    mean: float
    least: float
    most: float
    right: float
    wrong: float
    seconds: float
    fresh: float = math.nan


@dataclass(frozen=True)
class Run:
    """What one run gave."""

    gap: float
    right: int
    wrong: int
    seconds: float


@dataclass(frozen=True, eq=False)
class Search:
    """One algorithm on one task."""

    task: Task
    algorithm: str

    def steps(self, passes: float) -> int:
        n, p = self.task.shape
        return max(1, round(passes * {CD: p, SGD: n}.get(self.algorithm, 1)))

    def solver(self, setting: Setting) -> Solver:
        steps = self.steps(setting.passes)
        if self.algorithm == CD:
            return coordinate_descent(self.task, steps, setting.clip, setting.step)
        return GreedyCoordinateDescent(
            steps=steps,
            clip=setting.clip,
            step_size=setting.step,
            rule=RULES[self.algorithm],
            second_moments=self.task.second_moments,
        )

    def noise(self, passes: float) -> float:
        """Deviation of a released mean gradient over the clip."""
        n, p = self.task.shape
        budget = self.task.budget
        if self.algorithm == SGD:
            return sgd_noise(n, self.steps(passes), budget.epsilon, budget.delta)
        solver = self.solver(Setting(passes, 1.0, 1.0))
        mechanism = solver.plan(self.task.problem, n, p, budget, NEIGHBOURS).releases[-1].lines[-1].mechanism
        deviation = mechanism.noise * (math.sqrt(2) if isinstance(mechanism, Laplace) else 1)
        return deviation * NEIGHBOURS.records_moved / n

    def settings(self, grid: Grid) -> list[Setting]:
        """The grid without what cannot matter."""
        kept = []
        for passes in grid.passes:
            if self.algorithm == SGD and self.steps(passes) * self.task.shape[1] > LARGEST_DRAW:
                continue
            noise = self.noise(passes)
            for step, clip in itertools.product(grid.steps, self.clips(grid)):
                setting = Setting(passes, step, clip)
                shortest = (step, clip) == (min(grid.steps), min(grid.clips))
                if shortest or not (self.too_still(setting, noise) or self.too_noisy(setting, noise)):
                    kept.append(setting)
        return kept

    def clips(self, grid: Grid) -> list[float]:
        """Up to the least clip that never cuts, where the loss has one."""
        constant = self.task.problem.loss.lipschitz()
        if self.algorithm == SGD:
            squares = self.task.X.multiply(self.task.X) if self.task.sparse_table else np.square(self.task.X)
            never = constant * math.sqrt(squares.sum(axis=1).max())
        else:
            never = constant * float((self.task.largest / self.unit_clips).max())
        above = [clip for clip in sorted(grid.clips) if clip >= never]
        return [clip for clip in grid.clips if clip < never] + above[:1]

    @cached_property
    def pull(self) -> Vector:
        """How steeply the objective falls along each coordinate at w = 0."""
        l1 = self.task.problem.penalty.coordinate_form()[0]
        return np.maximum(np.abs(self.task.gradient(self.task.zero)) - l1, 0.0)

    @cached_property
    def unit_clips(self) -> Vector:
        """C_j for C = 1."""
        return np.sqrt(self.task.curvature / self.task.curvature.sum())

    def too_still(self, setting: Setting, noise: float) -> bool:
        """f(0) - f(w) <= sum of pull_j |w_j|, which the longest walk bounds."""
        task, steps = self.task, self.steps(setting.passes)
        if self.algorithm == SGD:
            walk = setting.clip * (2 * steps + 10 + 2 * steps * noise * math.sqrt(task.shape[1]))
            gain = setting.step * walk * float(np.linalg.norm(self.pull))
        else:
            longest = setting.step * setting.clip * self.unit_clips / task.curvature * (1 + 10 * noise)
            gain = steps * float((self.pull * longest).max())
        return gain < STILL * task.gap_at_zero * task.least

    def too_noisy(self, setting: Setting, noise: float) -> bool:
        """The noise of a coordinate's last update is independent of all else, so it has a least cost.

        For squared loss that is half its variance times the curvature, unless the threshold l1 hides it; for
        any loss the L1 penalty of what exceeds the threshold.
        """
        task = self.task
        l1 = task.problem.penalty.coordinate_form()[0]
        if self.algorithm == SGD:
            rate, deviation = (
                np.full(task.shape[1], setting.step),
                np.full(task.shape[1], setting.clip * noise),
            )
        else:
            rate, deviation = setting.step / task.curvature, setting.clip * noise * self.unit_clips
        cost = task.curvature * (rate * deviation) ** 2 / 2
        lost = NOISY * task.gap_at_zero * task.least
        if isinstance(task.problem.loss, Squared) and (deviation > NOISY * l1).all():
            return float(cost.sum() if self.algorithm == SGD else cost.min()) > lost
        if l1 and self.algorithm in (SGD, CD):
            touched = 1.0 if self.algorithm == SGD else -math.expm1(-setting.passes)
            beyond = 2 * (deviation * norm.pdf(l1 / deviation) - l1 * norm.sf(l1 / deviation))
            return touched * l1 * float((rate * beyond).sum()) > NOISY * task.objective(task.zero)
        return False

    def runs(self, settings: Sequence[Setting], seed: int) -> list[Run]:
        """One run of every setting."""
        return [self._measured(w, seconds) for w, seconds in self._iterates(settings, seed)]

    def _iterates(self, settings: Sequence[Setting], seed: int) -> Iterator[tuple[Vector, float]]:
        if self.algorithm == SGD:
            draws = StochasticGradient(self.task, seed, max(self.steps(s.passes) for s in settings))
            for setting in settings:
                yield draws.run(self.steps(setting.passes), setting.clip, setting.step)
        else:
            for setting in settings:
                start = time.perf_counter()
                w = self.task.fit(self.solver(setting), seed)
                yield w, time.perf_counter() - start

    def _measured(self, w: Vector, seconds: float) -> Run:
        return Run(self.task.gap(w), *self.task.found(w), seconds)

    def tuned(self, scale: Scale) -> list[Row]:
        """Figures of every setting that was run; the tuned one has fresh runs too."""
        settings = self.settings(scale.grid(self.algorithm))
        found = {s: [run] for s, run in zip(settings, self.runs(settings, 0), strict=True)}
        finalists = self._finalists(found, scale)
        for seed in range(1, RUNS):
            for setting, run in zip(finalists, self.runs(finalists, seed), strict=True):
                found[setting].append(run)
        best = min(finalists, key=lambda s: np.mean([run.gap for run in found[s]]))
        return [_row(s, runs, self.fresh(s) if s == best else math.nan) for s, runs in found.items()]

    def fresh(self, setting: Setting) -> float:
        """Mean gap on seeds that had no part in the choice of the setting."""
        return float(np.mean([self.runs([setting], FIRST_FRESH_SEED + k)[0].gap for k in range(FRESH_RUNS)]))

    def _finalists(self, found: dict[Setting, list[Run]], scale: Scale) -> list[Setting]:
        if self.algorithm == GCD and self.task.shape[1] <= scale.thorough:
            return list(found)
        ranked = sorted(found, key=lambda s: found[s][0].gap)
        chosen = ranked[: scale.finalists]
        for passes in scale.grid(self.algorithm).passes:
            chosen += [s for s in ranked if s.passes == passes][: scale.finalists_per_pass]
        return list(dict.fromkeys(chosen))


def _row(setting: Setting, runs: Sequence[Run], fresh: float) -> Row:
    gaps = [run.gap for run in runs]
    means = (float(np.mean([getattr(run, name) for run in runs])) for name in ("right", "wrong"))
    seconds = float(np.median([run.seconds for run in runs]))
    return Row(
        *astuple(setting), len(runs), float(np.mean(gaps)), min(gaps), max(gaps), *means, seconds, fresh
    )
