"""Coordinate descent against gradient descent, on columns of equal and of log-normal scale.

Reproduces at small scale the first experiment (Figure 1) of Mangold, Bellet, Salmon and Tommasi,
"Differentially Private Coordinate Descent for Composite Empirical Risk Minimization": LASSO and
L2-regularised logistic regression on 10,000 records of 100 Gaussian features, epsilon 1, delta 1/n².

Chosen here, because the text of the paper does not say: log M_j ~ N(0, 2²) for the smoothness
constants of the unbalanced design, labels drawn *before* the columns are rescaled, and a LASSO penalty,
given as a share of the least one whose solution is zero, that keeps about 60 of the 100 coefficients. The
third design draws the labels after rescaling, so that small columns hardly matter.

    python experiments/cd_balanced.py            # about 6 minutes on one core
    python experiments/cd_balanced.py --quick    # a few seconds, too small to mean anything
"""

from __future__ import annotations

import argparse
import itertools
import math
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from outputs import load_pyplot, write_csv
from sklearn import linear_model

from dpglm import Bounds, Budget, Neighbours
from dpglm.curator import Curator
from dpglm.data import Records, as_data
from dpglm.losses import Logistic, Squared
from dpglm.mechanisms import Randomness
from dpglm.penalties import L1, L2
from dpglm.plan import Plan
from dpglm.problem import Problem
from dpglm.solvers import CoordinateDescent, GradientDescent, Solver

Vector = NDArray[np.float64]

EPSILON = 1.0
NEIGHBOURS = Neighbours.REPLACE_ONE
BATCH = 10
SPREAD = 2.0
LABEL_NOISE = 0.1
FLIPPED = 0.2
FIRST_TUNING_SEED = 1_000
FINALISTS = 3

SMOOTH, UNIFORM = "DP-CD, smoothness clip", "DP-CD, uniform clip"
SGD, FULL = f"DP-SGD, batches of {BATCH}", "DP-GD, full batch"
BALANCED, UNBALANCED, RESCALED_FIRST = "balanced", "unbalanced", "unbalanced, labels after rescaling"
DESIGNS = {
    BALANCED: (SMOOTH, UNIFORM, SGD, FULL),
    UNBALANCED: (SMOOTH, UNIFORM, SGD, FULL),
    RESCALED_FIRST: (SMOOTH, FULL),
}
LASSO_SHARE = {BALANCED: 0.2, UNBALANCED: 0.03, RESCALED_FIRST: 0.0015}
LOSSES = ("LASSO", "logistic")

PREAMBLE = """\
Relative error (f - f*) / f* of the training objective at the last iterate, epsilon {epsilon:g}, delta 1/n²,
replace-one, all priced by dpglm's accountant. {scale.n:,} records, {scale.p} features.

- Tuning is NOT paid for, as in the paper: clip C, step and passes of every method are those with the lowest
  mean training objective over {scale.tuning_seeds} tuning seeds; the figures are from {scale.seeds} others.
  All of a grid is run on the first tuning seed, the best {finalists} on the others.
- Second moments M_j and bounds count as declared public values, as in the paper, and cost nothing.
- C is in units of sqrt(tr of the second moments), a typical row norm; steps are in units of 1/M_j for
  coordinate descent and of 1/L, L the largest curvature, for gradient descent.
- Grids: C {scale.clips}; DP-CD step {scale.coordinate_steps}, passes {scale.coordinate_passes};
  DP-GD (not in the paper) step {scale.gradient_steps}, passes {scale.full_passes};
  DP-SGD (Poisson batches) half, once and twice the clip and the step times passes that are best for DP-GD,
  passes {scale.sgd_passes}.
"""

CLAIMS = """\
Claims of the paper (Figure 1, no numbers given): balanced - both clipping rules alike, slightly worse than
DP-SGD; unbalanced - the smoothness rule improves over DP-SGD (LASSO) and largely outperforms it (logistic).
"""


@dataclass(frozen=True)
class Scale:
    """How much work to do: the size of the table, the grids and the seeds."""

    n: int
    p: int
    clips: tuple[float, ...]
    coordinate_steps: tuple[float, ...]
    gradient_steps: tuple[float, ...]
    coordinate_passes: tuple[int, ...]
    full_passes: tuple[int, ...]
    sgd_passes: tuple[int, ...]
    tuning_seeds: int
    seeds: int


WHOLE = Scale(
    n=10_000,
    p=100,
    clips=(0.1, 0.3, 1.0, 3.0),
    coordinate_steps=(0.03, 0.1, 0.3, 1.0),
    gradient_steps=(0.1, 0.3, 1.0, 1.8),
    coordinate_passes=(3, 10, 30),
    full_passes=(3, 10, 30, 100, 300),
    sgd_passes=(10, 30),
    tuning_seeds=2,
    seeds=5,
)
QUICK = Scale(
    n=1_000,
    p=10,
    clips=(0.3, 1.0),
    coordinate_steps=(1.0,),
    gradient_steps=(1.0,),
    coordinate_passes=(3,),
    full_passes=(3,),
    sgd_passes=(1,),
    tuning_seeds=1,
    seeds=2,
)


@dataclass(frozen=True)
class Setting:
    """A method with its tuned values, in the units of the table."""

    method: str
    clip: float
    step: float
    passes: int


@dataclass(frozen=True)
class Row:
    """The final figures of one method on one task."""

    loss: str
    design: str
    method: str
    mean: float
    least: float
    most: float
    clip: float
    step: float
    passes: int
    epsilon: float


@dataclass(frozen=True, eq=False)
class Task:
    """One problem on one design, with its optimum."""

    loss: str
    design: str
    problem: Problem
    X: Vector
    y: Vector

    @cached_property
    def records(self) -> Records:
        records = as_data(self.X, self.y, self.problem.bounds)
        if not ((records.scale == 1).all() and np.array_equal(records.y, self.y)):
            raise ValueError(f"{self.loss}, {self.design}: the declared bounds alter a record")
        return records

    @cached_property
    def second_moments(self) -> Vector:
        return np.square(self.X).mean(axis=0)

    @cached_property
    def curvature(self) -> float:
        """Largest curvature of the mean loss."""
        return self.problem.loss.smoothness() * float(np.linalg.norm(self.X, 2)) ** 2 / len(self.X)

    @cached_property
    def optimum(self) -> Vector:
        return self.fit(CoordinateDescent(), math.inf, seed=0)

    def objective(self, w: Vector) -> float:
        return float(self.problem.loss.value(self.X @ w, self.y).mean() + self.problem.penalty.value(w))

    def relative_error(self, w: Vector) -> float:
        best = self.objective(self.optimum)
        return (self.objective(w) - best) / best

    def plan(self, solver: Solver, epsilon: float = EPSILON) -> Plan:
        n, p = self.X.shape
        return solver.plan(self.problem, n, p, Budget.for_records(epsilon, None, n), NEIGHBOURS)

    def fit(self, solver: Solver, epsilon: float, seed: int) -> Vector:
        curator = Curator(self.records, NEIGHBOURS, Randomness(seed))
        return solver.run(self.plan(solver, epsilon), self.problem, curator).w

    def errors(self, setting: Setting, seeds: Iterable[int]) -> Vector:
        solver = self.solver(setting)
        return np.array([self.relative_error(self.fit(solver, EPSILON, seed)) for seed in seeds])

    def solver(self, setting: Setting) -> Solver:
        """The setting in dpglm's own units."""
        n, p = self.X.shape
        clip = setting.clip * math.sqrt(self.second_moments.sum())
        if setting.method in (SMOOTH, UNIFORM):
            return CoordinateDescent(
                steps=setting.passes * p,
                clip=clip,
                clip_rule="smoothness" if setting.method == SMOOTH else "uniform",
                step_size=setting.step,
                second_moments=self.second_moments,
            )
        batch = BATCH if setting.method == SGD else None
        return GradientDescent(
            steps=setting.passes * (n // batch if batch else 1),
            clip=clip,
            step_size=setting.step / self.curvature,
            batch_size=batch,
            average=False,
        )


def make_task(loss: str, design: str, n: int, p: int) -> Task:
    """Gaussian features, rescaled unless the design is balanced, and labels from a linear predictor."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, p))
    scale = np.exp(SPREAD / 2 * rng.standard_normal(p)) if design != BALANCED else np.ones(p)
    w = rng.standard_normal(p)
    scores = (X * scale if design == RESCALED_FIRST else X) @ w
    X *= scale
    if loss == "LASSO":
        y = scores / scores.std() + LABEL_NOISE * rng.standard_normal(n)
        penalty = LASSO_SHARE[design] * float(np.abs(X.T @ y).max()) / n
        bounds = Bounds(row_norm=1e3, target=(-1e2, 1e2))
        problem = Problem(Squared(), L1(penalty), bounds, fit_intercept=False)
    else:
        y = np.where(scores > 0, 1.0, -1.0) * np.where(rng.random(n) < FLIPPED, -1.0, 1.0)
        problem = Problem(Logistic(), L2(2 / n), Bounds(row_norm=1e3), fit_intercept=False)
    return Task(loss, design, problem, X, y)


def difference_to_sklearn(task: Task) -> float:
    """Relative difference of the objective at dpglm's optimum (epsilon infinite) and at scikit-learn's."""
    exactly = {"fit_intercept": False, "tol": 1e-10, "max_iter": 100_000}
    strength = task.problem.penalty.strength
    if task.loss == "LASSO":
        model = linear_model.Lasso(alpha=strength, **exactly)
    else:
        model = linear_model.LogisticRegression(C=1 / (strength * len(task.X)), **exactly)
    return -task.relative_error(model.fit(task.X, task.y).coef_.ravel())


def grid(method: str, scale: Scale) -> list[Setting]:
    """Every combination of clip, step and passes."""
    coordinate = scale.coordinate_steps, scale.coordinate_passes
    steps, passes = (scale.gradient_steps, scale.full_passes) if method == FULL else coordinate
    return [Setting(method, *values) for values in itertools.product(scale.clips, steps, passes)]


def ranked(task: Task, settings: Sequence[Setting], seeds: range) -> list[Setting]:
    """The best settings, best first: all are run on one seed, the finalists on every seed."""
    first = {setting: task.errors(setting, seeds[:1]).sum() for setting in settings}
    finalists = sorted(first, key=lambda setting: first[setting])[:FINALISTS]
    return sorted(finalists, key=lambda setting: first[setting] + task.errors(setting, seeds[1:]).sum())


def ranked_sgd(task: Task, full: Setting, scale: Scale, seeds: range) -> list[Setting]:
    """DP-SGD around the best full-batch setting: its noise depends on clip and step times passes as there.

    Clip and step are searched at one number of passes; the best two then try the others.
    """
    passes, *others = scale.sgd_passes
    step = full.step * full.passes * BATCH / (passes * scale.n)
    near = itertools.product((0.5, 1.0, 2.0), repeat=2)
    best = ranked(task, [Setting(SGD, full.clip * c, step * s, passes) for c, s in near], seeds[:1])[:2]
    longer = [replace(s, step=s.step * passes / k, passes=k) for s in best for k in others]
    return ranked(task, [*best, *longer], seeds)


def tune(task: Task, scale: Scale) -> list[Setting]:
    """The best setting of each method of the design."""
    seeds = range(FIRST_TUNING_SEED, FIRST_TUNING_SEED + scale.tuning_seeds)
    methods = DESIGNS[task.design]
    chosen = {method: ranked(task, grid(method, scale), seeds)[0] for method in methods if method != SGD}
    if SGD in methods:
        chosen[SGD] = ranked_sgd(task, chosen[FULL], scale, seeds)[0]
    return [chosen[method] for method in methods]


def measure(task: Task, setting: Setting, seeds: int) -> Row:
    """The figures of a tuned method on fresh seeds."""
    errors = task.errors(setting, range(seeds))
    return Row(
        loss=task.loss,
        design=task.design,
        method=setting.method,
        mean=float(errors.mean()),
        least=float(errors.min()),
        most=float(errors.max()),
        clip=setting.clip,
        step=setting.step,
        passes=setting.passes,
        epsilon=task.plan(task.solver(setting)).epsilon,
    )


def run(scale: Scale) -> list[Row]:
    """Tune and measure every method on every task."""
    rows = []
    for loss, design in itertools.product(LOSSES, DESIGNS):
        task = make_task(loss, design, scale.n, scale.p)
        start = time.perf_counter()
        rows += [measure(task, setting, scale.seeds) for setting in tune(task, scale)]
        print(f"{describe(task)}; {time.perf_counter() - start:.0f} s", flush=True)
    return rows


def describe(task: Task) -> str:
    moments, zero = task.second_moments, np.zeros(task.X.shape[1])
    return (
        f"- {task.loss}, {task.design}: {task.problem.penalty!r}, f* {task.objective(task.optimum):.5f}, "
        f"{np.count_nonzero(task.optimum)} of {len(zero)} coefficients not zero, "
        f"relative error of w = 0 {task.relative_error(zero):.3f}, "
        f"second moments {moments.min():.3g} to {moments.max():.3g}, "
        f"relative difference to scikit-learn {difference_to_sklearn(task):.1e}"
    )


def table(rows: Sequence[Row]) -> str:
    """The figures as Markdown."""
    lines = [
        "| problem | design | method | relative error, mean [min, max] | C | step | passes |",
        "|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {row.loss} | {row.design} | {row.method} | {row.mean:.4f} [{row.least:.4f}, {row.most:.4f}] "
        f"| {row.clip:.3g} | {row.step:.3g} | {row.passes} |"
        for row in rows
    ]
    return "\n".join(lines)


def factors(rows: Sequence[Row]) -> str:
    """Error of each method over that of coordinate descent by the smoothness rule, as Markdown."""
    others = (SGD, FULL, UNIFORM)
    lines = [f"| error over that of {SMOOTH} | " + " | ".join(others) + " |", "|---" * 4 + "|"]
    for loss, design in itertools.product(LOSSES, DESIGNS):
        mean = means(rows, loss, design)
        cells = [f"{mean[method] / mean[SMOOTH]:.2f}" if method in mean else "not run" for method in others]
        lines.append(f"| {loss}, {design} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def means(rows: Sequence[Row], loss: str, design: str) -> dict[str, float]:
    return {row.method: row.mean for row in rows if (row.loss, row.design) == (loss, design)}


def verdicts(rows: Sequence[Row]) -> dict[str, bool]:
    """For each problem, whether coordinate descent beats DP-SGD on the unbalanced design."""
    found = {}
    for loss in LOSSES:
        mean = means(rows, loss, UNBALANCED)
        claim = f"{loss}, {UNBALANCED}: {SMOOTH} {mean[SMOOTH]:.4f}, {SGD} {mean[SGD]:.4f}"
        found[claim] = mean[SMOOTH] < mean[SGD]
    return found


def draw(rows: Sequence[Row], path: Path) -> None:
    """One panel for each problem and main design; bars from least to most error."""
    pyplot = load_pyplot()
    if pyplot is None:
        return
    figure, panels = pyplot.subplots(1, 4, figsize=(13, 3.6), layout="constrained")
    tasks = itertools.product(LOSSES, (BALANCED, UNBALANCED))
    for panel, (loss, design) in zip(panels, tasks, strict=True):
        shown = [row for row in rows if (row.loss, row.design) == (loss, design)]
        mean = np.array([row.mean for row in shown])
        spread = [mean - [row.least for row in shown], [row.most for row in shown] - mean]
        panel.errorbar(range(len(shown)), mean, yerr=spread, fmt="o", capsize=4)
        panel.set_xticks(range(len(shown)), [row.method.replace(" ", "\n") for row in shown], fontsize=7)
        panel.set_ylim(bottom=0)
        panel.margins(x=0.15)
        panel.set_title(f"{loss}, {design}", fontsize=10)
    panels[0].set_ylabel("relative error: mean, min, max")
    figure.savefig(path, dpi=150)
    pyplot.close(figure)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tiny run whose figures mean nothing")
    parser.add_argument("--strict", action="store_true", help="exit with 1 if the expectation is missed")
    results = Path(__file__).parent / "results"
    parser.add_argument("--out", type=Path, default=results, help="folder for CSV and PNG")
    return parser.parse_args()


def main() -> int:
    options = arguments()
    scale = QUICK if options.quick else WHOLE
    start = time.perf_counter()
    print(PREAMBLE.format(epsilon=EPSILON, scale=scale, finalists=FINALISTS))
    rows = run(scale)
    print(f"\n{table(rows)}\n\n{factors(rows)}\n\n{CLAIMS}")
    found = verdicts(rows)
    for claim, met in found.items():
        print(f"{'met' if met else 'MISSED'}: {claim}")
    options.out.mkdir(parents=True, exist_ok=True)
    write_csv(rows, Row, options.out / "cd_balanced.csv")
    draw(rows, options.out / "cd_balanced.png")
    print(f"\n{time.perf_counter() - start:.0f} s; figures in {options.out}")
    return 1 if options.strict and not all(found.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
