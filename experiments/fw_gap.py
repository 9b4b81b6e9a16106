"""Frank-Wolfe without noise: the gap, the entries read, and how many stale tops its heap shows.

Reproduces Figures 1, 2 and 3 of Raff, Khanna and Lu, "Scaling Up Differentially Private LASSO Regularized
Logistic Regression via Faster Frank-Wolfe Iterations", on RCV1 (--data): the algorithm that computes all sums
in every step beside dpglm's, which keeps them and finds the largest in a heap.

    python experiments/fw_gap.py           # 2 minutes
    python experiments/fw_gap.py --quick   # seconds, too small to mean anything

Entries read are those of the table: all of them twice in a step of the plain algorithm, for margins and sums;
in one of dpglm those of the selected column and of the rows whose slopes follow, which are the rows of that
column and, once the coefficients have shrunk by one percent, all rows that the coefficients touch.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import fw_tables
import numpy as np
from outputs import load_pyplot, write_mappings

sys.path.append(str(Path(__file__).resolve().parents[1] / "benchmarks"))
from lazy_steps import DATA, PROBLEM, RADIUS, rcv1, records

from dpglm import Neighbours
from dpglm.curator import Curator
from dpglm.mechanisms import Exponential, Randomness
from dpglm.queries import VertexScores
from dpglm.queries.base import Opening
from dpglm.queries.vertices import OpenVertices

REFRESH = 0.01
LARGEST = Exponential(0.0)
Row = dict[str, Any]


class Counted(OpenVertices):
    """Vertices that count the entries of the table that they read."""

    entries = 0
    refreshed = 0  # of these, for rows that follow a shrinking

    @property
    def looks(self) -> int:
        """Stale tops of the heap so far."""
        return int(self._kept.looks)

    def shrink(self, factor: float) -> None:
        before = self.entries
        super().shrink(factor)
        self.refreshed += self.entries - before

    def move(self, j: int, amount: float) -> None:
        self.entries += len(self._data.column(j)[0])
        super().move(j, amount)

    def _set_margins(self, rows: Any, j: int) -> None:
        self.entries += int(np.diff(self._data.block.by_rows.X.indptr)[rows].sum())
        super()._set_margins(rows, j)


class Counting(VertexScores):
    """Vertex scores opened so that entries are counted."""

    def open(self, opening: Opening) -> Counted:
        return Counted(self, opening)


def ours(X: Any, y: Any, shown: Sequence[int]) -> list[Row]:
    """The state after some of the steps of dpglm."""
    query = Counting(PROBLEM.loss, np.inf, X.shape[1], 1.0, "heap", REFRESH)
    curator = Curator(records(X, y), Neighbours.REPLACE_ONE, Randomness(0))
    opened = curator.open(query, np.zeros(X.shape[1]), LARGEST)
    found, support, looks, since = [], set(), 0, 0
    for t in range(1, shown[-1] + 1):
        choice, size = opened.select(), 2 / (t + 2)
        opened.shrink(1 - size)
        opened.move(choice // 2, size * RADIUS * (1 if choice % 2 else -1))
        support.add(choice // 2)
        if t in shown:
            found.append(
                {
                    "step": t,
                    "gap": opened.gap(RADIUS),
                    "entries": opened.entries,
                    "refreshed": opened.refreshed,
                    "looks": (opened.looks - looks) / (t - since),
                    "non-zeros": len(support),
                }
            )
            looks, since = opened.looks, t
    return found


def plain(X: Any, y: Any, shown: Sequence[int]) -> list[Row]:
    """The state after some of the steps of the algorithm that computes all sums anew."""
    X = X.astype(np.float64)
    transposed, w, found = X.T.tocsr(), np.zeros(X.shape[1]), []
    for t in range(1, shown[-1] + 2):
        sums = transposed @ PROBLEM.loss.derivative(X @ w, y)
        j = int(np.abs(sums).argmax())
        if t - 1 in shown:
            gap = (w @ sums + RADIUS * abs(sums[j])) / len(y)
            found.append({"step": t - 1, "gap": float(gap), "entries": 2 * (t - 1) * X.nnz})
        w *= 1 - 2 / (t + 2)
        w[j] -= 2 / (t + 2) * RADIUS * np.sign(sums[j])
    return found


def together(plain_rows: Sequence[Row], our_rows: Sequence[Row]) -> list[Row]:
    return [
        {
            "step": mine["step"],
            "gap, plain": other["gap"],
            "gap, dpglm": mine["gap"],
            "entries, plain": other["entries"],
            "entries, dpglm": mine["entries"],
            "times fewer": other["entries"] / mine["entries"],
            "share of refreshes": mine["refreshed"] / mine["entries"],
            "stale tops a step": mine["looks"],
            "non-zeros": mine["non-zeros"],
        }
        for other, mine in zip(plain_rows, our_rows, strict=True)
    ]


def draw(rows: Sequence[Row], path: Path) -> None:
    pyplot = load_pyplot()
    if pyplot is None:
        return
    figure, panels = pyplot.subplots(1, 3, figsize=(10, 3), layout="constrained")
    steps = [row["step"] for row in rows]
    for name, line in (("plain", "-"), ("dpglm", "--")):
        panels[0].plot(steps, [row[f"gap, {name}"] for row in rows], line, label=name)
    panels[0].set_ylabel("Frank-Wolfe gap")
    panels[0].legend(fontsize=8)
    panels[1].plot(steps, [row["times fewer"] for row in rows])
    panels[1].set_ylabel("times fewer entries read")
    panels[2].plot(steps, [row["stale tops a step"] / row["non-zeros"] for row in rows])
    panels[2].set_ylabel("stale tops a step / non-zeros")
    for panel in panels:
        panel.set_xscale("log")
        panel.set_xlabel("steps")
    for panel in panels[:2]:
        panel.set_yscale("log")
    figure.savefig(path, dpi=150)
    pyplot.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tiny run whose figures mean nothing")
    parser.add_argument("--steps", type=int, default=4_000)
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the real tables")
    results = Path(__file__).parent / "results"
    parser.add_argument("--out", type=Path, default=results, help="folder for CSV and PNG")
    options = parser.parse_args()
    small = replace(fw_tables.SHAPES["rcv1"], n=500, p=1_000)
    X, y = fw_tables.make(small) if options.quick else rcv1(options.data)
    steps = 50 if options.quick else options.steps
    shown = sorted({int(t) for t in np.geomspace(1, steps, 40)})
    rows = together(plain(X, y, shown), ours(X, y, shown))
    folder = options.out / ("fw_gap_quick" if options.quick else "fw_gap")
    folder.mkdir(parents=True, exist_ok=True)
    write_mappings(rows, folder / "gap.csv")
    draw(rows, folder / "gap.png")
    print(f"| {' | '.join(rows[0])} |\n{'|---' * len(rows[0])}|")
    for row in rows[:: max(len(rows) // 8, 1)] + rows[-1:]:
        print(f"| {' | '.join(f'{value:.4g}' for value in row.values())} |")
    print(f"\nFigures in {folder}")


if __name__ == "__main__":
    main()
