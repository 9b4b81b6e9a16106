"""Time and memory of private Frank-Wolfe over rows, columns, entries and sharpness: one chart for each.

    python experiments/fw_scaling.py           # 2 minutes of CPU time, 1.1 GB
    python experiments/fw_scaling.py --quick   # seconds, in one process, too small to mean anything

Random tables of kdda's kind (fw_tables.py): 100,000 rows, a million columns, 36 entries a row, the heaviest
column 10 scales of the noise; one of the four is varied at a time. 4,000 steps over the L1 ball of radius 50.
Every point is measured by a process of its own, whose peak memory includes the table and the libraries.
Seconds are CPU seconds of all threads; set-up is all of a run but its steps, without the conversion of the
table.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fw_tables
from fw_speed import Row, show, warm_up, worked
from outputs import load_pyplot, write_mappings

sys.path.append(str(Path(__file__).resolve().parents[1] / "benchmarks"))
from lazy_steps import STEPS, law, records, run, sharpness

BASE = {"rows": 100_000, "columns": 1_000_000, "entries a row": 36, "sharpness": 10}
SWEEPS = {
    "rows": (10_000, 30_000, 100_000, 300_000, 1_000_000),
    "columns": (10_000, 100_000, 1_000_000, 10_000_000),
    "entries a row": (10, 36, 100, 300),
    "sharpness": (0.1, 1, 10, 30, 100, 300),
}
QUICK = {"rows": (1_000, 2_000), "columns": (3_000, 5_000), "entries a row": (10, 36), "sharpness": (1, 60)}


def point(rows: int, columns: int, entries: float, sharp: float) -> Row:
    """Measure one table."""
    warm_up()
    X, y = fw_tables.make(fw_tables.Shape("scaling", rows, columns, entries, top_share=0.08))
    grid, _ = law(*X.shape, 1.0)
    scale = sharpness(X, 1.0) / sharp
    data = records(X, y)
    steps = run(data, grid, scale)
    return {
        "microseconds a step": steps.seconds / STEPS * 1e6,
        "set-up, ms": steps.set_up * 1e3,
        "peak MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        **worked(steps.work),
    }


def apart(*numbers: float) -> Row:
    """Measure one table in a process of its own."""
    command = [sys.executable, __file__, "--point", *map(str, numbers)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def measured(what: str, values: Any, base: dict[str, float], measure: Callable[..., Row]) -> list[Row]:
    """One sweep."""
    found = []
    for value in values:
        numbers = base | {what: value}
        found.append({what: value, **measure(*numbers.values())})
        print(f"- {what} {value:g}: {found[-1]['microseconds a step']:.1f} us a step", flush=True)
    return found


def draw(sweeps: dict[str, list[Row]], path: Path) -> None:
    """A chart for each sweep."""
    pyplot = load_pyplot()
    if pyplot is None:
        return
    figure, panels = pyplot.subplots(2, 2, figsize=(8, 5.6), layout="constrained")
    for panel, (what, rows) in zip(panels.flat, sweeps.items(), strict=True):
        at = [row[what] for row in rows]
        panel.plot(at, [row["microseconds a step"] for row in rows], "o-", label="step, microseconds")
        panel.plot(at, [row["set-up, ms"] for row in rows], "s--", label="set-up, milliseconds")
        panel.plot(at, [row["peak MB"] for row in rows], "^:", label="peak of memory, MB")
        panel.set_xlabel(what)
        panel.set_xscale("log")
        panel.set_yscale("log")
    figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
    figure.savefig(path, dpi=150)
    pyplot.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tiny run whose figures mean nothing")
    results = Path(__file__).parent / "results"
    parser.add_argument("--out", type=Path, default=results, help="folder for CSV and PNG")
    parser.add_argument("--point", nargs=4, type=float, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.point:
        rows, columns, entries, sharp = options.point
        print(json.dumps(point(int(rows), int(columns), entries, sharp)))
        return
    folder = options.out / ("fw_scaling_quick" if options.quick else "fw_scaling")
    folder.mkdir(parents=True, exist_ok=True)
    base = {"rows": 1_000, "columns": 3_000, "entries a row": 36, "sharpness": 10} if options.quick else BASE
    sweeps = {}
    for what, values in (QUICK if options.quick else SWEEPS).items():
        found = sweeps[what] = measured(what, values, base, point if options.quick else apart)
        write_mappings(found, folder / f"{what.replace(' ', '_')}.csv")
        print("\n".join(["", show(found), ""]), flush=True)
    draw(sweeps, folder / "scaling.png")
    print(f"Figures in {folder}")


if __name__ == "__main__":
    main()
