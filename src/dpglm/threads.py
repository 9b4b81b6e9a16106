"""Compiled work in threads: how many there may be, and ranges of work that they share."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache

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


@cache
def _helpers(count: int) -> ThreadPoolExecutor:
    """Threads that wait for work: to start them anew takes as long as a pass over a small table.

    Ranges inside of the work of such a thread are worked on one after the other, by that thread alone.
    """
    return ThreadPoolExecutor(count, thread_name_prefix="dpglm", initializer=_most_threads.set, initargs=(1,))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_helpers.cache_clear)  # a copy of the process has none of the threads


def in_ranges(work: Callable[[int, int, int], None], edges: Sequence[int]) -> None:
    """Run compiled work(part, start, stop) on the ranges between edges, in as many threads as processors."""
    left = deque(zip(range(len(edges) - 1), edges[:-1], edges[1:], strict=True))

    def work_on() -> None:
        while (taken := _next(left)) is not None:
            work(*taken)

    threads = min(most_threads(), len(left))
    if threads <= 1:
        work_on()
        return
    running = [_helpers(threads - 1).submit(work_on) for _ in range(threads - 1)]
    try:
        work_on()
    finally:
        left.clear()
        wait(running)
    for other in running:
        other.result()


def _next(left: deque[tuple[int, int, int]]) -> tuple[int, int, int] | None:
    """The next range, which no other thread takes; None if there is none."""
    try:
        return left.popleft()
    except IndexError:
        return None


def in_parts(work: Callable[[int, int, int], None], length: int, parts: int) -> None:
    """Run compiled work(part, start, stop) on equal parts of a range."""
    in_ranges(work, even(length, parts))


def even(length: int, parts: int) -> list[int]:
    """Edges of equal parts of a range."""
    return [length * k // parts for k in range(parts + 1)]
