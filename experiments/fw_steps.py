"""Accuracy of private Frank-Wolfe over its number of steps, on drawn dense tables with bounds of features.

Logistic regression with ten features that matter out of p, delta 1/n², replace-one, no intercept. The designs
differ in how far the bound of a feature is above its typical size: normal (4 standard deviations), uniform,
and 0/1 with a share of ten percent. The constants of the default number of steps on such tables were
chosen here (docs/defaults.md); the line names the default, and the accuracy at each number of steps.

    python experiments/fw_steps.py            # a quarter of an hour
    python experiments/fw_steps.py --quick    # seconds, too small to mean anything
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from dpglm import Bounds, Budget, Neighbours
from dpglm.losses import Logistic
from dpglm.penalties import L1Ball
from dpglm.problem import Problem
from dpglm.solvers import FrankWolfe

Table = NDArray[np.float32]
Draw = Callable[[np.random.Generator, tuple[int, int]], Table]

TESTS, RELEVANT = 2_000, 10
STEPS = (1, 2, 3, 5, 8, 12, 18, 27, 40, 60, 90)
SIZES = ((2_000, 500), (4_000, 4_000), (16_000, 1_000))
EPSILONS, RADII, SEEDS = (0.1, 1.0, 4.0), (5.0, 20.0), 3


def normal(rng: np.random.Generator, shape: tuple[int, int]) -> Table:
    return rng.standard_normal(shape, dtype=np.float32).clip(-4, 4)


def uniform(rng: np.random.Generator, shape: tuple[int, int]) -> Table:
    return 2 * rng.random(shape, dtype=np.float32) - 1


def binary(rng: np.random.Generator, shape: tuple[int, int]) -> Table:
    return (rng.random(shape, dtype=np.float32) < 0.1).astype(np.float32)


# how to draw a table, the bound of its features, and their variance
DESIGNS: dict[str, tuple[Draw, float, float]] = {
    "normal": (normal, 4.0, 1.0),
    "uniform": (uniform, 1.0, 1 / 3),
    "binary": (binary, 1.0, 0.09),
}


def walk(X: Table, y: Table, steps: int, radius: float, scale: float, rng: np.random.Generator) -> Table:
    """Coefficients after so many steps; selections have the law of dpglm's."""
    p = X.shape[1]
    w = np.zeros(p, dtype=np.float32)
    for t in range(1, steps + 1):
        sums = X.T @ (-y * expit(-y * (X @ w))).astype(np.float32)
        vertex = int(np.argmax(np.concatenate([sums, -sums]) / scale + rng.gumbel(size=2 * p)))
        size = 2 / (t + 2)
        w *= 1 - size
        w[vertex % p] += size * radius * (-1 if vertex < p else 1)
    return w


def accuracies(
    design: str, n: int, p: int, epsilon: float, radius: float, seed: int
) -> tuple[int, list[float]]:
    """The default number of steps, and the accuracy at each of `STEPS`."""
    draw, bound, variance = DESIGNS[design]
    rng = np.random.default_rng(seed)
    X = draw(rng, (n + TESTS, p))
    truth = np.zeros(p, dtype=np.float32)
    truth[:RELEVANT] = rng.choice([-1, 1], RELEVANT) / math.sqrt(variance)
    margins = X @ truth
    y = np.where(rng.random(n + TESTS) < expit(margins - margins.mean()), 1, -1).astype(np.float32)
    problem = Problem(Logistic(), L1Ball(radius), Bounds(feature=bound), fit_intercept=False)
    task = problem, n, p, Budget.for_records(epsilon, None, n), Neighbours.REPLACE_ONE
    found = []
    for steps in STEPS:
        plan = FrankWolfe(steps=steps, clip=bound).plan(*task)  # no term is cut
        _, scale = plan.releases[0].mechanism.law(plan.neighbours.records_moved * plan.clip)
        w = walk(X[:n], y[:n], steps, radius, scale, rng)
        found.append(float(np.mean(np.where(X[n:] @ w > 0, 1, -1) == y[n:])))
    return FrankWolfe().plan(*task).steps, found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tiny run whose figures mean nothing")
    quick = parser.parse_args().quick
    print("| design | n x p | epsilon | radius | default |", " | ".join(map(str, STEPS)), "|")
    print("|---|---|---|---|---|" + "---|" * len(STEPS))
    for design in DESIGNS:
        for n, p in ((300, 20),) if quick else SIZES:
            for epsilon in EPSILONS:
                for radius in RADII:
                    runs = [
                        accuracies(design, n, p, epsilon, radius, s) for s in range(1 if quick else SEEDS)
                    ]
                    means = 100 * np.mean([found for _, found in runs], axis=0)
                    cells = " | ".join(f"{mean:.0f}" for mean in means)
                    row = f"| {design} | {n:,} x {p:,} | {epsilon:g} | {radius:g} | {runs[0][0]} | {cells} |"
                    print(row, flush=True)


if __name__ == "__main__":
    sys.exit(main())
