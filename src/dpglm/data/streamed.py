"""Records that are read again in every pass, block by block; nothing of them is kept in between."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..arrays import Vector
from ..bounds import Bounds
from ..threads import beside_a_reader
from .ahead import ahead
from .fingerprint import Mark, Watch
from .records import Records
from .source import as_block, as_data
from .stream import Source
from .summed import Coins, Elsewhere, Grid, Part
from .terms import Term

Targets = Callable[[Vector], Vector]


class Convert(Protocol):
    """How the rows and targets of a block become numbers; each record by itself."""

    def __call__(self, rows: object, targets: object) -> tuple[Any, Vector]: ...


@dataclass(frozen=True, eq=False)
class Streamed(Elsewhere):
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

    @property
    def n_records(self) -> int:
        whole = self.source.n_samples
        return whole if self.part is None else self.part.before(whole)

    @property
    def n_features(self) -> int:
        return self.source.n_features

    def blocks(self) -> Iterator[Records]:
        """The records of each block, in the order of the source."""
        read, whole = Mark(), self.source.n_samples
        for rows, targets in ahead(self.source.blocks()):
            table, values = self.convert(rows, targets)
            block, place = as_block(table), read.length
            read = read.joined(self.watch.fingerprint.of(block, values))
            if read.length > whole:
                break
            yield self.records_of(block, values, place)
            del rows, targets, table, values, block  # they would be in memory while the next block is read
        self.watch.require_same(read, whole)

    def records_of(self, table: Any, values: Vector, place: int) -> Records:
        """The records of a block that begins at a place of the table."""
        records = as_data(table, values, self.bounds, self.constant, self.table_size)
        if self.target is not None:
            records = records.with_target(self.target)
        taken = None
        if self.part is not None:
            taken, place = self.part.taken(place, place + len(values)), self.part.before(place)
        if self.coins is not None:
            coins = self.coins.taken(place, place + (len(values) if taken is None else len(taken)))
            taken = coins if taken is None else taken[coins]
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
