"""Compiled work in threads: their number, ranges of work that they share, and sums over ranges."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from threading import Lock

import numpy as np
from numpy.typing import NDArray

PROCESSORS = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

_ENTRIES_PER_CHUNK, _MAX_CHUNKS = 1 << 20, 16
WIDE, ENTRIES_PER_COLUMN = 1 << 17, 16
"""Coefficients of more columns leave the cache; a pass then reads this many entries per column at a time."""

_limit = ContextVar("_limit", default=PROCESSORS)


@contextmanager
def limit_threads(threads: int) -> Iterator[None]:
    """Use at most this number of threads, because others run on the same processors."""
    before = _limit.set(threads)
    try:
        yield
    finally:
        _limit.reset(before)


def max_threads() -> int:
    """The number of threads that work may use here."""
    return min(PROCESSORS, _limit.get())


@contextmanager
def reserve_reader_thread() -> Iterator[None]:
    """Leave one processor for the thread that reads the next block."""
    with limit_threads(max(1, max_threads() - 1)):
        yield


@cache
def _helpers(count: int) -> ThreadPoolExecutor:
    """Threads that wait for work: starting new ones takes as long as a pass over a small table.

    Ranges inside the work of such a thread run one after the other, in that thread alone.
    """
    return ThreadPoolExecutor(count, thread_name_prefix="dpglm", initializer=_limit.set, initargs=(1,))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_helpers.cache_clear)  # a copy of the process has none of the threads


def run_ranges(work: Callable[[int, int, int], None], edges: Sequence[int]) -> None:
    """Run compiled work(part, start, stop) on each range between edges, in as many threads as processors."""
    queue = deque(zip(range(len(edges) - 1), edges[:-1], edges[1:], strict=True))

    def work_on() -> None:
        while (item := _next(queue)) is not None:
            work(*item)

    threads = min(max_threads(), len(queue))
    if threads <= 1:
        work_on()
        return
    futures = [_helpers(threads - 1).submit(work_on) for _ in range(threads - 1)]
    try:
        work_on()
    finally:
        queue.clear()
        wait(futures)
    for future in futures:
        future.result()


def _next(queue: deque[tuple[int, int, int]]) -> tuple[int, int, int] | None:
    """Take the next range off the queue; None if it is empty."""
    try:
        return queue.popleft()
    except IndexError:
        return None


def run_chunks(work: Callable[[int, int, int], None], length: int, parts: int) -> None:
    """Run compiled work(part, start, stop) on equal parts of a range."""
    run_ranges(work, even_edges(length, parts))


def even_edges(length: int, parts: int) -> list[int]:
    """Edges of equal parts of a range."""
    return [length * k // parts for k in range(parts + 1)]


def chunk_count(entries: int, width: int = 1) -> int:
    """Number of chunks for work on a number of entries.

    It depends on the table alone, unless there is a sum for each column and the columns are so many that a
    chunk of few rows would spend its time on moving coefficients and sums through the cache: then there are
    fewer chunks, but one for each thread. Sums over rows are exact, so they do not depend on it.
    """
    parts = max(1, min(_MAX_CHUNKS, entries // _ENTRIES_PER_CHUNK))
    if width <= WIDE:
        return parts
    return min(parts, max(entries // (ENTRIES_PER_COLUMN * width), max_threads()))


def parallel_sum(
    add: Callable[[int, int, NDArray[np.int64]], None], edges: Sequence[int], shape: tuple[int, ...]
) -> NDArray[np.int64]:
    """Sum what compiled ``add(start, stop, out)`` adds to an array over all ranges.

    There is one array for each thread: for many features, zeros and sums of arrays take as long as the work.
    """
    sums: list[NDArray[np.int64]] = []
    lock = Lock()

    def work(_: int, start: int, stop: int) -> None:
        with lock:
            out = sums.pop() if sums else None
        if out is None:
            out = np.zeros(shape, dtype=np.int64)
        add(start, stop, out)
        with lock:
            sums.append(out)

    run_ranges(work, edges)
    total = sums.pop() if sums else np.zeros(shape, dtype=np.int64)
    for out in sums:
        total += out
    return total


def parallel_sum_over_rows(
    add: Callable[[int, int, NDArray[np.int64]], None], n: int, entries: int, shape: tuple[int, ...]
) -> NDArray[np.int64]:
    """`parallel_sum` over ranges of n rows with this number of entries."""
    return parallel_sum(add, even_edges(n, chunk_count(entries)), shape)


def parallel_over_rows(work: Callable[[int, int], None], n: int, entries: int) -> None:
    """Run compiled work(start, stop) on ranges of n rows with this number of entries."""
    run_ranges(lambda _, start, stop: work(start, stop), even_edges(n, chunk_count(entries)))
