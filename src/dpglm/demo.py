"""``make demo``: a private model of the Adult census table, its promise and a picture."""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib
import numpy as np

from dpglm import Bounds, LogisticRegression
from dpglm.arrays import Vector
from dpglm.datasets import Adult, load_adult

EPSILONS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)


def main(arguments: list[str] | None = None) -> None:
    """Train on Adult, print the promise and the model, draw privacy against accuracy."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--out", type=Path, default=Path("privacy_accuracy.png"), help="where to write the picture"
    )
    parser.add_argument("--runs", type=int, default=3, help="fits for each epsilon of the picture")
    options = parser.parse_args(arguments)

    adult = load_adult()
    print("Adult: does a person of the 1994 census earn more than 50,000 dollars a year?")
    n, p = adult.X.shape
    print(f"{n} records to learn from, {adult.X_test.shape[0]} to test on, {p} features\n")

    model = LogisticRegression(epsilon=1.0, classes=[-1, 1]).fit(adult.X, adult.y)
    exact = _fit(adult, float("inf"))
    majority = max(np.mean(adult.y_test == label) for label in (-1, 1))

    print("The promise (model.privacy_)\n")
    print(model.privacy_, "\n")
    print("The model: the features with the largest coefficients, for and against\n")
    order = np.argsort(model.coef_[0])
    for j in [*order[::-1][:6], *order[:6][::-1]]:
        print(f"  {model.coef_[0][j]:+7.2f}  {adult.feature_names[j]}")
    print("\nAccuracy on the test part")
    print(f"  private, epsilon = 1     {model.score(adult.X_test, adult.y_test):.2%}")
    print(f"  not private, no noise    {_accuracy(exact, adult):.2%}")
    print(f"  always the larger class  {majority:.2%}")

    curve = [[_accuracy(_fit(adult, epsilon), adult) for _ in range(options.runs)] for epsilon in EPSILONS]
    _draw(np.array(curve), _accuracy(exact, adult), float(majority), options.out)
    print(f"\nA picture of privacy against accuracy: {options.out}")


def _fit(adult: Adult, epsilon: float) -> LogisticRegression:
    bounds = Bounds(row_norm=1.0)
    return LogisticRegression(epsilon, bounds=bounds, classes=[-1, 1]).fit(adult.X, adult.y)


def _accuracy(model: LogisticRegression, adult: Adult) -> float:
    return float(model.score(adult.X_test, adult.y_test))


def _draw(curve: Vector, exact: float, majority: float, out: Path) -> None:
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
    mean = curve.mean(axis=1)
    axes.fill_between(EPSILONS, curve.min(axis=1), curve.max(axis=1), alpha=0.25, linewidth=0)
    axes.plot(EPSILONS, mean, marker="o", label=f"dpglm, mean and range of {curve.shape[1]} fits")
    axes.axhline(exact, color="black", linestyle="--", linewidth=1, label="not private")
    axes.axhline(majority, color="grey", linestyle=":", linewidth=1, label="always the larger class")
    axes.set_xscale("log")
    axes.set_xlabel("epsilon (smaller: more private), delta = 1/n²")
    axes.set_ylabel("accuracy on the test part of Adult")
    axes.yaxis.set_major_formatter(matplotlib.ticker.PercentFormatter(1.0))
    axes.legend(frameon=False, loc="center right")
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(out, dpi=150)
    plt.close(figure)


if __name__ == "__main__":
    main()
