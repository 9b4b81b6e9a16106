"""The problems of "Differentially Private Stochastic Coordinate Descent", with their tables split and scaled.

Damaskinos, Mendler-Duenner, Guerraoui, Papandreou and Parnell fit ridge regression to YearPredictionMSD,
logistic regression to phishing and a linear SVM to Adult. Sizes, strengths and preparation are in an
appendix that their text does not contain. Chosen here:

- YearPredictionMSD is not at hand. california_housing and mtp_melting_point stand in for it, so no figure of
  the ridge problems can be set beside a published one.
- Their columns are standardised by statistics of the training rows, which count as public, and a constant
  column of ones is added. Targets are scaled linearly from a declared range to [-1, 1].
- Every row is then divided by its own norm; nothing else is known of a row, and there is no intercept.
- A part of the training rows is set aside for validation, with a fixed seed; Adult has test rows of its own.
- The strength of the L2 penalty is the strongest power of ten whose score on the validation rows, without
  noise, is within one standard error of the best. All methods have the same.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.svm import LinearSVC

from dpglm import Bounds, Budget, Neighbours
from dpglm.curator import Curator
from dpglm.data import Records, as_data
from dpglm.datasets import load_adult
from dpglm.losses import Hinge, Logistic, Loss, Squared
from dpglm.mechanisms import Randomness
from dpglm.penalties import L2
from dpglm.problem import Problem
from dpglm.solvers import DualCoordinateDescent

Vector = NDArray[np.float64]

DELTA = 1e-3
NEIGHBOURS = Neighbours.ZERO_OUT
DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
STRENGTHS = tuple(10.0**k for k in range(-6, 1))
SPLIT_SEED = 0
VALIDATION, TEST = 0.2, 0.2


@dataclass(frozen=True, eq=False)
class Part:
    """Rows of unit norm with their targets."""

    X: Any
    y: Vector


@dataclass(frozen=True, eq=False)
class Task:
    """A problem with its training, validation and test rows."""

    name: str
    loss: Loss
    strength: float
    train: Part
    validation: Part
    test: Part

    @property
    def regression(self) -> bool:
        return isinstance(self.loss, Squared)

    @property
    def metric(self) -> str:
        return "MSE" if self.regression else "accuracy"

    @property
    def shape(self) -> tuple[int, int]:
        return self.train.X.shape

    @cached_property
    def problem(self) -> Problem:
        bounds = Bounds(row_norm=1.0, target=(-1.0, 1.0) if self.regression else None)
        return Problem(self.loss, L2(self.strength), bounds, fit_intercept=False)

    @cached_property
    def records(self) -> Records:
        return as_data(self.train.X, self.train.y, self.problem.bounds)

    @cached_property
    def optimum(self) -> Vector:
        """The exact minimiser."""
        n, p = self.shape
        solver = DualCoordinateDescent()
        plan = solver.plan(self.problem, n, p, Budget(math.inf, DELTA), NEIGHBOURS)
        return solver.run(plan, self.problem, self.curator(0)).w

    def curator(self, seed: int) -> Curator:
        return Curator(self.records, NEIGHBOURS, Randomness(seed))

    def objective(self, w: Vector) -> float:
        return float(self.loss.value(self.train.X @ w, self.train.y).mean() + self.problem.penalty.value(w))

    def costs(self, w: Vector, part: Part) -> Vector:
        """Squared error, or whether the sign is wrong, of each row."""
        z = part.X @ w
        return np.square(z - part.y) if self.regression else (z * part.y <= 0).astype(np.float64)

    def score(self, w: Vector, part: Part) -> float:
        """Mean squared error, or accuracy in percent."""
        if not np.isfinite(w).all():
            return math.inf if self.regression else 0.0
        cost = float(self.costs(w, part).mean())
        return cost if self.regression else 100 * (1 - cost)

    def better(self, one: float, other: float) -> bool:
        return one < other if self.regression else one > other

    def describe(self) -> str:
        n, p = self.shape
        zero = self.score(np.zeros(p), self.test)
        alone = 100 * max((self.test.y > 0).mean(), (self.test.y < 0).mean())
        plain = f"of w = 0 {zero:.4f}" if self.regression else f"of the larger class {alone:.1f}"
        return (
            f"{self.name}: {self.loss.name}, {n:,} x {p} for training, "
            f"{len(self.validation.y):,} for validation, {len(self.test.y):,} for testing; "
            f"strength {self.strength:g}; test {self.metric} {self.score(self.optimum, self.test):.4f} "
            f"without noise, {plain}"
        )


def strongest(task: Task) -> Task:
    """The task with the strongest penalty within one standard error of the best on validation."""
    means, errors = [], []
    for strength in STRENGTHS:
        costs = task.costs(_minimised(task, strength), task.validation)
        means.append(float(costs.mean()))
        errors.append(float(costs.std() / math.sqrt(len(costs))))
    best = int(np.argmin(means))
    kept = [s for s, mean in zip(STRENGTHS, means, strict=True) if mean <= means[best] + errors[best]]
    return replace(task, strength=max(kept))


def _minimised(task: Task, strength: float) -> Vector:
    """By scikit-learn, which is fast enough for weak penalties too."""
    n, exactly = len(task.train.y), {"fit_intercept": False, "max_iter": 2_000}
    if task.regression:
        model = Ridge(alpha=strength * n, fit_intercept=False)
    elif isinstance(task.loss, Logistic):
        model = LogisticRegression(C=1 / (strength * n), **exactly)
    else:
        model = LinearSVC(C=1 / (strength * n), loss="hinge", random_state=0, **exactly)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(task.train.X, task.train.y).coef_.ravel()


def split(X: Any, y: Vector, share: float, seed: int = SPLIT_SEED) -> tuple[Part, Part]:
    """Most rows, and a share of them that is set aside."""
    order = np.random.default_rng(seed).permutation(len(y))
    aside = round(share * len(y))
    return Part(X[order[aside:]], y[order[aside:]]), Part(X[order[:aside]], y[order[:aside]])


def regression(name: str, X: Vector, y: Vector, low: float, high: float) -> Task:
    """Standardised columns and ones, targets from [low, high] to [-1, 1], rows of unit norm."""
    rest, test = split(X, 2 * (np.clip(y, low, high) - low) / (high - low) - 1, TEST)
    train, validation = split(rest.X, rest.y, VALIDATION, SPLIT_SEED + 1)
    mean, deviation = train.X.mean(axis=0), train.X.std(axis=0)

    def prepared(part: Part) -> Part:
        columns = (part.X - mean) / np.where(deviation > 0, deviation, 1.0)
        return Part(unit_rows(np.column_stack([columns, np.ones(len(part.y))])), part.y)

    return strongest(Task(name, Squared(), 1.0, prepared(train), prepared(validation), prepared(test)))


def california(data: Path) -> Task:
    with np.load(data / "california_housing" / "data.npz", allow_pickle=False) as stored:
        return regression("california", stored["X"].astype(np.float64), stored["y"], 0.0, 500_001.0)


def melting(data: Path) -> Task:
    with np.load(data / "mtp_melting_point" / "data.npz", allow_pickle=False) as stored:
        return regression("mtp", stored["X"].astype(np.float64), stored["y"], 0.0, 400.0)


def phishing(data: Path) -> Task:
    X = sp.load_npz(data / "phishing" / "X.npz").astype(np.float64).tocsr()
    rest, test = split(X, np.load(data / "phishing" / "y.npy").astype(np.float64), TEST)
    train, validation = split(rest.X, rest.y, VALIDATION, SPLIT_SEED + 1)
    return strongest(Task("phishing", Logistic(), 1.0, *(_unit(part) for part in (train, validation, test))))


def adult(loss: Loss | None = None) -> Task:
    """Shipped with dpglm."""
    table = load_adult()
    train, validation = split(sp.csr_array(table.X), _signs(table.y), VALIDATION, SPLIT_SEED + 1)
    test = Part(sp.csr_array(table.X_test), _signs(table.y_test))
    return strongest(
        Task("adult", loss or Hinge(), 1.0, *(_unit(part) for part in (train, validation, test)))
    )


def drawn(name: str, loss: Loss, n: int = 600, p: int = 5) -> Task:
    """A small random table."""
    rng = np.random.default_rng(0)
    X, w = rng.standard_normal((n, p)), rng.standard_normal(p)
    z = X @ w / np.linalg.norm(w)
    y = np.clip(z / 4 + 0.1 * rng.standard_normal(n), -1, 1) if isinstance(loss, Squared) else np.sign(z)
    rest, test = split(unit_rows(X), y, TEST)
    train, validation = split(rest.X, rest.y, VALIDATION, SPLIT_SEED + 1)
    return strongest(Task(name, loss, 1.0, train, validation, test))


def unit_rows(X: Any) -> Any:
    """Every row divided by its own norm."""
    if sp.issparse(X):
        norms = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
        return (sp.diags_array(1 / np.where(norms > 0, norms, 1.0)) @ X).tocsr()
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def _signs(y: NDArray[Any]) -> Vector:
    return np.where(y == y.max(), 1.0, -1.0)


def _unit(part: Part) -> Part:
    return Part(unit_rows(part.X), part.y)


PROBLEMS: dict[str, Callable[[Path], Task]] = {
    "california": california,
    "mtp": melting,
    "phishing": phishing,
    "adult": lambda data: adult(),
}
QUICK: dict[str, Callable[[Path], Task]] = {
    "ridge_small": lambda data: drawn("ridge_small", Squared()),
    "logistic_small": lambda data: drawn("logistic_small", Logistic()),
    "hinge_small": lambda data: drawn("hinge_small", Hinge()),
}


if __name__ == "__main__":
    for make in PROBLEMS.values():
        print(make(DATA).describe(), flush=True)
