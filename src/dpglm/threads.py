"""Compiled work in threads: how many there may be, and ranges of work that they share."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar

PROCESSORS = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

_most_threads = ContextVar("_most_threads", default=PROCESSORS)


@contextmanager
def at_most(threads: int) -> Iterator[None]:
    """Use fewer threads than there are processors: others run on them too."""
    before = _most_threads.set(threads)
    try:
        yield
    finally:
        _most_threads.reset(before)


def most_threads() -> int:
    """How many threads work may use here."""
    return min(PROCESSORS, _most_threads.get())


@contextmanager
def beside_a_reader() -> Iterator[None]:
    """Leave one processor to the thread that reads the next block."""
    with at_most(max(1, most_threads() - 1)):
        yield


def in_ranges(work: Callable[[int, int, int], None], edges: Sequence[int]) -> None:
    """Run compiled work(part, start, stop) on the ranges between edges, in as many threads as processors."""
    parts = len(edges) - 1
    ranges, threads = (range(parts), edges[:-1], edges[1:]), min(most_threads(), parts)
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
