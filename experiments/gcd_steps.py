"""Numbers of steps that the theorems of greedy coordinate descent state, beside default and best ones.

Mangold, Bellet, Salmon and Tommasi, "High-Dimensional Private Empirical Risk Minimization by Greedy
Coordinate Descent", Theorems 4.4 and 4.7, by `steps_if_convex` and `steps_if_strongly_convex`.

First the steps alone, by n: constants are 1 for the slope, 3 for the distance, 0.5 for gap and strong
convexity and 10 for the sparsity, of 100 features. Then drawn tables, ten of whose coefficients matter, with
epsilon 1 and delta 1/n²: the share of the objective's gap at w = 0 that is left, mean of five seeds, for

- *theorem*: the steps of Theorem 4.4, 1, with step size 1 and a clip that cuts nothing, as it assumes;
- *its steps*: the steps that follow for the default clip, with that clip and the default step size;
- *defaults*;
- *best*: the best of 2, 4, 8 ... 256 steps with the default clip and step size, which nobody has paid for.

The distance is the exact one, taken from the minimiser as if it were declared. Second moments are declared.

    python experiments/gcd_steps.py            # a minute on one core
    python experiments/gcd_steps.py --quick    # seconds
"""

from __future__ import annotations

import argparse
import math

import numpy as np
from gcd_problems import EPSILON, NEIGHBOURS, Task, standardised, task

from dpglm.losses import Logistic, Squared
from dpglm.penalties import L2
from dpglm.solvers import GreedyCoordinateDescent, steps_if_convex, steps_if_strongly_convex

SIZES = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
TRIED = (2, 4, 8, 16, 32, 64, 128, 256)


def by_size(n: int) -> str:
    delta = 1 / n**2
    convex = steps_if_convex(n, EPSILON, delta, slope=1.0, distance=3.0)
    constants = {"slope": 1.0, "gap": 0.5, "strong_convexity": 0.5}
    strongly = steps_if_strongly_convex(n, 100, EPSILON, delta, **constants)
    sparse = steps_if_strongly_convex(n, 100, EPSILON, delta, sparsity=10, **constants)
    return f"| {n:,} | {convex:,} | {strongly:,} | {sparse:,} |"


def drawn(loss: str, n: int, p: int) -> Task:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, p))
    w = np.zeros(p)
    w[: min(10, p)] = np.exp(rng.standard_normal(min(10, p)))
    y = X @ w + rng.standard_normal(n)
    if loss == "squared":
        return task("squared", Squared(), L2(1 / n), standardised(X), standardised(y))
    return task("logistic", Logistic(), L2(1 / n), standardised(X), np.where(y > 0, 1.0, -1.0))


def left(problem: Task, seeds: int, **settings: float) -> float:
    """Mean share of the gap at w = 0."""
    solver = GreedyCoordinateDescent(second_moments=problem.second_moments, **settings)
    return float(
        np.mean([problem.gap(problem.fit(solver, seed)) for seed in range(seeds)]) / problem.gap_at_zero
    )


def steps_for(problem: Task, slope: float) -> int:
    distance = float(np.sqrt(problem.curvature) @ np.abs(problem.optimum))
    return steps_if_convex(problem.shape[0], EPSILON, problem.budget.delta, slope=slope, distance=distance)


def line(problem: Task, seeds: int) -> str:
    n, p = problem.shape
    root = math.sqrt(float(problem.curvature.sum()))
    plan = GreedyCoordinateDescent(second_moments=problem.second_moments).plan(
        problem.problem, n, p, problem.budget, NEIGHBOURS
    )
    # Of squared loss the slope at the start, which later ones do not exceed where it is largest.
    slope = np.abs(problem.problem.loss.derivative(np.zeros(n), problem.y)).max()
    if isinstance(problem.problem.loss, Logistic):
        slope = problem.problem.loss.lipschitz()
    largest = float((slope * problem.largest / np.sqrt(problem.curvature)).max())
    exact, usual = steps_for(problem, largest), steps_for(problem, plan.clip / root)
    found = {count: left(problem, seeds, steps=count) for count in TRIED}
    best = min(found, key=lambda count: found[count])
    cells = (
        f"{left(problem, seeds, steps=exact, clip=largest * root, step_size=1.0):.3f} ({exact})",
        f"{left(problem, seeds, steps=usual):.3f} ({usual})",
        f"{left(problem, seeds):.3f} ({plan.steps})",
        f"{found[best]:.3f} ({best})",
    )
    return f"| {problem.name}, {n:,} x {p} | {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tiny run whose figures mean nothing")
    options = parser.parse_args()
    print("| n | Theorem 4.4, 1 | Theorem 4.4, 2 | Theorem 4.7 |\n|---|---|---|---|")
    for n in SIZES:
        print(by_size(n))
    print("\n| table | theorem (steps) | its steps | defaults | best |\n|---|---|---|---|---|", flush=True)
    for n, p in ((200, 5),) if options.quick else ((1_000, 100), (10_000, 50)):
        for loss in ("squared", "logistic"):
            print(line(drawn(loss, n, p), 2 if options.quick else 5), flush=True)


if __name__ == "__main__":
    main()
