"""Test accuracy on Adult with nothing set but epsilon: replace-one, delta = 1/n², defaults, 20 fits each.

Beside it stand the figures to reach: 84.0 % at epsilon 1 and 82.0 % at epsilon 0.1. For epsilon 0.1 the best
figure that we know to be published is 80.9 %, tuned without paying for it; gradient descent tuned without
paying reaches 84.5 % and 82.9 %. The defaults were chosen on tables that include this one (docs/defaults.md).
The last line says how far objective perturbation is from the best solver at epsilon 1.
"""

from __future__ import annotations

import argparse

import numpy as np
from sklearn.base import clone

from dpglm import Bounds, LinearSVC, LogisticRegression
from dpglm.datasets import load_adult

GOALS = {0.1: 0.820, 1.0: 0.840}
SOLVERS = {
    "auto": LogisticRegression(classes=[-1, 1]),
    "coordinate-descent": LogisticRegression(classes=[-1, 1], solver="coordinate-descent"),
    "dual-coordinate-descent": LogisticRegression(classes=[-1, 1], solver="dual-coordinate-descent"),
    "dual-coordinate-descent, SVM": LinearSVC(classes=[-1, 1]),
    "objective-perturbation": LogisticRegression(classes=[-1, 1], solver="objective-perturbation"),
}
ALLOWED = 0.005


def main() -> None:
    """Print mean, deviation and range of the accuracy for each epsilon and solver."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20, help="fits for each epsilon")
    parser.add_argument("--quick", action="store_true", help="the first 2,000 records only")
    options = parser.parse_args()
    adult, runs = load_adult(), options.runs
    X, y = (part[: 2_000 if options.quick else None] for part in (adult.X, adult.y))
    exact = LogisticRegression(float("inf"), bounds=Bounds(row_norm=1.0), classes=[-1, 1]).fit(X, y)
    majority = np.mean(adult.y_test == -1)
    print(f"not private {exact.score(adult.X_test, adult.y_test):.4f}, majority {majority:.4f}\n")
    print("| solver | epsilon | mean | deviation | least | most | goal |\n|---|---|---|---|---|---|---|")
    at_one = {}
    for solver, estimator in SOLVERS.items():
        for epsilon in (0.01, 0.1, 1.0, 10.0):
            model = clone(estimator).set_params(epsilon=epsilon)
            scores = [model.fit(X, y).score(adult.X_test, adult.y_test) for _ in range(runs)]
            mean, goal = float(np.mean(scores)), GOALS.get(epsilon) if solver == "auto" else None
            verdict = "" if goal is None else f"{goal:.3f} {'reached' if mean >= goal else 'MISSED'}"
            spread = f"{np.std(scores):.4f} | {min(scores):.4f} | {max(scores):.4f}"
            print(f"| {solver} | {epsilon:g} | {mean:.4f} | {spread} | {verdict} |", flush=True)
            if epsilon == 1.0:
                at_one[solver] = mean
    best = max(at_one, key=lambda solver: at_one[solver])
    behind = at_one[best] - at_one["objective-perturbation"]
    print(
        f"\nobjective perturbation at epsilon 1: {100 * behind:.2f} points behind the best ({best}), "
        f"{'within' if behind <= ALLOWED else 'MISSES'} {100 * ALLOWED:g}"
    )


if __name__ == "__main__":
    main()
