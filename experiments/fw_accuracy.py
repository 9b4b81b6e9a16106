"""Accuracy, AUC and sparsity of private Frank-Wolfe on sparse tables, with its defaults and as published.

Epsilon 0.1, 1 and 10, delta 1/n², replace-one, five seeds; gradient descent and greedy coordinate
descent with their defaults and the same bounds beside it. The radius is the same for all tables, and others
are shown, so that nothing is tuned on the tables.

    python experiments/fw_accuracy.py                    # all tables
    python experiments/fw_accuracy.py --tables rcv1,a9a  # minutes
    python experiments/fw_accuracy.py --published        # Table 4; --share 1 draws tables of the full size
    python experiments/fw_accuracy.py --quick            # seconds, too small to mean anything

Tables (--data): imdb and news20 start from counts, as log(1 + count), which looks at one record at a time.
RCV1 comes weighted by inverse document frequencies, which were computed from its records and not paid for.
All rows, of tests too, are cut to norm 1. dorothea is tested on its validation rows. Of url, webspam and
kdda, which are too large to ship, there are tables drawn at random (fw_tables.py) with all their columns and
a share of their rows (--share); labels follow 100 columns. A fifth of the rows is for tests.

Table 4 of Raff, Khanna and Lu, "Scaling Up Differentially Private LASSO Regularized Logistic Regression via
Faster Frank-Wolfe Iterations", has epsilon 0.1, radius 5,000 and 400,000 steps. That is not a private result:
the noise makes the choice of the feature nearly uniform, and the sign of its exact gradient is released in
the clear at every step. --published shows it in two ways, neither of which has a finite epsilon: "as
published" has the printed weights exp(scale |sum_j|), "free signs" draws features uniformly, by no look at
the records. "signs paid" has the same steps and radius with the sign selected, too, at the price that holds,
and "defaults" the number of steps that dpglm takes.
"""

from __future__ import annotations

import argparse
import csv
import math
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fw_tables
import numpy as np
import scipy.sparse as sp
from scipy.special import expit
from sklearn import linear_model
from sklearn.metrics import roc_auc_score

from dpglm import Bounds, LogisticRegression
from dpglm.errors import PrivacyWarning
from dpglm.penalties import L1Ball
from dpglm.solvers import FrankWolfe, GradientDescent, GreedyCoordinateDescent

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
BOUNDS = Bounds(row_norm=1.0)
RADIUS = 20.0
RADII = (5.0, RADIUS, 50.0)
EPSILONS = (0.1, 1.0, 10.0)
SEEDS = range(5)
PUBLISHED_STEPS, PUBLISHED_RADIUS, PUBLISHED_EPSILON = 400_000, 5_000.0, 0.1
PUBLISHED = {
    "rcv1": (90.53, 97.29, 5.81),
    "news20": (92.37, 98.65, 75.19),
    "url": (73.23, 82.60, 89.44),
    "webspam": (75.42, 92.51, 99.90),
    "kdda": (85.25, 53.31, 85.30),
}
"""Accuracy, AUC and share of zeros in percent."""
Row = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Table:
    """Rows to fit and rows to test, all inside the bounds."""

    X: Any
    y: Any
    X_test: Any
    y_test: Any


def cut(X: Any) -> Any:
    """The table with rows of norm at most 1."""
    norms = np.sqrt(np.bincount(np.repeat(np.arange(X.shape[0]), np.diff(X.indptr)), X.data**2, X.shape[0]))
    return sp.csr_array(sp.diags_array(1 / np.maximum(norms, 1.0)) @ X)


def stored(folder: Path, test: str = "test", counts: str = "X") -> Table:
    """A table that comes in two parts."""
    parts = []
    for part in ("train", test):
        X = sp.csr_array(sp.load_npz(folder / f"{counts}_{part}.npz")).astype(np.float64)
        if counts == "counts":
            X.data = np.log1p(X.data)
        parts += [cut(X), np.load(folder / f"y_{part}.npy").astype(np.float64)]
    return Table(*parts)


def news20(folder: Path) -> Table:
    """Four fifths of the rows to fit."""
    X = sp.csr_array(sp.load_npz(folder / "counts.npz")).astype(np.float64)
    X.data = np.log1p(X.data)
    return split(X, np.load(folder / "y.npy").astype(np.float64))


def split(X: Any, y: Any) -> Table:
    X = cut(X)
    order = np.random.default_rng(0).permutation(len(y))
    train, test = np.split(order, [len(y) * 4 // 5])
    return Table(X[train], y[train], X[test], y[test])


TABLES: dict[str, Callable[[Path], Table]] = {
    "rcv1": lambda data: stored(data / "rcv1_binary"),
    "imdb": lambda data: stored(data / "imdb_unigrams", counts="counts"),
    "news20": lambda data: news20(data / "news20_binary"),
    "dorothea": lambda data: stored(data / "dorothea", test="valid"),
    "a9a": lambda data: stored(data / "a9a"),
}


def drawn(name: str, share: float) -> Table:
    """A table of a published shape with a share of its rows; the last fifth is for tests."""
    shape = fw_tables.SHAPES[name]
    X, y = fw_tables.make(shape, rows=round(share * shape.n))
    fit = len(y) * 4 // 5
    return Table(X[:fit], y[:fit], X[fit:], y[fit:])


def tiny() -> Table:
    """A random table, for --quick."""
    rng = np.random.default_rng(0)
    X = sp.random_array((1_000, 50), density=0.2, format="csr", rng=rng)
    return split(X, np.where(X @ rng.standard_normal(50) > 0, 1.0, -1.0))


def scored(table: Table, w: Any, intercept: float = 0.0) -> Row:
    """Accuracy, AUC, and the share of coefficients that are 0."""
    margins = table.X_test @ w + intercept
    return {
        "accuracy": float(np.mean(np.where(margins > 0, 1, -1) == table.y_test)),
        "AUC": float(roc_auc_score(table.y_test, margins)),
        "zeros": float(np.mean(w == 0)),
    }


def models() -> dict[str, dict[str, Any]]:
    """What is compared, as arguments of the estimator."""
    wolfes = {
        f"Frank-Wolfe, radius {radius:g}": {"penalty": L1Ball(radius), "solver": FrankWolfe()}
        for radius in RADII
    }
    others = {"gradient descent": GradientDescent(), "greedy coordinate descent": GreedyCoordinateDescent()}
    return wolfes | {name: {"solver": solver} for name, solver in others.items()}


def fits(table: Table, epsilon: float, seeds: Sequence[int], chosen: dict[str, Any]) -> Row:
    """One model at one epsilon, the mean over the seeds."""
    scores = []
    for seed in seeds:
        fitted = LogisticRegression(epsilon, bounds=BOUNDS, classes=[-1, 1], random_state=seed, **chosen).fit(
            table.X, table.y
        )
        scores.append(scored(table, fitted.coef_.ravel(), float(np.ravel(fitted.intercept_)[0])))
    means = {key: float(np.mean([score[key] for score in scores])) for key in scores[0]}
    return {"epsilon": epsilon, **means, "deviation": float(np.std([score["accuracy"] for score in scores]))}


def compared(name: str, table: Table, seeds: Sequence[int]) -> Iterator[Row]:
    """Every solver at every epsilon."""
    yield not_private(name, table)
    for solver, chosen in models().items():
        for epsilon in EPSILONS:
            yield {"table": name, "solver": solver, **fits(table, epsilon, seeds, chosen)}


def not_private(name: str, table: Table) -> Row:
    """scikit-learn's logistic regression."""
    exact = linear_model.LogisticRegression(solver="liblinear").fit(table.X, table.y)
    scores = scored(table, exact.coef_.ravel(), float(exact.intercept_[0]))
    return {
        "table": name,
        "solver": "liblinear, L2, not private",
        "epsilon": np.inf,
        **scores,
        "deviation": 0.0,
    }


def released_signs(name: str, table: Table, steps: int, radius: float, epsilon: float) -> Row:
    """The published algorithm: features by its printed weights, with exact signs that no budget pays for.

    Weights are exp(scale |sum_j|) with the sums of the present margins. Features are proposed with sums at
    their bound, and accepted with what that is too much. An epsilon of 0 draws features uniformly.
    """
    columns, n = sp.csc_array(table.X), len(table.y)
    scale = n * epsilon / (2 * radius * math.sqrt(8 * steps * 2 * math.log(n)))  # delta 1/n²
    most = scale * np.asarray(abs(columns).sum(axis=0, dtype=np.float64)).ravel()
    rng = np.random.default_rng(0)
    v, w, factor, t = np.zeros(n), np.zeros(columns.shape[1]), 1.0, 0
    for j, level in proposals(most, rng):
        inside = slice(columns.indptr[j], columns.indptr[j + 1])
        rows, entries = columns.indices[inside], columns.data[inside]
        y = table.y[rows]
        fall = float((y * expit(-y * v[rows] * factor)) @ entries)
        if level > scale * abs(fall) - most[j]:
            continue
        t += 1
        size = 2 / (t + 2)
        factor *= 1 - size
        push = size * radius * np.sign(fall) / factor
        v[rows] += push * entries
        w[j] += push
        if t == steps:
            break
    solver = "as published" if epsilon else "free signs"
    return {"table": name, "solver": solver, "epsilon": np.inf, **scored(table, w), "deviation": 0.0}


def proposals(most: Any, rng: np.random.Generator) -> Iterator[tuple[int, float]]:
    """Features with weights exp(most), and logarithms of uniform numbers, without end."""
    sums = np.cumsum(np.exp(most - most.max()))
    while True:
        uniform = rng.random((2, 1 << 12))
        features = np.searchsorted(sums, uniform[0] * sums[-1], side="right")
        yield from zip(features.tolist(), np.log(uniform[1]).tolist(), strict=True)


def published(name: str, table: Table, steps: int, radius: float, seeds: Sequence[int]) -> Iterator[Row]:
    """The lines of Table 4: not private, as published, and at the price that holds."""
    yield not_private(name, table)
    for epsilon in (PUBLISHED_EPSILON, 0.0):
        yield released_signs(name, table, steps, radius, epsilon)
    paid = {"penalty": L1Ball(radius), "solver": FrankWolfe(steps=steps), "fit_intercept": False}
    usual = {"penalty": L1Ball(RADIUS), "solver": FrankWolfe()}
    for what, chosen in (("signs paid", paid), (f"defaults, radius {RADIUS:g}", usual)):
        yield {"table": name, "solver": what, **fits(table, PUBLISHED_EPSILON, seeds, chosen)}


def line(row: Row) -> str:
    cells = [f"{100 * row[key]:.2f}" for key in ("accuracy", "deviation", "AUC", "zeros")]
    return f"| {row['table']} | {row['solver']} | {row['epsilon']:g} | {' | '.join(cells)} |"


def write(rows: Sequence[Row], path: Path) -> None:
    """All rows so far."""
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tiny run whose figures mean nothing")
    parser.add_argument("--published", action="store_true", help="Table 4 instead of the defaults")
    parser.add_argument("--share", type=float, default=0.1, help="share of the rows of drawn tables")
    parser.add_argument("--tables", help=f"some of {','.join(TABLES)}, url, webspam, kdda")
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the real tables")
    results = Path(__file__).parent / "results"
    parser.add_argument("--out", type=Path, default=results, help="folder for the CSV")
    options = parser.parse_args()
    warnings.simplefilter("ignore", PrivacyWarning)  # seeds are for repeating the figures
    names = options.tables.split(",") if options.tables else list(PUBLISHED if options.published else TABLES)
    seeds = SEEDS[:1] if options.quick else SEEDS
    folder = options.out / ("fw_accuracy_quick" if options.quick else "fw_accuracy")
    folder.mkdir(parents=True, exist_ok=True)
    found: list[Row] = []
    print("| table | solver | epsilon | accuracy, % | deviation | AUC, % | zeros, % |")
    print("|---|---|---|---|---|---|---|")
    for name in ["tiny"] if options.quick else names:
        begun = time.perf_counter()
        if options.quick:
            table = tiny()
        else:
            table = TABLES[name](options.data) if name in TABLES else drawn(name, options.share)
        larger = max(np.mean(table.y_test == sign) for sign in (-1, 1))
        print(f"| {name} | larger class of {table.X.shape[0]:,} + {len(table.y_test):,} rows | - |", end=" ")
        print(f"{100 * larger:.2f} | | 50.00 | 100.00 |", flush=True)
        if options.published:
            steps, radius = (1_000, 50.0) if options.quick else (PUBLISHED_STEPS, PUBLISHED_RADIUS)
            rows = published(name, table, steps, radius, seeds)
        else:
            rows = compared(name, table, seeds)
        for row in rows:
            found.append(row)
            print(line(row), flush=True)
            write(found, folder / ("table_4.csv" if options.published else "accuracy.csv"))
        if options.published and name in PUBLISHED:
            accuracy, area, zeros = PUBLISHED[name]
            print(f"| {name} | *printed in the paper* | 0.1 | {accuracy} | | {area} | {zeros} |")
        print(f"{name}: {time.perf_counter() - begun:.0f} s", file=sys.stderr, flush=True)
    print(f"\nFigures in {folder}")


if __name__ == "__main__":
    sys.exit(main())
