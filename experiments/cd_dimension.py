"""DP-SGD over DP-CD by dimension and by how much larger one column is than the others.

Reproduces at small scale the last experiment (section 5, "Dimension and conditioning", Figure 2) of Mangold,
Bellet, Salmon and Tommasi, "Differentially Private Coordinate Descent for Composite Empirical Risk
Minimization": least squares without a penalty, 10,000 records, one column with a larger smoothness constant
than the others, epsilon 1, delta 1/n², mean error of the last iterate of 10 runs with tuned hyperparameters.
The figure shows the ratio of the errors of DP-SGD (batches of 10) and DP-CD as the size of circles, without
numbers.

Chosen here, because the text does not say: the values of p and of M_max / M_min; 30 passes of both, as in
Figure 1; normal columns; labels with noise of a tenth of their deviation, drawn before the large column is
scaled (all columns carry as much signal), or after ("labels after": nearly all signal is in the large one).

    python experiments/cd_dimension.py            # about 4 minutes on one core
    python experiments/cd_dimension.py --quick    # seconds, too small to mean anything

DP-CD is dpglm's. DP-SGD is the compiled loop of gcd_competitors.py with dpglm's price. Tuning is not paid
for: of all settings on one seed, the best four are run on two more, and figures are from ten others.
"""

from __future__ import annotations

import argparse
import itertools
import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from cd_balanced import BATCH, EPSILON, FIRST_TUNING_SEED, LABEL_NOISE, SMOOTH, Setting, Vector
from cd_balanced import Task as Balanced
from gcd_competitors import StochasticGradient
from outputs import write_csv

from dpglm import Bounds, Budget
from dpglm.losses import Squared
from dpglm.penalties import Zero
from dpglm.problem import Problem

BEFORE, AFTER = "labels before", "labels after"
PASSES, FINALISTS, TUNING_SEEDS = 30, 4, 3
CLIPS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
COORDINATE_STEPS = (0.03, 0.1, 0.3, 1.0)
GRADIENT_STEPS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1_000.0)


@dataclass(frozen=True)
class Scale:
    """Sizes, ratios and seeds."""

    n: int
    dimensions: tuple[int, ...]
    ratios: tuple[float, ...]
    seeds: int


WHOLE = Scale(10_000, (2, 10, 50), (1.0, 10.0, 100.0, 1_000.0, 10_000.0), 10)
QUICK = Scale(500, (2, 5), (1.0, 100.0), 2)


@dataclass(frozen=True)
class Row:
    """The errors of both methods on one table, over the error of w = 0."""

    labels: str
    p: int
    ratio: float
    coordinate: float
    gradient: float
    advantage: float
    coordinate_clip: float
    coordinate_step: float
    gradient_clip: float
    gradient_step: float


@dataclass(frozen=True, eq=False)
class Task(Balanced):
    """Least squares on one table."""

    @property
    def shape(self) -> tuple[int, int]:
        return self.X.shape

    @property
    def budget(self) -> Budget:
        return Budget.for_records(EPSILON, None, len(self.y))

    @cached_property
    def optimum(self) -> Vector:
        return np.linalg.lstsq(self.X, self.y, rcond=None)[0]

    def error(self, w: Vector) -> float:
        """f(w) - f* over f(0) - f*, which is a squared distance and so loses no digits."""
        return float(np.square(self.X @ (w - self.optimum)).sum() / np.square(self.X @ self.optimum).sum())


def make_task(labels: str, n: int, p: int, ratio: float) -> Task:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, p))
    scale = np.ones(p)
    scale[0] = math.sqrt(ratio)
    w = rng.standard_normal(p)
    scores = (X if labels == BEFORE else X * scale) @ w
    y = scores / scores.std() + LABEL_NOISE * rng.standard_normal(n)
    problem = Problem(Squared(), Zero(), Bounds(row_norm=1e4, target=(-1e2, 1e2)), fit_intercept=False)
    return Task("least squares", labels, problem, X * scale, y)


Fit = Callable[[float, float, int], float]


def coordinate(task: Task) -> Fit:
    """Error of DP-CD by clip, step and seed."""

    def fit(clip: float, step: float, seed: int) -> float:
        return task.error(task.fit(task.solver(Setting(SMOOTH, clip, step, PASSES)), EPSILON, seed))

    return fit


def gradient(task: Task) -> Fit:
    """Error of DP-SGD by clip, step and seed. A pass moves as far as one full step of this size over L."""
    n, _ = task.shape
    steps = PASSES * n // BATCH
    unit = math.sqrt(task.second_moments.sum())
    draws: dict[int, StochasticGradient] = {}

    def fit(clip: float, step: float, seed: int) -> float:
        if seed not in draws:
            draws.clear()
            draws[seed] = StochasticGradient(task, seed, steps, BATCH)
        with np.errstate(over="ignore", invalid="ignore"):
            w, _ = draws[seed].run(steps, clip * unit, step / (task.curvature * n))
            error = task.error(w)
        return error if math.isfinite(error) else math.inf

    return fit


def tuned(fit: Fit, steps: Sequence[float], seeds: int) -> tuple[float, float, float]:
    """Mean error on fresh seeds, clip and step."""
    tuning = range(FIRST_TUNING_SEED, FIRST_TUNING_SEED + TUNING_SEEDS)
    first = {pair: fit(*pair, tuning[0]) for pair in itertools.product(CLIPS, steps)}
    total = {pair: first[pair] for pair in sorted(first, key=lambda pair: first[pair])[:FINALISTS]}
    for seed, pair in itertools.product(tuning[1:], total):
        total[pair] += fit(*pair, seed)
    best = min(total, key=lambda pair: total[pair])
    return float(np.mean([fit(*best, seed) for seed in range(seeds)])), *best


def measure(labels: str, n: int, p: int, ratio: float, seeds: int) -> Row:
    task = make_task(labels, n, p, ratio)
    one, clip, step = tuned(coordinate(task), COORDINATE_STEPS, seeds)
    other, other_clip, other_step = tuned(gradient(task), GRADIENT_STEPS, seeds)
    return Row(labels, p, ratio, one, other, other / one, clip, step, other_clip, other_step)


def table(rows: Iterable[Row], scale: Scale, cell: Callable[[Row], str]) -> str:
    found = {(row.labels, row.p, row.ratio): cell(row) for row in rows}
    lines = [f"| | p | {' | '.join(f'{ratio:,g}' for ratio in scale.ratios)} |"]
    lines.append("|---" * (2 + len(scale.ratios)) + "|")
    for labels, p in itertools.product((BEFORE, AFTER), scale.dimensions):
        cells = [found[labels, p, ratio] for ratio in scale.ratios if (labels, p, ratio) in found]
        if cells:
            lines.append(f"| {labels} | {p} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tiny run whose figures mean nothing")
    parser.add_argument("--labels", choices=(BEFORE, AFTER), help="only these")
    results = Path(__file__).parent / "results"
    parser.add_argument("--out", type=Path, default=results, help="folder for the CSV file")
    options = parser.parse_args()
    scale, start, rows = QUICK if options.quick else WHOLE, time.perf_counter(), []
    options.out.mkdir(parents=True, exist_ok=True)
    shown = (options.labels,) if options.labels else (BEFORE, AFTER)
    for labels, p, ratio in itertools.product(shown, scale.dimensions, scale.ratios):
        rows.append(measure(labels, scale.n, p, ratio, scale.seeds))
        print(f"- {rows[-1]}, {time.perf_counter() - start:.0f} s", flush=True)
        write_csv(rows, Row, options.out / "cd_dimension.csv")
    print("\nError of DP-SGD over that of DP-CD, by M_max / M_min (above 1: DP-CD is better):\n")
    print(table(rows, scale, lambda row: f"{row.advantage:.2f}"))
    print("\nError over that of w = 0, DP-CD / DP-SGD:\n")
    print(table(rows, scale, lambda row: f"{row.coordinate:.2g} / {row.gradient:.2g}"))


if __name__ == "__main__":
    main()
