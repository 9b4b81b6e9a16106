"""A private fit of a table on disk: peak memory above an empty process, and CPU time over reading alone.

Reading alone is what the same source does without a sum: from the file to arrays of numbers.
``--gb 10`` is the size at which the goals must hold; memory must not depend on the size. The table has 50
columns of float32 and a label. Everything is measured in fresh processes; the files are deleted at the end.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

COLUMNS, ROWS_A_GROUP, STEPS = 50, 1 << 20, 3
GOAL_MB, GOAL_RATIO = 500.0, 1.5
KINDS = ("parquet", "arrow file", "polars")


def main() -> None:
    """Write the tables, measure each kind of source in processes of its own, print goals and values."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gb", type=float, default=1.0, help="size of the table")
    parser.add_argument("--kinds", nargs="+", default=KINDS, choices=KINDS)
    parser.add_argument("--measure", nargs=3, metavar=("KIND", "WHAT", "PATH"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        print(json.dumps(measured(*arguments.measure)))
        return
    empty = in_process("empty", "empty", "")["peak"]
    with tempfile.TemporaryDirectory() as folder:
        for kind in arguments.kinds:
            path = Path(folder) / ("table.arrow" if kind == "arrow file" else "table.parquet")
            if not path.exists():
                write(path, arguments.gb)
            size = path.stat().st_size / 1e9
            libraries, reading, fit = (in_process(kind, what, str(path)) for what in ("tiny", "read", "fit"))
            above, ratio = fit["peak"] - empty, fit["cpu"] / reading["cpu"]
            loaded = libraries["peak"] - empty
            name = f"{kind}, {size:.1f} GB"
            print(
                f"{name}: peak memory of a fit {above:.0f} MB above an empty process, {loaded:.0f} MB of it "
                f"for a fit of 1,000 rows  goal {GOAL_MB:.0f}  {verdict(above <= GOAL_MB)}"
            )
            print(
                f"{name}: CPU time of a gradient pass {fit['cpu']:.2f} s, of reading {reading['cpu']:.2f} s  "
                f"ratio {ratio:.2f}  goal {GOAL_RATIO:.2f}  {verdict(ratio <= GOAL_RATIO)}"
            )


def verdict(met: bool) -> str:
    return "ok" if met else "MISSED"


def in_process(kind: str, what: str, path: str) -> dict[str, float]:
    """What a fresh process measures of itself."""
    command = [sys.executable, __file__, "--measure", kind, what, path]
    run = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(run.stdout.splitlines()[-1])
    return found


def measured(kind: str, what: str, path: str) -> dict[str, float]:
    """Peak memory of this process in MB, and the CPU time of a pass."""
    work: dict[str, Callable[[], float]] = {
        "empty": lambda: 0.0,
        "tiny": lambda: fitted(kind, path, tiny=True),
        "read": lambda: read(kind, path),
        "fit": lambda: fitted(kind, path),
    }
    warnings.simplefilter("ignore")
    seconds = work[what]()
    return {"cpu": seconds, "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def fitted(kind: str, path: str, tiny: bool = False) -> float:
    """CPU time of a pass of a private fit."""
    from dpglm import LogisticRegression
    from dpglm.solvers import GradientDescent

    def model(steps: int) -> LogisticRegression:
        return LogisticRegression(epsilon=1.0, classes=[0, 1], solver=GradientDescent(steps=steps))

    model(1).fit(table(1_000, 0), "label")  # loads compiled code
    small = source(kind, path) if not tiny else table(1_000, 0)
    start = time.process_time()
    model(STEPS).fit(small, "label")
    return (time.process_time() - start) / STEPS


def read(kind: str, path: str) -> float:
    """CPU time of reading the blocks of a source as a pass does, without a sum over them."""
    from dpglm.data.adapters import as_source
    from dpglm.data.stream import prefetch

    blocks = as_source(source(kind, path)).aimed("label")
    start = time.process_time()
    for _ in prefetch(blocks.blocks()):
        pass
    return time.process_time() - start


def source(kind: str, path: str) -> Any:
    if kind == "polars":
        import polars

        return polars.scan_parquet(path)
    import pyarrow.dataset as datasets

    return datasets.dataset(path, format="ipc" if kind == "arrow file" else "parquet")


def table(rows: int, seed: int) -> Any:
    import numpy as np
    import pyarrow as pa

    rng = np.random.default_rng(seed)
    columns = {f"x{j}": rng.standard_normal(rows, dtype=np.float32) for j in range(COLUMNS)}
    return pa.table({**columns, "label": (columns["x0"] > 0).astype(np.int8)})


def write(path: Path, gb: float) -> None:
    """Write a table of about so many GB, a group of rows at a time."""
    import pyarrow as pa
    from pyarrow import parquet

    groups = max(1, round(gb * 1e9 / (4 * COLUMNS * ROWS_A_GROUP)))
    schema = table(1, 0).schema
    if path.suffix == ".arrow":
        with pa.ipc.new_file(str(path), schema) as file:
            for seed in range(groups):
                file.write_table(table(ROWS_A_GROUP, seed), max_chunksize=1 << 17)
        return
    with parquet.ParquetWriter(path, schema, compression="none", use_dictionary=False) as file:
        for seed in range(groups):
            file.write_table(table(ROWS_A_GROUP, seed), row_group_size=ROWS_A_GROUP)
    os.sync()


if __name__ == "__main__":
    main()
