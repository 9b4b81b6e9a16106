"""Is Newton a good predictor? Accuracy or R² on held-out rows, against other solvers with their defaults.

    python experiments/newton_prediction.py --data folder        # half an hour on two processors
    python experiments/newton_prediction.py --tables california,protein --fits 2
    python experiments/newton_prediction.py --quick              # seconds, needs no data

Replace-one, delta = 1/n², epsilon 0.1, 1 and 4, means of five fits (two of covtype), one split of 80 and 20 %
with seed 0. Tables and what is declared of them are those of `prediction_tables`; on tables of marks Newton
is told the range of an entry. R² is of predictions cut to the declared range. Newton has no penalty, the
others that of `LogisticRegression` by default; regressions have none. r = 2.6 p^1.5 / (n mu) is the rule of
the defaults: where it is below 1, a metric from noisy second moments should pay.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from inference_tables import adult, california
from outputs import write_csv
from prediction_tables import (
    REGRESSIONS,
    Table,
    covtype,
    dense,
    marked_adult,
    phishing,
    regression,
    score,
    small,
    spambase,
    split,
)
from table_runs import loaded, parser_of

from dpglm import Bounds, LinearRegression, LogisticRegression
from dpglm.accounting import gaussian_mu
from dpglm.errors import PrivacyWarning
from dpglm.solvers import Newton

EPSILONS = (0.1, 1.0, 4.0)
SOLVERS = (
    "newton", "gradient-descent", "objective-perturbation", "greedy-coordinate-descent", "coordinate-descent"
)  # fmt: skip
MANY, FEW = 200_000, 2

TABLES: dict[str, Callable[[Path], Table]] = {
    "adult, 10 features": lambda data: dense(adult(data)),
    "adult, marks": marked_adult,
    "phishing": phishing,
    "spambase": spambase,
    "california": lambda data: dense(california(data)),
    **{name: regression(name) for name in REGRESSIONS},
    "covtype": covtype,
}
QUICK = {f"small {kind}": small(kind) for kind in ("logistic", "linear")}


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
        chosen: dict[str, Any] = {"solver": Newton(intervals=False), "bounds": bounds}
    else:
        chosen = {"solver": solver, "bounds": table.bounds}
    if table.target is not None:
        return LinearRegression(epsilon=epsilon, **chosen)
    if solver == "newton":
        chosen["C"] = math.inf
    return LogisticRegression(epsilon=epsilon, classes=[-1.0, 1.0], **chosen)


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
    given = parser_of(__doc__, TABLES).parse_args()
    warnings.simplefilter("ignore", PrivacyWarning)
    rows: list[Row] = []
    for name, table in loaded(QUICK if given.quick else TABLES, given):
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
