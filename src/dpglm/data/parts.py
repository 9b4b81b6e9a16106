"""Compiled work on parts of a table, in threads."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock

import numpy as np
from numpy.typing import NDArray

PROCESSORS = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
_ENTRIES_A_PART, _MOST_PARTS = 1 << 20, 16
WIDE, ENTRIES_A_COLUMN = 1 << 17, 16
"""Coefficients of more columns leave the cache; a pass then reads so many entries a column at a time."""

_most_threads = ContextVar("_most_threads", default=PROCESSORS)


@contextmanager
def at_most(threads: int) -> Iterator[None]:
    """Use fewer threads than there are processors: others run on them too."""
    before = _most_threads.set(threads)
    try:
        yield
    finally:
        _most_threads.reset(before)


def parts_of(entries: int, width: int = 1) -> int:
    """Into how many parts work on so many entries is cut.

    It depends on the table alone, unless there is a sum for each of so many columns that a part of few rows
    would spend its time on moving coefficients and sums through the cache: then there are fewer parts, but
    one for each thread. Sums over rows are exact, so that they do not depend on it.
    """
    parts = max(1, min(_MOST_PARTS, entries // _ENTRIES_A_PART))
    if width <= WIDE:
        return parts
    return min(parts, max(entries // (ENTRIES_A_COLUMN * width), _threads()))


def _threads() -> int:
    return min(PROCESSORS, _most_threads.get())


@contextmanager
def beside_a_reader() -> Iterator[None]:
    """Leave one processor to the thread that reads the next block."""
    with at_most(max(1, _threads() - 1)):
        yield


def in_ranges(work: Callable[[int, int, int], None], edges: Sequence[int]) -> None:
    """Run compiled work(part, start, stop) on the ranges between edges, in as many threads as processors."""
    parts = len(edges) - 1
    ranges, threads = (range(parts), edges[:-1], edges[1:]), min(_threads(), parts)
    if threads <= 1:
        list(map(work, *ranges))
        return
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, *ranges))


def in_parts(work: Callable[[int, int, int], None], length: int, parts: int) -> None:
    """Run compiled work(part, start, stop) on equal parts of a range."""
    in_ranges(work, even(length, parts))


def even(length: int, parts: int) -> list[int]:
    """Edges of equal parts of a range."""
    return [length * k // parts for k in range(parts + 1)]


def in_sum(
    add: Callable[[int, int, NDArray[np.int64]], None], edges: Sequence[int], shape: tuple[int, ...]
) -> NDArray[np.int64]:
    """The sum of what compiled ``add(start, stop, out)`` adds to an array, for all ranges.

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

    in_ranges(work, edges)
    total = sums.pop() if sums else np.zeros(shape, dtype=np.int64)
    for out in sums:
        total += out
    return total
