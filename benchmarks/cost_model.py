"""What a fit costs beyond these machines: constants measured here, predictions beside small runs, and tables.

Usage: .venv/bin/python benchmarks/cost_model.py

It prints what docs/scale.md states. Times are CPU times of a quiet machine: the least of several runs. Files
are read from the cache of the operating system, and all workers are on this machine: disks and networks are
not measured, for them the model gives bytes.
"""

from __future__ import annotations

import os
import pickle
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import psutil
import pyarrow as pa
import pyarrow.dataset as datasets
from distributed import Client, LocalCluster
from pyarrow import parquet

from dpglm import Bounds, LogisticRegression
from dpglm.arrays import ROUNDING, Vector, bits_of_terms, grid_of_terms
from dpglm.curator import rounding_factor
from dpglm.data import as_data
from dpglm.data.adapters import as_source
from dpglm.data.cluster import DaskTable, records_of
from dpglm.data.cluster.worker import Agreement, Answer, Pass
from dpglm.data.fingerprint import Fingerprint, Mark
from dpglm.data.record_set import RecordSet
from dpglm.data.streamed import StreamedRecords
from dpglm.data.sums import cut_to_grid
from dpglm.data.terms import CutGradient, Gradient
from dpglm.losses import Logistic
from dpglm.solvers import GradientDescent, ObjectivePerturbation, Solver
from dpglm.threads import limit_threads

BOUNDS, CONSTANT, CLIP, ROUNDS = Bounds(row_norm=1.0), 0.5, 0.5, 5
WIDTHS, ENTRIES = (20, 100), 20_000_000
WIDTH, BLOCK = 50, 1_000_000
DELTA = 1e-15


@dataclass(frozen=True)
class Line:
    """Seconds or bytes for each record: some for the record, and some for each of its features."""

    record: float
    feature: float

    @classmethod
    def through(cls, of: Callable[[int], float]) -> Line:
        """The line through the values at two widths."""
        narrow, wide = (of(width) for width in WIDTHS)
        feature = (wide - narrow) / (WIDTHS[1] - WIDTHS[0])
        if narrow < feature * WIDTHS[0]:  # of what a record costs by itself nothing is to be seen
            return cls(0.0, wide / WIDTHS[1])
        return cls(narrow - feature * WIDTHS[0], feature)

    def __call__(self, width: int) -> float:
        return self.record + self.feature * width


@dataclass(frozen=True)
class Costs:
    """The constants of the model: CPU seconds and bytes."""

    sums: Line
    loading: Line
    parquet: Line
    memory: Line
    driver: float
    driver_worker: float
    driver_block: float
    driver_load: float
    worker_block: float
    order: Line
    answer: Line
    answer_block: float

    def of_driver(self, workers: int, blocks: int) -> float:
        """CPU seconds of driver and scheduler for a pass."""
        return self.driver + self.driver_worker * workers + self.driver_block * blocks

    def of_workers(self, n: int, width: int, blocks: int) -> float:
        """CPU seconds of all workers for a pass."""
        return n * self.sums(width) + blocks * self.worker_block

    def bytes_of(self, width: int, workers: int, blocks: int) -> float:
        """Bytes between driver and workers in a pass."""
        return workers * (self.order(width) + self.answer(width)) + blocks * self.answer_block


def table(n: int, p: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, p), dtype=np.float32)


def labels(n: int) -> Vector:
    return np.where(np.arange(n) % 3 == 0, 1.0, -1.0)


def convert(rows: object, targets: object) -> tuple[object, np.ndarray]:
    return rows, np.asarray(targets, dtype=np.float64)


def term(p: int) -> Gradient:
    return Gradient(Logistic(), np.linspace(-1, 1, p + 1), CLIP)


def least(
    work: Callable[[], object], rounds: int = ROUNDS, clock: Callable[[], float] | None = None
) -> float:
    """Least CPU seconds of several runs, after one to warm up."""
    clock, best = clock or time.process_time, float("inf")
    work()
    for _ in range(rounds):
        start = clock()
        work()
        best = min(best, clock() - start)
    return best


def a_pass(records: RecordSet, n: int, p: int) -> np.ndarray:
    return records.steps(term(p), grid_of_terms(CLIP, n))


def pass_in_memory(p: int, n: int) -> float:
    """CPU seconds a record of a pass over an array, in one thread."""
    with limit_threads(1):
        records = as_data(table(n, p), labels(n), BOUNDS, CONSTANT)
        return least(lambda: a_pass(records, n, p)) / n


def loading(p: int, n: int) -> float:
    """CPU seconds a record until a block is ready: fingerprint, norms and bounds."""
    X, y, mark = table(n, p), labels(n), Fingerprint()
    with limit_threads(1):

        def load() -> None:
            records = as_data(X, y, BOUNDS, CONSTANT)
            mark.of(records.block, y)  # type: ignore[arg-type]

        return least(load) / n


def held(p: int, n: int = 10_000) -> float:
    """Bytes a record that a worker keeps, after a pass."""
    records = as_data(table(n, p), labels(n), BOUNDS, CONSTANT)
    a_pass(records, n, p)
    arrays = [*vars(records).values(), *vars(records.block).values()]
    found = {id(array): array.nbytes for array in arrays if isinstance(array, np.ndarray)}
    return sum(found.values()) / n


def pass_of_parquet(p: int, n: int) -> float:
    """CPU seconds a record of a pass over a Parquet file, without compression, in the cache."""
    with tempfile.TemporaryDirectory() as folder:
        path, X = Path(folder) / "table.parquet", table(n, p)
        columns = {f"x{j}": X[:, j] for j in range(p)} | {"label": labels(n).astype(np.int8)}
        parquet.write_table(pa.table(columns), path, compression="none", use_dictionary=False)
        source = as_source(datasets.dataset(path))
        assert source is not None
        records = StreamedRecords(source.aimed("label"), convert, BOUNDS, CONSTANT)
        return least(lambda: a_pass(records, n, p), 3) / n


def pickled(thing: object) -> int:
    return len(pickle.dumps(thing, protocol=5))


def order_bytes(p: int) -> float:
    """Bytes of the task that is sent to a worker."""
    agreement = Agreement("0" * 32, None, "0" * 64)  # type: ignore[arg-type]
    return pickled(Pass(agreement, term(p), grid_of_terms(CLIP, 10**9), 0, "0" * 32, None, None))


def answer_bytes(p: int, blocks: int) -> float:
    """Bytes of an answer over so many blocks."""
    value, mark = np.full((1, p + 1), 2**60), Mark(BLOCK, 2**63 + 1, 2**63 + 3)
    return pickled(Answer(value, {k: Mark(*(int(str(number)) for number in mark)) for k in range(blocks)}))


def block_of(_: np.ndarray, block_id: tuple[int, int], rows: int, p: int) -> np.ndarray:
    return table(rows, p, block_id[0])


@contextmanager
def clustered(
    workers: int, blocks: int, rows: int, p: int
) -> Iterator[tuple[RecordSet, list[psutil.Process]]]:
    """The records of a table of equal blocks on so many local workers of one thread, and the workers."""
    n = blocks * rows
    with (
        LocalCluster(
            n_workers=workers, threads_per_worker=1, dashboard_address="127.0.0.1:0", host="127.0.0.1"
        ) as own,
        Client(own) as client,
    ):
        X = da.zeros((n, p), chunks=(rows, p), dtype=np.float32)
        X = X.map_blocks(block_of, rows=rows, p=p, dtype=np.float32)
        records = records_of(DaskTable(X, labels(n)), convert, BOUNDS, CONSTANT, Logistic())
        a_pass(records, n, p)
        yield records, [psutil.Process(pid) for pid in client.run(os.getpid).values()]


def driver_load(blocks: int) -> float:
    """CPU seconds of driver and scheduler until all blocks are on two workers and the first pass is over."""
    start = time.process_time()
    with clustered(2, blocks, 100, WIDTH):
        return time.process_time() - start


def cluster_pass(workers: int, blocks: int, rows: int, p: int) -> tuple[float, float]:
    """CPU seconds of driver and scheduler, and of all workers, for a pass on a local cluster."""
    n = blocks * rows
    with clustered(workers, blocks, rows, p) as (records, processes):

        def cpu() -> float:
            return sum(sum(process.cpu_times()[:2]) for process in processes)

        passes, best = 10, [float("inf"), float("inf")]
        for _ in range(3):  # CPU times of other processes are counted in hundredths of seconds
            start = time.process_time(), cpu()
            for _ in range(passes):
                a_pass(records, n, p)
            found = time.process_time() - start[0], cpu() - start[1]
            best = [min(old, new / passes) for old, new in zip(best, found, strict=True)]
    return best[0], best[1]


def measured() -> Costs:
    """All constants."""
    shapes = [(1, 8), (1, 512), (2, 8), (2, 512), (4, 8), (4, 512)]
    found = np.array([cluster_pass(workers, blocks, 100, WIDTH) for workers, blocks in shapes])
    unknowns = np.array([(1.0, workers, blocks) for workers, blocks in shapes])
    driver, driver_worker, driver_block = np.maximum(np.linalg.lstsq(unknowns, found[:, 0])[0], 0.0)
    worker_block = np.maximum(np.linalg.lstsq(unknowns, found[:, 1])[0][2], 0.0)
    return Costs(
        sums=Line.through(lambda p: pass_in_memory(p, ENTRIES // p)),
        loading=Line.through(lambda p: loading(p, ENTRIES // p)),
        parquet=Line.through(lambda p: pass_of_parquet(p, ENTRIES // p)),
        memory=Line.through(held),
        driver=float(driver),
        driver_worker=float(driver_worker),
        driver_block=float(driver_block),
        driver_load=(driver_load(512) - driver_load(8)) / 504,
        worker_block=float(worker_block),
        order=Line.through(order_bytes),
        answer=Line.through(lambda p: answer_bytes(p, 0)),
        answer_block=(answer_bytes(WIDTH, 1_000) - answer_bytes(WIDTH, 0)) / 1_000,
    )


def print_constants(costs: Costs) -> None:
    print("\n| what | for a record | for each of its features |")
    print("|---|---|---|")
    for name, line in (
        ("pass over records in memory", costs.sums),
        ("pass over a Parquet file, reading included", costs.parquet),
        ("loading a block on a worker, once a fit", costs.loading),
    ):
        print(f"| {name} | {line.record * 1e9:.1f} ns | {line.feature * 1e9:.2f} ns |")
    print(f"| memory of a worker | {costs.memory.record:.0f} bytes | {costs.memory.feature:.0f} bytes |")
    print("\n| what, in a pass over a Dask cluster | measured |")
    print("|---|---|")
    print(f"| driver and scheduler, fixed | {costs.driver * 1e3:.1f} ms |")
    print(f"| driver and scheduler, for each worker | {costs.driver_worker * 1e3:.2f} ms |")
    print(f"| driver and scheduler, for each block | {costs.driver_block * 1e6:.0f} µs |")
    print(f"| driver and scheduler, for each block, once a fit | {costs.driver_load * 1e3:.1f} ms |")
    print(f"| workers, for each block | {costs.worker_block * 1e6:.0f} µs |")
    order, answer = costs.order, costs.answer
    print(f"| task sent to a worker | {order.record:.0f} bytes, and {order.feature:.0f} a feature |")
    print(f"| answer of a worker | {answer.record:.0f} bytes, and {answer.feature:.0f} a feature |")
    print(f"| fingerprint of a block, in each answer | {costs.answer_block:.0f} bytes |")


def print_checks(costs: Costs) -> None:
    """Runs of other shapes than those of the constants, beside what the model predicts."""
    print("\n| run | predicted | measured | measured / predicted |")
    print("|---|---|---|---|")

    def line(name: str, predicted: float, found: float, unit: str = "ms", scale: float = 1e3) -> None:
        print(
            f"| {name} | {predicted * scale:,.1f} {unit} | {found * scale:,.1f} {unit} "
            f"| {found / predicted:.2f} |"
        )

    for n, p in ((1_000_000, WIDTH), (200_000, 300)):
        line(f"pass in memory, {n:,} x {p}", n * costs.sums(p), n * pass_in_memory(p, n))
    for n, p in ((1_000_000, WIDTH), (100_000, 200)):
        line(f"pass over Parquet, {n:,} x {p}", n * costs.parquet(p), n * pass_of_parquet(p, n))
    line("driver and scheduler, loading 1,000 blocks rather than 8", 992 * costs.driver_load,
         driver_load(1_000) - driver_load(8))  # fmt: skip
    n = 500_000
    line(f"loading a block of {n:,} x {WIDTH}", n * costs.loading(WIDTH), n * loading(WIDTH, n))
    for workers, blocks, rows in ((1, 8, 250_000), (2, 8, 250_000), (2, 200, 10_000), (3, 1_000, 200)):
        driver, work = cluster_pass(workers, blocks, rows, WIDTH)
        name = f"pass, {workers} workers, {blocks:,} blocks of {rows:,} x {WIDTH}"
        line(f"{name}: driver", costs.of_driver(workers, blocks), driver)
        line(f"{name}: workers", costs.of_workers(blocks * rows, WIDTH, blocks), work)
    n = 1_000_000
    line(f"memory of a worker for {n:,} x {WIDTH}", n * costs.memory(WIDTH), memory_of_worker(n), "MB", 1e-6)
    line("answer over 200 blocks", costs.answer(WIDTH) + 200 * costs.answer_block, answer_bytes(WIDTH, 200),
         "kB", 1e-3)  # fmt: skip


def memory_of_worker(n: int) -> float:
    """How much more memory a worker takes for one large table than for a small one."""
    found = []
    for rows in (1_000, n // 8):
        with clustered(1, 8, rows, WIDTH) as (_, processes):
            found.append(processes[0].memory_info().rss)
    return float(found[1] - found[0])


def span(seconds: float) -> str:
    """Seconds in a unit that suits them."""
    for unit, size in (("days", 86_400.0), ("h", 3_600.0), ("min", 60.0)):
        if seconds >= size:
            return f"{seconds / size:,.1f} {unit}"
    return f"{seconds:.2g} s"


def size(count: float) -> str:
    for unit, power in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= power:
            return f"{count / power:,.3g} {unit}"
    return f"{count:.0f} bytes"


def plan_of(n: int, solver: str | Solver[Any], **settings: Any) -> Any:
    """A plan for a penalty that Newton does not serve."""
    model = LogisticRegression(epsilon=1.0, classes=[0, 1], penalty="l1", solver=solver, **settings)
    return model.plan(n, WIDTH, resident=False)


def print_plans(costs: Costs) -> None:
    """The tables for 1e9 to 1e12 records."""
    print(f"\nPasses, epsilon 1, {WIDTH} features:\n")
    print(f"| records | `auto` and `GradientDescent()` | `ObjectivePerturbation()`, delta {DELTA:g} |")
    print("|---|---|---|")
    passes = {}
    for digits in range(9, 13):
        n = 10**digits
        descent, search = plan_of(n, "auto"), plan_of(n, ObjectivePerturbation(), delta=DELTA)
        assert descent == plan_of(n, GradientDescent())
        passes[n] = descent.passes.usual
        print(f"| 1e{digits} | {descent.passes} | {search.passes} |")
    print(f"\nOne process, Parquet of {WIDTH} float32 columns, CPU time:\n")
    print("| records | table | a pass | 20 steps of gradient descent | default gradient descent |")
    print("|---|---|---|---|---|")
    for n, descent in passes.items():
        once = n * costs.parquet(WIDTH)
        spans = " | ".join(span(once * count) for count in (1, 20, descent))
        print(f"| 1e{len(str(n)) - 1} | {size(n * 4.0 * WIDTH)} | {spans} |")
    print(f"\nDask, {WIDTH} float32 features, blocks of {BLOCK:,} records, workers of one thread:\n")
    print("| records | workers | memory of each | loading | a pass: workers | a pass: driver | bytes a pass "
          "| default gradient descent |")  # fmt: skip
    print("|---|---|---|---|---|---|---|---|")
    for n, descent in passes.items():
        for workers in (10, 100, 1_000):
            blocks = max(n // BLOCK, workers)
            load = n * costs.loading(WIDTH) / workers + blocks * costs.driver_load
            work, driver = costs.of_workers(n, WIDTH, blocks) / workers, costs.of_driver(workers, blocks)
            fit = load + descent * (work + driver)
            print(
                f"| 1e{len(str(n)) - 1} | {workers:,} | {size(n * costs.memory(WIDTH) / workers)} "
                f"| {span(load)} "
                f"| {span(work)} | {span(driver)} | {size(costs.bytes_of(WIDTH, workers, blocks))} "
                f"| {span(fit)} |"
            )


def print_limits() -> None:
    """What the public number of records does to sums."""
    n = 200_000
    X, y, w = table(n, WIDTH).astype(np.float64), labels(n), np.linspace(-1, 1, WIDTH + 1)
    clips = np.full(WIDTH + 1, 0.1)

    def sums(total: int) -> tuple[Vector, Vector]:
        records = as_data(X, y, BOUNDS, CONSTANT, total)
        limits, rounding = cut_to_grid(clips, total)
        cut = records.cut_sums(CutGradient(Logistic(), w, limits), rounding / ROUNDING)
        return np.asarray(records.total(Gradient(Logistic(), w, CLIP))) / (n * CLIP), cut / (n * clips)

    exact = sums(n)
    print(f"\nSums of {n:,} records of {WIDTH} features, on the grids for more records:\n")
    print("| records | binary digits of a term | rounding factor - 1 | mean gradient is off by, of the clip "
          "| digits of a cut term | its mean is off by, of its clip | 1 / sqrt(n) |")  # fmt: skip
    print("|---|---|---|---|---|---|---|")
    for digits in range(9, 13):
        total = 10**digits
        off = [float(np.abs(a - b).max()) for a, b in zip(sums(total), exact, strict=True)]
        limit, rounding = cut_to_grid(clips, total)
        cut_digits = int(np.log2(limit[0] / (rounding[0] / ROUNDING))) + 1
        print(
            f"| 1e{digits} | {bits_of_terms(total)} | {rounding_factor(total, WIDTH) - 1:.1e} | {off[0]:.1e} "
            f"| {cut_digits} | {off[1]:.1e} | {total**-0.5:.1e} |"
        )


def main() -> None:
    warnings.simplefilter("ignore")
    print(f"load average {os.getloadavg()[0]:.1f}")
    costs = measured()
    print_constants(costs)
    print_checks(costs)
    print_plans(costs)
    print_limits()
    print(f"\nload average {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
