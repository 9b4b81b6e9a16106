"""The largest gap of a small group, for each solver and epsilon.

    python experiments/groups.py                                  # a minute on one core
    python experiments/groups.py --all --figure docs/groups.svg   # all solvers and epsilons, and a chart
    python experiments/groups.py --solvers newton,auto --epsilons 1,100 --tables "long rows;adult" --fits 5
    python experiments/groups.py --quick                          # seconds

The gap of a group is the mean predicted probability of its records minus that of the same model without
noise, which is the mean outcome of the group if a column marks it. The records are those of the fit. The
tables are those of `group_tables`; all fits have their defaults, a declared range for each column,
replace-one and delta = 1/n². Most have an L2 penalty of strength 1/n. Frank-Wolfe has an L1 ball of 1.5 times
the coefficients without noise; dual Frank-Wolfe and output perturbation, which need strong penalties, have an
elastic net and an L2 penalty of strength 30/n.

On Adult the number is the mean of the logit of a level minus that of the fit without noise, over the levels
with less than 3 % of the records, and the largest of all: a level of 20 records has no outcome to speak of.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from group_tables import DRAWN, GroupTable, tables
from outputs import load_pyplot, write_csv

from dpglm import GLMClassifier, LogisticRegression
from dpglm.errors import PrivacyWarning
from dpglm.penalties import ElasticNet, L1Ball
from dpglm.solvers import SOLVERS, Newton

EPSILONS = (0.3, 1.0, 4.0, 10.0, 50.0, 100.0, 1000.0)
FEW_EPSILONS = (1.0, 4.0, 100.0)
NAMES = ("auto", *SOLVERS)
ADULT = "adult"
STRONG = 30.0
OWN = ("frank-wolfe", "dual-frank-wolfe", "output-perturbation")
"""Solvers whose penalty or constraint moves the fit without noise, too."""


@dataclass(frozen=True)
class Row:
    """One fit and one group: its gap, or on Adult its shift on the logit scale."""

    table: str
    draw: int
    solver: str
    chosen: str
    epsilon: float
    group: str
    gap: float
    seconds: float


def estimator(solver: str, table: GroupTable, epsilon: float, exact: Any = None) -> Any:
    """The estimator with default settings; ``exact`` is a model without noise, for the size of an L1 ball."""
    n = len(table.y)
    chosen: dict[str, Any] = {"epsilon": epsilon, "bounds": table.bounds, "classes": [0.0, 1.0]}
    if solver == "frank-wolfe":
        radius = 1.5 * float(np.abs(exact.coef_).sum())
        return GLMClassifier(penalty=L1Ball(radius), solver=solver, **chosen)
    if solver == "dual-frank-wolfe":
        return GLMClassifier(penalty=ElasticNet(l1=1 / n, l2=STRONG / n), solver=solver, **chosen)
    if solver == "output-perturbation":
        return LogisticRegression(C=1 / STRONG, solver=solver, **chosen)
    return LogisticRegression(solver=Newton(intervals=False) if solver == "newton" else solver, **chosen)


def is_served(solver: str, table: GroupTable, epsilon: float, exact: Any) -> bool:
    """Whether there is a plan: selections by the exponential mechanism end where exp(epsilon) is huge."""
    try:
        estimator(solver, table, epsilon, exact).plan(*table.X.shape)
    except ValueError:
        return False
    return True


def gaps(table: GroupTable, model: Any, exact: Any, logit: bool = False) -> dict[str, float]:
    """Mean predicted probability, or logit, of each group minus that of the model without noise."""
    here, there = (
        fitted.decision_function(table.X) if logit else fitted.predict_proba(table.X)[:, 1]
        for fitted in (model, exact)
    )
    move = here - there
    return {name: float(move[group].mean()) for name, group in table.groups.items()}


def measured(
    name: str, table: GroupTable, solvers: Sequence[str], epsilons: Sequence[float], draw: int, fits: int
) -> Iterator[Row]:
    """All fits of one table."""
    exact = LogisticRegression(float("inf"), classes=[0.0, 1.0], bounds=table.bounds).fit(table.X, table.y)
    for solver in solvers:
        plain = exact
        if solver in OWN:
            plain = estimator(solver, table, float("inf"), exact).fit(table.X, table.y)
        for epsilon in epsilons:
            if not is_served(solver, table, epsilon, exact):
                continue
            for _ in range(fits):
                began = time.process_time()
                model = estimator(solver, table, epsilon, exact).fit(table.X, table.y)
                seconds = time.process_time() - began
                for group, gap in gaps(table, model, plain, logit=name == ADULT).items():
                    yield Row(name, draw, solver, model.plan_.solver, epsilon, group, gap, seconds)


def worst(rows: Sequence[Row], table: str, solver: str, epsilon: float) -> float | None:
    """The largest mean gap of a group, with its sign; a group's mean is over draws and fits.

    On Adult it is the mean over all levels.
    """
    here = [row for row in rows if (row.table, row.solver, row.epsilon) == (table, solver, epsilon)]
    if not here:
        return None
    means = [
        float(np.mean([row.gap for row in here if row.group == group])) for group in {r.group for r in here}
    ]
    return float(np.mean(means)) if table == ADULT else max(means, key=abs)


def as_markdown(rows: Sequence[Row]) -> str:
    """A table of solvers and epsilons, a column for each table."""
    names, epsilons = list(dict.fromkeys(row.table for row in rows)), sorted({row.epsilon for row in rows})
    lines = ["| solver | epsilon | " + " | ".join(names) + " | s |", "|---" * (len(names) + 3) + "|"]
    for solver in dict.fromkeys(row.solver for row in rows):
        for epsilon in epsilons:
            found = [worst(rows, name, solver, epsilon) for name in names]
            times = [row.seconds for row in rows if (row.solver, row.epsilon) == (solver, epsilon)]
            cells = ["-" if gap is None else f"{gap:+.3f}" for gap in found]
            lines.append(
                f"| {solver} | {epsilon:g} | " + " | ".join(cells) + f" | {max(times, default=0):.2g} |"
            )
    return "\n".join(lines)


def draw_chart(rows: Sequence[Row], path: Path) -> None:
    """The largest gap over epsilon: a panel for each drawn table, a line for each solver."""
    pyplot = load_pyplot()
    names = [name for name in dict.fromkeys(row.table for row in rows) if name != ADULT]
    if pyplot is None or not names:
        return
    pyplot.rcParams.update({"svg.fonttype": "none", "font.size": 9, "svg.hashsalt": "dpglm"})
    epsilons = sorted({row.epsilon for row in rows})
    count = min(len(names), 4)
    lines = -(-len(names) // count)
    figure, panels = pyplot.subplots(
        lines, count, sharex=True, sharey=True, squeeze=False, layout="constrained"
    )
    figure.set_size_inches(2.6 * count, 2.2 * lines + 0.6)
    solvers = list(dict.fromkeys(row.solver for row in rows))
    for panel, name in zip(panels.flat, names, strict=False):
        for k, solver in enumerate(solvers):
            found = [worst(rows, name, solver, epsilon) for epsilon in epsilons]
            sizes = [np.nan if gap is None else max(abs(gap), 1e-3) for gap in found]
            style = {"color": "black", "lw": 2.5} if solver == "auto" else {"color": f"C{k % 10}", "lw": 1.2}
            panel.plot(epsilons, sizes, label=solver, **style)
        panel.axhline(0.02, color="grey", lw=0.8, ls=":")
        panel.set(xscale="log", yscale="log", title=name, xlabel="epsilon")
        panel.label_outer()
        panel.grid(alpha=0.25)
    for panel in panels.flat[len(names) :]:
        panel.set_axis_off()
    figure.supylabel("largest gap of a group")
    figure.legend(
        *panels.flat[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False
    )
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
    pyplot.close(figure)


def main() -> None:
    """Measure what is asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    known = [*DRAWN, ADULT]
    parser.add_argument("--solvers", default="auto,preconditioned-descent,gradient-descent,newton")
    parser.add_argument("--epsilons", default=",".join(f"{epsilon:g}" for epsilon in FEW_EPSILONS))
    parser.add_argument("--tables", default=";".join(known), help="separated by semicolons")
    parser.add_argument("--draws", type=int, default=1, help="how many tables of each design")
    parser.add_argument("--fits", type=int, default=1, help="fits of each table")
    parser.add_argument("--all", action="store_true", help="all solvers and epsilons, four draws")
    parser.add_argument("--figure", type=Path, help="draw a chart into this file (needs matplotlib)")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--quick", action="store_true", help="seconds, to see that it runs")
    given = parser.parse_args()
    warnings.simplefilter("ignore", PrivacyWarning)
    solvers, names = given.solvers.split(","), given.tables.split(";")
    epsilons, draws = [float(epsilon) for epsilon in given.epsilons.split(",")], given.draws
    if given.all:
        solvers, epsilons, draws = list(NAMES), list(EPSILONS), 4
    if given.quick:
        solvers, epsilons, names = ["auto", "gradient-descent"], [1.0, 100.0], ["long rows"]
    given.out.mkdir(parents=True, exist_ok=True)
    rows: list[Row] = []
    for number, (name, table) in enumerate(tables(names, draws)):
        if given.quick:
            few = slice(2_000)
            table = replace(
                table, X=table.X[few], y=table.y[few], groups={k: g[few] for k, g in table.groups.items()}
            )
        rows += measured(name, table, solvers, epsilons, number % draws, given.fits)
        write_csv(rows, Row, given.out / "groups.csv")
    print(as_markdown(rows))
    if given.figure:
        draw_chart(rows, given.figure)


if __name__ == "__main__":
    main()
