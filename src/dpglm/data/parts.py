"""Compiled work on parts of a table, in threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from ..threads import even, in_ranges, most_threads

_ENTRIES_A_PART, _MOST_PARTS = 1 << 20, 16
WIDE, ENTRIES_A_COLUMN = 1 << 17, 16
"""Coefficients of more columns leave the cache; a pass then reads so many entries a column at a time."""


def parts_of(entries: int, width: int = 1) -> int:
    """Into how many parts work on so many entries is cut.

    It depends on the table alone, unless there is a sum for each of so many columns that a part of few rows
    would spend its time on moving coefficients and sums through the cache: then there are fewer parts, but
    one for each thread. Sums over rows are exact, so that they do not depend on it.
    """
    parts = max(1, min(_MOST_PARTS, entries // _ENTRIES_A_PART))
    if width <= WIDE:
        return parts
    return min(parts, max(entries // (ENTRIES_A_COLUMN * width), most_threads()))


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


def sum_over_rows(
    add: Callable[[int, int, NDArray[np.int64]], None], n: int, entries: int, shape: tuple[int, ...]
) -> NDArray[np.int64]:
    """`in_sum` over ranges of n rows that have so many entries."""
    return in_sum(add, even(n, parts_of(entries)), shape)


def over_rows(work: Callable[[int, int], None], n: int, entries: int) -> None:
    """Run compiled work(start, stop) on ranges of n rows that have so many entries."""
    in_ranges(lambda _, start, stop: work(start, stop), even(n, parts_of(entries)))
