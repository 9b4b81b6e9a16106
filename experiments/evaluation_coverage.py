"""How often intervals of private scores cover the score in the population, and how long they are.

Tables are drawn from known distributions; the score in the population is that of a million records.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np

from dpglm import Bounds, LinearRegression, LogisticRegression, evaluate
from dpglm.privacy import PUBLIC_SIZE

CLASSES = ("accuracy", "log_loss", "auc", "calibration")
NUMBERS = ("r2", "mean_squared_error", "mean_absolute_error")
W = np.array([1.0, -0.7, 0.3])


def labelled(rng, n):
    X = rng.standard_normal((n, 3))
    return X, np.where(rng.random(n) < 1 / (1 + np.exp(1 - X @ W)), 1, -1)


def measured(rng, n):
    X = rng.standard_normal((n, 3))
    return X, np.clip(X @ W + rng.standard_normal(n), -5, 5)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=400)
    parser.add_argument("--quick", action="store_true", help="seconds; its figures mean nothing")
    options = parser.parse_args()
    tables, population = (2, 10_000) if options.quick else (options.tables, 1_000_000)
    sizes, epsilons = ((1_000,), (2.0,)) if options.quick else ((1_000, 4_000, 20_000), (0.5, 2.0))
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    models = (
        (LogisticRegression(4.0, bounds=Bounds(row_norm=4.0), classes=[-1, 1]), labelled, CLASSES),
        (LinearRegression(4.0, bounds=Bounds(row_norm=4.0, target=(-5, 5))), measured, NUMBERS),
    )
    print("| records | neighbours | epsilon | score | covered (0.95) | not determined | error | by noise |")
    print("|---|---|---|---|---|---|---|---|")
    for model, draw, names in models:
        model.fit(*draw(rng, 20_000))
        truth = evaluate(model, *draw(rng, population), names, epsilon=float("inf"))
        for n in sizes:
            for neighbours in PUBLIC_SIZE:
                for epsilon in epsilons:
                    for name in names:
                        found = [
                            evaluate(
                                model, *draw(rng, n), name, epsilon=epsilon, neighbours=neighbours.value
                            )[name]
                            for _ in range(tables)
                        ]
                        covered = np.mean([one.low <= truth[name].value <= one.high for one in found])
                        seen = [one for one in found if one.determined]
                        error, noise = (
                            f"{np.median([getattr(one, part) for one in seen]):.2g}" if seen else "-"
                            for part in ("standard_error", "noise")
                        )
                        print(
                            f"| {n:,} | {neighbours.value} | {epsilon:g} | {name} | {covered:.3f} | "
                            f"{tables - len(seen)} | {error} | {noise} |",
                            flush=True,
                        )


if __name__ == "__main__":
    main()
