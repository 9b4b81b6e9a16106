"""Raw tables that are read block by block: each block is encoded as it is read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..data.columnar import Columnar
from ..data.columns import RecordColumns
from ..data.files import TextFile
from ..data.frames import text_names
from ..data.stream import BLOCK_ROWS, MISCOUNTED, Source, guarded
from ..errors import SourceChanged

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
