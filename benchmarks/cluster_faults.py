"""Fits on a local Dask cluster whose workers are killed: the same bits each time, or a refusal.

Usage: .venv/bin/python benchmarks/cluster_faults.py [fits]

Half of the work is ``fits`` fits (50 by default) to one table during which a worker is killed before a random
step: the coefficients must be those of memory, bit for bit. The other half is as many fits to a source that
draws its records anew whenever a block is computed: each must be refused.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import dask
import dask.array as da
import numpy as np
from distributed import Client, LocalCluster
from distributed.utils import get_mp_context

from dpglm import LogisticRegression
from dpglm.data.cluster.driver import ClusterBlocks
from dpglm.errors import SourceChanged
from dpglm.solvers import GradientDescent

N, P, STEPS, ROWS = 6_000, 8, 8, 500


def model() -> LogisticRegression:
    return LogisticRegression(
        epsilon=1.0, classes=[0, 1], random_state=1, solver=GradientDescent(steps=STEPS)
    )


def unseeded(block: np.ndarray) -> np.ndarray:
    return np.random.default_rng().standard_normal(block.shape)


def killing(client: Client, step: int) -> None:
    """Kill one of our workers before this step of the next fit."""
    steps, plain = 0, ClusterBlocks.answer

    def answer(self: ClusterBlocks, order: object) -> object:
        nonlocal steps
        steps += 1
        if steps == step:
            victims = sorted(client.run(os.getpid).values())
            os.kill(victims[step % len(victims)], signal.SIGKILL)
        return plain(self, order)

    ClusterBlocks.answer = answer  # type: ignore[method-assign, assignment]


@contextmanager
def workers() -> Iterator[Client]:
    """Two fresh workers: Dask does not always start a killed one again."""
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0", host="127.0.0.1"
        ) as cluster,
        Client(cluster) as client,
    ):
        client.wait_for_workers(2)
        yield client


def main(fits: int) -> None:
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, P))
    y = (X[:, 0] + rng.standard_normal(N) > 0).astype(int)
    expected, plain = model().fit(X, y).coef_.tobytes(), ClusterBlocks.answer
    random_steps = rng.integers(1, STEPS + 1, fits)
    # A source that is only computed once cannot change, so nobody is killed before the first pass is over.
    later_steps = rng.integers(2, STEPS + 1, fits)
    counts = {"same bits": 0, "refused": 0}
    start = time.perf_counter()
    dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"})
    get_mp_context().set_forkserver_preload(["dpglm.estimators", "numba"])  # a new worker starts at once
    logging.getLogger("distributed").setLevel("ERROR")
    for k in range(fits):
        with workers() as client:
            killing(client, int(random_steps[k]))
            fitted = model().fit(da.from_array(X, (ROWS, P)), y)
            ClusterBlocks.answer = plain  # type: ignore[method-assign]
            counts["same bits"] += fitted.coef_.tobytes() == expected
        with workers() as client:
            killing(client, int(later_steps[k]))
            try:
                model().fit(da.zeros((N, P), chunks=(ROWS, P)).map_blocks(unseeded), y)
            except SourceChanged:
                counts["refused"] += 1
            ClusterBlocks.answer = plain  # type: ignore[method-assign]
        print(f"{k + 1:3} of {fits}: {counts}, {time.perf_counter() - start:.0f} s", flush=True)
    for name, count in counts.items():
        print(f"{name:<10} {count} of {fits}  {'ok' if count == fits else 'MISSED'}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 50)
