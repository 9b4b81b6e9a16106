"""Why greedy coordinate descent is behind DP-SGD on log1: the draw of the true coefficients decides.

gcd_paper.py has one draw of log1 (logistic regression, 1,000 x 100, true coefficients log-normal with
deviation 1, L2 penalty), as Mangold, Bellet, Salmon and Tommasi, "High-Dimensional Private Empirical Risk
Minimization by Greedy Coordinate Descent", have. Here are several draws, and for the first other strengths of
the penalty. For each draw:

- the share of the squared norm of the minimiser that its five largest coefficients have;
- the least relative gap of a model with the 5, 10 or 20 largest coefficients alone: what so few steps could
  reach without noise;
- the relative gap of DP-GCD and of DP-SGD, each tuned over 48 settings around those of gcd_paper.py by one
  run, the best four by three more; means of five fresh seeds;
- for the first draw DP-SGD with more noise than the exact price asks for, and both at the settings that are
  published for log1.

    python experiments/gcd_draws.py            # a minute or two on one core
    python experiments/gcd_draws.py --quick    # seconds, too small to mean anything

Tuning is not paid for.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Callable
from functools import partial

import numpy as np
from gcd_competitors import StochasticGradient
from gcd_problems import Task, standardised, task
from gcd_search import FIRST_FRESH_SEED
from scipy.optimize import minimize

from dpglm.losses import Logistic
from dpglm.penalties import L2
from dpglm.solvers import GreedyCoordinateDescent

GREEDY = {"passes": (5, 10, 20, 40), "clips": (0.6, 1.2, 2.5), "steps": (1.0, 2.15, 4.6, 10.0)}
GRADIENT = {"passes": (5, 20), "clips": (0.1, 0.2, 0.4, 1.0), "steps": (1e-4, 2e-4, 4.6e-4, 1e-3, 2e-3, 4e-3)}
PUBLISHED = {"DP-GCD": (10, 3.09, 2.15), "DP-SGD": (20, 0.184, 4.64e-4)}
SIZES = (5, 10, 20)
FINALISTS, TUNING_RUNS, FRESH = 4, 4, 5

Run = Callable[[float, float, float, int], float]


def draw(spread: float, strength: float, seed: int, n: int, p: int) -> Task:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    w = np.exp(spread * rng.standard_normal(p))
    y = np.where(X @ w + rng.standard_normal(n) > 0, 1.0, -1.0)
    return task("log", Logistic(), L2(strength), standardised(X), y)


def greedy(problem: Task, passes: float, clip: float, step: float, seed: int) -> float:
    """Relative gap of one run."""
    solver = GreedyCoordinateDescent(
        steps=int(passes), clip=clip, step_size=step, second_moments=problem.second_moments
    )
    return problem.gap(problem.fit(solver, seed))


class Gradient:
    """Relative gaps of runs of DP-SGD; those of a seed share their draws."""

    def __init__(self, problem: Task, noise: float = 1.0) -> None:
        self._problem, self._noise, self._seed = problem, noise, -1

    def __call__(self, passes: float, clip: float, step: float, seed: int) -> float:
        n = self._problem.shape[0]
        if seed != self._seed:
            longest = max(GRADIENT["passes"]) * n
            self._draws, self._seed = StochasticGradient(self._problem, seed, longest), seed
            self._draws.scale_noise(self._noise)
        w, _ = self._draws.run(int(passes * n), clip, step)
        return self._problem.gap(w)


def tuned(run: Run, grid: dict[str, tuple[float, ...]], quick: bool) -> tuple[float, tuple[float, ...]]:
    """Mean gap of the best setting on fresh seeds, and the setting."""
    settings = list(itertools.product(*grid.values()))[:: 20 if quick else 1]
    found = {setting: [run(*setting, 0)] for setting in settings}
    finalists = sorted(settings, key=lambda setting: found[setting][0])[:FINALISTS]
    for seed, setting in itertools.product(range(1, TUNING_RUNS), finalists):
        found[setting].append(run(*setting, seed))
    best = min(finalists, key=lambda setting: np.mean(found[setting]))
    return fresh(run, best), best


def fresh(run: Run, setting: tuple[float, ...]) -> float:
    return float(np.mean([run(*setting, FIRST_FRESH_SEED + k) for k in range(FRESH)]))


def gap_of_largest(problem: Task, size: int) -> float:
    """Least relative gap with the largest coefficients of the minimiser alone."""
    kept = np.argsort(-np.abs(problem.optimum))[:size]
    strength = problem.problem.penalty.coordinate_form()[1]

    def objective(some: np.ndarray) -> tuple[float, np.ndarray]:
        w = problem.zero
        w[kept] = some
        return problem.objective(w), (problem.gradient(w) + strength * w)[kept]

    found = minimize(objective, np.zeros(size), jac=True, method="L-BFGS-B")
    return (found.fun - problem.least) / problem.least


def row(name: str, problem: Task, quick: bool) -> str:
    squares = np.sort(problem.optimum**2)[::-1]
    ours, _ = tuned(partial(greedy, problem), GREEDY, quick)
    theirs, _ = tuned(Gradient(problem), GRADIENT, quick)
    best = " / ".join(f"{gap_of_largest(problem, size):.2f}" for size in SIZES)
    return (
        f"| {name} | {squares[:5].sum() / squares.sum():.2f} | {problem.gap_at_zero:.2f} | {best} "
        f"| {ours:.2f} | {theirs:.2f} | {'ahead' if ours < theirs else 'BEHIND'} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tiny run whose figures mean nothing")
    parser.add_argument("--draws", type=int, default=8)
    options = parser.parse_args()
    n, p = (200, 20) if options.quick else (1_000, 100)
    first = draw(1.0, 1 / n, 0, n, p)
    print("| draw | share of five | gap at w = 0 | best 5 / 10 / 20 | DP-GCD | DP-SGD | DP-GCD is |")
    print("|---|---|---|---|---|---|---|", flush=True)
    for seed in range(1 if options.quick else options.draws):
        print(row(f"log1, draw {seed}", draw(1.0, 1 / n, seed, n, p), options.quick), flush=True)
    for strength in () if options.quick else (0.01, 0.1):
        print(row(f"draw 0, strength {strength:g}", draw(1.0, strength, 0, n, p), False), flush=True)
    print("\n| draw 0 | gap of DP-SGD | passes, clip, step |\n|---|---|---|", flush=True)
    for noise in (1.0, 1.5, 2.0):
        gap, setting = tuned(Gradient(first, noise), GRADIENT, options.quick)
        print(f"| {noise:g} times the noise | {gap:.2f} | {setting} |", flush=True)
    print(
        f"| published setting | {fresh(Gradient(first), PUBLISHED['DP-SGD']):.2f} | {PUBLISHED['DP-SGD']} |"
    )
    print(f"\nDP-GCD, draw 0, published setting: {fresh(partial(greedy, first), PUBLISHED['DP-GCD']):.2f}")


if __name__ == "__main__":
    main()
