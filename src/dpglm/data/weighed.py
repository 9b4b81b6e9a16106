"""Sums of cut terms over all columns of a sparse table at once, beside what each column weighs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..arrays import Vector
from ..kernels.arguments import Cut
from ..tables import Weighed
from .parts import in_parts
from .sums import exact_grid

if TYPE_CHECKING:
    from .sparse import Sparse

_COLUMNS_A_PART, _MOST_PARTS = 1 << 12, 16


def weighed(table: Sparse, scale: Vector, r: Vector, limit: float) -> Weighed:
    """Sums over the rows of r_i times entry j, rows scaled, each term cut to [-limit, limit].

    The table is stored by columns.
    """
    from ..kernels.sums import weighed as compiled  # compiled code is loaded by those who use it

    n, p = table.shape
    grid = float(exact_grid(np.array(limit), n))
    cut = Cut(float(np.floor(limit / grid) * grid), 1.5 * 2.0**52 * grid)
    factors = np.column_stack([r * scale, scale])
    sums = np.empty((p, 2))
    parts = max(1, min(_MOST_PARTS, p // _COLUMNS_A_PART))
    largest = np.zeros(parts)

    def work(part: int, start: int, stop: int) -> None:
        largest[part] = compiled(table.unsigned, factors, cut, start, stop, sums)

    in_parts(work, p, parts)
    return Weighed(sums, float(largest.max()), cut, grid)
