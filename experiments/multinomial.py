"""Several classes as one softmax model, beside one against the rest and beside scikit-learn's fit.

    python experiments/multinomial.py --data folder            # covtype with seven classes, and digits
    python experiments/multinomial.py --tables digits --fits 5
    python experiments/multinomial.py --quick                  # seconds, needs no data

Accuracy on held-out rows: the last fifth of a random order. A user gives epsilon, bounds and classes, nothing
else: replace-one, delta = 1/n². Both models are fitted in the same run by ``solver="auto"``. The fit that is
not private is scikit-learn's ``LogisticRegression`` with its defaults. Seconds are CPU time
of one BLAS thread, the least of all fits.

Goals, for covtype at epsilon 1: 3 points above one against the rest; within 2 points of the fit that is not
private; at most 3 times its time. The script says which are met.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from inference_tables import DATA
from outputs import write_csv
from prediction_tables import Table, cover_types, digits, score, split
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression as Plain
from threadpoolctl import threadpool_limits

from dpglm import LogisticRegression
from dpglm.errors import PrivacyWarning

EPSILONS = {"covtype": (0.01, 0.1, 1.0), "digits": (0.5, 1.0, 4.0), "small": (1.0,)}
ABOVE, BELOW, SLOWER = 3.0, 2.0, 3.0
TABLES: dict[str, Callable[[Path], Table]] = {"covtype": cover_types, "digits": digits}
MODELS: dict[str, dict[str, str]] = {
    "multinomial": {},
    "one against the rest": {"multi_class": "ovr"},
}


@dataclass(frozen=True)
class Row:
    """Held-out accuracy in percent: mean and deviation of several fits."""

    table: str
    n: int
    p: int
    classes: int
    epsilon: float
    model: str
    accuracy: float
    deviation: float
    solver: str
    seconds: float
    fits: int


def small(data: Path) -> Table:
    """The first 300 digits."""
    table = digits(data)
    return replace(table, X=table.X[:300], y=table.y[:300])


def run(name: str, table: Table, fits: int) -> list[Row]:
    """All models at all epsilons."""
    X, y, X_test, y_test = split(table)
    labels = np.unique(table.y)
    facts = name, *X.shape, len(labels)
    start = time.process_time()
    plain = Plain().fit(X, y)
    seconds = time.process_time() - start
    accuracy = 100 * score(plain, table, X_test, y_test)
    rows = [Row(*facts, float("inf"), "not private", accuracy, 0.0, "lbfgs", seconds, 1)]
    for epsilon in EPSILONS[name]:
        for words, settings in MODELS.items():
            estimator = LogisticRegression(epsilon, bounds=table.bounds, classes=labels, **settings)
            found, times = [], []
            for _ in range(fits):
                start = time.process_time()
                estimator.fit(X, y)
                times.append(time.process_time() - start)
                found.append(100 * score(estimator, table, X_test, y_test))
            figures = float(np.mean(found)), float(np.std(found)), estimator.plan_.solver
            rows.append(Row(*facts, epsilon, words, *figures, min(times), fits))
    return rows


def as_markdown(rows: Sequence[Row]) -> str:
    """A line for each table and epsilon."""
    lines = [f"| table | n x p | classes | not private | epsilon | {' | '.join(MODELS)} |"]
    lines.append("|" + "---|" * (5 + len(MODELS)))
    for name in dict.fromkeys(row.table for row in rows):
        plain = next(row for row in rows if row.table == name and row.model == "not private")
        for epsilon in EPSILONS[name]:
            here = [row for row in rows if (row.table, row.epsilon) == (name, epsilon)]
            shown = [f"{row.accuracy:.1f} ± {row.deviation:.1f} ({row.seconds:.2g} s)" for row in here]
            first = f"| {name} | {plain.n:,} x {plain.p} | {plain.classes} | {plain.accuracy:.1f} "
            lines.append(first + f"({plain.seconds:.2g} s) | {epsilon:g} | {' | '.join(shown)} |")
    return "\n".join(lines)


def verdicts(rows: Sequence[Row]) -> list[str]:
    """Which goals are met."""
    here = {row.model: row for row in rows if row.table == "covtype" and row.epsilon in (1.0, float("inf"))}
    if not here:
        return []
    ours, plain = here["multinomial"], here["not private"]
    above = ours.accuracy - here["one against the rest"].accuracy
    below, ratio = plain.accuracy - ours.accuracy, ours.seconds / plain.seconds
    return [
        f"{words}: {figure:.2f}, goal {goal:g}: {'met' if met else 'MISSED'}"
        for words, figure, goal, met in (
            ("points above one against the rest", above, ABOVE, above >= ABOVE),
            ("points below the fit that is not private", below, BELOW, below <= BELOW),
            ("times its CPU time", ratio, SLOWER, ratio <= SLOWER),
        )
    ]


def main() -> None:
    """Run all tables that are there."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--tables", help="some of " + ", ".join(TABLES) + ", separated by commas")
    parser.add_argument("--fits", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--quick", action="store_true", help="seconds: some digits")
    given = parser.parse_args()
    warnings.simplefilter("ignore", PrivacyWarning)
    warnings.simplefilter("ignore", ConvergenceWarning)
    tables = {"small": small} if given.quick else TABLES
    if given.tables:
        tables = {name: tables[name] for name in given.tables.split(",")}
    rows: list[Row] = []
    for name, load in tables.items():
        try:
            table = load(given.data)
        except FileNotFoundError:
            print(f"No {name}: its file is not in {given.data}")
            continue
        with threadpool_limits(1):
            rows += run(name, table, 1 if given.quick else given.fits)
        print(as_markdown([row for row in rows if row.table == name]), flush=True)
    if not rows:
        return
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / "multinomial.md").write_text(as_markdown(rows) + "\n")
    write_csv(rows, Row, given.out / "multinomial.csv")
    print("\n".join(verdicts(rows)))


if __name__ == "__main__":
    main()
