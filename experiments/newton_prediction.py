"""Is Newton a good predictor? Accuracy or R² on held-out rows, against other solvers with their defaults.

    python experiments/newton_prediction.py --data folder        # half an hour on two processors
    python experiments/newton_prediction.py --tables california,protein --fits 2
    python experiments/newton_prediction.py --quick              # seconds, needs no data

Replace-one, delta = 1/n², epsilon 0.1, 1 and 4, means of five fits (two of covtype), one split of 80 and 20 %
with seed 0. Dense tables are scaled by their declared ranges to [-1, 1]; tables of marks have rows of norm 1,
and Newton is told the range of an entry. Ranges of spambase and of the tables of uci_regression are the 99 %
quantiles of absolute values, rounded up to 1, 2 or 5 times a power of ten: a look at the records that is not
paid for, the same for all solvers. R² is of predictions cut to the declared range. Newton has no penalty, the
others that of `LogisticRegression` by default; regressions have none. r = 2.6 p^1.5 / (n mu) is the rule of
the defaults: where it is below 1, a metric from noisy second moments should pay.
"""

from __future__ import annotations

import argparse
import math
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from inference_tables import DATA, Vector, adult, california, draw
from inference_tables import Table as Declared
from outputs import write_csv

from dpglm import Bounds, LinearRegression, LogisticRegression
from dpglm.accounting import gaussian_mu
from dpglm.datasets import load_adult
from dpglm.errors import PrivacyWarning
from dpglm.solvers import Newton

EPSILONS = (0.1, 1.0, 4.0)
SOLVERS = (
    "newton", "gradient-descent", "objective-perturbation", "greedy-coordinate-descent", "coordinate-descent"
)  # fmt: skip
MANY, FEW = 200_000, 2
REGRESSIONS = ("protein", "pol", "elevators", "bike", "keggundirected")
COVTYPE = ((1500, 4000), (0, 360), (0, 90), (0, 1500), (-200, 700), (0, 7500), *[(0, 255)] * 3, (0, 7500))


@dataclass(frozen=True, eq=False)
class Table:
    """Records, and what is declared of them: to Newton a range, to the others a norm or a range."""

    X: Any
    y: Vector
    ranges: tuple[float, float]
    bounds: Bounds
    target: tuple[float, float] | None = None
    test: tuple[Any, Vector] | None = None


def _dense(table: Declared) -> Table:
    """A table scaled by its declared ranges."""
    X, y, target = table.scaled()[:, :-1], table.y, table.target
    if target is None:
        return Table(X, np.where(y > 0, 1.0, -1.0), (-1.0, 1.0), Bounds(feature=1.0))
    return Table(X, np.clip(y, *target), (-1.0, 1.0), Bounds(feature=1.0, target=target), target)


def _declared(X: Vector, y: Vector, low: Vector, high: Vector, target: tuple[float, float] | None) -> Table:
    return _dense(Declared(X, y, low, high, target, np.zeros(0)))


def _rounded_up(values: Vector) -> Vector:
    """The next of 1, 2 and 5 times a power of ten."""
    power = 10.0 ** np.floor(np.log10(values))
    return power * np.select([values <= power, values <= 2 * power, values <= 5 * power], [1, 2, 5], 10)


def _limits(X: Vector) -> Vector:
    return _rounded_up(np.maximum(np.quantile(np.abs(X), 0.99, axis=0), 1e-3))


def _covtype(data: Path) -> Table:
    with np.load(data / "covtype" / "data.npz", allow_pickle=False) as stored:
        marks = [np.eye(4)[stored["wilderness"]], np.eye(40)[stored["soil"]]]
        X, y = np.hstack([stored["numeric"], *marks]), stored["cover_type"] == 2
    low, high = np.array([*COVTYPE, *[(0, 1)] * 44], dtype=float).T
    return _declared(X, y.astype(float), low, high, None)


def _spambase(data: Path) -> Table:
    with np.load(data / "spambase" / "data.npz", allow_pickle=False) as stored:
        X, y = stored["X"].astype(float), stored["y"]
    return _declared(X, y.astype(float), np.zeros(X.shape[1]), _limits(X), None)


def _phishing(data: Path) -> Table:
    X = sp.csr_array(sp.load_npz(data / "phishing" / "X.npz")).toarray().astype(float)
    y = np.load(data / "phishing" / "y.npy", allow_pickle=False).astype(float)
    return Table(X, y, (0.0, 0.1826), Bounds(row_norm=1.0))


def _marked_adult(data: Path) -> Table:
    stored = load_adult()
    largest = float(abs(stored.X).max())
    test = stored.X_test.toarray(), stored.y_test
    return Table(stored.X.toarray(), stored.y, (0.0, largest), Bounds(row_norm=1.0), test=test)


def _regression(name: str) -> Callable[[Path], Table]:
    def load(data: Path) -> Table:
        with np.load(data / "uci_regression" / f"{name}.npz", allow_pickle=False) as stored:
            X, y = stored["X"].astype(float), stored["y"].astype(float)
        high, most = _limits(X), float(_limits(y[:, None])[0])
        return _declared(X, y, -high, high, (-most, most))

    return load


def _small(kind: str) -> Callable[[Path], Table]:
    return lambda data: _dense(draw(kind, "mixed", 2_000, 5, np.random.default_rng(0)))


TABLES: dict[str, Callable[[Path], Table]] = {
    "adult, 10 features": lambda data: _dense(adult(data)),
    "adult, marks": _marked_adult,
    "phishing": _phishing,
    "spambase": _spambase,
    "california": lambda data: _dense(california(data)),
    **{name: _regression(name) for name in REGRESSIONS},
    "covtype": _covtype,
}
QUICK = {f"small {kind}": _small(kind) for kind in ("logistic", "linear")}


@dataclass(frozen=True)
class Row:
    """Held-out accuracy or R² of one solver: mean and deviation of several fits."""

    table: str
    n: int
    p: int
    epsilon: float
    r: float
    solver: str
    score: float
    deviation: float
    passes: str
    seconds: float
    fits: int


def estimator(table: Table, solver: str, epsilon: float) -> Any:
    """The public estimator with default settings."""
    if solver == "newton":
        bounds = Bounds(feature=table.ranges, target=table.target)
        chosen: dict[str, Any] = {"solver": Newton(), "bounds": bounds}
    else:
        chosen = {"solver": solver, "bounds": table.bounds}
    if table.target is not None:
        return LinearRegression(epsilon=epsilon, **chosen)
    if solver == "newton":
        chosen["C"] = math.inf
    return LogisticRegression(epsilon=epsilon, classes=[-1.0, 1.0], **chosen)


def score(model: Any, table: Table, X: Any, y: Vector) -> float:
    """Accuracy, or R² of predictions cut to the declared range."""
    if table.target is None:
        return float(np.mean(model.predict(X) == y))
    left = y - np.clip(model.predict(X), *table.target)
    return float(1 - left @ left / np.sum((y - y.mean()) ** 2))


def split(table: Table) -> tuple[Any, Vector, Any, Vector]:
    """Rows for fits, and rows that are held out."""
    if table.test is not None:
        return table.X, table.y, *table.test
    order = np.random.default_rng(0).permutation(len(table.y))
    kept, held = np.split(order, [round(0.8 * len(order))])
    return table.X[kept], table.y[kept], table.X[held], table.y[held]


def run(name: str, table: Table, fits: int) -> list[Row]:
    """All solvers at all epsilons."""
    X, y, X_test, y_test = split(table)
    n, p = X.shape
    rows, exact = [], estimator(table, "newton", math.inf).fit(X, y)
    rows.append(
        Row(name, n, p, math.inf, 0.0, "not private", score(exact, table, X_test, y_test), 0, "", 0, 1)
    )
    for epsilon in EPSILONS:
        r = 2.6 * p**1.5 / (n * gaussian_mu(epsilon, 1 / n**2))
        for solver in SOLVERS:
            found, times = [], []
            for _ in range(fits):
                model, began = estimator(table, solver, epsilon), time.perf_counter()
                model.fit(X, y)
                times.append(time.perf_counter() - began)
                found.append(score(model, table, X_test, y_test))
            passes = model.plan_.passes
            figures = float(np.mean(found)), float(np.std(found)), "-" if passes is None else str(passes)
            rows.append(Row(name, n, p, epsilon, r, solver, *figures, min(times), fits))
    return rows


def as_markdown(rows: Sequence[Row]) -> str:
    """A line for each table and epsilon: score (seconds of a fit) of each solver, the best in bold."""
    words = [solver.replace("-", " ") for solver in SOLVERS]
    lines = [f"| table | n x p | not private | epsilon | r | {' | '.join(words)} |"]
    lines.append("|" + "---|" * (5 + len(SOLVERS)))
    for name in dict.fromkeys(row.table for row in rows):
        plain = next(row for row in rows if row.table == name and row.solver == "not private")
        for epsilon in EPSILONS:
            here = {row.solver: row for row in rows if (row.table, row.epsilon) == (name, epsilon)}
            best = max(row.score for row in here.values())
            shown = [
                f"{'**' if row.score == best else ''}{row.score:.3f}{'**' if row.score == best else ''} "
                f"({row.seconds:.2g} s)"
                for row in (here[solver] for solver in SOLVERS)
            ]
            first = f"| {name} | {plain.n:,} x {plain.p} | {plain.score:.3f} | {epsilon:g} | "
            lines.append(first + f"{here['newton'].r:.2g} | {' | '.join(shown)} |")
    return "\n".join(lines)


def main() -> None:
    """Run all tables that are there."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--tables", help="some of " + ", ".join(TABLES) + ", separated by semicolons")
    parser.add_argument("--fits", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--quick", action="store_true", help="seconds: two small drawn tables")
    given = parser.parse_args()
    warnings.simplefilter("ignore", PrivacyWarning)
    tables = QUICK if given.quick else TABLES
    if given.tables:
        tables = {name: tables[name] for name in given.tables.split(";")}
    rows: list[Row] = []
    for name, load in tables.items():
        try:
            table = load(given.data)
        except FileNotFoundError:
            print(f"No {name}: its file is not in {given.data}")
            continue
        found = run(name, table, 1 if given.quick else FEW if len(table.y) > MANY else given.fits)
        rows += found
        print(as_markdown(found), flush=True)
    if not rows:
        return
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / "newton_prediction.md").write_text(as_markdown(rows) + "\n")
    write_csv(rows, Row, given.out / "newton_prediction.csv")
    print(f"\n{as_markdown(rows)}")


if __name__ == "__main__":
    main()
