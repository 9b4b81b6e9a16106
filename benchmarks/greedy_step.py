"""One step of greedy coordinate descent against what a plain implementation computes in each.

Dense: against one product X.T @ r. Sparse: against the gradient computed anew with scipy, X @ w and
X.T @ r, at epsilon 1, where selections are nearly uniform, and at epsilon 100, where
they prefer dense columns. Sparse steps are CPU time.
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
from dpglm.losses import Logistic
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


class Opened(Curator):
    """A curator that remembers what was opened, and when its first round had been made."""

    scores: Any = None
    since: float = 0.0

    def open(self, query: Any, w: Any, mechanism: Any) -> Any:
        self.scores = super().open(query, w, mechanism)
        self.scores.step()
        self.since = time.process_time()
        return self.scores


def dense(name: str, X: Any, clip: float) -> None:
    """Steps with every score computed anew, against one product."""
    n, p = X.shape
    y, r = rng.choice([-1.0, 1.0], n), rng.standard_normal(n)
    problem = Problem(Logistic(), L1(1e-4), Bounds(feature=5.0), fit_intercept=False)
    solver = GreedyCoordinateDescent(steps=1, clip=clip, step_size=1.0, second_moments=np.ones(p))
    plan = solver.plan(problem, n, p, Budget(1.0, 1 / n**2), Neighbours.REPLACE_ONE)
    curator = Opened(as_data(X, y, problem.bounds), plan.neighbours, Randomness())
    solver.run(plan, problem, curator)
    table = X.astype(np.float64)

    def step() -> None:
        j, slope = curator.scores.step()
        curator.scores.move(j, 1e-9 * slope)

    report(
        f"greedy step / X.T @ r, {name}",
        *side_by_side(step, lambda: table.T @ r, rounds=20),
        goal=1.5,
    )


def sparse(name: str, X: Any, epsilon: float, goal: float | None) -> None:
    """Whole steps of a fit, against the gradient computed anew."""
    n, p = X.shape
    y, w = rng.choice([-1.0, 1.0], n), rng.standard_normal(p) * 1e-3
    loss = Logistic()
    problem = Problem(loss, L1(1e-4), Bounds(row_norm=1.0), fit_intercept=False)
    solver = GreedyCoordinateDescent(steps=STEPS, second_moments="even")
    plan = solver.plan(problem, n, p, Budget(epsilon, 1 / n**2), Neighbours.REPLACE_ONE)
    records = as_data(X, y, problem.bounds)

    def ours() -> float:
        curator = Opened(records, plan.neighbours, Randomness())
        solver.run(plan, problem, curator)
        return (time.process_time() - curator.since) / STEPS

    def theirs() -> float:
        begin = time.process_time()
        X.T @ loss.derivative(X @ w, y)
        return time.process_time() - begin

    ours()
    step, gradient = min(ours() for _ in range(5)), min(theirs() for _ in range(10))
    step = min(step, *(ours() for _ in range(5)))
    verdict = "" if goal is None else f"  goal {goal:.0f}  {'ok' if gradient / step >= goal else 'MISSED'}"
    print(
        f"greedy step, {name}, epsilon {epsilon:g}: {step * 1e6:.0f} us, gradient with scipy "
        f"{gradient * 1e3:.2f} ms: {gradient / step:.1f} times faster{verdict}",
        flush=True,
    )


def main() -> None:
    """Measure dense and sparse tables."""
    X = rng.standard_normal((20_000, 2_000))
    dense("20,000 x 2,000, no entry above its clip", X, 1e4)
    dense("20,000 x 2,000, clipped", X, 20.0)
    dense("20,000 x 2,000, clipped, by columns", np.asfortranarray(X), 20.0)
    dense("20,000 x 2,000, clipped, float32", X.astype(np.float32), 20.0)
    del X
    tables = {"20,000 x 1,360,000 power law, 455 a row": (power_law(20_000, 1_360_000, 455), 1_000.0)}
    for folder, goal in (("dorothea", 25.0), ("news20_binary", None)):
        for path in sorted((DATA / folder).glob("*.npz"))[:1]:
            tables[folder] = sp.csr_array(sp.load_npz(path)), goal
    for name, (table, goal) in tables.items():
        sparse(name, table, 1.0, goal)
        sparse(name, table, 100.0, None)


if __name__ == "__main__":
    main()
