"""Whether total variation finds plateaus that noise and ridge hide, at the same promise.

60 ordered bins of one number, 20,000 records, epsilon 1, and effects of the bins that are drawn for each of
five stretches: of targets with noise as large as the largest effect (*numbers*), or of log odds (*labels*).
The stretches have *equal* lengths, or *drawn* ends, so that some have one or two bins. Every penalty has its
best of 15 strengths by the error itself, which no private fit can do: the table compares what the penalties
can reach, on one solver. There is no intercept: the bins cover all records. The error is the distance of the
coefficients from the effects over the length of the latter, averaged over five seeds; the best strength
stands beside it.

    python experiments/plateaus.py           # 15 minutes
    python experiments/plateaus.py --quick   # seconds, too small to mean anything

Objective perturbation is shown with its own quadratic term, which depends on the penalty, and with one weak
term for all penalties. Output perturbation needs an L2 part, which is 0.01 beside each penalty.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpglm import Bounds, GLMRegressor, LogisticRegression
from dpglm.errors import PrivacyWarning
from dpglm.penalties import L2, ElasticNet, Penalty, TotalVariation
from dpglm.solvers import GradientDescent, ObjectivePerturbation, OutputPerturbation, Solver

P, STRETCHES, N, EPSILON = 60, 5, 20_000, 1.0
LIMIT, FIRST_SEED, SEEDS = 0.6, 3_000, 5
STRENGTHS = (10.0 ** np.arange(-5.0, -1.4, 0.25)).tolist()
PENALTIES: dict[str, Callable[[float, float], Penalty]] = {
    "ridge": lambda strength, l2: L2(strength + l2),
    "L1": lambda strength, l2: ElasticNet(strength, l2),
    "total variation": lambda strength, l2: TotalVariation(strength, l2=l2),
}
L2_PART = 0.01  # for output perturbation
WEAK = {"numbers": 5e-4, "labels": 1e-4}

Vector = NDArray[np.float64]


def draw(design: str, ends: str, n: int, seed: int) -> tuple[Vector, Vector, Vector]:
    """Rows with a 1 for the bin, targets, and the effects of the bins."""
    rng = np.random.default_rng(seed)
    last = np.sort(rng.choice(np.arange(1, P), STRETCHES - 1, replace=False))
    if ends == "equal":
        last = np.arange(1, STRETCHES) * (P // STRETCHES)
    size = 1.0 if design == "numbers" else 2.0
    effects = np.repeat(rng.uniform(-size, size, STRETCHES), np.diff([0, *last, P]))
    place = rng.integers(P, size=n)
    if design == "numbers":
        y = np.clip(effects[place] + rng.standard_normal(n), -3, 3)
    else:
        y = np.float64(rng.random(n) < 1 / (1 + np.exp(-effects[place])))
    return np.eye(P)[place], y, effects


def estimator(design: str, **settings: Any) -> Any:
    """The estimator of a design."""
    if design == "numbers":
        bounds = Bounds(row_norm=1.0, target=(-3, 3))
        return GLMRegressor(EPSILON, bounds=bounds, fit_intercept=False, **settings)
    bounds = Bounds(row_norm=1.0)
    return LogisticRegression(EPSILON, bounds=bounds, classes=[0, 1], fit_intercept=False, **settings)


def error(design: str, ends: str, solver: Solver, penalty: Penalty, n: int, seed: int) -> tuple[float, int]:
    """Relative error of the effects, and the number of plateaus."""
    X, y, effects = draw(design, ends, n, seed)
    model = estimator(design, solver=solver, penalty=penalty, random_state=seed).fit(X, y)
    found = np.ravel(model.coef_)
    return float(np.linalg.norm(found - effects) / np.linalg.norm(effects)), 1 + np.count_nonzero(
        np.diff(found)
    )


def best(
    design: str, ends: str, solver: Solver, kind: str, strengths: list[float], n: int, seeds: int
) -> tuple[float, float, float]:
    """Least mean error over the strengths, the strength that has it, and the mean number of plateaus."""
    found = []
    l2 = L2_PART if isinstance(solver, OutputPerturbation) else 0.0
    for strength in strengths:
        penalty = PENALTIES[kind](strength, l2)
        runs = [error(design, ends, solver, penalty, n, FIRST_SEED + k) for k in range(seeds)]
        mean, plateaus = np.mean(runs, axis=0).tolist()
        found.append((mean, strength, plateaus))
    return min(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tiny run whose figures mean nothing")
    options = parser.parse_args()
    warnings.simplefilter("ignore", PrivacyWarning)  # fixed seeds: a study, not a private fit
    warnings.simplefilter("ignore", UserWarning)  # strengths of L1 that leave nothing are tried, too
    strengths, n, seeds = (STRENGTHS[4::8], 500, 1) if options.quick else (STRENGTHS, N, SEEDS)
    print(
        "| | ends | solver | ridge | L1 | total variation | over the better one | plateaus |\n|" + "---|" * 8
    )
    for ends, (design, weak) in product(("equal", "drawn"), WEAK.items()):
        solvers = {
            "objective perturbation": ObjectivePerturbation(),
            f"the same, quadratic={weak:g}": ObjectivePerturbation(quadratic=weak),
            "gradient descent": GradientDescent(),
            "output perturbation": OutputPerturbation(),
        }
        if options.quick:
            solvers.pop(f"the same, quadratic={weak:g}")  # too weak for few records
        for name, solver in solvers.items():
            found = {kind: best(design, ends, solver, kind, strengths, n, seeds) for kind in PENALTIES}
            share = found["total variation"][0] / min(found["ridge"][0], found["L1"][0])
            errors = [f"{found[kind][0]:.3f} ({found[kind][1]:.1g})" for kind in PENALTIES]
            mark = "" if share <= LIMIT else f" MISSED {LIMIT:g}"
            plateaus = f"{found['total variation'][2]:.1f}"
            line = [design, ends, name, *errors, f"{share:.2f}{mark}", plateaus]
            print("| " + " | ".join(line) + " |", flush=True)


if __name__ == "__main__":
    main()
