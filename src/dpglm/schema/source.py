"""Raw tables: encoded block by block, or counted first where facts of their schema are learnt."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial, reduce
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..arrays import Vector
from ..data import as_block
from ..data.adapters import as_source
from ..data.cluster import DaskTable, by_blocks, is_dask, of_each_block
from ..data.columnar import Columnar
from ..data.columns import RecordColumns
from ..data.files import TextFile
from ..data.frames import column_names, library_of, row_count, text_names
from ..data.raw_counts import Counts, RawCounts, RawRecords
from ..data.stream import BLOCK_ROWS, MISCOUNTED, Source, guarded, require_again
from ..errors import SourceChanged
from .learning import Scaled, census_of, norm_counts
from .schema import Schema

if TYPE_CHECKING:
    from .schema import Schema


_NO_COLUMNS = RecordColumns()

_ROWS = BLOCK_ROWS // 4
"""Raw records that are encoded at once: while they are, a block takes several times its own memory."""


class EncodedTable(NamedTuple):
    """The encoded rows and the targets of a table, in memory, and what stands beside them."""

    rows: Any
    target: Any
    beside: RecordColumns = _NO_COLUMNS


class Held(NamedTuple):
    """A source whose encoded table is to be held in memory, where a solver can read rows and columns."""

    source: Source


def names_of(source: Source) -> list[str] | None:
    """Names of the columns of a source; None if only its blocks tell."""
    if isinstance(source, Columnar):
        return text_names(source.types)
    return text_names(source.names) if isinstance(source, TextFile) else None


def gathered(source: Source) -> object:
    """All records of a source with named columns, as a table in memory."""
    if isinstance(source, Columnar):
        batches = list(guarded(lambda: source.batches(list(source.types), BLOCK_ROWS)))
        parts: list[Any] = [dict(zip(batch.schema.names, batch.columns, strict=True)) for batch in batches]
        return {name: [cell for part in parts for cell in part[name].to_pylist()] for name in source.types}
    blocks: list[Any] = [rows for rows, _ in source.blocks()]
    return {
        name: [cell for block in blocks for cell in _listed(block[name])] for name in names_of(source) or ()
    }


def no_records(schema: Schema) -> dict[str, NDArray[np.object_]]:
    """A table of the columns of a schema without a record: it is a neighbour of one with one record."""
    return {name: np.empty(0, dtype=object) for name in schema.columns}


def _listed(column: Any) -> list[Any]:
    return column.to_pylist() if hasattr(column, "to_pylist") else list(column)


@dataclass(frozen=True, eq=False)
class EncodedSource(Source):
    """The encoded rows, and the targets, of a source of raw tables.

    Parameters
    ----------
    source : Source
        A table with named columns, or a `dpglm.Stream` whose blocks are data frames.
    schema : Schema
    has_targets : bool
        Whether to read the targets, too.
    null : bool
        Whether a record with a cell that cannot be read is a null record.
    """

    source: Source
    schema: Schema
    has_targets: bool = True
    null: bool = True

    def __post_init__(self) -> None:
        names = names_of(self.source)
        if names is not None:
            self.schema.require_columns(names, self.has_targets)

    @property
    def n_samples(self) -> int:  # type: ignore[override]
        return self.source.n_samples

    @property
    def n_units(self) -> int | None:  # type: ignore[override]
        return self.source.n_units

    @property
    def n_features(self) -> int:  # type: ignore[override]
        return self.schema.n_features

    @property
    def gives_offsets(self) -> bool:
        return self.schema.beside.has_offset

    @property
    def target(self) -> str | None:  # type: ignore[override]
        return self.schema.target if self.has_targets else None

    def blocks(self) -> Iterator[tuple[object, object]]:
        for rows, targets in map(self._block, self.frames()):
            if rows.shape[0]:  # a dict of empty columns is a frame without records
                yield rows, targets

    def _block(self, frame: object) -> tuple[Any, object]:
        targets: object = self.schema.read_target(frame) if self.has_targets else None
        if self.schema.beside.has_more:
            targets = self.schema.read_beside(frame, self.has_targets)._replace(target=targets)
        return self.schema.encode(frame, null=self.null), targets

    def in_memory(self) -> EncodedTable:
        """All rows and targets; the source is read once."""
        blocks: list[Any] = list(self.blocks()) or [self._block(no_records(self.schema))]
        rows = [rows for rows, _ in blocks]
        if sum(block.shape[0] for block in rows) != self.n_samples:
            raise SourceChanged(MISCOUNTED)
        whole = sp.vstack(rows, format="csr") if sp.issparse(rows[0]) else np.concatenate(rows)
        found = [one if isinstance(one, RecordColumns) else RecordColumns(one) for _, one in blocks]
        columns = (None if parts[0] is None else np.concatenate(parts) for parts in zip(*found, strict=True))
        several = RecordColumns(*columns)
        return EncodedTable(whole, several.target, several._replace(target=None))

    def frames(self) -> Iterator[object]:
        """The raw records, block by block."""
        source = self.source
        if isinstance(source, Columnar):
            unread = [] if self.has_targets else self.schema.unread
            names = [name for name in self.schema.used if name not in unread and name in source.types]
            for batch in guarded(lambda: source.batches(names, _ROWS)):
                if batch.num_rows:
                    yield batch
            return
        for rows, targets in source.blocks():
            if targets is not None:
                raise ValueError(
                    "the blocks of X come with targets: the schema takes them from their column, give frames"
                )
            yield rows


@dataclass(eq=False)
class RawTable:
    """A raw table for a fit that learns facts of its schema first.

    Parameters
    ----------
    schema : Schema
        With facts to be learnt.
    X : raw table, source, Dask data frame, or a source that is `Held`
    """

    schema: Schema
    X: Any
    resident: bool = field(init=False)
    n_samples: int = field(init=False)
    _records: RawCounting | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        X = self.X
        if is_dask(X):
            names = text_names(list(getattr(X, "columns", [])))
            self.schema.require_columns(names)
            self.resident, self.n_samples = False, DaskTable(X, self.schema.target).n_samples
        elif library_of(X) is not None:
            self.schema.require_columns(text_names(column_names(X)))
            self.resident, self.n_samples = True, row_count(X)
        else:
            self.resident = isinstance(X, Held)
            source = X.source if isinstance(X, Held) else as_source(X)
            if source is None:
                raise ValueError(
                    "X must be a data frame of pandas or polars, an Arrow table, a dict of arrays, a source "
                    f"of such or a Dask data frame, got a {type(X).__name__}: columns are matched by name"
                )
            self.X, self.n_samples = source, source.n_samples
            EncodedSource(source, self.schema)  # refuses other columns

    @property
    def shape(self) -> tuple[int, int]:
        return self.n_samples, self.schema.n_features

    @property
    def example(self) -> Any:
        """An object that offers what the encoded table will offer; without records."""
        if not self.resident:
            return self
        shape = (1, self.schema.n_features)
        return as_block(sp.csr_array(shape) if self.schema.is_sparse else np.zeros(shape))

    def records(self, most: int = 0) -> RawCounting:
        """The records, to be counted; ``most`` is how many there can be, if that is private."""
        if self._records is None:
            self._records = RawCounting(self.schema, self.X, self.n_samples, self.n_samples)
        self._records.table_size = most or self.n_samples
        return self._records

    def encoded(self, scaled: Scaled) -> tuple[Any, Any]:
        """The rows and targets of a fit; None in place of targets that come with the rows."""
        X = self.X
        if is_dask(X):
            return DaskTable(by_blocks(scaled.encode, X), by_blocks(scaled.read_target, X)), None
        if not isinstance(X, Source):
            return scaled.encode(X), scaled.read_target(X)
        source = EncodedSource(X, scaled)
        if not self.resident:
            return source, None
        table = source.in_memory()  # no weight or offset stands beside it: with facts to be learnt none may
        return table.rows, table.target


class RawCounting(RawRecords):
    """Counts of raw records; the census is taken once.

    Parameters
    ----------
    schema : Schema
    X : data frame, source or Dask data frame
    n_samples : int
    table_size : int
        The most records that there can be, if their number is private; else their number.
    """

    def __init__(self, schema: Schema, X: Any, n_samples: int, table_size: int) -> None:
        self._schema, self._X, self._length, self.table_size = schema, X, n_samples, table_size
        self._census: RawCounts | None = None

    def require_readable(self) -> None:
        """Take the census, of which nothing is released yet: what fails then costs no budget."""
        self.census()
        if isinstance(self._X, Source) and self._length:
            require_again(EncodedSource(self._X, self._schema).frames())

    def census(self) -> RawCounts:
        if self._census is None:
            blocks = iter(self._each(partial(census_of, self._schema)))
            first = next(blocks, None) or census_of(self._schema, no_records(self._schema))
            found = reduce(RawCounts.joined, blocks, first)
            if found.length != self._length:
                raise SourceChanged(MISCOUNTED)
            self._census = found
        return self._census

    def with_schema(self, schema: Schema) -> RawCounting:
        """The same records with a schema whose columns are known."""
        return RawCounting(schema, self._X, self._length, self.table_size)

    def norms(self, candidates: Vector) -> Counts:
        length, found = 0, np.zeros(2 * len(candidates) + 1, dtype=np.int64)
        for records, counts in self._each(partial(norm_counts, self._schema, candidates=candidates)):
            length, found = length + records, found + counts
        if length != self._length:
            raise SourceChanged(MISCOUNTED)
        return found

    def _each(self, function: Any) -> Iterable[Any]:
        """What a function of tables in memory makes of each block that has records."""
        if is_dask(self._X):
            return of_each_block(function, self._X)
        if isinstance(self._X, Source):
            return map(function, EncodedSource(self._X, self._schema).frames())
        return [function(self._X)]
