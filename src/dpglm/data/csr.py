"""Sparse tables stored by rows."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..arrays import Vector
from .conversion import converted
from .csc import CSC
from .sparse import Sparse


class CSR(Sparse):
    """A sparse table stored by rows: the form gradient methods read."""

    _row_major = True

    def column(self, j: int) -> tuple[NDArray[np.signedinteger], NDArray[np.floating]]:
        """The rows that hold column j, and their entries."""
        return self.by_columns.column(j)

    def scaled_columns(self, scale: Vector) -> CSC:
        """The table by columns with row i multiplied by scale_i."""
        return self.by_columns.scaled_columns(scale)

    @property
    def by_rows(self) -> CSR:
        return self

    @cached_property
    def by_columns(self) -> CSC:
        return CSC(converted(self.X))
