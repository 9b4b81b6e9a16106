"""A step on a local Dask cluster against the same step in memory: CPU time of all processes, and wall time.

Usage: .venv/bin/python benchmarks/dask_step.py [millions of rows]

CPU time is that of the driver, the scheduler (in the same process) and the workers together; in memory it is
that of this process. The wall time of two workers over one means something on a quiet machine only: the load
average is printed beside it.
"""

from __future__ import annotations

import os
import sys
import time

import dask.array as da
import numpy as np
import psutil
from distributed import Client, LocalCluster
from timing import report

from dpglm import Bounds
from dpglm.arrays import grid_of_terms
from dpglm.data import as_data
from dpglm.data.cluster import DaskTable, records_of
from dpglm.data.record_set import RecordSet
from dpglm.data.terms import Gradient
from dpglm.losses import Logistic
from dpglm.threads import limit_threads

FEATURES, ROWS_A_BLOCK, STEPS = 50, 500_000, 4
BOUNDS = Bounds(row_norm=1.0)


def block_of(number: int) -> np.ndarray:
    rng = np.random.default_rng(number)
    return rng.standard_normal((ROWS_A_BLOCK, FEATURES), dtype=np.float32)


def made(_: np.ndarray, block_id: tuple[int, int]) -> np.ndarray:
    return block_of(block_id[0])


def labels(n: int) -> np.ndarray:
    return np.where(np.arange(n) % 3 == 0, 1.0, -1.0)


def convert(rows: object, targets: object) -> tuple[object, np.ndarray]:
    return rows, np.asarray(targets)


def step(records: RecordSet, n: int, k: int) -> np.ndarray:
    w = np.full(FEATURES + 1, 0.01 * (k + 1))
    return records.steps(Gradient(Logistic(), w, 0.5), grid_of_terms(0.5, n))


def timed(records: RecordSet, n: int, workers: list[psutil.Process]) -> tuple[float, float, np.ndarray]:
    """CPU and wall seconds of a step, the least of several, and the sum of the last one."""

    def cpu() -> float:
        return time.process_time() + sum(sum(worker.cpu_times()[:2]) for worker in workers)

    total, best = step(records, n, 0), [float("inf"), float("inf")]
    for k in range(STEPS):
        before = cpu(), time.perf_counter()
        total = step(records, n, k)
        best = [min(best[0], cpu() - before[0]), min(best[1], time.perf_counter() - before[1])]
    return best[0], best[1], total


def in_memory(blocks: int) -> tuple[float, float, np.ndarray]:
    n = blocks * ROWS_A_BLOCK
    X = np.empty((n, FEATURES), dtype=np.float32)
    for k in range(blocks):
        X[k * ROWS_A_BLOCK : (k + 1) * ROWS_A_BLOCK] = block_of(k)
    with limit_threads(1):
        return timed(as_data(X, labels(n), BOUNDS, 0.5), n, [])


def on_cluster(blocks: int, workers: int) -> tuple[float, float, np.ndarray]:
    n = blocks * ROWS_A_BLOCK
    chunks = ((ROWS_A_BLOCK,) * blocks, (FEATURES,))
    with (
        LocalCluster(
            n_workers=workers, threads_per_worker=1, dashboard_address="127.0.0.1:0", host="127.0.0.1"
        ) as local,
        Client(local) as client,
    ):
        X = da.zeros((n, FEATURES), chunks=chunks, dtype=np.float32).map_blocks(made, dtype=np.float32)
        records = records_of(DaskTable(X, labels(n)), convert, BOUNDS, 0.5, Logistic())
        return timed(records, n, [psutil.Process(pid) for pid in client.run(os.getpid).values()])


def main(millions: float) -> None:
    blocks = round(millions * 1e6 / ROWS_A_BLOCK)
    shape = f"{blocks * ROWS_A_BLOCK:,} x {FEATURES} float32"
    print(f"{shape}, load average {os.getloadavg()[0]:.1f}")
    cpu, _, expected = in_memory(blocks)
    one = on_cluster(blocks, 1)
    two = on_cluster(blocks, 2)
    report("CPU time of a step on two workers, over memory", two[0], cpu, 1.3)
    report("CPU time of a step on one worker, over memory", one[0], cpu, 1.3)
    report("wall time of a step on two workers, over one", two[1], one[1], 0.65)
    same = all((total == expected).all() for total in (one[2], two[2]))
    print(f"the same integers: {'yes' if same else 'MISSED'}; load average {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 16)
