"""Records that are read again in every pass, block by block; nothing of them is kept in between."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..arrays import Vector
from ..bounds import ROWS_PER_UNIT, Bounds
from ..threads import beside_a_reader
from .ahead import ahead
from .fingerprint import Mark, Watch
from .record_set import Coins, Grid, Part, RemoteRecords, taking_part
from .records import Records
from .source import as_block, as_data
from .stream import Source, require_again
from .terms import Term
from .units import WholeUnits

Targets = Callable[[Vector], Vector]


class Convert(Protocol):
    """How the rows and targets of a block become numbers; each record by itself."""

    def __call__(self, rows: object, targets: object) -> tuple[Any, Vector]: ...


@dataclass(frozen=True, eq=False)
class Streamed(RemoteRecords):
    """The records of a source, clipped into bounds block by block.

    Parameters
    ----------
    source : Source
    convert : callable
        Makes a table of floats and an array of targets of a block.
    bounds : Bounds
    constant : float
        Value of the constant feature that carries the intercept; 0 for none.
    target : callable, optional
        Maps targets to those of the loss.
    coins : Coins, optional
        Which records take part; by default all.
    part : Part, optional
        The part of the table that these are the records of; by default all of it.
    watch : Watch, optional
        Refuses a pass that reads other records than the first one.
    most : int
        The most records that there can be, if their number is private.
    n_units : int, optional
        The number of persons, if records are those of persons, who are numbered as they come.
    """

    source: Source
    convert: Convert
    bounds: Bounds
    constant: float
    target: Targets | None = None
    coins: Coins | None = None
    part: Part | None = None
    watch: Watch = field(default_factory=Watch)
    most: int = 0
    n_units: int | None = None

    @property
    def has_units(self) -> bool:
        return self.n_units is not None

    @property
    def n_records(self) -> int:
        whole = self.source.n_samples if self.n_units is None else self.n_units
        return whole if self.part is None else self.part.before(whole)

    @property
    def n_features(self) -> int:
        return self.source.n_features

    def blocks(self) -> Iterator[Records]:
        """The records of each block, in the order of the source."""
        read, whole, place = Mark(), self.source.n_samples, 0
        carried = None if self.n_units is None else WholeUnits(self.bounds.rows_per_unit or ROWS_PER_UNIT)
        for rows, targets in ahead(self.source.blocks()):
            table, values = self.convert(rows, targets)
            block = as_block(table)
            read = read.joined(self.watch.fingerprint.of(block, values))
            if read.length > whole:
                break
            ready = (block, values) if carried is None else carried.through(table, values)
            del rows, targets, table, values, block  # they would be in memory while the next block is read
            if ready is not None:
                yield self.records_of(ready[0], ready[1], place)
                place += _units(ready[1])
        last = None if carried is None else carried.rest()
        if last is not None:
            yield self.records_of(last[0], last[1], place)
            place += _units(last[1])
        self.watch.require_same(read, read.length == whole and (carried is None or place == self.n_units))

    @np.errstate(all="ignore")  # a warning about a number would reveal something about a record
    def require_readable(self) -> None:
        with beside_a_reader():
            for records in self.blocks():
                del records  # as in ``blocks``
        if self.source.n_samples:
            require_again(self.source.blocks())

    def records_of(self, table: Any, values: Vector, place: int) -> Records:
        """The records of a block that begins at a place of the table."""
        records = as_data(table, values, self.bounds, self.constant, self.table_size)
        if self.target is not None:
            records = records.with_target(self.target)
        taken = taking_part(self.part, self.coins, place, place + _units(values))
        if taken is not None and records.persons is not None:
            taken = records.persons.rows_of(taken)
        return records if taken is None else records.rows(taken)

    def of_part(self, part: Part) -> Streamed:
        return replace(self, part=part)

    def steps(self, term: Term, grid: Grid, finely: int = 0) -> NDArray[np.int64]:
        total = np.zeros((1 + finely, term.entries(self.n_features)), dtype=np.int64)
        with beside_a_reader():
            for records in self.blocks():
                total += records.steps(term, grid, finely)
                del records  # as in ``blocks``
        return total

    def longest(self, term: Term) -> float:
        with beside_a_reader():
            return max((records.longest(term) for records in self.blocks()), default=0.0)

    def batch(self, coins: Coins) -> Coins:
        return coins

    def rows(self, batch: Coins) -> Streamed:
        return replace(self, coins=batch)

    def with_target(self, target: Targets) -> Streamed:
        """The same table with other targets."""
        return replace(self, target=target)


def _units(values: Vector) -> int:
    """How many records, or whole persons, a block has."""
    if values.ndim == 1 or values.shape[1] < 4:
        return len(values)
    return int(np.count_nonzero(values[1:, 3] != values[:-1, 3])) + bool(len(values))
