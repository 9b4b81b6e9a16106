"""Reading ahead: the next block is read in a thread while the last one is used."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

import numpy as np

T = TypeVar("T")


def ahead(blocks: Iterator[T]) -> Iterator[T]:
    """The same blocks in the same order; at most one is read before it is asked for."""
    with ThreadPoolExecutor(1, thread_name_prefix="dpglm-reader") as pool:
        try:
            coming = pool.submit(_next, blocks)
            while found := coming.result():
                coming = pool.submit(_next, blocks)
                yield found.pop()  # nothing of it stays here while the next one is read
        finally:
            pool.submit(_close, blocks)


@np.errstate(all="ignore")  # a warning about a number would reveal something about a record
def _next(blocks: Iterator[T]) -> list[T]:
    """The next block in a list, which is empty after the last one."""
    return list(islice(blocks, 1))


def _close(blocks: Iterator[object]) -> None:
    """Close the files that a reader has open; it waits for a block that is being read."""
    close = getattr(blocks, "close", None)
    if close is not None:
        close()
