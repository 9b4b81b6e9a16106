"""Dual coordinate descent with its defaults beside gradient descent, for weak and strong penalties.

Adult (logistic regression and the SVM) comes with dpglm. Ridge regression is on california_housing if it is
in the folder (--data); its columns are standardised and its target is scaled by statistics that count as
public. Replace-one, delta 1/n², with an intercept. The strength of the L2 penalty is given as its multiple of
1/n. The table has the score on test records (accuracy in percent, R²) and the training objective, mean of the
fits.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from dpglm import Bounds, Budget, Neighbours
from dpglm.curator import Curator
from dpglm.data import as_data
from dpglm.datasets import load_adult
from dpglm.losses import Hinge, Logistic, Loss, Squared
from dpglm.mechanisms import Randomness
from dpglm.penalties import L2
from dpglm.problem import Problem
from dpglm.solvers import DualCoordinateDescent, GradientDescent, Solver

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
CELLS = [(1, 0.1), (1, 1.0), (1, 10.0), (300, 0.1), (300, 1.0)]


def tables(folder: Path) -> Iterator[tuple[str, Loss, tuple[Any, ...]]]:
    """Name, loss, and training and test records of each problem."""
    adult = load_adult()
    for name, loss in (("Adult, logistic", Logistic()), ("Adult, hinge", Hinge())):
        yield name, loss, (adult.X, adult.y, adult.X_test, adult.y_test)
    path = folder / "california_housing"
    if not path.exists():
        print(f"{path} is not at hand")
        return
    stored = np.load(next(path.glob("*.npz")))
    X, y = stored["X"], stored["y"]
    X = (X - X.mean(axis=0)) / X.std(axis=0) / np.sqrt(X.shape[1])
    y = np.clip((y - y.mean()) / 2, -1, 1)
    order, kept = np.random.default_rng(0).permutation(len(y)), len(y) * 4 // 5
    train, test = order[:kept], order[kept:]
    yield "california, squared", Squared(), (X[train], y[train], X[test], y[test])


def measure(solver: Solver, problem: Problem, epsilon: float, records: tuple[Any, ...], runs: int) -> str:
    """Mean score on the test records and mean training objective."""
    X, y, X_test, y_test = records
    n, p = X.shape
    constant = problem.constant(p)
    train, test = as_data(X, y, problem.bounds, constant), as_data(X_test, y_test, problem.bounds, constant)
    plan = solver.plan(problem, n, p, Budget(epsilon, 1 / n**2), Neighbours.REPLACE_ONE)
    found = []
    for seed in range(runs):
        w = solver.run(plan, problem, Curator(train, plan.neighbours, Randomness(seed))).w
        z = test.dot(w)
        if problem.loss.kind == "classification":
            score = 100 * np.mean(np.sign(z) == test.y)
        else:
            score = 1 - np.square(z - test.y).mean() / test.y.var()
        found.append(
            (score, problem.loss.value(train.dot(w), train.y).mean() + problem.penalty.value(w[:-1]))
        )
    score, objective = np.mean(found, axis=0)
    return f"{score:.2f} ({objective:.4f})" if score > 1 else f"{score:.3f} ({objective:.4f})"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the real tables")
    parser.add_argument("--runs", type=int, default=5, help="fits for each cell")
    parser.add_argument("--quick", action="store_true", help="one cell of each table")
    options = parser.parse_args()
    print("| problem | strength x n | epsilon | gradient descent | dual coordinate descent |")
    print("|---|---|---|---|---|")
    for name, loss, records in tables(options.data):
        bounds = Bounds(row_norm=1.0, target=(-1, 1) if loss.kind == "regression" else None)
        for multiple, epsilon in CELLS[:1] if options.quick else CELLS:
            problem = Problem(loss, L2(multiple / records[0].shape[0]), bounds)
            cells = [
                "-"
                if isinstance(loss, Hinge) and isinstance(solver, GradientDescent)
                else measure(solver, problem, epsilon, records, options.runs)
                for solver in (GradientDescent(), DualCoordinateDescent())
            ]
            print(f"| {name} | {multiple} | {epsilon:g} | {cells[0]} | {cells[1]} |", flush=True)


if __name__ == "__main__":
    main()
