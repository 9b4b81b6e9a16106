"""A pass of dual coordinate descent over the records against a pass of scikit-learn's LinearSVC(dual=True).

Both are on the hinge loss without an intercept. A pass without noise steps from record to record in random
order, as liblinear does. A private pass is one of batches of the default size: coins for every record, a step
of every record of the batch, the sum of all, and noise on every feature of it. liblinear leaves out records
that it takes to be settled ("shrinking"), which coins forbid: its time is that of its first ten passes.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from real_tables import measure_both
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC
from timing import report

from dpglm import Bounds, Budget, Neighbours
from dpglm.curator import Curator
from dpglm.data import as_data
from dpglm.losses import Hinge
from dpglm.mechanisms import Gaussian, Randomness
from dpglm.penalties import L2
from dpglm.problem import Problem
from dpglm.queries import DualForm, DualStep
from dpglm.solvers import DualCoordinateDescent

PASSES = 10
MOST_STEPS = 50  # of a private fit: what a pass takes does not depend on their number
ROUNDS = 15
GOAL = 1.5


def seconds(run: Any) -> np.ndarray:
    """CPU seconds of all threads, and seconds that pass, of one call."""
    start = np.array([time.process_time(), time.perf_counter()])
    run()
    return np.array([time.process_time(), time.perf_counter()]) - start


def measure(name: str, X: Any, y: np.ndarray) -> None:
    """Print the ratios for one table."""
    n, p = X.shape
    problem = Problem(Hinge(), L2(1 / n), Bounds(row_norm=1.0), fit_intercept=False)
    records = as_data(X, y, problem.bounds)
    form = DualForm(n, *problem.coordinate_form(p))

    def one_by_one() -> None:
        curator = Curator(records, Neighbours.REPLACE_ONE, Randomness())
        query, v = DualStep(problem.loss, np.inf, 1.0, 0.0), np.zeros(p)
        opened = curator.open(query, v, Gaussian(0.0))
        for _ in range(PASSES):
            v, *_ = opened.ascend(v, form, curator.order(n), 1)

    solver = DualCoordinateDescent()
    plan = solver.plan(problem, n, p, Budget(1.0, 1 / n**2), Neighbours.REPLACE_ONE)
    plan = replace(plan, steps=min(plan.steps, MOST_STEPS))
    passes = plan.steps * plan.batch_size / n

    def private() -> None:
        solver.run(plan, problem, Curator(records, plan.neighbours, Randomness()))

    def liblinear(most: int) -> Any:
        model = LinearSVC(
            loss="hinge", dual=True, tol=1e-30, max_iter=most, fit_intercept=False, random_state=0
        )
        return lambda: model.fit(X, y)

    for run in (one_by_one, private):
        run()  # compile, and bring the table into memory
    times = np.array(
        [
            (
                seconds(one_by_one) / PASSES,
                seconds(private) / passes,
                seconds(liblinear(1)),
                seconds(liblinear(1 + PASSES)),
            )
            for _ in range(ROUNDS)
        ]
    ).min(axis=0)
    theirs = (times[3] - times[2]) / PASSES
    for clock, what in enumerate(("CPU time", "time that passes")):
        ours, private_pass = times[0, clock], times[1, clock]
        report(f"pass without noise / LinearSVC's, {name}, {what}", ours, theirs[clock], GOAL)
        label = f"private, batches of {plan.batch_size:,} / LinearSVC's, {name}, {what}"
        report(label, private_pass, theirs[clock], GOAL)


if __name__ == "__main__":
    warnings.simplefilter("ignore", ConvergenceWarning)
    measure_both(measure)
