"""The primal form of DP-SCD, with a price that holds, beside the dual form and beside DP-CD.

Damaskinos, Mendler-Duenner, Guerraoui, Papandreou and Parnell, "Differentially Private Stochastic Coordinate
Descent" (section 3.2 and appendix B, Algorithm 2 and Lemma 4), argue that the dual form is preferable: a step
of the primal form reads every record, so that there is no gain from sampling, and its sensitivity is larger.
Their appendix is not in the text at hand. Section 3.2 states how a step works and the bound of Lemma 4, which
leave little open: each of L coordinates of theta moves to the minimum of a separable upper bound of the
objective, by at most C; v = X theta, a prediction for every record, moves along; both are released.

**Lemma 4 is false for rows of norm 1**, which the paper assumes. Its bound 2 C sqrt(L (L + 1)) is that of L
moves that turn from -C to C (2 C sqrt(L)), each carried into v by a *column* of norm 1 (2 C L). If rows have
norm 1, columns have norms up to sqrt(n). Zeroing a record out moves theta by up to 2 C sqrt(L), every other
record's prediction by up to 2 C sqrt(L), and its own by up to C sqrt(L): together C sqrt(L (4 n + 1)). The
script shows a pair of tables that attains this.

What it compares, all with the exact price of T Gaussian releases:

- *Lemma 4*: noise by the published bound. It promises nothing.
- *pair*: the same with the sensitivity above.
- *theta alone*: v is secret. It is a function of released coefficients and of the record's own row, so it
  need not be released. The sensitivity is 2 C sqrt(L).
- *DP-CD* (dpglm's `CoordinateDescent`, Mangold and others, 2022): the clip is that of a record's share of a
  slope, not that of the move. One record then moves a step by C/n, not by 2 C.
- the dual form with the defaults of dpglm's `DualCoordinateDescent`, that is without any tuning. With tuning,
  and as published, it is in scd_paper.py, whose problems, tables and fresh seeds these are.

Tuning of the primal forms is not paid for: 30 settings each, chosen by one run on validation rows.

    python experiments/scd_primal.py                # a minute or two on one core
    python experiments/scd_primal.py --quick        # seconds, too small to mean anything
"""

from __future__ import annotations

import argparse
import itertools
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from outputs import write_csv
from scd_problems import DATA, DELTA, NEIGHBOURS, PROBLEMS, QUICK, Task, Vector
from scd_search import FIRST_FRESH_SEED, TUNING_SEED

from dpglm import Budget
from dpglm.accounting import gaussian_mu
from dpglm.losses import Squared
from dpglm.solvers import CoordinateDescent, DualCoordinateDescent, Solver

LEMMA, PAIR, NO_COLUMNS, DP_CD = "primal, Lemma 4", "primal, pair", "primal, theta alone", "DP-CD"
DUAL = "dual, defaults"
METHODS = (LEMMA, PAIR, NO_COLUMNS, DP_CD, DUAL)
EPSILONS = (0.1, 1.0, 10.0)
SEEDS = 5
BATCHES = ((0.0, 1), (0.0, 3), (0.25, 10), (1.0, 10), (1.0, 100))
CLIPS = (1e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1)
PASSES, SLOPE_CLIPS, STEPS = (3, 10, 30), (0.01, 0.03, 0.1, 0.3, 1.0), (0.3, 1.0)


@dataclass(frozen=True)
class Primal:
    """One choice of hyperparameters of a primal form.

    Parameters
    ----------
    share : float
        Coordinates of a step over all coordinates; 0 is one coordinate.
    passes : int
        How often each coordinate moves.
    clip : float
        C: of the moves, or, of DP-CD, of a record's slope.
    step : float
        Step size of DP-CD in units of 1 / M_j.
    """

    share: float
    passes: int
    clip: float
    step: float = math.nan


@dataclass(frozen=True)
class Figure:
    """Test scores of one method with its tuned setting."""

    problem: str
    method: str
    epsilon: float
    settings: int
    mean: float
    deviation: float
    setting: str


def sensitivity(method: str, clip: float, coordinates: int, records: int) -> float:
    """How far a step moves what it releases, at most, if a record of norm 1 is zeroed out."""
    if method == LEMMA:
        return 2 * clip * math.sqrt(coordinates * (coordinates + 1))
    if method == PAIR:
        return clip * math.sqrt(coordinates * (4 * records + 1))
    return 2 * clip * math.sqrt(coordinates)


def moves(task: Task, X: Vector, theta: Vector, v: Vector, batch: Vector, clip: float) -> Vector:
    """The independent moves of the coordinates of a batch, from theta and the predictions v.

    For squared loss the minimum of the separable upper bound of the objective, for others a Newton step.
    """
    n, columns, y = len(X), X[:, batch], task.train.y
    slope = columns.T @ task.loss.derivative(v, y) / n + task.strength * theta[batch]
    bend = len(batch) * (task.loss.curvature(v, y) @ np.square(columns)) / n + task.strength
    return np.clip(-slope / np.maximum(bend, 1e-300), -clip, clip)


def primal(task: Task, method: str, setting: Primal, epsilon: float, seed: int) -> Vector:
    """Algorithm 2 with the noise of a method: the mean of the last quarter of the iterates.

    Not for use: the generator is NumPy's, and noise is floating-point noise.
    """
    rng, X = np.random.default_rng(seed), table_of(task)
    n, p = X.shape
    size = max(1, round(setting.share * p))
    steps = list(batches(p, size, setting.passes, rng))
    scale = sensitivity(method, setting.clip, size, n) * math.sqrt(len(steps)) / gaussian_mu(epsilon, DELTA)
    theta, v, mean = np.zeros(p), np.zeros(n), np.zeros(p)
    first = len(steps) - math.ceil(len(steps) / 4)
    for k, batch in enumerate(steps):
        exact = moves(task, X, theta, v, batch, setting.clip)
        noisy = exact + scale * rng.standard_normal(len(batch))
        theta[batch] += noisy
        if method == NO_COLUMNS:
            v += X[:, batch] @ noisy
        else:
            v += X[:, batch] @ exact + scale * rng.standard_normal(n)
        if k >= first:
            mean += theta
    return mean / (len(steps) - first)


def batches(p: int, size: int, passes: int, rng: np.random.Generator) -> Iterator[Vector]:
    """Shuffled passes over the coordinates."""
    for _ in range(passes):
        yield from np.array_split(rng.permutation(p), math.ceil(p / size))


def table_of(task: Task) -> Vector:
    X = task.train.X
    return X.toarray(order="F") if sp.issparse(X) else np.asfortranarray(X)


def solver_of(task: Task, method: str, setting: Primal) -> Solver:
    """DP-CD takes columns for equally long, which costs nothing and is not looked up in the table."""
    if method == DUAL:
        return DualCoordinateDescent()
    steps = setting.passes * task.shape[1]
    return CoordinateDescent(steps=steps, clip=setting.clip, step_size=setting.step, second_moments="even")


def run(task: Task, method: str, setting: Primal, epsilon: float, seed: int) -> Vector:
    if method in (LEMMA, PAIR, NO_COLUMNS):
        with np.errstate(over="ignore", invalid="ignore"):
            return primal(task, method, setting, epsilon, seed)
    solver = solver_of(task, method, setting)
    plan = solver.plan(task.problem, *task.shape, Budget(epsilon, DELTA), NEIGHBOURS)
    return solver.run(plan, task.problem, task.curator(seed)).w


def settings(method: str, quick: bool) -> list[Primal]:
    """What a method is tuned over."""
    if method == DUAL:
        return [Primal(math.nan, 0, math.nan)]
    if method == DP_CD:
        grid = itertools.product(PASSES, SLOPE_CLIPS, STEPS)
        found = [Primal(0.0, passes, clip, step) for passes, clip, step in grid]
    else:
        found = [Primal(*batch, clip) for batch, clip in itertools.product(BATCHES, CLIPS)]
    return found[:: len(found) // 4] if quick else found


def measure(task: Task, method: str, epsilon: float, quick: bool) -> Figure:
    """Tune on the validation rows, then score fresh seeds on the test rows."""
    choices = settings(method, quick)
    tuned = [task.score(run(task, method, s, epsilon, TUNING_SEED), task.validation) for s in choices]
    chosen = choices[int(np.argmin(tuned) if task.regression else np.argmax(tuned))]
    seeds = range(FIRST_FRESH_SEED, FIRST_FRESH_SEED + (2 if quick else SEEDS))
    scores = np.array([task.score(run(task, method, chosen, epsilon, seed), task.test) for seed in seeds])
    return figure(task, method, epsilon, len(choices), scores, str(chosen))


def figure(task: Task, method: str, epsilon: float, count: int, scores: Vector, setting: str) -> Figure:
    return Figure(task.name, method, epsilon, count, scores.mean(), scores.std(ddof=1), setting)


def largest_move(task: Task, clip: float) -> float:
    """How far theta and v move in the first step over all coordinates, if the last record is zeroed out."""
    n, p = task.shape
    pairs = []
    for kept in (n, n - 1):
        X, train = table_of(task).copy(), task.train
        X[kept:] = 0.0
        there = replace(task, train=replace(train, y=np.where(np.arange(n) < kept, train.y, 0.0)))
        step = moves(there, X, np.zeros(p), np.zeros(n), np.arange(p), clip)
        pairs.append(np.append(step, X @ step))
    return float(np.linalg.norm(pairs[0] - pairs[1]))


def neighbours(task: Task, n: int, coordinates: int) -> tuple[Task, float]:
    """Equal rows of norm 1 whose last one decides all signs, and a clip that every move exceeds."""
    X = np.full((n, coordinates), 1 / math.sqrt(coordinates))
    y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    y[-2:] = -0.5 + (y[:-2].sum() * -1), 1.0
    part = replace(task.train, X=X, y=y)
    return replace(task, train=part, strength=1e-9), 0.1 / (n * coordinates)


def lemma_4(task: Task) -> str:
    """What a record moves, beside the published bound and that of this script, as Markdown."""
    lines = [
        "| records | coordinates of a step | moved, in units of C | Lemma 4 | this script |",
        "|---|---|---|---|---|",
    ]
    for n, coordinates in itertools.product((100, 10_000), (1, 10)):
        pair, clip = neighbours(task, n, coordinates)
        moved = largest_move(pair, clip) / clip
        lines.append(
            f"| {n:,} | {coordinates} | {moved:.1f} | {sensitivity(LEMMA, 1.0, coordinates, n):.1f} "
            f"| {sensitivity(PAIR, 1.0, coordinates, n):.1f} |"
        )
    return "\n".join(lines)


def table(tasks: Sequence[Task], figures: Sequence[Figure]) -> str:
    """Test scores as Markdown."""
    lines = ["| | epsilon | " + " | ".join(METHODS) + " | w = 0 |", "|---" * (3 + len(METHODS)) + "|"]
    for task in tasks:
        for epsilon in sorted({f.epsilon for f in figures}):
            found = {f.method: f for f in figures if (f.problem, f.epsilon) == (task.name, epsilon)}
            digits = 4 if task.regression else 2
            cells = [f"{found[m].mean:.{digits}f} ± {found[m].deviation:.{digits}f}" for m in METHODS]
            plain = task.score(np.zeros(task.shape[1]), task.test)
            if not task.regression:
                plain = 100 * max((task.test.y > 0).mean(), (task.test.y < 0).mean())
            lines.append(
                f"| {task.name}, {task.metric} | {epsilon:g} | {' | '.join(cells)} | {plain:.{digits}f} |"
            )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tiny run whose figures mean nothing")
    parser.add_argument("--problems", help="some of california,mtp,phishing")
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the real tables")
    results = Path(__file__).parent / "results"
    parser.add_argument("--out", type=Path, default=results, help="folder for the CSV file")
    options = parser.parse_args()
    start = time.perf_counter()
    usual = "ridge_small,logistic_small" if options.quick else "california,mtp,phishing"
    known = QUICK if options.quick else PROBLEMS
    tasks = [known[name](options.data) for name in (options.problems or usual).split(",")]
    print("What zeroing a record out moves:\n")
    print(lemma_4(next(task for task in tasks if isinstance(task.loss, Squared))), flush=True)
    print(f"\nTest MSE, or accuracy in percent; delta {DELTA:g}, zero-out.\n")
    figures = []
    for task, epsilon in itertools.product(tasks, EPSILONS[1:2] if options.quick else EPSILONS):
        for method in METHODS:
            figures.append(measure(task, method, epsilon, options.quick))
            found = figures[-1]
            print(
                f"- {task.name}, epsilon {epsilon:g}, {method}: {found.mean:.4f}, {found.settings} settings, "
                f"{found.setting}, {time.perf_counter() - start:.0f} s",
                flush=True,
            )
    print(f"\n{table(tasks, figures)}")
    options.out.mkdir(parents=True, exist_ok=True)
    write_csv(figures, Figure, options.out / "scd_primal.csv")


if __name__ == "__main__":
    main()
