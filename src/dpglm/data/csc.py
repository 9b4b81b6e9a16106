"""Sparse tables stored by columns."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..arrays import Vector
from ..kernels.arguments import CoordinateSteps
from .conversion import converted
from .sparse import Sparse, column_entries


class CSC(Sparse):
    """A sparse table stored by columns: the form coordinate methods read."""

    _row_major = False

    def column(self, j: int) -> tuple[NDArray[np.signedinteger], NDArray[np.floating]]:
        """The rows that hold column j, and their entries."""
        return column_entries(self.X, j)

    def scaled_columns(self, scale: Vector) -> CSC:
        """The table by columns with row i multiplied by scale_i; copied only where needed."""
        if (scale == 1).all():
            return self
        return self._times_rows(scale)

    def descend(self, tail: Vector, *steps: *CoordinateSteps) -> None:
        """Run a compiled block of coordinate steps (see ``kernels.coordinate``)."""
        from ..kernels.coordinate import descend_sparse  # compiled code is loaded by those who use it

        descend_sparse(self.unsigned, tail, *steps)

    @cached_property
    def by_rows(self) -> Sparse:
        from .csr import CSR

        return CSR(converted(self.X))

    @property
    def by_columns(self) -> CSC:
        return self
