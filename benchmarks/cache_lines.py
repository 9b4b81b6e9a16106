"""How long the cache lines that a Frank-Wolfe step touches take on this machine, read at random places.

A line is 64 bytes. A step touches, by its counts of work:

- four lines for each proposal: its place in a bin, its sum, where its column begins, whether that is held;
- for each entry of the feature selected, or read for a true sum, the line of its row, and an eighth of a line
  for its index and value (two lines more for a column, which begins anywhere);
- for each entry read to follow a row, the same eighth.

Not counted are the sums and models that follow a row, which may be in a near cache, and rows that are looked
at since they are due. The time of a line is that of independent reads at random places of an array as large
as what is read: rows apart from all else, since they may fit into a nearer cache. Steps of the private regime
read at random places, so it is what they take at least. In the sharp regime passes read rows in blocks,
several columns at a time, and may take less.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

LINE = 64
READS = 1 << 20


@dataclass(frozen=True)
class Limit:
    """Lines a step, of rows and of all else, and nanoseconds for one of each."""

    rows: float
    others: float
    row: float
    other: float

    @property
    def seconds(self) -> float:
        """What the lines of a step take at random places."""
        return (self.rows * self.row + self.others * self.other) * 1e-9

    def __str__(self) -> str:
        return (
            f"{self.rows:.1f} lines of rows a step at {self.row:.1f} ns and {self.others:.1f} others at "
            f"{self.other:.1f} ns: {self.seconds * 1e6:.2f} us"
        )


@njit(cache=True, error_model="numpy", nogil=True)
def _read(memory: Any, places: Any) -> Any:
    total = np.uint64(0)
    for place in places:
        total += memory[place]
    return total


def nanoseconds_a_line(size: int) -> float:
    """CPU time of a read at a random place of so many bytes, many being under way; the least of five."""
    memory = np.ones(max(size // 8, LINE), dtype=np.uint64)
    places = np.random.default_rng(0).integers(0, len(memory), READS, dtype=np.uint32)
    _read(memory, places[:8])
    best = np.inf
    for _ in range(5):
        start = time.process_time()
        _read(memory, places)
        best = min(best, time.process_time() - start)
    return best / READS * 1e9


def limit(X: Any, work: NDArray[np.int64], steps: int) -> Limit:
    """The limit for steps over a table, by what they counted (see ``dpglm.kernels.frank_wolfe_lazy.run``)."""
    n, p = X.shape
    proposals, sums, for_sums, to_follow, moved = (work / steps).tolist()
    stream = (for_sums + to_follow + moved) / 8
    others = 4 * proposals + 2 * (1 + sums) + stream
    sizes = 4 * p + 16 * p + 8 * p + p + 8 * X.nnz  # bins, sums, beginnings, held, entries of the columns
    return Limit(for_sums + moved, others, nanoseconds_a_line(LINE * n), nanoseconds_a_line(sizes))
