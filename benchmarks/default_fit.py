"""CPU time of default fits: against scikit-learn's in the same run, and against another version of dpglm.

Dense tables are arrays in memory with uniform features and declared bounds; epsilon is 1, all else is left at
its default. scikit-learn fits the same model without privacy. BLAS has one thread, since threads that wait on
a busy machine count as CPU time. RCV1 and news20 are the real tables; ``--before
SRC`` names the ``src`` folder of another checkout, whose default fits of them take turns with ours in
processes of their own.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from real_tables import DATA
from sklearn import linear_model
from threadpoolctl import threadpool_limits
from timing import report, side_by_side

from dpglm import Bounds, LogisticRegression, Ridge

PLAIN_GOAL, BEFORE_GOAL = 3.0, 0.5
FITS = 2
TEXTS = {"RCV1": ("rcv1_binary", "X_train", "y_train"), "news20": ("news20_binary", "counts", "y")}


def logistic(n: int, p: int, rounds: int) -> None:
    """Print the ratio to scikit-learn's LogisticRegression."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (n, p))
    y = np.where(rng.random(n) < 1 / (1 + np.exp(0.5 - X @ rng.normal(0, 3 / np.sqrt(p), p))), 1, -1)
    ours = LogisticRegression(epsilon=1.0, bounds=Bounds(feature=1.0), classes=[-1, 1])
    _compare(ours, linear_model.LogisticRegression(), X, y, rounds)


def multinomial(n: int, p: int, classes: int, rounds: int) -> None:
    """Print the ratio to scikit-learn's LogisticRegression with several classes."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (n, p))
    y = (X @ rng.normal(0, 3 / np.sqrt(p), (p, classes)) + rng.gumbel(size=(n, classes))).argmax(axis=1)
    ours = LogisticRegression(epsilon=1.0, bounds=Bounds(feature=1.0), classes=np.arange(classes))
    _compare(ours, linear_model.LogisticRegression(), X, y, rounds)


def ridge(n: int, p: int, rounds: int) -> None:
    """Print the ratio to scikit-learn's Ridge."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (n, p))
    y = np.clip(X @ rng.normal(0, 0.5 / np.sqrt(p), p) + rng.normal(0, 0.2, n), -1, 1)
    ours = Ridge(epsilon=1.0, bounds=Bounds(feature=1.0, target=(-1.0, 1.0)))
    _compare(ours, linear_model.Ridge(), X, y, rounds)


def _compare(ours: Any, theirs: Any, X: np.ndarray, y: np.ndarray, rounds: int) -> None:
    with threadpool_limits(1):
        seconds = side_by_side(lambda: ours.fit(X, y), lambda: theirs.fit(X, y), rounds, time.process_time)
    plan = ours.plan_
    name = f"{plan.solver} ({plan.passes} passes) / {type(theirs).__name__}, {len(X):,} x {X.shape[1]}"
    report(name, *seconds, PLAIN_GOAL)


def text(name: str, data: Path) -> tuple[sp.csr_array, np.ndarray]:
    """A text table: rows of norm 1, log(1 + count) where the table has counts."""
    folder, entries, labels = TEXTS[name]
    X = sp.csr_array(sp.load_npz(data / folder / f"{entries}.npz")).astype(float)
    if entries == "counts":
        X.data = np.log1p(X.data)
        X.data /= np.repeat(np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel()), np.diff(X.indptr))
    return X, np.load(data / folder / f"{labels}.npy").astype(float)


def work(name: str, data: Path) -> None:
    """Print the least CPU time of a default fit of a text table, and its passes, after a fit to warm up."""
    X, y = text(name, data)
    model = LogisticRegression(epsilon=1.0, bounds=Bounds(row_norm=1.0), classes=[-1.0, 1.0])
    model.fit(X[:200], y[:200])
    least = float("inf")
    for _ in range(FITS):
        start = time.process_time()
        model.fit(X, y)
        least = min(least, time.process_time() - start)
    plan = model.plan_  # an old version has no passes, one for each step
    print(json.dumps([least, str(getattr(plan, "passes", plan.steps))]))


def run(name: str, data: Path, source: str) -> list[Any]:
    """The same in a process of its own, with the dpglm of a folder."""
    command = [sys.executable, __file__, "--work", name, "--data", str(data)]
    environment = os.environ | {"PYTHONPATH": source}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    found: list[Any] = json.loads(done.stdout)
    return found


def against(name: str, data: Path, before: str) -> None:
    """Print the ratio to the default fit of another version."""
    now = str(Path(__file__).resolve().parents[1] / "src")
    turns = [(run(name, data, now), run(name, data, before)) for _ in "ab"]
    ours, theirs = (min(turn[which] for turn in turns) for which in (0, 1))
    report(
        f"default fit of {name} ({ours[1]} passes) / {theirs[1]} passes before",
        ours[0],
        theirs[0],
        BEFORE_GOAL,
    )


def main() -> None:
    """Compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="share of the rows of dense tables")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--before", help="the src folder of another version")
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--work", choices=TEXTS, help=argparse.SUPPRESS)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.work:
        work(given.work, given.data)
        return
    logistic(int(300_000 * given.scale), 100, given.rounds)
    multinomial(int(100_000 * given.scale), 54, 7, given.rounds)
    ridge(int(200_000 * given.scale), 30, given.rounds)
    for name, (folder, *_) in TEXTS.items():
        if given.before is None or not (given.data / folder).exists():
            print(f"{name} is not compared: that needs --before and the table in {given.data}")
        else:
            against(name, given.data, given.before)


if __name__ == "__main__":
    main()
