"""What a promise to persons costs beside one to rows, on a drawn panel and on real tables with repeated ids.

Panel: persons with an effect of their own and 1 to 1,000 visits each. Four fits of the same rows at the same
total budget, each with dpglm's defaults:

* rows: the promise is to one row, so a person with k rows has k times the mu (stated beside it);
* rows, paid for persons: the row-level promise with mu over the largest number of rows, which is a promise to
  persons by group privacy;
* one row: a promise to persons by throwing away all rows but one of each person;
* persons: ``units=``, shares of 1/m for m rows.

Scores are R² on rows of other persons, means and standard errors of the fits.

Real tables: california (blocks with the same coordinates are one unit), bike (the hours of a day are one
unit). Units, not rows, are split into four fifths for training and the rest.
"""

from __future__ import annotations

import argparse
import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dpglm import Bounds, LinearRegression
from dpglm.accounting import gaussian_epsilon, gaussian_mu

Vector = NDArray[np.float64]
FITS = 5
FEATURES = 10


@dataclass(frozen=True)
class Panel:
    """Rows, targets and the unit of each row, for training and for the score."""

    name: str
    X: Vector
    y: Vector
    units: NDArray[np.int64]
    X_test: Vector
    y_test: Vector
    bounds: Bounds


def drawn(rng: np.random.Generator, persons: int, visits: NDArray[np.int64], name: str) -> Panel:
    """Persons with a normal effect of their own, and features that half belong to the person."""

    def rows(count: NDArray[np.int64]) -> tuple[Vector, Vector, NDArray[np.int64]]:
        units = np.repeat(np.arange(len(count)), count)
        own = rng.uniform(-1, 1, (len(count), FEATURES))
        X = np.clip(0.5 * own[units] + 0.5 * rng.uniform(-1, 1, (len(units), FEATURES)), -1, 1)
        effect = 0.5 * rng.standard_normal(len(count))
        y = X @ W + effect[units] + 0.5 * rng.standard_normal(len(units))
        return X, np.clip(y, -3, 3), units

    X, y, units = rows(visits)
    X_test, y_test, _ = rows(np.full(5_000, 2))
    return Panel(name, X, y, units, X_test, y_test, Bounds(feature=1.0, target=(-3.0, 3.0)))


W = np.linspace(1, -1, FEATURES)


def split(name: str, X: Vector, y: Vector, units: NDArray[np.int64], rng: np.random.Generator) -> Panel:
    """Four fifths of the units for training; features and targets scaled into their declared ranges."""
    low, high = X.min(axis=0), X.max(axis=0)  # stand for declared ranges, as in the other experiments
    X = 2 * (X - low) / np.where(high > low, high - low, 1) - 1
    held = rng.permutation(units.max() + 1)[: (units.max() + 1) // 5]
    test = np.isin(units, held)
    bounds = Bounds(feature=1.0, target=(float(y.min()), float(y.max())))
    _, kept = np.unique(units[~test], return_inverse=True)
    return Panel(name, X[~test], y[~test], kept, X[test], y[test], bounds)


def real(data: Path, rng: np.random.Generator) -> Iterator[Panel]:
    california = np.load(data / "california_housing" / "data.npz")
    X, y = california["X"].astype(float), california["y"].astype(float)
    yield split("california, places", X, y, np.unique(X[:, :2], axis=0, return_inverse=True)[1].ravel(), rng)
    bike = np.load(data / "uci_regression" / "bike.npz")
    X, y = bike["X"].astype(float), bike["y"].astype(float)
    yield split("bike, days", X, y, np.unique(X[:, :3], axis=0, return_inverse=True)[1].ravel(), rng)


def for_rows(panel: Panel, epsilon: float, delta: float) -> LinearRegression:
    return LinearRegression(epsilon, delta=delta, bounds=panel.bounds).fit(panel.X, panel.y)


def for_groups(panel: Panel, epsilon: float, delta: float) -> LinearRegression:
    mu = gaussian_mu(epsilon, delta) / np.bincount(panel.units).max()
    return for_rows(panel, gaussian_epsilon(mu, delta), delta)


def for_one_row(panel: Panel, epsilon: float, delta: float) -> LinearRegression:
    first = np.unique(panel.units, return_index=True)[1]
    return LinearRegression(epsilon, delta=delta, bounds=panel.bounds).fit(panel.X[first], panel.y[first])


def for_persons(panel: Panel, epsilon: float, delta: float) -> LinearRegression:
    return LinearRegression(epsilon, delta=delta, bounds=panel.bounds).fit(
        panel.X, panel.y, units=panel.units
    )


FITTED: dict[str, Callable[[Panel, float, float], LinearRegression]] = {
    "rows": for_rows,
    "rows, paid for persons": for_groups,
    "one row": for_one_row,
    "persons": for_persons,
}


def scores(panel: Panel, epsilon: float, fits: int = FITS) -> None:
    persons = int(panel.units.max()) + 1
    most, delta = int(np.bincount(panel.units).max()), 1 / persons**2
    plain = LinearRegression(math.inf, bounds=panel.bounds).fit(panel.X, panel.y)
    cells = [f"{plain.score(panel.X_test, panel.y_test):.3f}"]
    for fit in FITTED.values():
        found = [fit(panel, epsilon, delta).score(panel.X_test, panel.y_test) for _ in range(fits)]
        cells.append(f"{np.mean(found):.3f} ± {np.std(found, ddof=1) / math.sqrt(fits):.3f}")
    mu = gaussian_mu(epsilon, delta)
    print(
        f"| {panel.name} | {persons:,} | {len(panel.y):,} | {epsilon:g} | {mu:.2f} | {mu * most:.3g} | "
        + " | ".join(cells) + " |",
        flush=True,
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, nargs="?", default=Path("../shared/data"))
    parser.add_argument(
        "--quick", action="store_true", help="seconds, one small panel: its figures mean nothing"
    )
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    print(
        "| table | persons | rows | epsilon | mu | mu of a person in a fit to rows | no noise | "
        + " | ".join(FITTED) + " |\n" + "|---" * (7 + len(FITTED)) + "|",
        flush=True,
    )  # fmt: skip
    if options.quick:
        scores(drawn(rng, 300, np.full(300, 2), "2 visits"), 1.0, 2)
        return
    for epsilon in (0.25, 1.0):
        for visits in (1, 3, 10, 30, 100, 1_000):
            persons = 4_000
            scores(drawn(rng, persons, np.full(persons, visits), f"{visits:,} visits"), epsilon)
        unequal = np.minimum(np.ceil(rng.pareto(0.6, 4_000)), 1_000).astype(np.int64).clip(1)
        scores(drawn(rng, 4_000, unequal, "1 to 1,000 visits"), epsilon)
    if options.data.is_dir():
        for panel in real(options.data, rng):
            for epsilon in (0.25, 1.0, 4.0):
                scores(panel, epsilon)
    else:
        print("no real tables: the folder is absent")


if __name__ == "__main__":
    main()
