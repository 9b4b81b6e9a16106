"""A clipped gradient of all records against the two products of BLAS, and against another version of dpglm.

CPU time of one thread. ``--before SRC`` names the ``src`` folder of another checkout; both versions then take
turns in processes of their own, on the same tables.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time

import numpy as np
import scipy.sparse as sp

ROUNDS = 5


def tables(scale: float) -> dict[str, object]:
    """Tables of the shapes that are compared, with a share of their rows."""
    rng = np.random.default_rng(0)

    def sparse(n: int, p: int, entries: int) -> sp.csr_array:
        n = int(n * scale)
        columns = np.sort(rng.integers(0, p, (n, entries)), axis=1).ravel()
        ends = np.arange(0, n * entries + 1, entries)
        table = sp.csr_array((rng.random(n * entries), columns, ends), shape=(n, p))
        table.sum_duplicates()
        return table

    return {
        "2,000,000 x 50 float32": rng.standard_normal((int(2_000_000 * scale), 50), dtype=np.float32),
        "200,000 x 500 float64": rng.standard_normal((int(200_000 * scale), 500)),
        "CSR 20,000 x 1,360,000, 450 a row": sparse(20_000, 1_360_000, 450),
        "CSR 500,000 x 1,000,000, 100 a row": sparse(500_000, 1_000_000, 100),
    }


def work(scale: float) -> None:
    """Print the least CPU time of a gradient and of the two products, for each table."""
    from dpglm import Bounds
    from dpglm.data import as_data
    from dpglm.losses import Logistic
    from dpglm.queries import ClippedGradient

    try:
        from dpglm import threads
    except ImportError:  # an older version
        from dpglm.data import parts as threads
    threads.PROCESSORS = 1
    found = {}
    for name, X in tables(scale).items():
        rng = np.random.default_rng(1)
        n, p = X.shape
        y, w = rng.choice([-1.0, 1.0], n), rng.standard_normal(p + 1)
        records, query = as_data(X, y, Bounds(row_norm=1.0), 0.5), ClippedGradient(Logistic(), 0.8)
        products = (w[:-1].astype(X.dtype), y.astype(X.dtype))
        least = [np.inf, np.inf]
        for _ in range(ROUNDS):
            start = time.process_time()
            query(records, w)
            middle = time.process_time()
            _ = X @ products[0], X.T @ products[1]
            end = time.process_time()
            least = [min(least[0], middle - start), min(least[1], end - middle)]
        found[name] = least
    print(json.dumps(found))


def run(source: str | None, scale: float) -> dict[str, list[float]]:
    """The same in a process of its own, with the dpglm of a folder."""
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    if source:
        environment["PYTHONPATH"] = source
    command = [sys.executable, __file__, "--work", "--scale", str(scale)]
    found: dict[str, list[float]] = json.loads(
        subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    )
    return found


def main() -> None:
    """Compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", help="the src folder of another version")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the rows")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        work(options.scale)
        return
    turns = [(run(None, options.scale), options.before and run(options.before, options.scale)) for _ in "ab"]
    for name in turns[0][0]:
        ours = min(now[name][0] for now, _ in turns)
        products = min(now[name][1] for now, _ in turns)
        line(f"gradient / (X @ w and X.T @ r), {name}", ours, products, None if "CSR" in name else 0.85)
        if options.before:
            before = min(old[name][0] for _, old in turns)
            line(f"gradient / that of {options.before}, {name}", ours, before, 1.15 if "CSR" in name else 0.9)


def line(name: str, ours: float, theirs: float, goal: float | None) -> None:
    """Print a ratio beside its goal, if there is one."""
    verdict = "" if goal is None else f"goal {goal:4.2f}  {'ok' if ours <= goal * theirs else 'MISSED'}"
    print(f"{name:<80} {ours * 1e3:9.1f} ms {theirs * 1e3:9.1f} ms  ratio {ours / theirs:5.2f}  {verdict}")


if __name__ == "__main__":
    main()
