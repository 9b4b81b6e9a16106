"""Do Newton's intervals cover what they should, and how long are they? Goals stand beside the figures.

    python experiments/inference_coverage.py              # 500 tables for a cell; an hour on two processors
    python experiments/inference_coverage.py --tables 100 --cell adult
    python experiments/inference_coverage.py --quick      # seconds, to see that it runs

Every fit is that of a public estimator with default settings: replace-one, delta = 1/n². *Coverage* is the
share of 95 % intervals that contain the true coefficient, of all coefficients with the intercept, on the
scale of the columns; *least* is that of the coefficient with the lowest. *Length* is the mean ratio of their
length to that of the usual intervals without privacy for the same table. All three are over the fits that are
determined; *undetermined* is the share of the others, which state no interval. With 500 tables the standard
error of a mean coverage is about 0.004, and the least of eleven coefficients is expected near 0.93 if all
have 0.95. Fits have a seed, so that they can be repeated: with a seed they are not private.
"""

from __future__ import annotations

import argparse
import math
import os
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from inference_fits import Cell, Fitted, Goal, Workers, model_for, weighted_fit
from inference_tables import DATA, adult, draw, plain
from outputs import load_pyplot, write_csv

from dpglm.errors import PrivacyWarning

ENOUGH = 25.0
REPEATS = 100
"""Fits of one table in the check of the noise alone."""
QUICK_ROWS, QUICK_TABLES = 2_000, 4
QUICK_CELLS = ("logistic mixed 10,000 x 10, epsilon 4", "linear mixed 1,000 x 10, epsilon 1", "seconds")


def _named(kind: str, design: str, n: int, p: int, epsilon: float, **others: object) -> Cell:
    law, rounds = others.get("law"), others.get("rounds")
    words = f"{kind} {design} {n:,} x {p}, epsilon {epsilon:g}"
    words += f", {law}" if law else ""
    words += f", {rounds} rounds" if rounds else ""
    return Cell(words, kind, design, n, p, epsilon, **others)  # type: ignore[arg-type]


def cells() -> list[Cell]:
    """All cells: those with goals, then some that show what happens elsewhere."""
    usual = {"coverage": (0.940, 0.975), "least": 0.92}
    found = []
    for kind, lengths in (("logistic", (3.5, 1.65, 1.25)), ("linear", (6.5, 1.9, 1.3))):
        for epsilon, length in zip((0.5, 1.0, 4.0), lengths, strict=True):
            goal = Goal(**usual, length=length)
            found.append(_named(kind, "mixed", 10_000, 10, epsilon, goal=goal))
    for kind in ("logistic", "linear"):
        goal = Goal((0.940, 0.970), 0.92, 1.3)
        found.append(_named(kind, "mixed", 100_000, 10, 1.0, goal=goal))
        goal = Goal((0.945, 1.0), 0.93, 1.35 if kind == "logistic" else 2.3)
        found.append(_named(kind, "mixed", 1_000, 5, 4.0, goal=goal))
        goal = Goal(undetermined=(0.99, 1.0))
        found.append(_named(kind, "mixed", 1_000, 10, 1.0, goal=goal))
    for epsilon, length in ((1.0, 2.4), (4.0, 1.5)):
        found.append(_named("logistic", "adult", 10_000, 10, epsilon, goal=Goal((0.94, 1.0), 0.92, length)))
    found.append(_named("linear", "california", 10_000, 7, 1.0, goal=Goal((0.94, 1.0), 0.0, 3.3)))
    for law in ("t3", "spread", "skewed"):
        goal = Goal(**usual, length=2.2)
        found.append(
            _named("linear", "mixed", 10_000, 10, 1.0, law=law, slopes_only=law == "skewed", goal=goal)
        )
    goal = Goal((0.94, 1.0), 0.91, 1.9)
    found.append(_named("logistic", "mixed", 100_000, 10, 1.0, law="rare", goal=goal))
    goal = Goal(undetermined=(0.99, 1.0))
    found.append(_named("logistic", "mixed", 100_000, 10, 1.0, law="rare", rounds=3, tables=0.2, goal=goal))
    for kind in ("logistic", "linear"):
        found += [_named(kind, "mixed", 10_000, 5, epsilon) for epsilon in (0.5, 1.0, 4.0)]
        found += [_named(kind, "mixed", 10_000, 20, epsilon) for epsilon in (1.0, 4.0)]
        found += [_named(kind, design, 10_000, 10, 1.0) for design in ("uniform", "normal", "binary")]
        found.append(_named(kind, "mixed", 100_000, 50, 1.0, tables=0.1))
    return found


@dataclass(frozen=True)
class Row:
    """The figures of a cell. Missing goals are empty."""

    cell: str
    tables: int
    coverage: float
    coverage_goal: str
    least: float
    least_goal: str
    length: float
    length_goal: str
    undetermined: float
    undetermined_goal: str
    median_length: float
    error: float
    bias: float
    enough: float
    forecast: str
    verdict: str


def summarised(cell: Cell, fits: Sequence[Fitted], forecast: str) -> Row:
    """Means over the fits that are determined, beside the goals."""
    kept = [fit for fit in fits if fit.determined]
    undetermined = 1 - len(kept) / len(fits)
    nothing = np.full((1, 1), np.nan)
    covers = np.array([fit.covers for fit in kept]) if kept else nothing
    lengths = np.array([fit.length for fit in kept]) if kept else nothing
    errors = np.array([fit.error for fit in kept]) if kept else nothing
    coverage, least, length = float(covers.mean()), float(covers.mean(axis=0).min()), float(lengths.mean())
    goal, demanded = cell.goal or Goal(), cell.goal is not None
    misses = []
    if goal.undetermined[0] == 0.0:
        misses += [] if goal.coverage[0] <= coverage <= goal.coverage[1] else ["coverage"]
        misses += [] if least >= goal.least else ["least"]
        misses += [] if goal.length is None or length <= goal.length else ["length"]
        asked = (
            _between(goal.coverage),
            _above(goal.least),
            "" if goal.length is None else f"<= {goal.length:g}",
        )
    else:
        said = forecast.startswith("undetermined") or bool(cell.rounds)
        misses += [] if said else ["forecast"]
        asked = "", "", ""
    misses += [] if goal.undetermined[0] <= undetermined <= goal.undetermined[1] else ["undetermined"]
    verdict = "" if not demanded else "MISSED: " + ", ".join(misses) if misses else "ok"
    return Row(
        cell.name, len(fits), coverage, asked[0], least, asked[1], length, asked[2], undetermined,
        _above(goal.undetermined[0]), float(np.median(lengths)), float(np.sqrt((errors**2).mean())),
        float(np.abs(errors.mean(axis=0)).max()), cell.enough, forecast, verdict,
    )  # fmt: skip


def _between(ends: tuple[float, float]) -> str:
    low, high = ends
    return "" if low == 0.0 else _above(low) if high == 1.0 else f"{low:.3f} to {high:.3f}"


def _above(end: float) -> str:
    return f">= {end:.3g}" if end else ""


def forecast_of(cell: Cell) -> str:
    """What the plan says before any record is read."""
    table = draw(cell.kind, "mixed", 1, cell.p, np.random.default_rng(0))
    plan = model_for(table, cell.epsilon, rounds=cell.rounds).plan(cell.n, cell.p)
    return plan.forecast or ""


@dataclass(frozen=True)
class Check:
    """A figure that is no coverage, and its goal."""

    check: str
    figure: str
    goal: str
    verdict: str


def repeated_adult(data: Path, seed: int, fits: int) -> list[Check]:
    """Fits of the whole of Adult: only noise varies, and its covariance is what the fits state."""
    warnings.simplefilter("ignore", PrivacyWarning)
    table = adult(data)
    usual, ratios, own, lengths, undetermined = plain(table), [], [], [], 0
    for k in range(fits):
        model = model_for(table, 1.0, 1_000_000 * seed + k).fit(table.X, table.y)
        values = np.append(model.coef_.ravel(), model.intercept_)
        deviations = np.sqrt(np.diagonal(model.privacy_covariance_))
        ratios.append((values - usual.values) / deviations)
        own.append((values - weighted_fit(table, model)) / deviations)
        lengths.append(np.sqrt(np.diagonal(model.covariance_)) / usual.robust)
        undetermined += not model.determined_
    ratio, weighted, bias = (
        float(np.sqrt(np.mean(np.square(some)))) for some in (ratios, own, np.mean(ratios, axis=0))
    )
    length = float(np.mean(lengths))
    share = undetermined / fits
    words = f"Adult, all 48,842, epsilon 1, {fits} fits: "
    return [
        Check(
            words + "rms distance to the fit without noise over what the noise part of the covariance says",
            f"{ratio:.3f}, of which the mean {bias:.3f}", "0.9 to 1.15", _verdict(0.9 <= ratio <= 1.15),
        ),
        Check(words + "the same to the weighted fit that is estimated", f"{weighted:.3f}", "", ""),
        Check(words + "length over the sandwich", f"{length:.3f}", "<= 1.35", _verdict(length <= 1.35)),
        Check(words + "undetermined", f"{share:.1%}", "<= 2 %", _verdict(share <= 0.02)),
    ]  # fmt: skip


def share_undetermined(cells: Sequence[Cell], rows: Sequence[Row]) -> list[Check]:
    """The largest share of undetermined fits where the public rule says that there are enough records."""
    shares = {
        row.cell: row.undetermined
        for cell, row in zip(cells, rows, strict=True)
        if cell.enough >= ENOUGH and cell.law != "rare"
    }
    if not shares:
        return []
    worst = max(shares, key=lambda name: shares[name])
    words = f"undetermined where n mu >= 25 d^1.5, the worst of {len(shares)} cells: {worst}"
    return [Check(words, f"{shares[worst]:.1%}", "<= 2 %", _verdict(shares[worst] <= 0.02))]


def seconds(quick: bool) -> list[Check]:
    """Least of several times of a fit; processes share the processors, so run it with `--cell seconds`."""
    found = []
    for n, p, most in ((10_000, 10, 0.1), (100_000, 50, 3.0)):
        for kind in ("logistic", "linear"):
            table = draw(kind, "mixed", QUICK_ROWS if quick else n, p, np.random.default_rng(0))
            model, times = model_for(table, 1.0, 0), []
            for _ in range(2 if quick else 5):
                began = time.perf_counter()
                model.fit(table.X, table.y)
                times.append(time.perf_counter() - began)
            words = f"seconds of a fit, {kind}, {len(table.X):,} x {p}"
            found.append(Check(words, f"{min(times):.3f}", f"<= {most:g}", _verdict(min(times) <= most)))
    return found


def _verdict(reached: bool) -> str:
    return "ok" if reached else "MISSED"


def as_markdown(rows: Sequence[Row], checks: Sequence[Check]) -> str:
    """The figures beside their goals."""
    lines = []
    if rows:
        lines += [
            "| cell | tables | coverage | goal | least | goal | length | goal | undetermined | goal | |",
            "|---|---|---|---|---|---|---|---|---|---|---|",
        ]
    for row in rows:
        shown = [
            f"{row.coverage:.3f}", row.coverage_goal, f"{row.least:.3f}", row.least_goal,
            f"{row.length:.2f}", row.length_goal,
        ]  # fmt: skip
        if row.undetermined > 0.5:
            shown = ["-" if k % 2 == 0 else text for k, text in enumerate(shown)]
        figures = [row.cell, f"{row.tables}", *shown, f"{row.undetermined:.1%}", row.undetermined_goal]
        lines.append("| " + " | ".join([*figures, row.verdict]) + " |")
    if checks:
        lines += ["", "| check | figure | goal | verdict |", "|---|---|---|---|"]
        lines += [f"| {one.check} | {one.figure} | {one.goal} | {one.verdict} |" for one in checks]
    return "\n".join(lines)


def picture(rows: Sequence[Row], path: Path) -> None:
    """Coverage and length of each cell, beside the goals."""
    pyplot = load_pyplot()
    rows = [row for row in rows if row.undetermined <= 0.5]
    if pyplot is None or not rows:
        return
    figure, axes = pyplot.subplots(1, 2, figsize=(11, 1 + 0.25 * len(rows)), sharey=True)
    places = np.arange(len(rows))[::-1]
    axes[0].plot([row.coverage for row in rows], places, "o", color="C0", label="mean of all coefficients")
    axes[0].plot([row.least for row in rows], places, ".", color="C0", alpha=0.5, label="least coefficient")
    axes[0].axvline(0.95, color="black", linewidth=0.8)
    axes[0].set_yticks(places, [row.cell for row in rows], fontsize=7)
    axes[0].set_xlabel("coverage of 95 % intervals")
    axes[0].legend(fontsize=7)
    axes[1].plot([row.length for row in rows], places, "o", color="C1", label="measured")
    goals = [float(row.length_goal[3:]) if row.length_goal else math.nan for row in rows]
    axes[1].plot(goals, places, "|", color="black", markersize=9, label="goal: at most")
    axes[1].set_xscale("log")
    axes[1].set_xticks([1, 1.5, 2, 3, 5], ["1", "1.5", "2", "3", "5"])
    axes[1].set_xlabel("length over that without privacy")
    axes[1].legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(path, dpi=130)


def main() -> None:
    """Run the cells, and write what they show."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tables", type=int, default=500, help="tables for each cell (some have fewer)")
    parser.add_argument("--cell", help="only cells whose name contains this; also seconds and repeated")
    parser.add_argument("--seed", type=int, default=0, help="of the tables; settings were tuned with others")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--data", type=Path, default=DATA, help="folder of Adult and California housing")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--quick", action="store_true", help="seconds: few small tables")
    given = parser.parse_args()
    asked = given.cell or ""
    chosen = [cell for cell in cells() if asked in cell.name]
    if given.quick:
        chosen = [replace(cell, n=min(cell.n, QUICK_ROWS)) for cell in chosen if cell.name in QUICK_CELLS]
        given.tables, given.processes = QUICK_TABLES, 1
    for name in ("adult", "california"):
        folder = given.data / {"adult": "adult_raw", "california": "california_housing"}[name]
        if not folder.exists():
            chosen = [cell for cell in chosen if cell.design != name]
            print(f"No cells of {name}: there is no {folder}")
    counts = [max(round(given.tables * cell.tables), 2) for cell in chosen]
    workers, rows = Workers(given.processes, sum(counts)), []
    for cell, count in zip(chosen, counts, strict=True):
        row = summarised(cell, workers.run(cell, given.seed, count, given.data), forecast_of(cell))
        rows.append(row)
        print(as_markdown([row], []).splitlines()[-1], flush=True)
    checks = share_undetermined(chosen, rows)
    if (asked in "repeated adult" or not asked) and (given.data / "adult_raw").exists():
        checks += repeated_adult(given.data, given.seed, 2 if given.quick else REPEATS)
    if asked in "seconds" or not asked:
        checks += seconds(given.quick)
    given.out.mkdir(parents=True, exist_ok=True)
    text = as_markdown(rows, checks)
    print(f"\n{text}")
    (given.out / "inference_coverage.md").write_text(text + "\n")
    if rows:
        write_csv(rows, Row, given.out / "inference_coverage.csv")
        picture(rows, given.out / "inference_coverage.png")
    if checks:
        write_csv(checks, Check, given.out / "inference_checks.csv")


if __name__ == "__main__":
    main()
