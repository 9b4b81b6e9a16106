"""From rows to columns, against scipy's tocsc, on float32 tables with columns of unequal popularity.

With one thread and with two; on a machine whose processors are busy with other things two gain nothing.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from timing import report, side_by_side

from dpglm import threads as shared
from dpglm.data import sparse

rng = np.random.default_rng(0)
CHUNK = 1_000_000


def power_law(n: int, p: int, per_row: int, shift: float) -> sp.csr_array:
    """Rows of at most ``per_row`` entries; column k is drawn with probability about 1 / (k + shift)."""
    columns = np.empty(n * per_row, dtype=np.int32)
    for start in range(0, len(columns), CHUNK):
        chunk = columns[start : start + CHUNK]
        ranks = (shift * np.expm1(rng.random(len(chunk)) * np.log1p(p / shift))).astype(np.int64)
        chunk[:] = ranks * 7_368_787 % p  # popular columns are scattered
    begins = np.arange(0, n * per_row + 1, per_row, dtype=np.int32)
    table = sp.csr_array((np.ones(len(columns), dtype=np.float32), columns, begins), shape=(n, p))
    table.sum_duplicates()
    return table


def main() -> None:
    """Measure three sizes."""
    sizes = {
        "20,242 x 47,236": (power_law(20_242, 47_236, 90, 12.0), 15, (1.0, 0.6)),
        "19,996 x 1,355,191": (power_law(19_996, 1_355_191, 520, 65.0), 7, (1 / 1.4, 1 / 1.8)),
        "2,000,000 x 20,216,830": (power_law(2_000_000, 20_216_830, 37, 32.0), 2, (1 / 1.4, 1 / 1.8)),
    }
    for name, (table, rounds, goals) in sizes.items():
        for threads, goal in enumerate(goals, start=1):
            sparse.PROCESSORS = shared.PROCESSORS = threads
            times = side_by_side(lambda X=table: sparse.converted(X), table.tocsc, rounds)
            report(f"tocsc, {name}, {table.nnz / 1e6:.1f} M entries, threads {threads}", *times, goal=goal)


if __name__ == "__main__":
    main()
