"""A schema that encodes a table as what its cells are, instead of as features."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..arrays import Vector
from ..data.bounded_numbers import MISSING, Codes
from ..data.columns import RecordColumns
from ..data.source import LARGEST_NORM
from .column import Column
from .learning import null_records
from .roles import Beside, Exposure, Target, Unit
from .schema import Schema

Readable = Column | Target | Beside


@dataclass(frozen=True)
class CellKinds(Schema):
    """What each cell of a table is, as a table of codes: a column for each that is read, then null records.

    A code is one of those of `schema.kinds`; in the last column 1 stands for a record that counts for nothing
    in a fit, and 0 for any other. Facts may still be to be learnt: a number without a range is never out of
    it. Ids are taken as they are.
    """

    @classmethod
    def of(cls, schema: Schema) -> CellKinds:
        """The same declarations."""
        return cls(**{field.name: getattr(schema, field.name) for field in fields(Schema)})

    @property
    def readable(self) -> dict[str, Readable]:
        """The columns whose cells are looked at."""
        return {
            name: column for name, column in self.columns.items()
            if isinstance(column, Readable) and not isinstance(column, Unit)
        }  # fmt: skip

    @property
    def codes(self) -> Codes:
        """For each column of codes those that can occur, but for cells that nothing is wrong with."""
        return *(column.possible_kinds for column in self.readable.values()), (MISSING,)

    @property
    def n_features(self) -> int:
        return len(self.readable) + 1

    @property
    def is_sparse(self) -> bool:
        return False

    @property
    def beside(self) -> RecordColumns:
        return RecordColumns(unit=super().beside.unit)

    @np.errstate(all="ignore")  # a warning about a number would reveal something about a record
    def encode(self, frame: object, *, null: bool = True) -> Vector | sp.csr_array:
        count = self._checked(frame, target=True)
        lost, found = null_records(self, frame, count), np.zeros((count, self.n_features))
        for k, (name, column) in enumerate(self.readable.items()):
            cells = self._cells(frame, name)
            found[:, k] = column.kinds(cells, self._stand_for_missing)
            if isinstance(column, Beside):
                values = column.read(cells, self._stand_for_missing)
                lost |= ~(np.abs(values) < LARGEST_NORM)
                if isinstance(column, Exposure):
                    lost |= ~(values > 0)
        found[lost, -1] = 1.0
        return found

    def read_target(self, frame: object) -> Vector | NDArray[np.str_]:
        """Nothing: cells of the target are among the codes."""
        return np.zeros(self._checked(frame, target=True))
