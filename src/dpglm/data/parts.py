"""Compiled work on parts of a table, in threads."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

PROCESSORS = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
_ENTRIES_A_PART, _MOST_PARTS = 1 << 20, 16


def parts_of(entries: int) -> int:
    """Into how many parts work on so many entries is cut.

    It depends on the table alone, so that sums of parts do not depend on the machine.
    """
    return max(1, min(_MOST_PARTS, entries // _ENTRIES_A_PART))


def in_ranges(work: Callable[[int, int, int], None], edges: Sequence[int]) -> None:
    """Run compiled work(part, start, stop) on the ranges between edges, in as many threads as processors."""
    parts = len(edges) - 1
    ranges = (range(parts), edges[:-1], edges[1:])
    if min(PROCESSORS, parts) == 1:
        list(map(work, *ranges))
        return
    with ThreadPoolExecutor(min(PROCESSORS, parts)) as pool:
        list(pool.map(work, *ranges))


def in_parts(work: Callable[[int, int, int], None], length: int, parts: int) -> None:
    """Run compiled work(part, start, stop) on equal parts of a range."""
    in_ranges(work, [length * k // parts for k in range(parts + 1)])
