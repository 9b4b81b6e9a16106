"""Excess of private Frank-Wolfe over the number of records, with the number of steps that theory prescribes.

Raff, Khanna and Lu (2023), appendix B.1, after Talwar, Thakurta and Zhang (2015), Theorem 3.2: with
T = curvature^(2/3) (n epsilon)^(2/3) / (L R)^(2/3) steps over the L1 ball of radius R the expected excess is
of the order curvature^(1/3) (L R)^(2/3) log(n |S|) sqrt(log(1 / delta)) / (n epsilon)^(2/3): a slope of -2/3
in n, up to logarithms. L is the Lipschitz constant of the loss in the L1 norm, |S| = 2 p the vertices.

    python experiments/fw_rates.py           # 5 minutes
    python experiments/fw_rates.py --quick   # seconds, too small to mean anything

Logistic loss, features -1 and 1, of which ten matter, radius 5, epsilon 1, delta 1/n², replace-one, no
intercept: L = 1 and the curvature is at most R². The excess is that of the mean loss over its exact minimum
in the ball, the mean of some seeds; selections, signs included, have the law of dpglm's. Beside it stands the
default number of steps, what coefficients of 0 have, and the bound with the constant 1.
"""

from __future__ import annotations

import argparse
import math
import sys

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from dpglm import Bounds, Budget, LogisticRegression, Neighbours
from dpglm.losses import Logistic
from dpglm.penalties import L1Ball
from dpglm.problem import Problem
from dpglm.solvers import FrankWolfe

P, RELEVANT, RADIUS, EPSILON = 50, 10, 5.0, 1.0
SIZES = (1_000, 4_000, 16_000, 64_000)
PROBLEM = Problem(Logistic(), L1Ball(RADIUS), Bounds(feature=1.0), fit_intercept=False)

Table = NDArray[np.float32]


def draw(n: int) -> tuple[Table, Table]:
    """Features and labels of a logistic model outside of the ball."""
    rng = np.random.default_rng(n)
    X = rng.choice(np.array([-1, 1], dtype=np.float32), (n, P))
    truth = np.zeros(P, dtype=np.float32)
    truth[:RELEVANT] = rng.choice([-1, 1], RELEVANT)
    return X, np.where(rng.random(n) < expit(X @ truth), 1, -1).astype(np.float32)


def risk(X: Table, y: Table, w: Table) -> float:
    return float(np.mean(np.logaddexp(0, -y * (X @ w)), dtype=np.float64))


def walk(X: Table, y: Table, steps: int, scale: float, seed: int) -> Table:
    """Coefficients after so many steps."""
    rng, w = np.random.default_rng(seed), np.zeros(P, dtype=np.float32)
    transposed = np.ascontiguousarray(X.T)
    for t in range(1, steps + 1):
        sums = transposed @ (-y * expit(-y * (X @ w)))
        vertex = int(np.argmax(np.concatenate([sums, -sums]) / scale + rng.gumbel(size=2 * P)))
        w *= 1 - 2 / (t + 2)
        w[vertex % P] += 2 / (t + 2) * RADIUS * (-1 if vertex < P else 1)
    return w


def excess(X: Table, y: Table, least: float, steps: int | None, seeds: int) -> tuple[int, float]:
    """The number of steps, the default one if none is given, and the mean excess."""
    n = len(y)
    task = PROBLEM, n, P, Budget.for_records(EPSILON, None, n), Neighbours.REPLACE_ONE
    plan = FrankWolfe(steps=steps, clip=1.0).plan(*task)  # no term is cut
    _, scale = plan.releases[0].mechanism.law(plan.neighbours.records_moved * plan.clip)
    found = [risk(X, y, walk(X, y, plan.steps, scale, seed)) for seed in range(seeds)]
    return plan.steps, float(np.mean(found)) - least


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tiny run whose figures mean nothing")
    parser.add_argument("--seeds", type=int, default=5, help="runs for each figure")
    options = parser.parse_args()
    sizes, seeds = ((200, 400), 1) if options.quick else (SIZES, options.seeds)
    print("| n | steps of the theorem | excess | default steps | excess | excess of 0 | bound, constant 1 |")
    print("|---|---|---|---|---|---|---|")
    columns: list[list[float]] = [[], [], []]
    for n in sizes:
        X, y = draw(n)
        exact = LogisticRegression(
            math.inf, penalty=PROBLEM.penalty, solver=FrankWolfe(), bounds=PROBLEM.bounds, classes=[-1, 1],
            fit_intercept=False,
        ).fit(X, y)  # fmt: skip
        least = risk(X, y, exact.coef_.ravel().astype(np.float32))
        prescribed = math.ceil((RADIUS * n * EPSILON) ** (2 / 3))
        steps, theory = excess(X, y, least, prescribed, seeds)
        usual, ours = excess(X, y, least, None, seeds)
        logarithms = math.log(n * 2 * P) * math.sqrt(2 * math.log(n))
        bound = RADIUS ** (2 / 3 + 2 / 3) * logarithms / (n * EPSILON) ** (2 / 3)
        for column, value in zip(columns, (theory, ours, bound), strict=True):
            column.append(value)
        cells = f"{steps:,} | {theory:.4f} | {usual:,} | {ours:.4f} | {math.log(2) - least:.4f} | {bound:.3f}"
        print(f"| {n:,} | {cells} |", flush=True)
    slopes = [float(np.polyfit(np.log(sizes), np.log(column), 1)[0]) for column in columns]
    print(f"| *slope in n* | | {slopes[0]:.2f} | | {slopes[1]:.2f} | | {slopes[2]:.2f} |")
    within = sum(value <= bound for value, bound in zip(columns[0], columns[2], strict=True))
    print(f"\nWithin the bound: {within} of {len(sizes)} sizes.")


if __name__ == "__main__":
    sys.exit(main())
