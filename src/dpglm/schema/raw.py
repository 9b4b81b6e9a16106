"""Raw tables whose schema has facts to be learnt: counted first, encoded once the facts are known."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial, reduce
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..arrays import Vector
from ..data import as_block
from ..data.adapters import as_source
from ..data.cluster import DaskTable, by_blocks, is_dask, of_each_block
from ..data.frames import column_names, library_of, row_count, text_names
from ..data.raw_counts import Counts, RawCounts, RawRecords
from ..data.stream import MISCOUNTED, Source, require_again
from ..errors import SourceChanged
from .learning import Scaled, census_of, norm_counts
from .schema import Schema
from .source import EncodedSource, Held, no_records


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
