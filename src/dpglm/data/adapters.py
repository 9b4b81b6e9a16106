"""Sources of what other libraries hold: NumPy's memory maps, pyarrow, polars, DuckDB and Arrow streams."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import UnreadableFile
from . import stream
from .columnar import Columnar, typed
from .frames import in_doubles
from .stream import Source, ask, rows_per_block

_BUFFER = 1 << 16
"""Bytes read at once from each column of a Parquet file."""

_TEXT_LEVELS = re.compile(r"dictionary<values=(large_)?string")

_IN_MEMORY = {"numpy", "pandas", "polars", "pyarrow"}
"""Libraries whose tables and columns are in memory, or have a source of their own."""


@dataclass(frozen=True, eq=False)
class MemoryMap(Source):
    """The rows of a memory map; a solver that needs more than passes takes it as an array.

    Parameters
    ----------
    X : memory map
    order : array of int, optional
        The places of the rows in the order in which they are read; by default that of the map.
    """

    X: NDArray[np.generic]
    order: NDArray[np.intp] | None = None

    @property
    def n_samples(self) -> int:  # type: ignore[override]
        return len(self.X)

    @property
    def n_features(self) -> int:  # type: ignore[override]
        return int(self.X.shape[1])

    def blocks(self) -> Iterator[tuple[object, object]]:
        n, p = self.X.shape
        step = rows_per_block(p * self.X.itemsize)
        for start in range(0, n, step):
            rows = slice(start, start + step)
            yield np.asarray(self.X[rows if self.order is None else self.order[rows]]), None

    @property
    def is_stored(self) -> bool:
        return True

    def resident(self) -> NDArray[np.generic]:
        return self.X if self.order is None else np.asarray(self.X[self.order])

    def reordered(self, order: NDArray[np.intp]) -> MemoryMap:
        return replace(self, order=order)


def _from_memory_map(X: object) -> MemoryMap | None:
    """The source of a memory map of numbers that is larger than a block."""
    if isinstance(X, np.memmap) and X.ndim == 2 and X.dtype.kind in "biuf" and X.nbytes > stream.BLOCK_BYTES:
        return MemoryMap(X)
    return None


@dataclass(frozen=True, eq=False, kw_only=True)
class ArrowDataset(Columnar):
    """A `pyarrow.dataset.Dataset`, read file by file.

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
            schema = fragment.physical_schema
            as_stated = all(schema.get_field_index(name) >= 0 for name in names) and all(
                schema.field(name).type == self.types[name] for name in names
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
    """Batches of an Arrow file; the map is reopened for each block, which releases its pages."""
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


def _from_arrow(X: object) -> Columnar | None:
    """The source of a data set, or of a table that takes more than half of this machine's memory."""
    arrow, datasets = (sys.modules.get(name) for name in ("pyarrow", "pyarrow.dataset"))
    if datasets is not None and isinstance(X, datasets.Dataset):
        types = typed(X.schema.names, X.schema.types)
        return ArrowDataset(n_samples=ask(X.count_rows), types=types, dataset=X)
    if arrow is not None and isinstance(X, arrow.Table) and 2 * X.nbytes > _memory():
        return ArrowTable(n_samples=X.num_rows, types=typed(X.column_names, X.schema.types), table=X)
    return None


def _memory() -> float:
    """Memory of this machine in bytes, infinite if unknown."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):
        return float("inf")


def arrow_file(path: Path, kind: str) -> Columnar:
    """The source of a Parquet or Arrow file."""
    try:
        from pyarrow import dataset
    except ImportError:
        raise UnreadableFile(f"the file {path.name!r} needs pyarrow: pip install 'dpglm[arrow]'") from None
    source = None
    with suppress(Exception):  # an engine may raise anything, and quote what it reads
        source = _from_arrow(dataset.dataset(path, format=kind))
    if source is None:
        raise UnreadableFile(f"the file {path.name!r} cannot be read as {kind}")
    return source


def arrow_cells(text: str, names: list[str], separator: str) -> Any:
    """Split lines of cells without quotes into a table of strings; None if pyarrow is missing or fails."""
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


def decoded(values: Any) -> Any:
    """Decode each string by itself: bytes that are not UTF-8 spoil their own string only."""
    import pyarrow as pa

    contents = values.cast("large_binary").to_pylist()
    texts = [None if content is None else content.decode("utf-8", "replace") for content in contents]
    return pa.array(texts, values.type)


@dataclass(frozen=True, eq=False, kw_only=True)
class LazyTable(Columnar):
    """The result of the query of a `polars.LazyFrame`, in batches of its streaming engine."""

    frame: Any

    def batches(self, names: list[str], rows: int) -> Iterator[Any]:
        import polars

        level = polars.CompatLevel.oldest()
        query = in_doubles(self.frame.select(names))
        for part in query.collect_batches(chunk_size=rows, lazy=True, engine="streaming"):
            yield from part.to_arrow(compat_level=level).to_batches()


def _from_lazy_frame(X: object) -> LazyTable | None:
    """The source of a lazy frame."""
    polars = sys.modules.get("polars")
    if polars is None or not isinstance(X, polars.LazyFrame):
        return None
    if not hasattr(X, "collect_batches"):
        raise ValueError("a polars LazyFrame needs polars 1.34 or later: update it, or give X.collect()")
    schema = ask(X.collect_schema)
    count = ask(lambda: X.select(polars.len()).collect(engine="streaming").item())
    return LazyTable(n_samples=count, types=typed(schema.names(), schema.dtypes()), frame=X)


@dataclass(frozen=True, eq=False, kw_only=True)
class ArrowStream(Columnar):
    """A table that ``open(names, rows)`` reads as a fresh stream of record batches with these columns."""

    open: Callable[[list[str], int], Any]

    def batches(self, names: list[str], rows: int) -> Iterator[Any]:
        for batch in self.open(names, rows):
            yield batch.select(names)


def _from_arrow_stream(X: object) -> ArrowStream | None:
    """The source of a relation, or of an object that has ``__arrow_c_stream__``."""
    duckdb = sys.modules.get("duckdb")
    if duckdb is not None and isinstance(X, duckdb.DuckDBPyRelation):
        return _from_relation(X)
    homes = {base.__module__.split(".")[0] for base in type(X).__mro__}
    if not hasattr(type(X), "__arrow_c_stream__") or homes & _IN_MEMORY:
        return None
    try:
        from pyarrow import RecordBatchReader
    except ImportError:
        raise ValueError(f"a {type(X).__name__} needs pyarrow: pip install 'dpglm[arrow]'") from None

    def reader(names: list[str], rows: int) -> Any:
        return RecordBatchReader.from_stream(X)

    schema = ask(lambda: reader([], 0).schema)
    count = ask(lambda: sum(batch.num_rows for batch in reader([], 0)))
    return ArrowStream(n_samples=count, types=typed(schema.names, schema.types), open=reader)


def _from_relation(X: Any) -> ArrowStream:
    """The source of a DuckDB relation, whose query runs again in every pass, for the columns in use."""
    import duckdb

    def reader(names: list[str], rows: int) -> Any:
        columns = X.select(*map(duckdb.ColumnExpression, names))
        known = hasattr(type(columns), "to_arrow_reader")
        return columns.to_arrow_reader(rows) if known else columns.fetch_record_batch(rows)

    schema = ask(lambda: reader(X.limit(0).columns, 1).schema)
    count = ask(lambda: X.count("*").fetchall()[0][0])
    return ArrowStream(n_samples=count, types=typed(schema.names, schema.types), open=reader)


ADAPTERS: tuple[Callable[[object], Source | None], ...] = (
    _from_memory_map,
    _from_arrow,
    _from_lazy_frame,
    _from_arrow_stream,
)
"""A new adapter is one class here and one line above."""


def as_source(X: object) -> Source | None:
    """The source that X is; None if it is a table in memory. No block is read, rows may be counted."""
    if isinstance(X, Source):
        return X
    return next((source for adapter in ADAPTERS if (source := adapter(X)) is not None), None)
