"""Records that are read again in every pass, block by block, and never stored in between."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..arrays import Vector
from ..bounds import ROWS_PER_UNIT, Bounds
from ..threads import reserve_reader_thread
from .columns import persons_of
from .fingerprint import Mark, Watch
from .record_set import Coins, Grid, Part, RemoteRecords, taking_part
from .records import Records
from .source import as_block, as_data
from .stream import Source, prefetch, require_again
from .terms import Term
from .units import WholeUnits

Targets = Callable[[Vector], Vector]


class Convert(Protocol):
    """Converts the rows and targets of a block to numbers, each record by itself."""

    def __call__(self, rows: object, targets: object) -> tuple[Any, Vector]: ...


@dataclass(frozen=True, eq=False)
class StreamedRecords(RemoteRecords):
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
        mark, n_samples, start = Mark(), self.source.n_samples, 0
        units = None if self.n_units is None else WholeUnits(self.bounds.rows_per_unit or ROWS_PER_UNIT)
        for rows, targets in prefetch(self.source.blocks()):
            table, values = self.convert(rows, targets)
            block = as_block(table)
            mark = mark.joined(self.watch.fingerprint.of(block, values))
            if mark.length > n_samples:
                break
            part = (block, values) if units is None else units.through(table, values)
            del rows, targets, table, values, block  # they would be in memory while the next block is read
            if part is not None:
                yield self.records_of(part[0], part[1], start)
                start += _units(part[1])
        rest = None if units is None else units.rest()
        if rest is not None:
            yield self.records_of(rest[0], rest[1], start)
            start += _units(rest[1])
        self.watch.require_same(mark, mark.length == n_samples and (units is None or start == self.n_units))

    @np.errstate(all="ignore")  # a warning about a number would reveal something about a record
    def require_readable(self) -> None:
        with reserve_reader_thread():
            for records in self.blocks():
                del records  # as in ``blocks``
        if self.source.n_samples:
            require_again(self.source.blocks())

    def records_of(self, table: Any, values: Vector, start: int) -> Records:
        """The records of a block that begins at this position of the table."""
        records = as_data(table, values, self.bounds, self.constant, self.table_size)
        if self.target is not None:
            records = records.with_target(self.target)
        chosen = taking_part(self.part, self.coins, start, start + _units(values))
        if chosen is not None and records.persons is not None:
            chosen = records.persons.rows_of(chosen)
        return records if chosen is None else records.rows(chosen)

    def of_part(self, part: Part) -> StreamedRecords:
        return replace(self, part=part)

    def steps(self, term: Term, grid: Grid, finely: int = 0) -> NDArray[np.int64]:
        total = np.zeros((1 + finely, term.entries(self.n_features)), dtype=np.int64)
        with reserve_reader_thread():
            for records in self.blocks():
                total += records.steps(term, grid, finely)
                del records  # as in ``blocks``
        return total

    def longest(self, term: Term) -> float:
        with reserve_reader_thread():
            return max((records.longest(term) for records in self.blocks()), default=0.0)

    def batch(self, coins: Coins) -> Coins:
        return coins

    def rows(self, batch: Coins) -> StreamedRecords:
        return replace(self, coins=batch)

    def with_target(self, target: Targets) -> StreamedRecords:
        """The same table with other targets."""
        return replace(self, target=target)


def _units(values: Vector) -> int:
    """Number of records, or of whole units, in a block."""
    number = persons_of(values)
    if number is None:
        return len(values)
    return int(np.count_nonzero(number[1:] != number[:-1])) + bool(len(values))
