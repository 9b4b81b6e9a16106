"""How many times faster private Frank-Wolfe is than the standard algorithm, and what its speed depends on.

Reproduces Table 3 of Raff, Khanna and Lu, "Scaling Up Differentially Private LASSO Regularized Logistic
Regression via Faster Frank-Wolfe Iterations": 4,000 steps of logistic regression over the L1 ball of radius
50. RCV1, news20_binary and imdb are real (--data); the other tables are random, of the published shapes
(fw_tables.py). Its ablation, sparse updates with a plain noisy maximum (Algorithm 2 alone), is measured in
the same run.

    python experiments/fw_speed.py                       # all tables: webspam has 6 GB on disk
    python experiments/fw_speed.py --shapes rcv1,news20  # minutes; the sweeps are run too
    python experiments/fw_speed.py --no-sweeps           # Table 3 only
    python experiments/fw_speed.py --quick               # seconds, too small to mean anything

Every table and epsilon is measured by a process of its own, whose peak memory is that of a fit, table
included. Seconds are CPU seconds: on a busy machine waiting counts for nobody. The standard algorithm takes a
few steps after half of those of dpglm; a fit of it is 4,000 times longer, its set-up not counted.

A step of dpglm is the mean of a run of all 4,000, with the random words, selections, moves, updates of sums
and all calls in between: the least of three runs with one seed, as the standard step is the least of three or
more; a step of the ablation is the mean of 20, since rows follow the shrinking of coefficients once in some
ten steps. Apart from it stands the first run, whose memory may be in no cache; a number of each page of the
table is read before each of them (`lazy_steps.touch`). Not in a step are the conversion of the table, the
first sums, the sort of all columns, the models of leading columns and the schedule: these, and the
calibration of the noise, are in a fit. Goals are followed by what the cache lines of a step would take alone
(benchmarks/cache_lines.py). Fits of tables of fewer than 10^8 entries are the best of five.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import fw_accuracy
import fw_tables
import numpy as np
import scipy.sparse as sp
from outputs import load_pyplot, write_mappings

sys.path.append(str(Path(__file__).resolve().parents[1] / "benchmarks"))
from cache_lines import limit
from lazy_steps import DATA, PROBLEM, RADIUS, STEPS, as_data, cpu, law, model, rcv1, records, run, sharpness
from sparse_frank_wolfe import SparseFrankWolfe
from standard_frank_wolfe import StandardFrankWolfe

Table = tuple[Any, Any]
Row = dict[str, Any]

EPSILONS = (1.0, 0.1)


def fitted(name: str, data: Path) -> Table:
    """The rows that models are fitted to, of a table that is stored as counts."""
    found = fw_accuracy.TABLES[name](data)
    return found.X, found.y


REAL: dict[str, Callable[[Path], Table]] = {
    "rcv1": rcv1,
    "imdb": lambda data: fitted("imdb", data),
    "news20_binary": lambda data: fitted("news20", data),
}
NAMES = (*REAL, "news20", "url", "webspam", "kdda")
PUBLISHED = {
    "rcv1": (19.44, 20.37),
    "news20": (81.69, 93.51),
    "url": (9.99, 2451.80),
    "webspam": (581.25, 537.65),
    "kdda": (1239.64, 2245.56),
}
"""At epsilon 1 and 0.1."""
PUBLISHED_ALONE = {
    "rcv1": (1.36, 1.82),
    "news20": (17.83, 19.05),
    "url": (1.02, 95.58),
    "webspam": (21.24, 20.79),
    "kdda": (206.50, 368.96),
}
"""Algorithm 2 with the plain noisy maximum, at epsilon 1 and 0.1."""
STEP_GOALS = {("kdda", 1.0): 300, ("kdda", 0.1): 300_000}
FIT_GOALS = {("kdda", 0.1): 1_000}
MEMORY_GOAL = 8.0
ENTRIES_A_ROW = 36.0
RUNS = 3
ABLATION_STEPS = 20


def table(name: str, data: Path, quick: bool) -> Table:
    """A real table, or a random one."""
    if quick:
        return fw_tables.make(replace(fw_tables.SHAPES[name], n=1_000, p=3_000, entries_a_row=60, rows=None))
    return REAL[name](data) if name in REAL else fw_tables.make(fw_tables.SHAPES[name])


@cache
def warm_up() -> None:
    """Have all code compiled, or read from the cache."""
    from dpglm.kernels.pending_moves import refer_slopes

    X, y = fw_tables.make(replace(fw_tables.SHAPES["kdda"], n=500, p=100_000))
    model(1.0).fit(X, y)
    for scale in (0.15, 1.0, 1e3):  # with pending moves, with leading columns, and with neither
        run(as_data(X, y, PROBLEM.bounds), 1e-9, scale)  # extracts columns on demand, as fits do
    if not refer_slopes.signatures:  # type: ignore[attr-defined]
        raise RuntimeError("no table of the warm-up has pending moves: they would be compiled while timed")


def cell(folder: Path, epsilon: float, fits: bool, quick: bool) -> Row:
    """Measure one table, left in a folder, at one epsilon; whole fits only if they are asked for."""
    if not quick:
        warm_up()
    X, y = load(folder)
    n, p = X.shape
    start, begun = time.perf_counter(), time.process_time()
    grid, scale = law(n, p, epsilon)
    calibration, waited = time.process_time() - begun, time.perf_counter() - start
    large = X.nnz > 10**8
    fit = wall = math.inf
    for _ in range(fits * (1 if large or quick else 5)):
        start = time.perf_counter()
        fit = min(fit, cpu(lambda: model(epsilon).fit(X, y)))
        wall = min(wall, time.perf_counter() - start)
    fit, wall = fit + calibration, wall + waited
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    data = records(X, y)
    runs = [run(data, grid, scale) for _ in range(RUNS)]
    first, steps = runs[0], min(runs, key=lambda steps: steps.seconds)
    del data
    half = steps.choices[: STEPS // 2]
    standard = StandardFrankWolfe(X, y, RADIUS, scale)
    standard.replay(half)
    theirs = theirs_passed = math.inf
    for _ in range(3 if large else 12):
        start = time.perf_counter()
        theirs = min(theirs, cpu(standard.step))
        theirs_passed = min(theirs_passed, time.perf_counter() - start)
    del standard
    alone = SparseFrankWolfe(X, y, RADIUS, scale)
    alone.replay(half)
    alone.step()  # computes all sums
    ablation = cpu(lambda: [alone.step() for _ in range(ABLATION_STEPS)]) / ABLATION_STEPS
    return {
        "n": n,
        "p": p,
        "entries": int(X.nnz),
        "epsilon": epsilon,
        "sharpness": sharpness(X, scale),
        "step": steps.seconds / STEPS,
        "first step": first.seconds / STEPS,
        "standard step": theirs,
        "steps faster": theirs * STEPS / steps.seconds,
        "ablation step": ablation,
        "ablation faster": theirs / ablation,
        "step passed": steps.passed / STEPS,
        "lines": str(limit(X, steps.work, STEPS)),
        "standard step passed": theirs_passed,
        "fit": fit,
        "fit wall": wall,
        "fits faster": theirs * STEPS / wall,
        "memory": memory,
    }


def save(X: Any, y: Any, folder: Path) -> None:
    for name, part in {"data": X.data, "indices": X.indices, "indptr": X.indptr, "y": y}.items():
        np.save(folder / f"{name}.npy", part)
    (folder / "shape.json").write_text(json.dumps(X.shape))


def load(folder: Path) -> Table:
    parts = {name: np.load(folder / f"{name}.npy") for name in ("data", "indices", "indptr", "y")}
    shape = tuple(json.loads((folder / "shape.json").read_text()))
    return sp.csr_array((parts["data"], parts["indices"], parts["indptr"]), shape=shape), parts["y"]


def cells(
    names: Sequence[str], epsilons: Sequence[float], data: Path, quick: bool, fits: bool
) -> Iterable[Row]:
    """All tables, each written to disk so that a process can measure it alone."""
    for name in names:
        with tempfile.TemporaryDirectory() as scratch:
            save(*table(name, data, quick), Path(scratch))
            for epsilon in EPSILONS[-1:] if quick else epsilons:
                command = [sys.executable, __file__, "--cell", scratch, "--epsilons", str(epsilon)]
                command += ["--quick"] * quick + ["--no-fits"] * (not fits)
                done = subprocess.run(command, capture_output=True, text=True)
                if done.returncode:
                    print(f"{name}, epsilon {epsilon:g}: {done.stderr.strip().splitlines()[-1:]}", flush=True)
                    continue
                yield {"table": name, **json.loads(done.stdout.splitlines()[-1])}


def by_sharpness(data: Path, quick: bool) -> list[Row]:
    """The cost of a step as a function of the sharpness, the scale being set: epsilon 1000 has no price."""
    kdda = fw_tables.SHAPES["kdda"]
    kdda = replace(kdda, n=1_000, p=5_000) if quick else replace(kdda, n=500_000)
    found = []
    for name, (X, y) in (("rcv1", table("rcv1", data, quick)), ("kdda, fewer rows", fw_tables.make(kdda))):
        kept, heaviest, (grid, _) = records(X, y), sharpness(X, 1.0), law(*X.shape, 1.0)
        for sharp in (0.1, 10.0) if quick else (0.1, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0):
            steps = run(kept, grid, heaviest / sharp)
            microseconds = steps.seconds / STEPS * 1e6
            found.append(
                {"table": name, "sharpness": sharp, "microseconds": microseconds, **worked(steps.work)}
            )
    return found


def by_columns(quick: bool) -> list[Row]:
    """The cost of a step as a function of the number of columns, with as many entries in every row."""
    found = []
    for p in (3_000, 10_000) if quick else (10**4, 10**5, 10**6, 10**7, 2 * 10**7):
        shape = fw_tables.Shape("columns", 2_000 if quick else 100_000, p, ENTRIES_A_ROW, top_share=0.08)
        X, y = fw_tables.make(shape)
        data, (grid, scale) = records(X, y), law(*X.shape, 0.1)
        tried = (run(data, grid, scale, seed) for seed in range(1 if quick else 3))
        steps = min(tried, key=lambda steps: steps.seconds)
        found.append(
            {
                "p": p,
                "sharpness": sharpness(X, scale),
                "microseconds": steps.seconds / STEPS * 1e6,
                **worked(steps.work),
                "root of p": float(np.sqrt(p)),
            }
        )
    return found


def worked(work: Any) -> Row:
    """What a step does, on average."""
    proposals, sums, for_sums, to_follow, moved = (work / STEPS).tolist()
    return {"proposals": proposals, "sums": sums, "entries read": for_sums + to_follow + moved}


def show(rows: Sequence[Row]) -> str:
    """A Markdown table."""
    lines = [f"| {' | '.join(rows[0])} |", "|---" * len(rows[0]) + "|"]
    for row in rows:
        lines.append(
            f"| {' | '.join(f'{v:,.4g}' if isinstance(v, float) else str(v) for v in row.values())} |"
        )
    return "\n".join(lines)


def beside_published(row: Row) -> Row:
    """What Table 3 shows of a cell."""
    one = row["epsilon"] == EPSILONS[0]
    return {
        "table": row["table"],
        "rows": f"{row['n']:,}",
        "epsilon": row["epsilon"],
        "sharpness": f"{row['sharpness']:.2g}",
        "step, us": f"{row['step'] * 1e6:,.1f}",
        "in the first run": f"{row['first step'] * 1e6:,.1f}",
        "standard step, ms": f"{row['standard step'] * 1e3:,.1f}",
        "times faster": f"{row['steps faster']:,.0f}",
        "by the clock": f"{row['standard step passed'] / row['step passed']:,.0f}",
        "published": PUBLISHED.get(row["table"], ("-", "-"))[0 if one else 1],
        "ablation step, ms": f"{row['ablation step'] * 1e3:,.2f}",
        "its times faster": f"{row['ablation faster']:,.2f}",
        "published of it": PUBLISHED_ALONE.get(row["table"], ("-", "-"))[0 if one else 1],
        "fit, s": f"{row['fit wall']:.2f}",
        "fit, CPU s": f"{row['fit']:.2f}",
        "fits, times faster": f"{row['fits faster']:,.0f}",
        "peak GB": f"{row['memory']:.1f}",
    }


def goals(rows: Sequence[Row]) -> list[str]:
    """What should be reached, and whether it is."""
    lines = []
    for row in rows:
        key = row["table"], row["epsilon"]
        for what, found, goal in (
            ("steps faster", row["steps faster"], STEP_GOALS.get(key)),
            ("fits faster", row["fits faster"], FIT_GOALS.get(key)),
        ):
            if goal is not None:
                verdict = "ok" if found >= goal else "MISSED"
                lines.append(f"{verdict}: {key[0]}, epsilon {key[1]:g}, {what} {found:,.0f}, goal {goal:,}")
        lines.append(f"{key[0]}, epsilon {key[1]:g}: {row['lines']}; measured {row['step'] * 1e6:.2f}")
        if row["table"] == "kdda":
            verdict = "ok" if row["memory"] < MEMORY_GOAL else "MISSED"
            lines.append(f"{verdict}: kdda, peak {row['memory']:.1f} GB, goal below {MEMORY_GOAL:g}")
    return lines


def draw(sharp: Sequence[Row], wide: Sequence[Row], path: Path) -> None:
    """Both sweeps."""
    pyplot = load_pyplot()
    if pyplot is None:
        return
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
    for name in dict.fromkeys(row["table"] for row in sharp):
        mine = [row for row in sharp if row["table"] == name]
        left.plot([row["sharpness"] for row in mine], [row["microseconds"] for row in mine], "o-", label=name)
    left.set_xlabel("sharpness: heaviest column / scale of the noise")
    left.set_ylabel("microseconds a step")
    p = [row["p"] for row in wide]
    right.plot(p, [row["microseconds"] for row in wide], "o-", label="microseconds a step")
    right.plot(p, [row["entries read"] for row in wide], "s--", label="entries read")
    right.plot(p, [row["entries read"] + row["root of p"] for row in wide], ":", label="entries + root of p")
    right.set_xlabel("columns")
    for panel in (left, right):
        panel.set_xscale("log")
        panel.set_yscale("log")
        panel.legend(fontsize=7)
    figure.savefig(path, dpi=150)
    pyplot.close(figure)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tiny run whose figures mean nothing")
    parser.add_argument("--shapes", help=f"some of {','.join(NAMES)}")
    parser.add_argument("--no-sweeps", action="store_true", help="leave out sharpness and columns")
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the real tables")
    results = Path(__file__).parent / "results"
    parser.add_argument("--out", type=Path, default=results, help="folder for CSV and PNG")
    parser.add_argument("--cell", type=Path, help=argparse.SUPPRESS)
    every = ",".join(map(str, EPSILONS))
    parser.add_argument("--epsilons", default=every, help=f"some of {every}")
    parser.add_argument("--no-fits", action="store_true", help="steps only: fits then count as endless")
    return parser.parse_args()


def main() -> None:
    options = arguments()
    epsilons = [float(epsilon) for epsilon in options.epsilons.split(",")]
    if options.cell:
        print(json.dumps(cell(options.cell, epsilons[0], not options.no_fits, options.quick)))
        return
    folder = options.out / ("fw_speed_quick" if options.quick else "fw_speed")
    folder.mkdir(parents=True, exist_ok=True)
    names = options.shapes.split(",") if options.shapes else NAMES[:1] if options.quick else NAMES
    found: list[Row] = []
    for row in cells(names, epsilons, options.data, options.quick, not options.no_fits):
        found.append(row)
        print(f"- {row['table']}, epsilon {row['epsilon']:g}: {row['steps faster']:,.0f} times", flush=True)
        write_mappings(found, folder / "table_3.csv")
    if found:
        print("\n".join(["", show([beside_published(row) for row in found]), "", *goals(found)]), flush=True)
    if not options.no_sweeps:
        if not options.quick:
            warm_up()
        sharp, wide = by_sharpness(options.data, options.quick), by_columns(options.quick)
        write_mappings(sharp, folder / "sharpness.csv")
        write_mappings(wide, folder / "columns.csv")
        draw(sharp, wide, folder / "sweeps.png")
        print("\n".join(["", show(sharp), "", show(wide)]))
    print(f"\nFigures in {folder}")


if __name__ == "__main__":
    main()
