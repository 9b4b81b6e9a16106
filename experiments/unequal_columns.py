"""What "auto" rests on: gradient and coordinate descent with their defaults on columns of unequal size.

Gaussian features, cut at three deviations and rescaled by log-normal factors; the bounds that are declared
are those of the columns, so the number of columns and their sizes are public. Nothing is tuned.
"""

from __future__ import annotations

import argparse

import numpy as np
from numpy.typing import NDArray

from dpglm import Bounds, LogisticRegression, Ridge

Vector = NDArray[np.float64]
SOLVERS = ("gradient-descent", "coordinate-descent")


def score(kind: str, solver: str, X: Vector, signal: Vector, sizes: Vector, seed: int) -> float:
    """Training accuracy, or R², of one private fit at epsilon 1."""
    rng = np.random.default_rng(seed)
    if kind == "logistic":
        y = np.where(signal + rng.logistic(size=len(signal)) > 0, 1.0, -1.0)
        model = LogisticRegression(1.0, solver=solver, bounds=Bounds(feature=3 * sizes), classes=[-1, 1])
    else:
        y = signal + 0.3 * rng.standard_normal(len(signal))
        model = Ridge(1.0, solver=solver, bounds=Bounds(feature=3 * sizes, target=(-8, 8)))
    return float(model.fit(X, y).score(X, y))


def main() -> None:
    """Print a table of accuracies and R² by the spread of the columns."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5, help="fits for each cell")
    parser.add_argument("--quick", action="store_true", help="the smallest of the tables only")
    options = parser.parse_args()
    runs, tables = options.runs, ((10_000, 20), (10_000, 100), (100_000, 20))
    rng = np.random.default_rng(0)
    print("| n | p | largest / smallest column | loss | gradient descent | coordinate descent |")
    print("|---|---|---|---|---|---|")
    for n, p in tables[:1] if options.quick else tables:
        Z = np.clip(rng.standard_normal((n, p)), -3, 3)
        signal = Z @ (2 * rng.standard_normal(p) / np.sqrt(p))
        direction = rng.standard_normal(p)
        for spread in (0.0, 0.5, 1.0, 2.0):
            sizes = np.exp(spread * direction)
            for kind in ("logistic", "squared"):
                cells = [
                    np.mean([score(kind, solver, Z * sizes, signal, sizes, seed) for seed in range(runs)])
                    for solver in SOLVERS
                ]
                ratio = f"{sizes.max() / sizes.min():.0f}"
                print(f"| {n} | {p} | {ratio} | {kind} | {cells[0]:.3f} | {cells[1]:.3f} |", flush=True)


if __name__ == "__main__":
    main()
