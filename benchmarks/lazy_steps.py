"""Frank-Wolfe steps of dpglm with their set-up timed apart, on the problem that the competitors solve.

Times of steps are CPU seconds: waiting for a busy machine counts for nobody.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from dpglm import Bounds, Budget, LogisticRegression, Neighbours
from dpglm.curator import rounding_factor
from dpglm.data import Records, as_data
from dpglm.losses import Logistic
from dpglm.mechanisms import Exponential, Randomness
from dpglm.penalties import L1Ball
from dpglm.problem import Problem
from dpglm.queries import VertexScores
from dpglm.queries.frank_wolfe_lazy import LazyVertices
from dpglm.solvers import FrankWolfe

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
STEPS, RADIUS, CLIP = 4_000, 50.0, 1.0
SIZES = 2 / (np.arange(1.0, STEPS + 1) + 2)
PROBLEM = Problem(Logistic(), L1Ball(RADIUS), Bounds(row_norm=1.0), fit_intercept=False)


@dataclass(frozen=True)
class Steps:
    """What a run of all steps took (CPU seconds, and seconds that passed), selected and read."""

    seconds: float
    passed: float
    set_up: float
    choices: NDArray[np.int64]
    work: NDArray[np.int64]


def cpu(run: Callable[[], object]) -> float:
    """CPU seconds."""
    start = time.process_time()
    run()
    return time.process_time() - start


def wall(run: Callable[[], object]) -> float:
    """Seconds that pass: for what uses more than one processor."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def rcv1(data: Path = DATA) -> tuple[Any, NDArray[np.float64]]:
    """The training rows of RCV1, of norm 1, and their labels."""
    folder = data / "rcv1_binary"
    table = sp.csr_array(sp.load_npz(folder / "X_train.npz"))
    return table, np.load(folder / "y_train.npy").astype(np.float64)


def model(epsilon: float) -> LogisticRegression:
    """The estimator whose fits are timed."""
    solver = FrankWolfe(steps=STEPS, clip=CLIP)
    return LogisticRegression(
        epsilon, penalty=PROBLEM.penalty, solver=solver, fit_intercept=False, bounds=PROBLEM.bounds,
        neighbours="replace-one", classes=[-1, 1],
    )  # fmt: skip


def mechanism(n: int, p: int, epsilon: float) -> Exponential:
    """How vertices are selected, at delta 1/n²."""
    budget = Budget.for_records(epsilon, None, n)
    plan = FrankWolfe(steps=STEPS, clip=CLIP).plan(PROBLEM, n, p, budget, Neighbours.REPLACE_ONE)
    (release,) = plan.releases
    assert isinstance(release.mechanism, Exponential)
    return release.mechanism


def law(n: int, p: int, epsilon: float) -> tuple[float, float]:
    """Grid of the scores, and the scale: a vertex is selected in proportion to exp(score / scale)."""
    sensitivity = CLIP * Neighbours.REPLACE_ONE.records_moved * rounding_factor(n, p)
    return mechanism(n, p, epsilon).law(sensitivity)


def records(X: Any, y: Any) -> Records:
    """The table by rows and by columns."""
    data = as_data(X, y, PROBLEM.bounds)
    _ = data.both_ways
    return data


def touch(data: Records) -> None:
    """Read a number of each page of the table, both ways, where it is there.

    The host of a virtual machine may take away memory that was not read for some 20 seconds, while arrays
    are set up: then a page costs 3 to 77 microseconds at the next touch. A step of the standard algorithm
    reads all of the table, and has the pages from the step before.
    """
    for table in data.on_demand.held.table:
        for part in table:
            part[:: 4096 // part.itemsize].sum()


def run(data: Records, grid: float, scale: float, seed: int = 0) -> Steps:
    """All steps from w = 0; pages of the table are touched before the time begins."""
    randomness, taken, passed = Randomness(seed), 0.0, 0.0

    def timed(*arguments: Any) -> None:
        nonlocal taken, passed
        touch(data)
        begun = time.perf_counter()
        taken += cpu(lambda: randomness.run_on(*arguments))
        passed += time.perf_counter() - begun

    start = time.process_time()
    n, p = data.n_records, data.n_features
    query = VertexScores(PROBLEM.loss, CLIP, p, 1.0)
    lazy = LazyVertices(query, data, np.zeros(n), 0.0, RADIUS, grid, scale)
    choices = lazy.run(SIZES, timed)
    return Steps(taken, passed, time.process_time() - start - taken, choices, lazy.work)


def sharpness(X: Any, scale: float) -> float:
    """The largest sum of a column without negative entries, in units of the scale."""
    return float((X.T @ np.ones(X.shape[0], dtype=X.dtype)).max()) / scale
