"""The eight problems of "High-Dimensional Private Empirical Risk Minimization by Greedy Coordinate Descent".

Mangold, Bellet, Salmon and Tommasi give sizes and, for the L1 penalties, the number of non-zeros of the
solution; strengths and preparation of the columns are not in their text. Chosen here:

- L1 strengths are the round numbers, found by bisection, whose solution has the published number of
  non-zeros and whose gap at w = 0 is the one at which the published competitors stay: 0.05 for madelon,
  0.01 for dorothea, 0.1 for california with its target in units of 100,000 dollars. For square, whose values
  are drawn here, the first seed is taken with 7 non-zeros at a gap of 0.75.
- L2 strengths are 1/n.
- Dense columns and regression targets are standardised. Entries of dorothea stay 0 and 1: with them 72
  non-zeros and a gap of 0.78 go together, with columns of unit second moment the gap would be 0.3.
- madelon has a constant column as its feature 501. No other problem has an intercept.

None of this preparation is private: what is measured is how well a private solver minimises the objective.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from dpglm import Bounds, Budget, Neighbours
from dpglm.curator import Curator
from dpglm.data import Records, as_data
from dpglm.losses import Logistic, Loss, Squared
from dpglm.mechanisms import Randomness
from dpglm.penalties import L1, L2
from dpglm.problem import Problem
from dpglm.solvers import CoordinateDescent, Solver

Vector = NDArray[np.float64]

EPSILON = 1.0
NEIGHBOURS = Neighbours.REPLACE_ONE
DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
CERTIFIED = 1e-9
SQUARE_SEED, SQUARE_GAP = 10, 0.75


@dataclass(frozen=True, eq=False)
class Task:
    """A problem with its records, its optimum, and the published number of non-zeros."""

    name: str
    problem: Problem
    X: Any
    y: Vector
    published_nonzeros: int | None = None

    @property
    def shape(self) -> tuple[int, int]:
        return self.X.shape

    @property
    def budget(self) -> Budget:
        return Budget.for_records(EPSILON, None, self.shape[0])

    @property
    def zero(self) -> Vector:
        return np.zeros(self.shape[1])

    @property
    def sparse_solution(self) -> bool:
        return isinstance(self.problem.penalty, L1)

    @property
    def sparse_table(self) -> bool:
        return sp.issparse(self.X)

    @cached_property
    def records(self) -> Records:
        records = as_data(self.X, self.y, self.problem.bounds)
        if not ((records.scale == 1).all() and np.array_equal(records.y, self.y)):
            raise ValueError(f"{self.name}: the bounds alter a record")
        return records

    @cached_property
    def largest(self) -> Vector:
        """Largest absolute value of each column."""
        return _dense(abs(self.X).max(axis=0))

    @cached_property
    def second_moments(self) -> Vector:
        squares = self.X.multiply(self.X) if sp.issparse(self.X) else np.square(self.X)
        return _dense(squares.mean(axis=0))

    @cached_property
    def curvature(self) -> Vector:
        """M_j: curvature of the mean loss along each coordinate, at most."""
        return self.problem.loss.smoothness() * self.second_moments

    @cached_property
    def optimum(self) -> Vector:
        w = minimise(self)
        if not duality_gap(self, w) <= CERTIFIED * self.objective(w):
            raise ArithmeticError(f"{self.name}: relative duality gap above {CERTIFIED:g}")
        nonzeros = np.count_nonzero(w)
        if self.published_nonzeros not in (None, nonzeros):
            raise ValueError(f"{self.name}: {nonzeros} non-zeros, {self.published_nonzeros} are published")
        return w

    @cached_property
    def least(self) -> float:
        return self.objective(self.optimum)

    @cached_property
    def gap_at_zero(self) -> float:
        return self.gap(self.zero)

    @property
    def sixth(self) -> float:
        """The alpha of an (alpha, 5)-quasi-sparse minimiser, over its largest coefficient (Figure 2)."""
        sizes = np.sort(np.abs(self.optimum))[::-1]
        return float(sizes[5] / sizes[0])

    def objective(self, w: Vector) -> float:
        return float(self.problem.loss.value(self.X @ w, self.y).mean() + self.problem.penalty.value(w))

    def gap(self, w: Vector) -> float:
        """(f(w) - f*) / f*."""
        return (self.objective(w) - self.least) / self.least

    def gradient(self, w: Vector) -> Vector:
        """Of the mean loss."""
        return self.X.T @ self.problem.loss.derivative(self.X @ w, self.y) / self.shape[0]

    def found(self, w: Vector) -> tuple[int, int]:
        """Non-zeros of w that the optimum has, and those that it has not."""
        chosen, right = w != 0, self.optimum != 0
        return int((chosen & right).sum()), int((chosen & ~right).sum())

    def fit(self, solver: Solver, seed: int) -> Vector:
        n, p = self.shape
        plan = solver.plan(self.problem, n, p, self.budget, NEIGHBOURS)
        return solver.run(plan, self.problem, Curator(self.records, NEIGHBOURS, Randomness(seed))).w

    def describe(self) -> str:
        n, p = self.shape
        return (
            f"{self.name}: {self.problem.loss.name} + {self.problem.penalty!r}, {n:,} x {p:,}, "
            f"f* {self.least:.6f}, {np.count_nonzero(self.optimum)} non-zeros, "
            f"sixth largest over largest {self.sixth:.2g}, "
            f"relative gap at w = 0 {self.gap_at_zero:.4g}, relative duality gap of f* "
            f"{max(duality_gap(self, self.optimum), 0) / self.least:.0e}"
        )


def minimise(task: Task) -> Vector:
    """Coordinate descent without noise, then Newton steps on its support."""
    n, p = task.shape
    solver = CoordinateDescent()
    plan = solver.plan(task.problem, n, p, Budget.for_records(math.inf, None, n), NEIGHBOURS)
    w = solver.run(plan, task.problem, Curator(task.records, NEIGHBOURS, Randomness(0))).w
    support = np.flatnonzero(w)
    l1, l2, *_ = task.problem.penalty.coordinate_form()
    table = task.X[:, support]
    table = table.toarray() if sp.issparse(table) else table
    signs = np.sign(w[support])
    for _ in range(5):
        z = table @ w[support]
        slope, bend = task.problem.loss.derivative(z, task.y), task.problem.loss.curvature(z, task.y)
        gradient = table.T @ slope / n + l1 * signs + l2 * w[support]
        hessian = (table.T * bend) @ table / n + l2 * np.eye(len(support))
        polished = w.copy()
        polished[support] -= np.linalg.solve(hessian, gradient)
        if (l1 and (np.sign(polished[support]) != signs).any()) or duality_gap(task, polished) > duality_gap(
            task, w
        ):
            break
        w = polished
    return w


def duality_gap(task: Task, w: Vector) -> float:
    """Objective minus the dual objective at the residuals of w, scaled to be feasible."""
    loss, n = task.problem.loss, task.shape[0]
    l1, l2, *_ = task.problem.penalty.coordinate_form()
    residual = loss.derivative(task.X @ w, task.y)
    correlation = task.X.T @ residual / n
    if l1:
        residual = residual * min(1.0, l1 / np.abs(correlation).max())
    dual = -_conjugate(loss, residual, task.y).mean()
    if l2:
        dual -= float(correlation @ correlation) / (2 * l2)
    return task.objective(w) - float(dual)


def _conjugate(loss: Loss, residual: Vector, y: Vector) -> Vector:
    if isinstance(loss, Squared):
        return residual**2 / 2 + residual * y
    q = np.clip(-residual * y, 1e-300, 1 - 1e-16)
    return q * np.log(q) + (1 - q) * np.log1p(-q)


def task(name: str, loss: Loss, penalty: L1 | L2, X: Any, y: Vector, nonzeros: int | None = None) -> Task:
    target = (float(y.min()), float(y.max())) if isinstance(loss, Squared) else None
    bounds = Bounds(feature=_dense(abs(X).max(axis=0)), target=target)
    return Task(name, Problem(loss, penalty, bounds, fit_intercept=False), X, y, nonzeros)


def log_normal(name: str, spread: float, n: int, p: int) -> Task:
    """Logistic regression whose true coefficients are log-normal."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, p))
    w = np.exp(spread * rng.standard_normal(p))
    y = np.where(X @ w + rng.standard_normal(n) > 0, 1.0, -1.0)
    return task(name, Logistic(), L2(1 / n), standardised(X), y)


def square(name: str, n: int, p: int, nonzeros: int | None) -> Task:
    """LASSO with 10 log-normal true coefficients."""
    rng = np.random.default_rng(SQUARE_SEED)
    X = rng.standard_normal((n, p))
    w = np.zeros(p)
    w[rng.choice(p, 10, replace=False)] = np.exp(rng.standard_normal(10))
    y = X @ w + rng.standard_normal(n)
    X, y = standardised(X), standardised(y)
    high = float(np.abs(X.T @ y).max()) / n
    low = 0.1 * high
    for _ in range(30):
        strength = math.sqrt(low * high)
        trial = task(name, Squared(), L1(strength), X, y)
        low, high = (strength, high) if trial.gap_at_zero > SQUARE_GAP else (low, strength)
    return task(name, Squared(), L1(strength), X, y, nonzeros)


def california(data: Path) -> Task:
    """LASSO on the columns of scikit-learn's version, which are ratios of the stored ones."""
    with np.load(data / "california_housing" / "data.npz", allow_pickle=False) as stored:
        raw, value = dict(zip(stored["feature_names"], stored["X"].T, strict=True)), stored["y"]
    homes = raw["households"]
    columns = (
        raw["medianIncome"],
        raw["housingMedianAge"],
        raw["totalRooms"] / homes,
        raw["totalBedrooms"] / homes,
        raw["population"],
        raw["population"] / homes,
        raw["latitude"],
        raw["longitude"],
    )
    strength = 0.1 * 1e5 / float(value.std())
    return task(
        "california", Squared(), L1(strength), standardised(np.stack(columns, 1)), standardised(value), 3
    )


def mtp(data: Path) -> Task:
    """Ridge regression on a stand-in: 4,401 melting points with 202 descriptors, not OpenML's 4,450."""
    with np.load(data / "mtp_melting_point" / "data.npz", allow_pickle=False) as stored:
        X, y = stored["X"].astype(np.float64), stored["y"]
    return task("mtp", Squared(), L2(1 / len(y)), standardised(X), standardised(y))


def madelon(name: str, penalty: L1 | L2 | None, nonzeros: int | None, data: Path) -> Task:
    with np.load(data / "madelon" / "data.npz", allow_pickle=False) as stored:
        X, y = stored["X"].astype(np.float64), stored["y"].astype(np.float64)
    table = np.column_stack([standardised(X), np.ones(len(y))])
    return task(name, Logistic(), penalty or L2(1 / len(y)), table, y, nonzeros)


def dorothea(data: Path) -> Task:
    X = sp.load_npz(data / "dorothea" / "X_train.npz").astype(np.float64).tocsc()
    y = np.load(data / "dorothea" / "y_train.npy").astype(np.float64)
    return task("dorothea", Logistic(), L1(0.01), X[:, np.diff(X.indptr) > 0], y, 72)


PROBLEMS: dict[str, Callable[[Path], Task]] = {
    "square": lambda data: square("square", 1_000, 1_000, 7),
    "california": california,
    "dorothea": dorothea,
    "madelon_l1": lambda data: madelon("madelon_l1", L1(0.05), 3, data),
    "log1": lambda data: log_normal("log1", 1.0, 1_000, 100),
    "log2": lambda data: log_normal("log2", 2.0, 1_000, 100),
    "mtp": mtp,
    "madelon_l2": lambda data: madelon("madelon_l2", None, None, data),
}
QUICK: dict[str, Callable[[Path], Task]] = {
    "square_small": lambda data: square("square_small", 300, 50, None),
    "log1_small": lambda data: log_normal("log1_small", 1.0, 300, 20),
}


def standardised(values: Vector) -> Vector:
    return np.asfortranarray((values - values.mean(axis=0)) / values.std(axis=0))


def _dense(values: Any) -> Vector:
    return np.asarray(values.todense() if sp.issparse(values) else values, dtype=np.float64).ravel()


if __name__ == "__main__":
    for make in PROBLEMS.values():
        print(make(DATA).describe(), flush=True)
