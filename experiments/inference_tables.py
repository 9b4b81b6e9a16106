"""Tables with known coefficients, and what a fit without noise says of them.

Features are correlated normal variables that are then bent: *uniform* over the declared range, *normal* (cut
at three deviations), *binary* (30, 50 or 70 % ones), *rare* (10 % ones) and *skewed* (log-normal, most of the
declared range is empty). The design "mixed" has these five in turn. Columns have units of their own, so that
ranges are not centred. Over ranges scaled to [-1, 1] slopes are (1, -0.6, 0.4, 0.3, 0) / sqrt(p / 5).
"""

from __future__ import annotations

import csv
import gzip
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, ndtr, ndtri

from dpglm import Bounds

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
SHARED = 0.3
"""Correlation of any two of the normal variables that features are made of."""
SLOPES = (1.0, -0.6, 0.4, 0.3, 0.0)
INTERCEPT, RARE = -0.7, -3.15
"""Intercepts, over scaled ranges, that give 29 and 4 % ones."""
LINEAR_SIZE, LINEAR_INTERCEPT, DEVIATION = 0.25, 0.05, 0.15
TARGETS = (0.0, 200.0)

Vector = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Table:
    """Records with their declared ranges, and the coefficients that intervals should cover.

    Attributes
    ----------
    target : (float, float) or None
        Range of the targets of a regression; None for labels.
    truth : array
        Slopes, then the intercept.
    """

    X: Vector
    y: Vector
    low: Vector
    high: Vector
    target: tuple[float, float] | None
    truth: Vector

    def scaled(self) -> Vector:
        """Features over their declared ranges, in [-1, 1], then the constant 1."""
        middle, half = (self.low + self.high) / 2, (self.high - self.low) / 2
        cut = np.clip(self.X, self.low, self.high)
        return np.column_stack([(cut - middle) / half, np.ones(len(self.X))])

    def bounds(self) -> Bounds:
        """What is declared of the table."""
        return Bounds(feature=(self.low, self.high), target=self.target)

    @property
    def units(self) -> Vector:
        """The matrix that takes coefficients of scaled features to those of the columns."""
        return units(self.low, self.high)


def units(low: Vector, high: Vector) -> Vector:
    """The matrix that takes coefficients of scaled features, intercept last, to those of the columns."""
    middle, half = (low + high) / 2, (high - low) / 2
    matrix = np.diag(np.append(1 / half, 1.0))
    matrix[-1, :-1] = -middle / half
    return matrix


def _uniform(z: Vector, j: int) -> Vector:
    return 100 * ndtr(z)


def _normal(z: Vector, j: int) -> Vector:
    return np.clip(z, -3, 3)


def _binary(z: Vector, j: int) -> Vector:
    return (z > ndtri((0.5, 0.7, 0.3)[j % 3])).astype(float)


def _rare(z: Vector, j: int) -> Vector:
    return (z > ndtri(0.9)).astype(float)


def _skewed(z: Vector, j: int) -> Vector:
    return np.minimum(1 + 3 * np.exp(0.7 * z), 20)


Bend = Callable[[Vector, int], Vector]
RANGES: dict[Bend, tuple[float, float]] = {
    _uniform: (0, 100), _normal: (-3, 3), _binary: (0, 1), _rare: (0, 1), _skewed: (0, 20)
}  # fmt: skip
DESIGNS: dict[str, tuple[Bend, ...]] = {
    "mixed": (_uniform, _normal, _binary, _rare, _skewed),
    "uniform": (_uniform,),
    "normal": (_normal,),
    "binary": (_binary,),
}


def _errors(law: str, first: Vector, rng: np.random.Generator) -> Vector:
    """Errors of a regression, of mean 0; ``first`` is the first feature over its range."""
    n = len(first)
    if law == "t3":
        return rng.standard_t(3, n) / math.sqrt(3)
    if law == "skewed":
        return rng.exponential(1.0, n) - 1
    normal = rng.standard_normal(n)
    return normal * (0.4 + 1.2 * np.abs(first)) if law == "spread" else normal


def draw(kind: str, design: str, n: int, p: int, rng: np.random.Generator, law: str = "normal") -> Table:
    """Records of a model that holds; ``law`` is that of the errors, or "rare" for 4 % ones."""
    bends = [DESIGNS[design][j % len(DESIGNS[design])] for j in range(p)]
    z = math.sqrt(1 - SHARED) * rng.standard_normal((n, p)) + math.sqrt(SHARED) * rng.standard_normal((n, 1))
    X = np.column_stack([bend(z[:, j], j) for j, bend in enumerate(bends)])
    low, high = np.array([RANGES[bend] for bend in bends], dtype=float).T
    slopes = np.array([SLOPES[j % 5] for j in range(p)]) / math.sqrt(p / 5)
    rows = Table(X, X[:, 0], low, high, None, slopes).scaled()
    if kind == "logistic":
        w = np.append(slopes, RARE if law == "rare" else INTERCEPT)
        y = (rng.random(n) < expit(rows @ w)).astype(float)
        return Table(X, y, low, high, None, units(low, high) @ w)
    size = LINEAR_SIZE * min(1.0, math.sqrt(10 / p))  # targets stay within their range
    w = np.append(size * slopes, LINEAR_INTERCEPT)
    middle, half = (TARGETS[0] + TARGETS[1]) / 2, (TARGETS[1] - TARGETS[0]) / 2
    y = middle + half * (rows @ w + DEVIATION * _errors(law, rows[:, 0], rng))
    truth = units(low, high) @ (half * w)
    truth[-1] += middle
    return Table(X, y, low, high, TARGETS, truth)


@cache
def adult(data: Path) -> Table:
    """Ten features of the 48,842 records of Adult, and the fit of the whole table."""
    rows, labels = [], []
    for part in ("train", "test"):
        with gzip.open(data / "adult_raw" / f"adult_{part}.csv.gz", "rt") as file:
            for stored in csv.DictReader(file):
                one = {name: value.strip() for name, value in stored.items()}
                numbers = [float(one[name]) for name in ("age", "education_num", "hours_per_week")]
                marks = (
                    one["sex"] == "Male", one["marital_status"] == "Married-civ-spouse",
                    one["race"] == "White", float(one["capital_gain"]) > 0, float(one["capital_loss"]) > 0,
                    one["workclass"] == "Private", one["native_country"] == "United-States",
                )  # fmt: skip
                rows.append([*numbers, *marks])
                labels.append(one["income"].startswith(">50K"))
    low, high = np.array([17.0, 1, 1] + [0] * 7), np.array([90.0, 16, 99] + [1] * 7)
    table = Table(np.array(rows, dtype=float), np.array(labels, dtype=float), low, high, None, np.zeros(11))
    return Table(table.X, table.y, low, high, None, plain(table).values)


@cache
def california(data: Path) -> Table:
    """Seven features of the 20,640 districts of California housing, and the fit of the whole table."""
    with np.load(data / "california_housing" / "data.npz", allow_pickle=False) as stored:
        raw, y = stored["X"], stored["y"]
    a_household = [raw[:, 3] / raw[:, 6], raw[:, 4] / raw[:, 3], raw[:, 5] / raw[:, 6]]
    X = np.column_stack([raw[:, :3], *a_household, raw[:, 7]])
    low, high = np.array([-125.0, 32, 0, 0, 0, 0, 0]), np.array([-114.0, 42, 52, 15, 1, 10, 15])
    table = Table(X, y, low, high, (0.0, 500_000.0), np.zeros(8))
    return Table(X, y, low, high, table.target, plain(table).values)


def resampled(table: Table, n: int, rng: np.random.Generator) -> Table:
    """Draw n records with replacement."""
    kept = rng.integers(len(table.X), size=n)
    return Table(table.X[kept], table.y[kept], table.low, table.high, table.target, table.truth)


@dataclass(frozen=True, eq=False)
class Plain:
    """A fit without noise, in the units of the columns: coefficients and two kinds of standard errors."""

    values: Vector
    errors: Vector
    robust: Vector


def plain(table: Table) -> Plain:
    """Maximum likelihood or least squares; standard errors of the model, and of the sandwich."""
    rows, matrix = table.scaled(), table.units
    if table.target is None:
        w = np.zeros(rows.shape[1])
        for _ in range(50):
            chance = expit(rows @ w)
            hessian = (rows * (chance * (1 - chance))[:, None]).T @ rows
            step = np.linalg.solve(hessian, rows.T @ (table.y - chance))
            w += step * min(1.0, 4 / np.abs(step).max())
            if np.abs(step).max() < 1e-10:
                break
        residual, variance = table.y - expit(rows @ w), 1.0
    else:
        y = np.clip(table.y, *table.target)
        hessian = rows.T @ rows
        w = np.linalg.solve(hessian, rows.T @ y)
        residual = y - rows @ w
        variance = float(residual @ residual) / (len(rows) - rows.shape[1])
    inverse = np.linalg.inv(hessian)
    meat = (rows * (residual**2)[:, None]).T @ rows

    def errors(covariance: Vector) -> Vector:
        return np.sqrt(np.diagonal(matrix @ covariance @ matrix.T))

    return Plain(matrix @ w, errors(variance * inverse), errors(inverse @ meat @ inverse))
