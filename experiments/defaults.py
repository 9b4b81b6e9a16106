"""Default fits on every table: `auto` beside all other solvers, its regret, passes and seconds.

    python experiments/defaults.py --data folder               # within an hour on two processors
    python experiments/defaults.py --tables "california;bike" --fits 2
    python experiments/defaults.py --figure                    # and a picture of regret
    python experiments/defaults.py --quick                     # seconds, needs no data

On held-out rows: accuracy, AUC, log loss and calibration of labels, R² of numbers. A user gives epsilon (0.1,
1, 4) and bounds, nothing else: replace-one, delta = 1/n². Tables, bounds and splits are those of
`prediction_tables`; predictions of regressions are cut to the declared range by `predict`. Figures are means
of five fits with standard errors. Above 20,000 features the solvers other than `auto` have two fits, above
200,000 records or 1,000,000 features all have. Seconds are CPU time, the least of all fits.

How the constants of the defaults were chosen: tables were split beforehand into *tuning* and *test* tables.
Constants come from the tuning tables alone, from an inner split of 80 and 20 % (seed 1) of their training
rows, so the test rows of no table were looked at. imdb counts as tuning since its inner split decided one
constant, the longest step of gradient descent on wide tables. elevators, protein, spambase and mushrooms do
since their inner splits were looked at when rows began to be moved by their mean.

The goals of regressions come from another split, with the first fifth of the same random order held out
instead of the last: with it, and with these ranges, R² of fits without noise differs by at most 0.003 from
what is stated beside the goals. `--first` holds it out here. Then test rows of tuning tables are rows that
constants were chosen on.

Classifications are `LogisticRegression` with its default penalty, regressions `LinearRegression`; dual
coordinate descent, which needs an L2 penalty, fits `Ridge`. By public numbers these are left out: above 1,000
features Newton and preconditioned descent (matrices) and coordinate descent, above 100,000 features objective
perturbation, above 200,000 records dual coordinate descent (minutes a fit). Frank-Wolfe needs a radius and
output perturbation a strong penalty, which no default gives.

Regret of `auto` is, for each score, how much better the mean of the best other solver is. It may be one
standard error, or 0.3 points of accuracy and AUC, 0.01 of R² and log loss. A solver with the same plan is the
same fit and no other solver: its column says so, and it is not run again. Calibration is the slope and the
intercept of the regression of labels on the logits of their probabilities, and the expected calibration error
in ten bins of equal count.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import adassp
import numpy as np
from defaults_report import Row, as_markdown, draw_regret, verdicts
from outputs import write_csv
from prediction_scores import scores
from prediction_tables import (
    Table,
    covtype,
    districts,
    imdb,
    marked_adult,
    melting_points,
    mushrooms,
    news20,
    phishing,
    rcv1,
    regression,
    small,
    spambase,
    split,
)
from sklearn import linear_model
from table_runs import Load, loaded, parser_of

from dpglm import LinearRegression, LogisticRegression, Ridge
from dpglm.errors import PrivacyWarning
from dpglm.solvers import Newton

EPSILONS = (0.1, 1.0, 4.0)
SOLVERS = (
    "gradient-descent", "preconditioned-descent", "newton", "coordinate-descent",
    "greedy-coordinate-descent", "dual-coordinate-descent", "objective-perturbation",
)  # fmt: skip
PUBLISHED = {"AdaSSP": 1, "BoostedAdaSSP": 10}
"""Rounds of each."""
MOST_FEATURES = {
    "preconditioned-descent": 1_000, "newton": 1_000, "coordinate-descent": 1_000,
    "objective-perturbation": 100_000,
}  # fmt: skip
MOST_RECORDS = {"dual-coordinate-descent": 200_000}
WIDE, FEW = 20_000, 2
"""From so many features on, few fits of solvers other than `auto`."""
HUGE = (200_000, 1_000_000)
"""From so many records or features on, few fits of all."""

TUNING: dict[str, Load] = {
    "california": districts,
    "bike": regression("bike"),
    "pol": regression("pol"),
    "mtp": melting_points(random=False),
    "mtp, random split": melting_points(random=True),
    "phishing": phishing,
    "a9a": marked_adult,
    "rcv1": rcv1,
    "imdb": imdb,
    "elevators": regression("elevators"),
    "protein": regression("protein"),
    "spambase": spambase,
    "mushrooms": mushrooms,
}
TEST: dict[str, Load] = {
    "keggundirected": regression("keggundirected"),
    "covtype": covtype,
    "news20": news20,
}
QUICK: dict[str, Load] = {f"small {kind}": small(kind) for kind in ("logistic", "linear")}


def estimator(table: Table, solver: str, epsilon: float) -> Any:
    """The public estimator with default settings."""
    chosen: dict[str, Any] = {"epsilon": epsilon, "bounds": table.bounds, "solver": solver}
    if solver == "newton":
        chosen["solver"] = Newton(intervals=False)  # with the default penalty, as `auto` takes it
    if table.target is not None:
        return (Ridge if solver == "dual-coordinate-descent" else LinearRegression)(**chosen)
    return LogisticRegression(classes=[-1.0, 1.0], **chosen)


def is_left_out(solver: str, n: int, p: int) -> bool:
    """The public rule: too many features or records for this solver."""
    return p > MOST_FEATURES.get(solver, p) or n > MOST_RECORDS.get(solver, n)


def _rows(
    head: tuple[Any, ...], found: Sequence[dict[str, float]], passes: str, seconds: float, chosen: str = ""
) -> Iterator[Row]:
    """The mean of each score over several fits."""
    k = len(found)
    for kind in found[0]:
        values = [scores[kind] for scores in found]
        error = float(np.std(values, ddof=1) / np.sqrt(k)) if k > 1 else float("nan")
        yield Row(*head, kind, float(np.mean(values)), error, passes, seconds, k, chosen)


def run(name: str, group: str, table: Table, fits: int, first: bool) -> Iterator[Row]:
    """All solvers at all epsilons."""
    X, y, X_test, y_test = split(table, first)
    n, p = X.shape
    facts = (name, group, n, p)
    labels = table.target is None
    plain = linear_model.LogisticRegression(max_iter=1000) if labels else linear_model.LinearRegression()
    began = time.process_time()
    plain.fit(X, y)
    found, seconds = [scores(plain, table, X_test, y_test)], time.process_time() - began
    yield from _rows((*facts, np.inf, "not private"), found, "", seconds)
    for epsilon in EPSILONS:
        automatic = estimator(table, "auto", epsilon).plan(n, p)
        for solver in ("auto", *SOLVERS):
            if is_left_out(solver, n, p):
                continue
            if solver != "auto" and estimator(table, solver, epsilon).plan(n, p) == automatic:
                continue
            few = n > HUGE[0] or p > HUGE[1] or (p > WIDE and solver != "auto")
            found, times = [], []
            for _ in range(min(fits, FEW) if few else fits):
                model, began = estimator(table, solver, epsilon), time.process_time()
                model.fit(X, y)
                times.append(time.process_time() - began)
                found.append(scores(model, table, X_test, y_test))
            passes = "-" if model.plan_.passes is None else str(model.plan_.passes)
            chosen = model.plan_.solver if solver == "auto" else ""
            yield from _rows((*facts, epsilon, solver), found, passes, min(times), chosen)
        if labels:
            continue
        for solver, rounds in PUBLISHED.items():
            found, began = [], time.process_time()
            for seed in range(fits):
                fitted = adassp.fit(X, y, table.target, epsilon, rounds, np.random.default_rng(seed))
                found.append(scores(fitted, table, X_test, y_test))
            seconds = (time.process_time() - began) / fits
            yield from _rows((*facts, epsilon, solver), found, str(rounds + 1), seconds)


def main() -> None:
    """Run all tables that are there."""
    parser = parser_of(__doc__, TUNING | TEST)
    parser.add_argument("--figure", action="store_true", help="draw regret by table (needs matplotlib)")
    parser.add_argument("--first", action="store_true", help="hold out the first fifth, not the last")
    given = parser.parse_args()
    warnings.simplefilter("ignore", PrivacyWarning)
    given.out.mkdir(parents=True, exist_ok=True)
    began, rows = time.perf_counter(), list[Row]()
    for name, table in loaded(QUICK if given.quick else TUNING | TEST, given):
        group = "drawn" if given.quick else "tuning" if name in TUNING else "test"
        rows += run(name, group, table, 1 if given.quick else given.fits, given.first)
        write_csv(rows, Row, given.out / "defaults.csv")
        print(f"{name}: {time.perf_counter() - began:.0f} s since the start", flush=True)
    if not rows:
        return
    report = f"{as_markdown(rows, SOLVERS, tuple(PUBLISHED))}\n\n{verdicts(rows, SOLVERS, tuple(PUBLISHED))}"
    (given.out / "defaults.md").write_text(report + "\n")
    print(f"\n{report}")
    if given.figure:
        draw_regret(rows, SOLVERS, given.out / "defaults.png")


if __name__ == "__main__":
    main()
