"""The ledger: a reservation among 10,000 entries, a fit of Adult with and without, prices of plans.

python benchmarks/ledger.py [entries [folder]]
"""

import math
import sqlite3
import statistics
import sys
import tempfile
import time
import warnings
from fractions import Fraction

from timing import report, side_by_side

from dpglm import GLMRegressor, Lasso, Ledger, LinearSVC, LogisticRegression
from dpglm.accounting import gaussian_mu
from dpglm.datasets import load_adult
from dpglm.ledger import price_of_plan
from dpglm.ledger.journal import new_entry
from dpglm.penalties import L1Ball
from dpglm.solvers import (
    CoordinateDescent,
    DualCoordinateDescent,
    FrankWolfe,
    GradientDescent,
    GreedyCoordinateDescent,
    Newton,
    ObjectivePerturbation,
    OutputPerturbation,
)

ENTRIES = 10_000
GOAL = 0.010


def fill(account, plan, entries: int) -> None:
    """Write a journal of so many entries, as single reservations would, but in one transaction."""
    charge = account.reserve(plan).charge
    last = account.state().last
    rows = []
    while last.number < entries:
        last = new_entry(
            account.name, "reservation", {"plan": plan.to_dict(), "unit": "record"}, last, charge
        )
        rows.append((account.name, last.number, last.body, last.hash))
    with sqlite3.connect(account.address.path) as connection:
        connection.executemany("INSERT INTO dpglm_entry VALUES (?, ?, ?, ?)", rows)
        connection.execute("UPDATE dpglm_account SET number = ?, hash = ?", (last.number, last.hash))
    connection.close()


def reservation(folder: str, entries: int) -> None:
    account = Ledger(f"sqlite:///{folder}/reservation.db").create("full", epsilon=500.0, delta=1e-6)
    plan = LogisticRegression(epsilon=0.01, delta=1e-7).plan(32_561, 123)
    fill(account, plan, entries)
    start = time.perf_counter()
    account.verify()
    whole = time.perf_counter() - start
    seconds, processor = [], []
    for _ in range(200):
        start, busy = time.perf_counter(), time.process_time()
        account.reserve(plan)
        seconds.append(time.perf_counter() - start)
        processor.append(time.process_time() - busy)
    middle, least = statistics.median(seconds), min(seconds)
    verdict = "ok" if middle <= GOAL else "MISSED"
    print(
        f"a reservation with {entries} entries: median {1e3 * middle:.1f} ms, least {1e3 * least:.1f} ms, "
        f"processor {1e3 * statistics.median(processor):.1f} ms; goal {1e3 * GOAL:.0f} ms  {verdict}"
    )
    print(f"verification of the whole journal: {whole:.2f} s")


def fits(folder: str) -> None:
    adult = load_adult()
    account = Ledger(f"sqlite:///{folder}/fits.db").create("adult", epsilon=500.0, delta=1e-6)
    for name, solver in [("auto", "auto"), ("objective perturbation", ObjectivePerturbation())]:
        plain = LogisticRegression(epsilon=0.5, classes=[-1, 1], solver=solver)
        paid = LogisticRegression(epsilon=0.5, classes=[-1, 1], solver=solver, ledger=str(account.address))
        ours, theirs = side_by_side(
            lambda paid=paid: paid.fit(adult.X, adult.y),
            lambda plain=plain: plain.fit(adult.X, adult.y),
            rounds=10,
        )
        report(f"a fit of Adult with a ledger, {name}, against one without", ours, theirs, 1.05)


def plans(neighbours: str, epsilon: float) -> dict:
    s = {"epsilon": epsilon, "neighbours": neighbours}
    n, p = 32_561, 123
    return {
        "gradient descent": LogisticRegression(**s).plan(n, p),
        "gradient descent, 60 steps": LogisticRegression(solver=GradientDescent(steps=60), **s).plan(n, p),
        "batches": LogisticRegression(solver=GradientDescent(batch_size=500), **s).plan(n, p),
        "coordinate descent": LogisticRegression(solver=CoordinateDescent(), **s).plan(n, p),
        "greedy": Lasso(alpha=0.01, solver=GreedyCoordinateDescent(), **s).plan(n, p),
        "Frank-Wolfe": LogisticRegression(penalty=L1Ball(10.0), solver=FrankWolfe(), **s).plan(n, p),
        "dual coordinate descent": LinearSVC(solver=DualCoordinateDescent(), **s).plan(n, p),
        "Newton": LogisticRegression(penalty=None, solver=Newton(), **s).plan(n, 10),
        "output perturbation": LogisticRegression(C=1e-3, solver=OutputPerturbation(), **s).plan(n, p),
        "five classes": LogisticRegression(**s).plan(n, p, n_classes=5),
        "objective perturbation, logistic": LogisticRegression(solver=ObjectivePerturbation(), **s).plan(
            n, p
        ),
        "objective perturbation, Huber": GLMRegressor(loss="huber", solver=ObjectivePerturbation(), **s).plan(
            n, p
        ),
    }


def prices(slack: float = 2e-11) -> None:
    print(f"price of a plan over its own mu, slack {slack:g}")
    for neighbours in ("replace-one", "zero-out"):
        for epsilon in (0.1, 1.0, 4.0):
            total = own_total = 0.0
            print(f"  {neighbours}, epsilon {epsilon:g}")
            for name, plan in plans(neighbours, epsilon).items():
                own = gaussian_mu(plan.budget.epsilon, plan.budget.delta)
                mu = price_of_plan(plan, Fraction(slack)).mu
                if "objective" not in name:
                    total, own_total = total + mu**2, own_total + own**2
                print(f"    {name:<34} {100 * (mu / own - 1):+7.2f} %")
            together = 100 * (math.sqrt(total / own_total) - 1)
            print(f"    {'ten together, without objective':<34} {together:+7.2f} %")


def main(entries: int = ENTRIES, folder: str | None = None) -> None:
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory(dir=folder) as place:
        reservation(place, entries)
        fits(place)
    prices()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else ENTRIES, sys.argv[2] if len(sys.argv) > 2 else None)
