"""Where the middle of the records is, and how long they are, in coordinates."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..arrays import ROUNDING, Total, bits_of_terms
from .products import CrossProducts, box_of

if TYPE_CHECKING:
    from .records import Records

SIZE_WEIGHT = 0.8
"""What the size of a record counts for beside its place: with this weight it costs nothing under replace-one
(docs/proofs/mean_row.md)."""

INNER_RADIUS = 0.6
"""Every point so near to 0 is a mean of what records of norm 1 add."""

_MOST_BITS = 40  # so that a chunk of 2**12 terms is added up exactly in doubles


@dataclass(frozen=True, eq=False)
class MeanRows(CrossProducts):
    """(z, 0.8 norm (2 v - 1)) for the coordinates z of a record, scaled to norm at most ``norm``.

    v is the squared norm of z over norm². A null record adds nothing, and weights do not count.
    """

    norm: float

    @property
    def grid(self) -> float:
        """The grid of the numbers."""
        bits = min(_MOST_BITS, bits_of_terms(self.n_records))
        return math.ldexp(1.0, math.frexp(self.norm * (1 + 2.0**-20))[1] - bits)

    @property
    def rounding(self) -> float:
        """Largest distance of what a record adds from where it was before it was rounded."""
        return math.sqrt(self.coordinates.dimension + 1) * self.grid / 2

    def entries(self, n_features: int) -> int:
        return n_features + 1

    def total(self, steps: NDArray[np.int64]) -> Total:
        return Total(steps, self.grid)

    def add(self, rows: Records, out: NDArray[np.int64]) -> None:
        from ..kernels.products import mean_rows  # compiled code is loaded by those who use it

        counts = np.where(rows.scale > 0, 1.0, 0.0)
        # Rounding takes no person with several records out of the mean of what its records may add.
        shares = rows.parted(counts, less=self.rounding / (INNER_RADIUS * self.norm))
        sums, row = np.zeros(out.size), np.empty(self.coordinates.dimension)
        mean_rows(
            rows.dense, rows.scale, box_of(self.coordinates), shares, self.norm, SIZE_WEIGHT * self.norm,
            ROUNDING * self.grid, row, sums,
        )  # fmt: skip
        out += (sums / self.grid).astype(np.int64)
