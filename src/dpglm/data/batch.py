"""Some rows of a table, left where they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..arrays import Vector
from .dense import Dense

if TYPE_CHECKING:
    from .sparse import Sparse


class Batch:
    """Some rows of a table. Products read them in place.

    The product of a row with w does not depend, bit for bit, on the other rows, and rows of zeros change no
    bit of a sum: the rounding of one record's contribution does not depend on the rest of a secret batch.
    """

    def __init__(self, block: Dense | Sparse, index: NDArray[np.intp]) -> None:
        self._block, self._index = block, index

    @property
    def shape(self) -> tuple[int, int]:
        return len(self._index), self._block.shape[1]

    def dot(self, w: Vector) -> Vector:
        from ..kernels.batch import dense_dots, sparse_dots  # compiled code is loaded by those who use it

        out = np.empty(len(self._index))
        if isinstance(self._block, Dense):
            dense_dots(self._block.X, self._index, w, out)
        else:
            sparse_dots(self._block.by_rows.unsigned, self._index, w, out)
        return out

    def t_dot(self, r: Vector) -> Vector:
        from ..kernels.batch import dense_sum, sparse_sum

        out = np.zeros(self._block.shape[1])
        if isinstance(self._block, Dense):
            dense_sum(self._block.X, self._index, r, out)
        else:
            sparse_sum(self._block.by_rows.unsigned, self._index, r, out)
        return out

    @property
    def row_norms(self) -> Vector:
        return self._block.row_norms[self._index]

    def second_moments(self, scale: Vector) -> Vector:
        return self._block.taken(self._index).second_moments(scale)
