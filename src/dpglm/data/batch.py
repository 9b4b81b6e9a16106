"""Some rows of a table, left where they are."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .dense import Dense


class Batch:
    """Some rows of a table. Products read them in place; everything else takes a copy of them.

    The product of a row with w is the same bit for bit whichever rows are beside it, and rows of zeros change
    no bit of a sum: what a secret batch holds shows in no rounding of what others contribute.
    """

    def __init__(self, block: Any, index: NDArray[np.intp]) -> None:
        self._block, self._index = block, index

    @property
    def shape(self) -> tuple[int, int]:
        return len(self._index), self._block.shape[1]

    def dot(self, w: NDArray[np.float64]) -> NDArray[np.float64]:
        """X @ w."""
        from ..kernels.batch import dense_dots, sparse_dots  # compiled code is loaded by those who use it

        out = np.empty(len(self._index))
        if isinstance(self._block, Dense):
            dense_dots(self._block.X, self._index, w, out)
        else:
            sparse_dots(self._block.by_rows.unsigned, self._index, w, out)
        return out

    def t_dot(self, r: NDArray[np.float64]) -> NDArray[np.float64]:
        """X.T @ r."""
        from ..kernels.batch import dense_sum, sparse_sum

        out = np.zeros(self._block.shape[1])
        if isinstance(self._block, Dense):
            dense_sum(self._block.X, self._index, r, out)
        else:
            sparse_sum(self._block.by_rows.unsigned, self._index, r, out)
        return out

    @cached_property
    def _taken(self) -> Any:
        return self._block.rows(self._index)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # of an object that is being copied, which has no rows yet
            raise AttributeError(name)
        return getattr(self._taken, name)
