"""Which features matter: a norm that knows their structure against plain L1, at the same promise.

A linear model over 60 features, of which twelve matter: two of ten groups of six, or an interval. *Score* is
the share of these that are found less the share of the others that are kept: 1 for the true set, 0 for all
features and for none. *Exact* is the share of fits with the true set and no other.

    python experiments/structured_recovery.py           # minutes; CSV with recall and precision in results
    python experiments/structured_recovery.py --quick   # seconds, too small to mean anything

Both penalties follow one rule, from public quantities alone; the norm enters by `level` only, and nothing is
tuned. The strength is 1.25 * level * deviation, where the deviation is that of an entry of the gradient: of
records, that of targets spread over their range times a typical entry of a row over the root of n, and for
objective perturbation of its linear term, too. That solver has a quadratic term of its own; the others get an
L2 part as strong as the loss is smooth, for which noise is least beside the coefficients (which it makes
small: they tell which features to fit, and are no model). Objective perturbation hides the last digits of its
result under a little noise, and its zeros are what is below four deviations of that.
"""

from __future__ import annotations

import argparse
import csv
import math
import warnings
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpglm import Bounds, GLMRegressor
from dpglm.errors import PrivacyWarning
from dpglm.penalties import Cardinality, GroupCover, Range, SetFunction, Submodular
from dpglm.queries.minimiser import TOLERANCE
from dpglm.solvers import DualFrankWolfe, ObjectivePerturbation, OutputPerturbation, Solver

P, ACTIVE, GROUP = 60, 12, 6
SIGNAL, NOISE, HALF_RANGE = 0.3, 0.2, 1.0
BOUNDS = Bounds(row_norm=1.0, target=(-HALF_RANGE, HALF_RANGE))
GROUPS = np.arange(P).reshape(-1, GROUP)
DESIGNS: dict[str, SetFunction] = {
    "groups": GroupCover(GROUPS.tolist()),
    "interval": Range(P),
    "uneven interval": Range(P),
}
SOLVERS: tuple[Solver, ...] = (ObjectivePerturbation(), OutputPerturbation(), DualFrankWolfe())
EPSILONS = (0.5, 1.0, 2.0, 5.0, 10.0)
SEEDS = {500: 20, 5_000: 20, 50_000: 8}
FACTOR, L2, DRAWS = 1.25, 1.0, 200

Vector = NDArray[np.float64]
Mask = NDArray[np.bool_]
Row = dict[str, Any]


def draw(design: str, n: int, seed: int) -> tuple[Vector, Vector, Mask]:
    """Rows of norm 1 with entries of one size, targets, and which features matter."""
    rng = np.random.default_rng(seed)
    true = np.zeros(P, dtype=bool)
    if design == "groups":
        true[GROUPS[rng.choice(len(GROUPS), ACTIVE // GROUP, replace=False)]] = True
    else:
        first = rng.integers(P - ACTIVE, endpoint=True)
        true[first : first + ACTIVE] = True
    w = true * rng.choice([-1.0, 1.0], P)
    if design == "uneven interval":
        w *= 10 ** rng.uniform(-1, 0, P)
    X = rng.choice([-1.0, 1.0], (n, P)) / math.sqrt(P)
    margins = X @ (w * SIGNAL * math.sqrt(P) / np.linalg.norm(w))
    return X, margins + NOISE * rng.standard_normal(n), true


def level(function: SetFunction) -> float:
    """The least strength at which noise of deviation 1 adds no feature, on average.

    Neither to none, which the dual norm tells, nor to a set in use. That is the same for L1 and for groups.
    For an interval it is more: the first feature costs 59, and each one beside it 1.
    """
    rng, used = np.random.default_rng(0), np.array([P // 2])
    price = function.value(used)
    dear = np.array([j for j in range(P) if function.value(np.append(used, j)) > price])
    alone, beside = 0.0, 0.0
    for _ in range(DRAWS):
        size = np.abs(rng.standard_normal(P))
        alone += function.dual_norm(size) / DRAWS
        ratio, added = 0.0, dear
        while added.size:
            better = float(size[added].sum()) / (function.value(np.append(used, added)) - price)
            if better <= ratio:
                break
            ratio, added = better, function.minimiser(size, better, used, dear)
        beside += ratio / DRAWS
    return max(alone, beside)


def support(
    solver: Solver, function: SetFunction, unit: float, epsilon: float, table: Any, seed: int
) -> Mask:
    """The features that a private fit keeps; ``unit`` is the level of the function."""
    X, y = table
    n, own = len(y), isinstance(solver, ObjectivePerturbation)
    l2 = 0.0 if own else L2
    settings = {"epsilon": epsilon, "solver": solver, "bounds": BOUNDS, "fit_intercept": False}
    deviation = HALF_RANGE / math.sqrt(3 * P * n)
    if own:
        plan = GLMRegressor(penalty=Submodular(1.0, function, l2), **settings).plan(n, P)
        deviation = math.hypot(deviation, plan.deviation)
    penalty = Submodular(FACTOR * unit * deviation, function, l2)
    model = GLMRegressor(penalty=penalty, random_state=seed, **settings).fit(X, y)
    zero = 0.0
    if own:
        finish = 2 * model.plan_.releases[0].mechanism.finish * TOLERANCE
        zero = 4 * finish * model.plan_.deviation / (2 * model.plan_.quadratic)
    return np.asarray(np.abs(model.coef_) > zero)


def scores(kept: Mask, true: Mask) -> Row:
    """How well a set of features is recovered."""
    hits = np.sum(kept & true)
    recall, wrong = hits / np.sum(true), np.sum(kept & ~true) / np.sum(~true)
    return {
        "score": recall - wrong,
        "exact": float(np.array_equal(kept, true)),
        "recall": recall,
        "precision": hits / max(np.sum(kept), 1),
    }


def cell(design: str, solver: Solver, n: int, epsilon: float, tables: Sequence[Any], units: Row) -> Row:
    """Means over the tables for both penalties, and which of them recovers more."""
    found = [
        {
            f"{name}, {key}": value
            for name, function in (("structured", DESIGNS[design]), ("L1", Cardinality()))
            for key, value in scores(
                support(solver, function, units[repr(function)], epsilon, (X, y), seed), true
            ).items()
        }
        for seed, (X, y, true) in enumerate(tables)
    ]
    lead = np.array([one["structured, score"] - one["L1, score"] for one in found])
    unsure = 2 * lead.std(ddof=1) / math.sqrt(len(lead)) if len(lead) > 1 else 0.0
    more = "equal" if abs(lead.mean()) <= unsure else "more" if lead.mean() > 0 else "fewer"
    means = {key: float(np.mean([one[key] for one in found])) for key in found[0]}
    return {"design": design, "solver": solver.name, "n": n, "epsilon": epsilon, **means, "recovers": more}


def show(rows: Sequence[Row], key: str, epsilons: Sequence[float]) -> None:
    """One line for each design, solver and n: structured / L1 for each epsilon."""
    print(f"\n{key}, structured / L1\n\n| | solver | n | {' | '.join(f'{e:g}' for e in epsilons)} |")
    print("|---" * (3 + len(epsilons)) + "|")
    for start in range(0, len(rows), len(epsilons)):
        line = rows[start : start + len(epsilons)]
        marks = {"more": " +", "equal": "", "fewer": " -"}
        cells = [
            f"{row[f'structured, {key}']:.2f} / {row[f'L1, {key}']:.2f}"
            + (marks[row["recovers"]] if key == "score" else "")
            for row in line
        ]
        print(f"| {line[0]['design']} | {line[0]['solver']} | {line[0]['n']:,} | {' | '.join(cells)} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tiny run whose figures mean nothing")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results", help="folder for CSV")
    options = parser.parse_args()
    warnings.simplefilter("ignore", PrivacyWarning)  # fixed seeds: a study, not a private fit
    sizes, epsilons = ({500: 2}, (10.0,)) if options.quick else (SEEDS, EPSILONS)
    units = {repr(function): level(function) for function in (*DESIGNS.values(), Cardinality())}
    rows = []
    for design, n in product(DESIGNS, sizes):
        tables = [draw(design, n, seed) for seed in range(sizes[n])]
        rows += [
            cell(design, solver, n, epsilon, tables, units) for solver in SOLVERS for epsilon in epsilons
        ]
    show(rows, "score", epsilons)
    show(rows, "exact", epsilons)
    folder = options.out / ("structured_recovery_quick" if options.quick else "structured_recovery")
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "recovery.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    print(f"\nIn cells the structured norm recovers (beyond two standard errors), of {len(rows)}:")
    for design in DESIGNS:
        counts = [
            sum((row["design"], row["recovers"]) == (design, which) for row in rows)
            for which in ("more", "equal", "fewer")
        ]
        missed = " MISSED" if counts[2] > counts[0] else ""
        print(f"{design}: more in {counts[0]}, equal in {counts[1]}, fewer in {counts[2]}{missed}")


if __name__ == "__main__":
    main()
