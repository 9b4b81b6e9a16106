"""A pass of private coordinate descent against a pass of scikit-learn's Lasso, on the same array.

Both do p coordinate updates with residuals kept up to date. The private one also clips every record's
contribution, adds noise, and moves every coordinate. Lasso skips coordinates that stay 0 and screens out
those that it can prove to be 0, which noise forbids; its penalty is so small here that hardly any is. CPU
time, noise included, and the time that passes. BLAS has one thread: its idle ones spin for a while after
Lasso, and their CPU time would count for whoever runs next.
"""

from __future__ import annotations

import math
import time
import warnings

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso
from threadpoolctl import threadpool_limits
from timing import report, side_by_side

from dpglm import Bounds, Neighbours
from dpglm.curator import Curator
from dpglm.data import as_data
from dpglm.losses import Squared
from dpglm.mechanisms import Gaussian, Randomness
from dpglm.penalties import L1
from dpglm.problem import Problem
from dpglm.queries import CoordinateRule, CoordinateSums

PASSES = 10
ALPHA = 1e-4


def private_passes(X: object, y: np.ndarray, alpha: float) -> object:
    """A function that runs PASSES passes of DP-CD over an opened query."""
    n, p = X.shape
    problem = Problem(Squared(), L1(alpha), Bounds(row_norm=math.inf), fit_intercept=False)
    records = as_data(X, y, problem.bounds)
    step = n / np.asarray((X * X if isinstance(X, np.ndarray) else X.multiply(X)).sum(axis=0)).ravel()
    rule = CoordinateRule(step / n, step, *problem.coordinate_form(p))
    query = CoordinateSums(problem.loss, np.full(p, 3.0))

    def run() -> None:
        curator = Curator(records, Neighbours.REPLACE_ONE, Randomness())
        opened = curator.open(query, np.zeros(p), Gaussian(10.0))
        opened.descend(curator.pick(p, PASSES * p), rule)

    return run


def lasso_passes(X: object, y: np.ndarray, alpha: float) -> object:
    """A function that runs PASSES passes of scikit-learn's Lasso."""
    model = Lasso(
        alpha=alpha,
        tol=0.0,
        max_iter=PASSES,
        selection="random",
        fit_intercept=False,
        precompute=False,
        copy_X=False,
    )
    return lambda: model.fit(X, y)


def main() -> None:
    """Measure dense and sparse tables."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    rng = np.random.default_rng(0)
    dense = np.asfortranarray(rng.standard_normal((10_000, 1_000)))
    sparse = sp.random_array(
        (20_000, 5_000), density=0.005, format="csc", rng=rng, data_sampler=rng.standard_normal
    )
    for name, X in (("dense 10,000 x 1,000", dense), ("CSC 20,000 x 5,000", sparse)):
        w = rng.standard_normal(X.shape[1]) * (rng.random(X.shape[1]) < 0.05)
        y = X @ w + rng.standard_normal(X.shape[0])
        for kind, clock in (("CPU", time.process_time), ("passed", time.perf_counter)):
            with threadpool_limits(1):
                ours, theirs = side_by_side(
                    private_passes(X, y, ALPHA), lasso_passes(X, y, ALPHA), clock=clock
                )
            report(f"DP-CD pass / Lasso pass, {name}, {kind}", ours / PASSES, theirs / PASSES, goal=0.8)


if __name__ == "__main__":
    main()
