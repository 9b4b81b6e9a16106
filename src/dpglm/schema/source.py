"""Raw tables that are read block by block: each block is encoded as it is read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..data.columnar import Columnar
from ..data.stream import BLOCK_ROWS, Source, guarded
from .column import Column
from .frames import checked_names

if TYPE_CHECKING:
    from .schema import Schema


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
        if isinstance(self.source, Columnar):
            self.schema.require_columns(checked_names(list(self.source.types)), self.has_targets)

    @property
    def n_samples(self) -> int:  # type: ignore[override]
        return self.source.n_samples

    @property
    def n_features(self) -> int:  # type: ignore[override]
        return self.schema.n_features

    @property
    def target(self) -> str | None:  # type: ignore[override]
        return self.schema.target if self.has_targets else None

    def blocks(self) -> Iterator[tuple[object, object]]:
        for frame in self._frames():
            targets = self.schema.read_target(frame) if self.has_targets else None
            yield self.schema.encode(frame, null=self.null), targets

    def _frames(self) -> Iterator[object]:
        source = self.source
        if isinstance(source, Columnar):
            names = [name for name, column in self.schema.columns.items() if isinstance(column, Column)]
            if self.target is not None:
                names.append(self.target)
            for batch in guarded(lambda: source.batches(names, BLOCK_ROWS)):
                if batch.num_rows:
                    yield batch
            return
        for rows, targets in source.blocks():
            if targets is not None:
                raise ValueError(
                    "the blocks of X come with targets: the schema takes them from their column, give frames"
                )
            yield rows
