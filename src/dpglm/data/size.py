"""The number of records of a table, where that is private."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True)
class TableSize:
    """All that a count needs to know of a table; what else is public about it depends on no record.

    Attributes
    ----------
    n_records : int
        How many records there are: private. Null records count.
    table_size, n_features : int
        What rounding of sums would depend on: a count has none.
    """

    n_records: int
    table_size: ClassVar[int] = 1
    n_features: ClassVar[int] = 0
