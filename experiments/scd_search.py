"""Tuning of one method on one problem at one epsilon, over a grid of batches, epochs, clips and steps."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from scd_problems import DELTA, NEIGHBOURS, Task, Vector
from scd_published import published, sequential

from dpglm import Budget
from dpglm.plan import Plan
from dpglm.solvers import DualCoordinateDescent, GradientDescent, Solver

SCD, OVERLAP, SGD = "DP-SCD", "DP-SCD, overlap", "DP-SGD"
PUBLISHED, SEQUENTIAL = "DP-SCD as published", "SEQ DP-SCD"
TUNING_SEED, FIRST_FRESH_SEED = 0, 100
GRID_SEED = 0


@dataclass(frozen=True)
class Setting:
    """One choice of hyperparameters.

    Parameters
    ----------
    share : float
        Expected batch size over the number of rows.
    epochs : int
        Steps times share.
    clip : float
        Of DP-SGD the clip of a gradient; of DP-SCD that of a dual step, in units of
        1 / (1 + overlap share / strength), how far a slope of 1 carries where the loss has curvature 1;
        of SEQ DP-SCD in units of 1 / L, because its noise grows with L.
    step : float
        Step size of DP-SGD.
    overlap : float
        How far the rows of a batch are taken to point the same way, 1 being safe for all tables.
    """

    share: float
    epochs: int
    clip: float
    step: float = math.nan
    overlap: float = 1.0


@dataclass(frozen=True)
class Scale:
    """The grids, and how many seeds score the tuned setting."""

    batches: tuple[tuple[float, int], ...]
    overlap_batches: tuple[tuple[float, int], ...]
    overlaps: tuple[float, ...]
    clips: tuple[float, ...]
    steps: tuple[float, ...]
    seeds: int

    def settings(self, method: str) -> list[Setting]:
        """The grid of a method; that of DP-SGD in a random order."""
        if method == OVERLAP:
            chosen = itertools.product(self.overlap_batches, self.clips, self.overlaps)
            return [Setting(*batch, clip, overlap=overlap) for batch, clip, overlap in chosen]
        if method != SGD:
            return [Setting(*batch, clip) for batch, clip in itertools.product(self.batches, self.clips)]
        grid = itertools.product(self.batches, self.clips, self.steps)
        settings = [Setting(*batch, clip, step) for batch, clip, step in grid]
        return [settings[k] for k in np.random.default_rng(GRID_SEED).permutation(len(settings))]


def clip_of(task: Task, method: str, setting: Setting) -> float:
    """The clip in the solver's own units."""
    if method == SGD:
        return setting.clip
    if method == SEQUENTIAL:
        return setting.clip / max(1.0, setting.share * task.shape[0])
    return setting.clip / (1 + setting.overlap * setting.share / task.strength)


def solver_of(task: Task, method: str, setting: Setting) -> Solver:
    n, clip = task.shape[0], clip_of(task, method, setting)
    batch = max(1, round(setting.share * n))
    steps = max(1, round(setting.epochs * n / batch))
    if method == SGD:
        return GradientDescent(steps, clip, setting.step, None if batch >= n else batch)
    return DualCoordinateDescent(batch, clip, steps, setting.overlap)


@cache
def _noise(task: Task, gradient: bool, share: float, epochs: int, epsilon: float) -> Plan:
    """The plan of a unit clip: noise is relative to the clip, so that of any other clip is the same."""
    solver = solver_of(task, SGD if gradient else SCD, Setting(share, epochs, 1.0, 1.0))
    return solver.plan(task.problem, *task.shape, Budget(epsilon, DELTA), NEIGHBOURS)


def plan_of(task: Task, method: str, setting: Setting, epsilon: float) -> Plan:
    """Priced and calibrated by dpglm. With an infinite epsilon: the same steps without noise."""
    plan = _noise(task, method == SGD, setting.share, setting.epochs, min(epsilon, 1e3))
    given: dict[str, Any] = {"clip": clip_of(task, method, setting)}
    if method == SGD:
        given["step_size"] = setting.step
    else:
        given["overlap"] = setting.overlap
    if epsilon == math.inf:
        given["releases"] = tuple(release.scaled(0.0) for release in plan.releases)
    return replace(plan, **given)


def fit(
    task: Task, method: str, setting: Setting, epsilon: float, seed: int, steps: int | None = None
) -> Vector:
    """Mean of the last quarter of the iterates, of the first ``steps`` if given; NaN if they ran away."""
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            if method in (PUBLISHED, SEQUENTIAL):
                run = published if method == PUBLISHED else sequential
                clip = clip_of(task, method, setting)
                return run(task, setting.share, setting.epochs, clip, epsilon, seed)
            plan = plan_of(task, method, setting, epsilon)
            if steps is not None:
                plan = replace(plan, steps=steps)
            return solver_of(task, method, setting).run(plan, task.problem, task.curator(seed)).w
    except FloatingPointError:
        return np.full(task.shape[1], math.nan)


@dataclass(frozen=True)
class Row:
    """The validation score of one setting."""

    share: float
    epochs: int
    clip: float
    step: float
    overlap: float
    validation: float


def setting_of(row: Any) -> Setting:
    """Return the setting that is a part of a row's columns."""
    return Setting(row.share, row.epochs, row.clip, row.step, row.overlap)


def tune(task: Task, method: str, epsilon: float, settings: Sequence[Setting]) -> list[Row]:
    """Every setting once, on the validation rows."""
    rows = []
    for setting in settings:
        w = fit(task, method, setting, epsilon, TUNING_SEED)
        values = setting.share, setting.epochs, setting.clip, setting.step, setting.overlap
        rows.append(Row(*values, task.score(w, task.validation)))
    return rows


def more_runs(task: Task, method: str, epsilon: float, rows: Sequence[Row], runs: int) -> list[Row]:
    """The same settings with the mean score of so many runs, the first being that of ``rows``."""
    means = []
    for row in rows:
        seeds = range(TUNING_SEED + 1, TUNING_SEED + runs)
        others = [
            task.score(fit(task, method, setting_of(row), epsilon, seed), task.validation) for seed in seeds
        ]
        means.append(replace(row, validation=float(np.mean([row.validation, *others]))))
    return means


def best(task: Task, rows: Sequence[Row]) -> Row:
    choose = min if task.regression else max
    return choose(rows, key=lambda row: row.validation)


def fresh(task: Task, method: str, setting: Setting, epsilon: float, seeds: int) -> Vector:
    """Scores on the test rows with seeds that had no part in the choice of the setting."""
    runs = (fit(task, method, setting, epsilon, FIRST_FRESH_SEED + k) for k in range(seeds))
    return np.array([task.score(w, task.test) for w in runs])
