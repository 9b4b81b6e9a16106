"""Fit diffprivlib's LogisticRegression many times, in an environment of its own."""

from __future__ import annotations

import json
import sys
import warnings

import numpy as np
from diffprivlib.models import LogisticRegression


def main(table: str, models: str, runs: str, options: str) -> None:
    """Read a table, write the coefficients and intercepts of all fits."""
    data = np.load(table)
    warnings.simplefilter("ignore")
    fits = [LogisticRegression(**json.loads(options)).fit(data["X"], data["y"]) for _ in range(int(runs))]
    np.savez(
        models,
        coef=np.array([np.ravel(fit.coef_) for fit in fits]),
        intercept=np.array([np.ravel(fit.intercept_)[0] for fit in fits]),
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
