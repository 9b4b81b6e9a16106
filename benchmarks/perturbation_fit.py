"""A private fit by objective perturbation against scikit-learn's LogisticRegression on the same problem.

Both minimise the logistic loss with the same L2 part, the quadratic term that the private plan asks for,
without an intercept. The private fit knows the noise for its budget from an earlier one, draws it and
certifies its minimiser to a small part of what one record can add to the gradient. scikit-learn stops at
its default tolerance, and in a second line at one that is near to that precision.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from real_tables import measure_both
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from timing import report, side_by_side

from dpglm import Bounds, Budget, Neighbours
from dpglm.curator import Curator
from dpglm.data import as_data
from dpglm.losses import Logistic
from dpglm.mechanisms import Randomness
from dpglm.penalties import Zero
from dpglm.problem import Problem
from dpglm.solvers import ObjectivePerturbation

ROUNDS = 5
GOAL = 3.0
PRECISE = 1e-9


def measure(name: str, X: Any, y: np.ndarray) -> None:
    """Print the ratios for one table, its rows scaled to norm 1."""
    n, p = X.shape
    X = sp.csr_array(X / 14**0.5) if name == "Adult" else X
    problem = Problem(Logistic(), Zero(), Bounds(row_norm=1.0), fit_intercept=False)
    solver = ObjectivePerturbation()
    plan = solver.plan(problem, n, p, Budget(1.0, 1 / n**2), Neighbours.REPLACE_ONE)

    def private() -> None:
        again = solver.plan(problem, n, p, plan.budget, plan.neighbours)
        solver.run(again, problem, Curator(as_data(X, y, problem.bounds), plan.neighbours, Randomness()))

    for tolerance in (1e-4, PRECISE):
        plain = LogisticRegression(
            C=1 / (n * plan.quadratic), fit_intercept=False, tol=tolerance, max_iter=10_000
        )
        ours, theirs = side_by_side(private, lambda plain=plain: plain.fit(X, y), ROUNDS)
        report(f"private fit / LogisticRegression(tol={tolerance:g}), {name}", ours, theirs, GOAL)


if __name__ == "__main__":
    warnings.simplefilter("ignore", ConvergenceWarning)
    measure_both(measure)
