"""How long Newton's intervals are for which number of records: measured, and as the plan forecasts.

    python experiments/inference_length.py           # minutes on two processors: CSV and PNG in results
    python experiments/inference_length.py --quick   # seconds, to see that it runs

Tables are those of the design "mixed" (`inference_tables.py`): 40 for each point, 10 from 50,000 records on.
*Length* is the mean over fits and coefficients of the length of a 95 % interval over that of the usual one
for the same table without privacy; *undetermined* is the share of fits that state no interval. A point with
more than half of them is left out of the chart.
"""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from inference_fits import Cell, Workers, model_for
from inference_tables import draw
from outputs import load_pyplot, write_csv

KINDS, FEATURES, EPSILONS = ("logistic", "linear"), (5, 10, 20), (0.5, 1.0, 4.0)
RECORDS = (1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000)
MANY, TABLES, FEW = 50_000, 40, 10


@dataclass(frozen=True)
class Point:
    """Measured and forecast length for one size of table and one epsilon; NaN where there is none."""

    kind: str
    p: int
    epsilon: float
    n: int
    tables: int
    undetermined: float
    length: float
    median: float
    coverage: float
    forecast: float


def forecast(kind: str, p: int, epsilon: float, n: int) -> float:
    """The length that the plan forecasts; NaN if it says that the fit will be undetermined."""
    table = draw(kind, "mixed", 1, p, np.random.default_rng(0))
    length = model_for(table, epsilon).plan(n, p).forecast_length
    return math.nan if length is None else float(length)


def measured(kind: str, p: int, epsilon: float, n: int, workers: Workers, seed: int, tables: int) -> Point:
    """Fits of several tables."""
    cell = Cell(f"{kind} {n:,} x {p}, epsilon {epsilon:g}", kind, "mixed", n, p, epsilon)
    fits = workers.run(cell, seed, tables, Path())
    kept = [fit for fit in fits if fit.determined]
    lengths = np.array([fit.length for fit in kept]) if kept else np.array([math.nan])
    coverage = float(np.mean([fit.covers for fit in kept])) if kept else math.nan
    return Point(
        kind, p, epsilon, n, tables, 1 - len(kept) / len(fits), float(lengths.mean()),
        float(np.median(lengths)), coverage, forecast(kind, p, epsilon, n),
    )  # fmt: skip


def picture(points: Sequence[Point], path: Path) -> None:
    """Points and the lines of the forecast: a panel for each kind of model and epsilon."""
    pyplot = load_pyplot()
    if pyplot is None:
        return
    kinds, epsilons = (sorted({getattr(point, name) for point in points}) for name in ("kind", "epsilon"))
    shape = {"figsize": (3.4 * len(epsilons), 3 * len(kinds)), "sharex": True, "sharey": True}
    figure, axes = pyplot.subplots(len(kinds), len(epsilons), squeeze=False, **shape)
    for kind, line in zip(sorted(kinds, reverse=True), axes, strict=True):
        for epsilon, axis in zip(epsilons, line, strict=True):
            for k, p in enumerate(FEATURES):
                here = [one for one in points if (one.kind, one.epsilon, one.p) == (kind, epsilon, p)]
                if not here:
                    continue
                ends = np.log10([min(one.n for one in here), max(one.n for one in here)])
                n = [round(10**x) for x in np.linspace(*ends, 60)]
                axis.plot(n, [forecast(kind, p, epsilon, m) for m in n], color=f"C{k}", linewidth=1)
                seen = [one for one in here if one.undetermined <= 0.5]
                label = f"p = {p}"
                axis.plot(
                    [one.n for one in seen], [one.length for one in seen], "o", color=f"C{k}", label=label
                )
            axis.set(xscale="log", yscale="log", ylim=(0.95, 12), title=f"{kind}, epsilon {epsilon:g}")
            axis.set_yticks([1, 1.2, 1.5, 2, 3, 5, 10], ["1", "1.2", "1.5", "2", "3", "5", "10"])
            axis.minorticks_off()
            axis.grid(alpha=0.3)
    for axis in axes[-1]:
        axis.set_xlabel("records n")
    for axis in axes[:, 0]:
        axis.set_ylabel("length over not private")
    axes[0, 0].legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def as_markdown(points: Sequence[Point]) -> str:
    """Measured lengths, with the forecast in brackets; a dash where more than half are undetermined."""
    sizes = sorted({point.n for point in points})
    lines = ["| model | p | epsilon | " + " | ".join(f"n = {n:,}" for n in sizes) + " |"]
    lines.append("|" + "---|" * (3 + len(sizes)))
    for kind, p, epsilon in dict.fromkeys((one.kind, one.p, one.epsilon) for one in points):
        found = {one.n: one for one in points if (one.kind, one.p, one.epsilon) == (kind, p, epsilon)}
        shown = [
            f"{'-' if found[n].undetermined > 0.5 else f'{found[n].length:.2f}'} "
            f"({'-' if math.isnan(found[n].forecast) else f'{found[n].forecast:.2f}'})"
            for n in sizes
        ]
        lines.append(f"| {kind} | {p} | {epsilon:g} | " + " | ".join(shown) + " |")
    return "\n".join(lines)


def main() -> None:
    """Measure all points, and write them with a chart."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=TABLES, help="for each point up to 20,000 records")
    parser.add_argument(
        "--seed", type=int, default=0, help="of the tables; the forecast was fitted with another"
    )
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--quick", action="store_true", help="seconds: few small tables")
    given = parser.parse_args()
    sizes, features = (RECORDS[:2], FEATURES[:1]) if given.quick else (RECORDS, FEATURES)
    if given.quick:
        given.tables, given.processes = 2, 1
    few = max(given.tables * FEW // TABLES, 1)
    grid = [(kind, p, epsilon, n) for kind in KINDS for p in features for epsilon in EPSILONS for n in sizes]
    counts = [given.tables if n < MANY else few for *_, n in grid]
    workers = Workers(given.processes, sum(counts))
    points = [measured(*where, workers, given.seed, count) for where, count in zip(grid, counts, strict=True)]
    text = as_markdown(points)
    print(text)
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / "inference_length.md").write_text(text + "\n")
    write_csv(points, Point, given.out / "inference_length.csv")
    picture(points, given.out / "inference_length.png")


if __name__ == "__main__":
    main()
