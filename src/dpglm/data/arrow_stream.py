"""DuckDB relations, and all else that can be read again and again through the stream interface of Arrow."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from .columnar import Columnar, typed
from .stream import asked

_IN_MEMORY = {"numpy", "pandas", "polars", "pyarrow"}
"""Libraries whose tables and columns are in memory, or have a source of their own."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ArrowStream(Columnar):
    """What ``open(names, rows)`` reads: a fresh stream of record batches with at least these columns."""

    open: Callable[[list[str], int], Any]

    def batches(self, names: list[str], rows: int) -> Iterator[Any]:
        for batch in self.open(names, rows):
            yield batch.select(names)


def recognised(X: object) -> ArrowStream | None:
    """The source of a relation, or of an object that has ``__arrow_c_stream__``."""
    duckdb = sys.modules.get("duckdb")
    if duckdb is not None and isinstance(X, duckdb.DuckDBPyRelation):
        return _of_relation(X)
    homes = {base.__module__.split(".")[0] for base in type(X).__mro__}
    if not hasattr(type(X), "__arrow_c_stream__") or homes & _IN_MEMORY:
        return None
    try:
        from pyarrow import RecordBatchReader
    except ImportError:
        raise ValueError(f"a {type(X).__name__} needs pyarrow: pip install 'dpglm[arrow]'") from None

    def reader(names: list[str], rows: int) -> Any:
        return RecordBatchReader.from_stream(X)

    schema = asked(lambda: reader([], 0).schema)
    count = asked(lambda: sum(batch.num_rows for batch in reader([], 0)))
    return ArrowStream(n_samples=count, types=typed(schema.names, schema.types), open=reader)


def _of_relation(X: Any) -> ArrowStream:
    """A relation, whose query is run anew in every pass, for the columns that are needed."""
    import duckdb

    def reader(names: list[str], rows: int) -> Any:
        columns = X.select(*map(duckdb.ColumnExpression, names))
        known = hasattr(type(columns), "to_arrow_reader")
        return columns.to_arrow_reader(rows) if known else columns.fetch_record_batch(rows)

    schema = asked(lambda: reader(X.limit(0).columns, 1).schema)
    count = asked(lambda: X.count("*").fetchall()[0][0])
    return ArrowStream(n_samples=count, types=typed(schema.names, schema.types), open=reader)
