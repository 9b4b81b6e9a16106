"""One step of greedy coordinate descent against what a plain implementation computes in each.

Dense: against one product X.T @ r. Sparse: against the gradient computed anew with scipy, X @ w and
X.T @ r, at epsilon 1, where selections are nearly uniform, and at epsilon 100, where
they prefer dense columns.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from timing import report, side_by_side

from dpglm import Bounds, Budget, Neighbours
from dpglm.curator import Curator
from dpglm.data import as_data
from dpglm.losses import Logistic, Loss
from dpglm.mechanisms import Randomness
from dpglm.penalties import L1
from dpglm.problem import Problem
from dpglm.solvers import GreedyCoordinateDescent

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
STEPS = 200
rng = np.random.default_rng(0)


def power_law(n: int, p: int, per_row: int) -> sp.csr_array:
    """Rows of about ``per_row`` entries whose column k is drawn with probability about 1 / (k + 10)."""
    edges = np.cumsum(1.0 / (np.arange(p) + 10.0))
    columns = np.searchsorted(edges, rng.random(n * per_row) * edges[-1]).astype(np.int32)
    table = sp.csr_array(
        (np.ones(n * per_row, dtype=np.float32), columns, np.arange(0, n * per_row + 1, per_row)),
        shape=(n, p),
    )
    table.sum_duplicates()
    table.data[:] = rng.lognormal(0, 0.5, len(table.data))
    return table


def problem_of(loss: Loss, p: int) -> Problem:
    target = None if isinstance(loss, Logistic) else (-3.0, 3.0)
    return Problem(loss, L1(1e-4), Bounds(row_norm=1.0, feature=1.0, target=target), fit_intercept=False)


def dense(name: str, X: Any, clip: float) -> None:
    """Steps with every score computed anew, against one product."""
    n, p = X.shape
    y, r = rng.choice([-1.0, 1.0], n), rng.standard_normal(n)
    problem = Problem(Logistic(), L1(1e-4), Bounds(feature=5.0), fit_intercept=False)
    solver = GreedyCoordinateDescent(steps=STEPS, clip=clip, second_moments=np.ones(p))
    plan = solver.plan(problem, n, p, Budget(1.0, 1 / n**2), Neighbours.REPLACE_ONE)
    opened = opened_scores(solver, plan, problem, X, y)
    plain = X.astype(np.float64)

    report(
        f"greedy step / X.T @ r, {name}",
        *side_by_side(lambda: step(opened, plan, 0.01), lambda: plain.T @ r, rounds=20),
        goal=1.5,
    )


def opened_scores(solver: Any, plan: Any, problem: Problem, X: Any, y: Any) -> Any:
    """What the solver opens, for single steps."""
    kept = []

    class Watched(Curator):
        def open(self, query: Any, w: Any) -> Any:
            kept.append(super().open(query, w))
            raise InterruptedError

    curator = Watched(as_data(X, y, problem.bounds), Neighbours.REPLACE_ONE, Randomness(1))
    try:
        solver.run(plan, problem, curator)
    except InterruptedError:
        return kept[0]


def step(opened: Any, plan: Any, move: float) -> None:
    j = opened.select(plan.releases[-2].mechanism)
    opened.release(j, plan.releases[-1].mechanism)
    opened.move(j, opened._w[j] + move * rng.standard_normal())


def sparse(name: str, X: Any, epsilon: float, goal: float | None) -> None:
    """Whole steps of a fit, against the gradient computed anew."""
    n, p = X.shape
    y = rng.choice([-1.0, 1.0], n)
    problem = problem_of(Logistic(), p)
    moments = np.full(p, 1.0 / p)
    solver = GreedyCoordinateDescent(steps=STEPS, second_moments=moments, clip=0.5, step_size=1.0)
    plan = solver.plan(problem, n, p, Budget(epsilon, 1 / n**2), Neighbours.REPLACE_ONE)
    records = as_data(X, y, problem.bounds)
    loss, w = Logistic(), rng.standard_normal(p) * 1e-3
    begin = time.perf_counter()
    solver.run(plan, problem, Curator(records, Neighbours.REPLACE_ONE, Randomness(0)))
    first = time.perf_counter() - begin
    times, theirs = [], []
    for seed in range(3):
        opened: list[float] = []

        class Timed(Curator):
            def open(self, query: Any, w: Any, opened: list[float] = opened) -> Any:
                scores = super().open(query, w)
                scores.select(plan.releases[-2].mechanism)
                opened.append(time.perf_counter())
                return scores

        solver.run(plan, problem, Timed(records, Neighbours.REPLACE_ONE, Randomness(seed)))
        times.append((time.perf_counter() - opened[0]) / STEPS)
        for _ in range(5):
            begin = time.perf_counter()
            X.T @ loss.derivative(X @ w, y)
            theirs.append(time.perf_counter() - begin)
    ours, other = min(times), min(theirs)
    verdict = "" if goal is None else f"  goal {goal:g}  {'ok' if other / ours >= goal else 'MISSED'}"
    print(
        f"greedy step, {name}, epsilon {epsilon:g}: {ours * 1e6:9.1f} us, gradient with scipy "
        f"{other * 1e3:7.2f} ms: {other / ours:7.1f} x faster{verdict} (first fit {first:.2f} s)"
    )


def main() -> None:
    """Measure dense and sparse tables."""
    X = rng.standard_normal((20_000, 2_000))
    dense("20,000 x 2,000, no entry above its clip", X, 1e4)
    dense("20,000 x 2,000, clipped", X, 20.0)
    dense("20,000 x 2,000, clipped, by columns", np.asfortranarray(X), 20.0)
    dense("20,000 x 2,000, clipped, float32", X.astype(np.float32), 20.0)
    del X
    tables = {"20,000 x 1,360,000 power law, 455 a row": (power_law(20_000, 1_360_000, 455), 200.0)}
    for folder, goal in (("dorothea", 15.0), ("news20_binary", None)):
        for path in sorted((DATA / folder).glob("*.npz"))[:1]:
            tables[folder] = sp.csr_array(sp.load_npz(path)), goal
    for name, (table, goal) in tables.items():
        sparse(name, table, 1.0, goal)
        sparse(name, table, 100.0, None)


if __name__ == "__main__":
    main()
