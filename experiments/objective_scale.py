"""How objective perturbation with its defaults gets better with more records, and which noise is in the way.

For each number of records and epsilon: the root mean square distance of released coefficients from the
minimiser of their own objective without noise, the deviation of coefficients that the linear term causes
along a direction of curvature 0.1, and that of the noise that hides that a minimiser is not exact. Sizes that
are not fitted are planned.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from outputs import write_csv

from dpglm import Bounds, Budget, Neighbours
from dpglm.curator import Curator
from dpglm.data import as_data
from dpglm.errors import UnsupportedProblem
from dpglm.losses import Logistic
from dpglm.mechanisms import LinearTerm, Randomness
from dpglm.penalties import Zero
from dpglm.problem import Problem
from dpglm.solvers import ObjectivePerturbation
from dpglm.solvers.perturbation import minimiser

P = 10
CURVATURE = 0.1
PROBLEM = Problem(Logistic(), Zero(), Bounds(row_norm=1.0), fit_intercept=False)


@dataclass(frozen=True)
class Row:
    """What is found for one size and epsilon; distances of sizes that are only planned are NaN."""

    n: int
    epsilon: float
    distance: float
    linear_term: float
    finishing: float
    share: float
    seconds_a_fit: float


def table(n: int) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
    """Rows of norm about 1 and labels that follow them, in single precision."""
    rng = np.random.default_rng(n)
    X = rng.standard_normal((n, P), dtype=np.float32)
    X /= np.float32(np.sqrt(P))
    signal = X @ np.linspace(-3, 3, P, dtype=np.float32)
    return X, np.where(signal + rng.logistic(size=n) > 0, 1.0, -1.0)


def measured(n: int, epsilon: float, fits: int) -> Row:
    """A row of the table; without fits, of the plan alone."""
    solver, relation = ObjectivePerturbation(), Neighbours.REPLACE_ONE
    plan = solver.plan(PROBLEM, n, P, Budget(epsilon, n**-2.0), relation)
    query = minimiser(PROBLEM, n, P, plan.clip, plan.quadratic)
    mechanism = plan[query.name].mechanism
    assert isinstance(mechanism, LinearTerm)
    linear = plan.deviation / (query.strength + CURVATURE)
    finishing = mechanism.deviation(query, relation.records_moved * plan.clip)
    distance = seconds = float("nan")
    if fits:
        records = as_data(*table(n), PROBLEM.bounds)
        silent = replace(plan, releases=tuple(release.scaled(0.0) for release in plan.releases))
        exact = solver.run(silent, PROBLEM, Curator(records, relation, Randomness(0))).w
        before = time.process_time()
        found = [
            solver.run(plan, PROBLEM, Curator(records, relation, Randomness(seed))).w for seed in range(fits)
        ]
        seconds = (time.process_time() - before) / fits
        distance = float(np.sqrt(np.mean(np.square(np.array(found) - exact))))
    return Row(n, epsilon, distance, linear, finishing, finishing / linear, seconds)


def markdown(rows: list[Row]) -> str:
    """The rows as a table."""
    lines = [
        "| n | epsilon | distance | linear term | finishing noise | their ratio | CPU seconds a fit |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        distance = "planned" if np.isnan(row.distance) else f"{row.distance:.1e}"
        seconds = "" if np.isnan(row.seconds_a_fit) else f"{row.seconds_a_fit:.2g}"
        lines.append(
            f"| {row.n:.0e} | {row.epsilon:g} | {distance} | {row.linear_term:.1e} | {row.finishing:.1e} "
            f"| {row.share:.1e} | {seconds} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Print the table and write it as CSV."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--largest", type=int, default=7, help="largest power of ten that is fitted")
    parser.add_argument("--fits", type=int, default=10, help="fits for each size and epsilon")
    parser.add_argument("--quick", action="store_true", help="seconds, to see that it runs")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    arguments = parser.parse_args()
    largest, fits = (4, 2) if arguments.quick else (arguments.largest, arguments.fits)
    rows = []
    for epsilon in (1.0, 8.0):
        for power in range(3 if arguments.quick else 4, 10):
            try:
                rows.append(measured(10**power, epsilon, fits if power <= largest else 0))
            except UnsupportedProblem as refused:
                print(f"n = 1e{power}, epsilon {epsilon:g}: refused, {refused}", flush=True)
    arguments.out.mkdir(parents=True, exist_ok=True)
    write_csv(rows, Row, arguments.out / "objective_scale.csv")
    print(markdown(rows))


if __name__ == "__main__":
    main()
