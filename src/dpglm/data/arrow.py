"""Data sets of pyarrow: Parquet and other files, and tables larger than memory."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import UnreadableFile
from .columnar import Columnar, typed
from .stream import asked

_BUFFER = 1 << 16
"""Bytes that are read at once of each column of a Parquet file."""

_TEXT_LEVELS = re.compile(r"dictionary<values=(large_)?string")


@dataclass(frozen=True, eq=False, kw_only=True)
class ArrowDataset(Columnar):
    """The files of a `pyarrow.dataset.Dataset`, one after the other.

    Parquet is read from disk in small pieces: pyarrow's own scanner would hold a whole file. Arrow files are
    memory-mapped. Other formats, and files whose columns differ from those of the data set, are scanned.
    """

    dataset: Any

    def batches(self, names: list[str], rows: int) -> Iterator[Any]:
        from pyarrow import dataset, fs

        try:
            fragments = list(self.dataset.get_fragments())
        except ValueError:  # a data set with a filter does not tell its files
            yield from _scanned(self.dataset, names, rows)
            return
        for fragment in fragments:
            found = fragment.physical_schema
            as_stated = all(found.get_field_index(name) >= 0 for name in names) and all(
                found.field(name).type == self.types[name] for name in names
            )
            if as_stated and isinstance(fragment, dataset.ParquetFileFragment):
                yield from _parquet(fragment, names, rows)
            elif (
                as_stated
                and isinstance(getattr(fragment, "format", None), dataset.IpcFileFormat)
                and isinstance(fragment.filesystem, fs.LocalFileSystem)
            ):
                yield from _memory_mapped(fragment.path, names, rows)
            else:
                yield from _scanned(fragment, names, rows, schema=self.dataset.schema)


@dataclass(frozen=True, eq=False, kw_only=True)
class ArrowTable(Columnar):
    """A `pyarrow.Table`, of which no copy is made."""

    table: Any

    def batches(self, names: list[str], rows: int) -> Iterator[Any]:
        yield from self.table.select(names).to_batches(max_chunksize=rows)


def _parquet(fragment: Any, names: list[str], rows: int) -> Iterator[Any]:
    from pyarrow import parquet

    groups = [group.id for group in fragment.row_groups]
    types = {name: str(fragment.physical_schema.field(name).type) for name in names}
    # read as what they are, dictionaries of text are not checked for UTF-8: one cell would fail all
    coded = [name for name, kind in types.items() if _TEXT_LEVELS.match(kind)]
    with fragment.open() as opened:
        file = parquet.ParquetFile(opened, buffer_size=_BUFFER, pre_buffer=False, read_dictionary=coded)
        batches = file.iter_batches(batch_size=rows, row_groups=groups, columns=names)
        yield from map(lambda batch: batch.select(names), batches)  # they come in the order of the file


def _memory_mapped(path: str, names: list[str], rows: int) -> Iterator[Any]:
    """Batches of an Arrow file; the map is opened anew for each block, so that its pages are let go."""
    import pyarrow as pa

    done, count = 0, 1
    while done < count:
        read = 0
        with pa.memory_map(path) as file:
            schema = pa.ipc.open_file(file).schema
            options = pa.ipc.IpcReadOptions(included_fields=[schema.get_field_index(name) for name in names])
            reader = pa.ipc.open_file(file, options=options)
            count = reader.num_record_batches
            while done < count and read < rows:
                batch = reader.get_batch(done).select(names)
                done, read = done + 1, read + batch.num_rows
                yield batch


def _scanned(scannable: Any, names: list[str], rows: int, **options: Any) -> Iterator[Any]:
    scanner = scannable.scanner(
        columns=names, batch_size=rows, batch_readahead=1, fragment_readahead=1, **options
    )
    yield from scanner.to_batches()


def opened(path: Path, kind: str) -> Columnar:
    """The source of a Parquet or Arrow file."""
    try:
        from pyarrow import dataset
    except ImportError:
        raise UnreadableFile(f"the file {path.name!r} needs pyarrow: pip install 'dpglm[arrow]'") from None
    source = None
    with suppress(Exception):  # an engine may raise anything, and quote what it reads
        source = recognised(dataset.dataset(path, format=kind))
    if source is None:
        raise UnreadableFile(f"the file {path.name!r} cannot be read as {kind}")
    return source


def split(text: str, names: list[str], separator: str) -> Any:
    """Lines of cells, none of which has quotes, as a table of texts; None if pyarrow is missing or fails."""
    content = text.encode("utf-8", "replace")
    with suppress(Exception):  # an engine may raise anything; a block of 2**31 bytes is too large for it
        from pyarrow import BufferReader, csv, string

        return csv.read_csv(
            BufferReader(content),
            csv.ReadOptions(column_names=names, use_threads=False, block_size=len(content) + 1),
            csv.ParseOptions(
                delimiter=separator, quote_char=False, double_quote=False, ignore_empty_lines=False
            ),
            csv.ConvertOptions(
                column_types=dict.fromkeys(names, string()), null_values=[], strings_can_be_null=False
            ),
        )
    return None


def recognised(X: object) -> Columnar | None:
    """The source of a data set, or of a table that takes more than half of this machine's memory."""
    arrow, datasets = (sys.modules.get(name) for name in ("pyarrow", "pyarrow.dataset"))
    if datasets is not None and isinstance(X, datasets.Dataset):
        types = typed(X.schema.names, X.schema.types)
        return ArrowDataset(n_samples=asked(X.count_rows), types=types, dataset=X)
    if arrow is not None and isinstance(X, arrow.Table) and 2 * X.nbytes > _memory():
        return ArrowTable(n_samples=X.num_rows, types=typed(X.column_names, X.schema.types), table=X)
    return None


def _memory() -> float:
    """Bytes of memory of this machine, if it tells."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):
        return float("inf")


def decoded(values: Any) -> Any:
    """Texts of which each is decoded by itself: bytes that are no UTF-8 spoil their own text only."""
    import pyarrow as pa

    contents = values.cast("large_binary").to_pylist()
    texts = [None if content is None else content.decode("utf-8", "replace") for content in contents]
    return pa.array(texts, values.type)
