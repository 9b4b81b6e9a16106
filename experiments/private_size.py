"""What a private number of records costs: fits of Adult under zero-out and add-remove, side by side.

python experiments/private_size.py [--runs 10] [--quick]
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np

from dpglm import LogisticRegression
from dpglm.datasets import load_adult

DELTA = 1e-6
SIZES = (1_000, 4_000, 32_561)


def accuracies(size: int, neighbours: str, runs: int) -> list[float]:
    """Accuracy on the test part, of fits to the first rows."""
    adult = load_adult()
    found = []
    for seed in range(runs):
        model = LogisticRegression(
            1.0, delta=DELTA, neighbours=neighbours, classes=[-1, 1], random_state=seed
        ).fit(adult.X[:size], adult.y[:size])
        found.append(float(model.score(adult.X_test, adult.y_test)))
    return found


def main() -> None:
    """Print a row for each size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| records | zero-out | add-remove |\n|---|---|---|")
    for size in SIZES[:1] if given.quick else SIZES:
        cells = []
        for neighbours in ("zero-out", "add-remove"):
            found = accuracies(size, neighbours, given.runs)
            cells.append(f"{np.mean(found):.4f} ± {np.std(found) / np.sqrt(len(found)):.4f}")
        print(f"| {size:,} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
