"""Frank-Wolfe without noise: the gap, the entries read, operations, and how many stale tops a heap shows.

Reproduces Figures 1 to 4 of Raff, Khanna and Lu, "Scaling Up Differentially Private LASSO Regularized
Logistic Regression via Faster Frank-Wolfe Iterations", on RCV1 or another real table (--data): the algorithm
that computes all sums in every step beside dpglm's, which keeps them and here finds the largest in a heap,
and beside the same without refreshes, which is the published one. That one sees a gap by its kept sums, which
lag behind; the true gap of its coefficients stands beside it.

    python experiments/fw_gap.py                        # 2 minutes
    python experiments/fw_gap.py --table news20_binary  # a quarter of an hour
    python experiments/fw_gap.py --quick                # seconds, too small to mean anything

Entries read are those of the table: all of them twice in a step of the plain algorithm, for margins and sums;
in one of dpglm those of the selected column and of the rows whose slopes follow, which are the rows of that
column and, once the coefficients have shrunk by one percent, all rows that the coefficients touch.

Operations are additions, multiplications, divisions, exponentials and comparisons of floats, one each, of n
rows, p columns and N entries in the table. A change of sign or a comparison of integers is none.

- The plain algorithm: margins 2 N, slopes 4 n (y z, exponential, plus 1, division), sums 2 N, the largest p,
  the gap 2 p, coefficients 2 p: 4 N + 4 n + 5 p a step. Subtracting a kept X'y, as printed, would add p.
- dpglm, a step with c entries in the selected column, r rows that follow, e entries in these rows, in u
  columns, u' of which have a bound that rises, k stale tops and s coefficients that are not 0: margins 2 c,
  slopes 6 r (as above, the factor and the difference), sums 2 e, comparisons with bounds 2 u (there are two
  vertices for a column), at most log2(2 p) for each of u' in the heap and 2 log2(2 p) for each of k, the gap
  2 s + 3, and 10 for the step and its factor. The first sums take 4 n + 2 N and the heap 4 p.
"""

from __future__ import annotations

import argparse
import math
import sys
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import fw_tables
import numpy as np
from fw_heap import Heap
from fw_speed import REAL
from outputs import load_pyplot, write_mappings
from sklearn.exceptions import ConvergenceWarning

sys.path.append(str(Path(__file__).resolve().parents[1] / "benchmarks"))
from lazy_steps import DATA, PROBLEM, RADIUS, cpu, records

from dpglm import LogisticRegression, Neighbours
from dpglm.curator import Curator
from dpglm.mechanisms import STRUCTURES, Exponential, Randomness
from dpglm.queries import VertexScores
from dpglm.queries.base import Opening
from dpglm.queries.frank_wolfe import OpenVertices
from dpglm.solvers import FrankWolfe

REFRESH = 0.01
LARGEST = Exponential(0.0)
Row = dict[str, Any]


class Counted(OpenVertices):
    """Vertices that count the entries of the table that they read, and operations."""

    entries = 0
    refreshed = 0  # of these, for rows that follow a shrinking
    operations = 0.0

    @property
    def looks(self) -> int:
        """Stale tops of the heap so far."""
        return int(self._kept.looks)

    def select(self) -> int:
        first = self._kept is None
        before = 0 if first else self.looks
        choice = super().select()
        if first:
            X = self._data.block.by_rows.X
            self.operations = 4 * X.shape[0] + 2 * X.nnz + 4 * X.shape[1]
        self.operations += 2 * self._levels * (self.looks - before)
        return choice

    def shrink(self, factor: float) -> None:
        before = self.entries
        super().shrink(factor)
        self.refreshed += self.entries - before

    def move(self, j: int, amount: float) -> None:
        inside = len(self._data.column(j)[0])
        self.entries += inside
        self.operations += 10 + 2 * inside
        super().move(j, amount)

    def kept_gap(self, w: Any) -> float:
        """The gap by the kept sums, which may lag behind."""
        sums = self._clipped.sums[: len(w)]
        return float(w @ sums + RADIUS * np.abs(sums).max()) / self._data.n_records

    @property
    def _levels(self) -> float:
        return math.log2(2 * self._query.n_features)

    def _set_margins(self, rows: Any, j: int) -> None:
        if self._kept is None:  # the first sums
            super()._set_margins(rows, j)
            return
        X = self._data.block.by_rows.X
        followed = int(np.diff(X.indptr)[rows].sum())
        touched = np.zeros(X.shape[1], dtype=bool)
        touched[X[rows].indices] = True
        bounds = self._kept._bounds.copy()
        super()._set_margins(rows, j)
        raised = int(np.count_nonzero(self._kept._bounds != bounds))
        self.entries += followed
        self.operations += 6 * len(rows) + 2 * followed + 2 * int(touched.sum()) + raised * self._levels


class Counting(VertexScores):
    """Vertex scores opened so that entries are counted."""

    def open(self, opening: Opening) -> Counted:
        return Counted(self, opening)


def ours(X: Any, y: Any, shown: Sequence[int], refresh: float) -> list[Row]:
    """The state after some of the steps of dpglm, with the scores in a heap."""
    query = Counting(PROBLEM.loss, np.inf, X.shape[1], 1.0, "heap", refresh)
    curator = Curator(records(X, y), Neighbours.REPLACE_ONE, Randomness(0))
    opened = curator.open(query, np.zeros(X.shape[1]), LARGEST)
    found, w, looks, since, gaps = [], np.zeros(X.shape[1]), 0, 0, 0
    for t in range(1, shown[-1] + 1):
        choice, size = opened.select(), 2 / (t + 2)
        opened.shrink(1 - size)
        push = size * RADIUS * (1 if choice % 2 else -1)
        opened.move(choice // 2, push)
        w *= 1 - size
        w[choice // 2] += push
        gaps += 2 * int(np.count_nonzero(w)) + 3
        if t in shown:
            found.append(
                {
                    "step": t,
                    "gap": opened.gap(RADIUS),
                    "kept gap": opened.kept_gap(w),
                    "entries": opened.entries,
                    "operations": opened.operations + gaps,
                    "refreshed": opened.refreshed,
                    "looks": (opened.looks - looks) / (t - since),
                    "non-zeros": int(np.count_nonzero(w)),
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
            operations = (t - 1) * (4 * X.nnz + 4 * len(y) + 5 * X.shape[1])
            found.append(
                {
                    "step": t - 1,
                    "gap": float(gap),
                    "entries": 2 * (t - 1) * X.nnz,
                    "operations": operations,
                }
            )
        w *= 1 - 2 / (t + 2)
        w[j] -= 2 / (t + 2) * RADIUS * np.sign(sums[j])
    return found


def together(plain_rows: Sequence[Row], our_rows: Sequence[Row], stale_rows: Sequence[Row]) -> list[Row]:
    return [
        {
            "step": mine["step"],
            "gap, plain": other["gap"],
            "gap, dpglm": mine["gap"],
            "gap, no refreshes": stale["gap"],
            "as it sees it": stale["kept gap"],
            "entries, plain": other["entries"],
            "entries, dpglm": mine["entries"],
            "times fewer": other["entries"] / mine["entries"],
            "operations, plain": other["operations"],
            "operations, dpglm": mine["operations"],
            "operations, no refreshes": stale["operations"],
            "times fewer operations": other["operations"] / mine["operations"],
            "without refreshes": other["operations"] / stale["operations"],
            "share of refreshes": mine["refreshed"] / mine["entries"],
            "stale tops a step": mine["looks"],
            "non-zeros": mine["non-zeros"],
        }
        for other, mine, stale in zip(plain_rows, our_rows, stale_rows, strict=True)
    ]


def draw(rows: Sequence[Row], path: Path) -> None:
    pyplot = load_pyplot()
    if pyplot is None:
        return
    figure, panels = pyplot.subplots(2, 2, figsize=(8, 6), layout="constrained")
    by_steps, fewer, tops, by_operations = panels.flat
    steps = [row["step"] for row in rows]
    for name, line in (("plain", "-"), ("dpglm", "--"), ("no refreshes", ":")):
        gaps = [row[f"gap, {name}"] for row in rows]
        by_steps.plot(steps, gaps, line, label=name)
        by_operations.plot([row[f"operations, {name}"] for row in rows], gaps, line, label=name)
    by_steps.plot(steps, [row["as it sees it"] for row in rows], "-.", label="no refreshes, as it sees it")
    by_steps.legend(fontsize=8)
    fewer.plot(steps, [row["times fewer operations"] for row in rows], label="dpglm")
    fewer.plot(steps, [row["without refreshes"] for row in rows], ":", label="no refreshes")
    fewer.set_ylabel("times fewer operations")
    fewer.legend(fontsize=8)
    tops.plot(steps, [row["stale tops a step"] / row["non-zeros"] for row in rows])
    tops.set_ylabel("stale tops a step / non-zeros")
    by_operations.set_xlabel("floating-point operations")
    for panel in (by_steps, by_operations):
        panel.set_ylabel("Frank-Wolfe gap")
    for panel in (by_steps, fewer, tops):
        panel.set_xlabel("steps")
    for panel in panels.flat:
        panel.set_xscale("log")
    for panel in (by_steps, fewer, by_operations):
        panel.set_yscale("log")
    figure.savefig(path, dpi=150)
    pyplot.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tiny run whose figures mean nothing")
    parser.add_argument("--steps", type=int, default=4_000)
    parser.add_argument("--table", choices=REAL, default="rcv1")
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the real tables")
    results = Path(__file__).parent / "results"
    parser.add_argument("--out", type=Path, default=results, help="folder for CSV and PNG")
    options = parser.parse_args()
    small = replace(fw_tables.SHAPES["rcv1"], n=500, p=1_000)
    X, y = fw_tables.make(small) if options.quick else REAL[options.table](options.data)
    steps = 50 if options.quick else options.steps
    shown = sorted({int(t) for t in np.geomspace(1, steps, 40)})
    with patch.dict(STRUCTURES, heap=Heap):
        rows = together(plain(X, y, shown), ours(X, y, shown, REFRESH), ours(X, y, shown, math.inf))
    folder = options.out / ("fw_gap_quick" if options.quick else f"fw_gap_{options.table}")
    folder.mkdir(parents=True, exist_ok=True)
    write_mappings(rows, folder / "gap.csv")
    draw(rows, folder / "gap.png")
    print(f"| {' | '.join(rows[0])} |\n{'|---' * len(rows[0])}|")
    for row in rows[:: max(len(rows) // 8, 1)] + rows[-1:]:
        print(f"| {' | '.join(f'{value:.4g}' for value in row.values())} |")
    model = LogisticRegression(
        math.inf, penalty=PROBLEM.penalty, solver=FrankWolfe(steps=steps), bounds=PROBLEM.bounds,
        fit_intercept=False, classes=[-1, 1],
    )  # fmt: skip
    warnings.simplefilter("ignore", ConvergenceWarning)  # so many steps are asked for
    seconds = cpu(lambda: model.fit(X, y)), cpu(lambda: plain(X, y, [steps]))
    print(f"\nCPU time of {steps:,} steps: dpglm {seconds[0]:.1f} s, plain {seconds[1]:.1f} s")
    print(f"\nFigures in {folder}")


if __name__ == "__main__":
    main()
