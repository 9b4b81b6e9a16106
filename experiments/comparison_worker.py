"""Fit another library's logistic regression in an environment of its own; `comparison.py` starts it.

    python comparison_worker.py LIBRARY TABLE.npz MODELS.npz EPSILON DELTA FITS

The table is dense, its rows have a public norm, and its labels are 0 and 1. No setting was tuned: those
that a library demands were written down before the first run, and are named on the page that shows the
figures.
"""

from __future__ import annotations

import sys
import time
import warnings
from importlib.metadata import version
from typing import Any

import numpy as np

NORM = np.sqrt(14)
"""Adult has 14 attributes, and a row has a one for each that is known."""

Model = tuple[Any, float]
"""Coefficients and intercept."""


def diffprivlib(X: Any, y: Any, epsilon: float, delta: float) -> Model:
    """Objective perturbation with pure privacy, so `delta` is not used; rows have a declared norm."""
    from diffprivlib.models import LogisticRegression

    fit = LogisticRegression(epsilon=epsilon, data_norm=NORM).fit(X, y)
    return np.ravel(fit.coef_), float(np.ravel(fit.intercept_)[0])


def snapml(X: Any, y: Any, epsilon: float, delta: float) -> Model:
    """With its defaults; delta is 0.01, whatever is asked for, and it has no intercept."""
    from snapml import LogisticRegression

    norm = np.sqrt(NORM**2 + 1)
    rows = np.column_stack([X, np.ones(len(X))]) / norm
    model = LogisticRegression(dual=False, privacy=True, privacy_epsilon=epsilon)
    fit = model.fit(rows, np.where(y > 0, 1.0, -1.0))
    w = np.ravel(fit.coef_) / norm
    return w[:-1], float(w[-1])


LIBRARIES = {"diffprivlib": diffprivlib, "snapml": snapml}


def main(library: str, table: str, models: str, epsilon: str, delta: str, fits: str) -> None:
    """Read a table, write the models, their CPU time and the version of the library."""
    warnings.simplefilter("ignore")
    data = np.load(table)
    start = time.process_time()
    found = [LIBRARIES[library](data["X"], data["y"], float(epsilon), float(delta)) for _ in range(int(fits))]
    seconds = (time.process_time() - start) / len(found)
    np.savez(
        models, coef=[w for w, _ in found], intercept=[b for _, b in found], seconds=seconds,
        version=version(library),
    )  # fmt: skip


if __name__ == "__main__":
    main(*sys.argv[1:])
