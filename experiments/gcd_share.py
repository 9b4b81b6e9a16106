"""How much of the budget the selections of greedy coordinate descent should get.

For several sizes, budgets and losses: the excess of the training objective over its minimum, as a share of
the excess at zero, for shares of 20 to 90 %. Steps, clip and step size are the best of a grid for each share,
by the mean over seeds (unpaid). The last row is the geometric mean over all settings, in units of their best.

    python experiments/gcd_share.py            # six minutes
    python experiments/gcd_share.py --quick    # seconds, too small to mean anything
"""

from __future__ import annotations

import argparse
import itertools
import math

import numpy as np
from gcd_defaults import draw

from dpglm import Bounds, Budget, Neighbours
from dpglm.curator import Curator
from dpglm.data import as_data
from dpglm.losses import Logistic, Squared
from dpglm.mechanisms import Randomness
from dpglm.penalties import L2
from dpglm.problem import Problem
from dpglm.solvers import CoordinateDescent, GreedyCoordinateDescent, Solver

SHARES = (0.2, 0.35, 0.5, 2 / 3, 0.8, 0.9)
STEPS, CLIPS, LENGTHS = (4, 8, 16, 32), (0.15, 0.3, 0.6), (1.0, 2.0, 4.0)
SETTINGS = (
    ("linear", 4_000, 100, 1.0),
    ("linear", 2_000, 1_000, 1.0),
    ("linear", 1_000, 100, 1.0),
    ("linear", 4_000, 100, 4.0),
    ("linear", 4_000, 20, 1.0),
    ("logistic", 4_000, 100, 1.0),
    ("logistic", 2_000, 1_000, 1.0),
)
FIRST_SEED = 20_000


def excess(kind: str, n: int, p: int, epsilon: float, seed: int) -> np.ndarray:
    """Excess over that at zero, for every share and all steps, clips and lengths."""
    X, y, _ = draw(kind, "log-normal", n, p, min(p, 30), seed)
    loss = Squared() if kind == "linear" else Logistic()
    bounds = Bounds(feature=10.0, target=(-5, 5) if kind == "linear" else None)
    problem = Problem(loss, L2(1e-3), bounds, fit_intercept=False)
    records = as_data(X, y, bounds)

    def run(solver: Solver, budget: Budget) -> float:
        plan = solver.plan(problem, n, p, budget, Neighbours.REPLACE_ONE)
        w = solver.run(plan, problem, Curator(records, plan.neighbours, Randomness(seed))).w
        return float(loss.value(X @ w, y).mean() + problem.penalty.value(w))

    least = run(CoordinateDescent(), Budget(math.inf, 1e-6))
    zero = float(loss.value(np.zeros(n), y).mean())
    grid = itertools.product(SHARES, STEPS, CLIPS, LENGTHS)
    values = [
        run(
            GreedyCoordinateDescent(
                steps, clip * math.sqrt(p), length, selection_share=share, second_moments=np.ones(p)
            ),
            Budget(epsilon, 1e-6),
        )
        for share, steps, clip, length in grid
    ]
    return (np.reshape(values, (len(SHARES), -1)) - least) / (zero - least)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one seed, one setting")
    quick = parser.parse_args().quick
    print("| setting | " + " | ".join(f"{share:.2f}" for share in SHARES) + " |")
    print("|---" * (len(SHARES) + 1) + "|")
    relative = []
    for kind, n, p, epsilon in SETTINGS[2:3] if quick else SETTINGS:
        seeds = range(FIRST_SEED, FIRST_SEED + (1 if quick else 6))
        best = np.mean([excess(kind, n, p, epsilon, seed) for seed in seeds], axis=0).min(axis=1)
        relative.append(np.log(best / best.min()))
        row = " | ".join(f"{value:.4f}" for value in best)
        print(f"| {kind}, n = {n}, p = {p}, epsilon {epsilon:g} | {row} |", flush=True)
    mean = " | ".join(f"{value:.2f}" for value in np.exp(np.mean(relative, axis=0)))
    print(f"| geometric mean over the best | {mean} |")


if __name__ == "__main__":
    main()
