"""The first fit of a fresh process, with the caches of compiled code cold and warm.

The clock runs from the first line of the process, imports included. The competitor is scikit-learn's
logistic regression in a process of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

FIT = """
import time
start = time.perf_counter()
import numpy as np
rng = np.random.default_rng(0)
X = rng.standard_normal((10_000, 50))
y = np.where(X[:, 0] > 0, 1, -1)
{fit}
print(time.perf_counter() - start)
"""
OURS = """
from dpglm import LogisticRegression
LogisticRegression(1.0, classes=[-1, 1], solver={solver!r}).fit(X, y)
"""
THEIRS = "from sklearn.linear_model import LogisticRegression\nLogisticRegression().fit(X, y)"


def seconds(fit: str, cache: str) -> float:
    """Seconds of a fit in a fresh process whose compiled code is cached in a folder."""
    environment = os.environ | {"NUMBA_CACHE_DIR": cache}
    done = subprocess.run(
        [sys.executable, "-c", FIT.format(fit=fit)],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return float(done.stdout)


def main() -> None:
    """Measure both solvers."""
    with tempfile.TemporaryDirectory() as cache:
        print(f"scikit-learn's LogisticRegression, fresh process: {seconds(THEIRS, cache):.2f} s")
    for solver in ("gradient-descent", "coordinate-descent"):
        fit = OURS.format(solver=solver)
        with tempfile.TemporaryDirectory() as cache:
            cold, warm = seconds(fit, cache), min(seconds(fit, cache) for _ in range(3))
        for name, taken, goal in (("cold", cold, 8.0), ("warm", warm, 2.0)):
            verdict = "ok" if taken <= goal else "MISSED"
            print(f"{solver}, caches {name}: {taken:.2f} s, goal {goal:.0f} s  {verdict}")


if __name__ == "__main__":
    main()
