"""The table of a fit: rows and columns as numbers, read from what users give, and the records that follow."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_consistent_length

from ..arrays import Vector
from ..bounds import ROWS_PER_UNIT, Bounds
from ..data import as_block, as_data
from ..data.cluster import DaskTable, is_dask, records_of
from ..data.columns import NAMES, JoinedSource, RecordColumns
from ..data.record_set import RecordSet
from ..data.stream import Source
from ..data.units import NumberedUnits
from ..errors import UnsupportedProblem
from ..plan import Plan
from ..problem import Problem
from ..schema import Schema
from ..schema.learning import Scaled
from ..schema.source import RawCounting, RawTable
from ..solvers import AnySolver, is_able, require_able
from .inputs import Labels, columns_apart, numeric_table, numeric_target
from .keys import LENGTHS, ranked, records_by_unit, require_shapes, sorted_by_unit
from .presentations import Presentation
from .readers import (
    BlockReader,
    Codes,
    ColumnReader,
    column_in_memory,
    columns_in_memory,
    remember_columns,
    source_of,
)
from .recipe import Recipe

TargetReader = Callable[[object], Labels]
"""Checks targets as users give them, which stay labels or become numbers."""

_NO_COLUMNS = RecordColumns()


class FitTable(ABC):
    """A table of private records, of which only its shape is looked at before it is charged for."""

    kind: Any

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]: ...

    @property
    @abstractmethod
    def is_resident(self) -> bool:
        """Whether it stays in memory; if not, it is read anew in every pass."""

    @property
    def is_read(self) -> bool:
        """Whether its records are in memory, as numbers."""
        return False

    @property
    @abstractmethod
    def targets(self) -> Any:
        """Targets in memory; None if blocks give them."""

    @property
    def has_targets(self) -> bool:
        """Whether targets are in memory."""
        return self.targets is not None

    @abstractmethod
    def with_targets(self, targets: Vector) -> FitTable:
        """The same table with other targets, in memory."""

    @abstractmethod
    def with_codes(self, codes: Codes) -> FitTable:
        """The same table with what turns targets that are not in memory into numbers, block by block."""

    def size(self, bounds: Bounds) -> int:
        """How many records there are, or units where the bounds limit their records."""
        return self.shape[0]

    @abstractmethod
    def for_solver(self, solver: AnySolver, plan: Plan, problem: Problem) -> Self:
        """The table as the solver needs it; one that lacks what the solver needs is refused."""

    @abstractmethod
    def records(self, recipe: Recipe, most: int = 0) -> Any:
        """The records inside of their bounds, or raw ones; ``most`` there can be if their number is private.

        Their ``require_readable`` reads them once, and releases nothing.
        """

    def with_schema(self, learnt: Schema, recipe: Recipe) -> FitTable:
        """The table once its schema is known."""
        return self


@dataclass(frozen=True, eq=False)
class NumericTable(FitTable):
    """Rows of numbers, in memory or from a source.

    Parameters
    ----------
    rows : array, sparse table or Source
    columns : RecordColumns
        Columns in memory; None for those that the blocks of a source give, or that there are not.
    codes : callable
        Turns targets that are not in memory into numbers, block by block.
    kind : str
        What users gave, in an error.
    """

    rows: Any
    columns: RecordColumns = _NO_COLUMNS
    codes: Codes = np.asarray
    kind: str = "table"

    @property
    def shape(self) -> tuple[int, int]:
        shape: tuple[int, int] = self.rows.shape
        return shape

    @property
    def is_resident(self) -> bool:
        return not isinstance(self.rows, Source) or self.rows.is_stored

    def size(self, bounds: Bounds) -> int:
        rows, unit = self.rows, self.columns.unit
        if isinstance(rows, Source) and bounds.rows_per_unit is not None:
            return NumberedUnits(self._source, ranked).n_units
        if unit is not None:  # numbers of units, in order
            return int(unit[-1]) + 1 if len(unit) else 0
        if bounds.rows_per_unit is not None:
            raise ValueError(
                "the bounds have rows_per_unit, which promises privacy to persons: give units, the id of the "
                "person of each record"
            )
        return self.shape[0]

    @property
    def is_read(self) -> bool:
        return not isinstance(self.rows, Source)

    @property
    def targets(self) -> Any:
        return self.columns.target

    def with_targets(self, targets: Vector) -> NumericTable:
        return replace(self, columns=self.columns._replace(target=targets))

    def with_codes(self, codes: Codes) -> NumericTable:
        return replace(self, codes=codes)

    @property
    def _source(self) -> Source:
        """The source together with the columns in memory."""
        given = any(part is not None for part in self.columns)
        return JoinedSource(self.rows, self.columns) if given else self.rows

    def for_solver(self, solver: AnySolver, plan: Plan, problem: Problem) -> NumericTable:
        rows = self.rows
        if isinstance(rows, Source) and self.has_targets and not is_able(solver, plan, rows):
            whole = rows.resident()
            if whole is not None:
                rows = numeric_table(BaseEstimator(), whole, reset=True, missing=True)
        rows = rows if isinstance(rows, Source) else as_block(rows)
        require_able(solver, plan, problem, rows)
        return replace(self, rows=rows)

    def records(self, recipe: Recipe, most: int = 0) -> RecordSet:
        # Weights of records are cut before those of classes multiply them.
        problem = recipe.problem
        bounds = replace(problem.bounds, weight=recipe.bounds.weight)
        problem = replace(problem, bounds=bounds)
        return self.records_in(
            problem, recipe.presentations, limited=_limited_columns(recipe.bounds),
            n_units=recipe.n_records, most=most,
        )  # fmt: skip

    def records_in(
        self, problem: Problem, presentations: tuple[Presentation, ...] = (), *,
        limited: frozenset[str] | None = None, constant: float | None = None, n_units: int = 0, most: int = 0,
    ) -> RecordSet:  # fmt: skip
        """The records inside of the bounds of a problem.

        Parameters
        ----------
        problem : Problem
        presentations : tuple of Presentation
        limited : set of str, optional
            The columns that declared bounds limit: others are refused. By default those of the problem, and
            others are left out.
        constant : float, optional
            The constant feature, by default that of the problem.
        n_units : int
            The number of units, for bounds of units.
        most : int
            How many records there can be, if their number is private.
        """
        p = self.shape[1]
        constant = problem.constant(p) if constant is None else constant
        names = _limited_columns(problem.bounds) if limited is None else limited
        codes = np.asarray if self.has_targets else self.codes
        reader = ColumnReader(codes, presentations, len(names) > 1 or bool(presentations), limited)
        if isinstance(self.rows, Source):
            return self._streamed(reader, problem, constant, n_units, most)
        values, rows = reader(self.columns), self.rows
        if most and not len(values):  # kernels want a record: a null one adds nothing
            rows, values = as_block(np.full((1, p), np.nan)), np.full((1, *values.shape[1:]), np.nan)
        return as_data(rows, values, problem.bounds, constant, most)

    def _streamed(
        self, columns: ColumnReader, problem: Problem, constant: float, n_units: int, most: int
    ) -> RecordSet:
        reader, source = BlockReader(self.shape[1], columns), self._source
        if isinstance(source, DaskTable):
            reader(*source.example)  # refuses types that hold no numbers, before a record is read
        if not problem.has_units:
            return records_of(source, reader, problem.bounds, constant, problem.loss, most)
        numbered = NumberedUnits(source, ranked)
        return records_of(numbered, reader, problem.bounds, constant, problem.loss, n_units=n_units)


@dataclass(frozen=True, eq=False)
class UnlearntTable(FitTable):
    """A raw table whose schema has facts that the fit learns first.

    Parameters
    ----------
    raw : RawTable
    codes : callable
        Turns targets into numbers.
    """

    raw: RawTable
    codes: Codes = np.asarray
    targets: ClassVar[None] = None
    kind: str = "raw table"

    @property
    def shape(self) -> tuple[int, int]:
        return self.raw.shape

    @property
    def is_resident(self) -> bool:
        return self.raw.resident

    def with_targets(self, targets: Vector) -> UnlearntTable:
        raise UnsupportedProblem("the targets of a raw table are read from its columns")

    def with_codes(self, codes: Codes) -> UnlearntTable:
        return replace(self, codes=codes)

    def for_solver(self, solver: AnySolver, plan: Plan, problem: Problem) -> UnlearntTable:
        require_able(solver, plan, problem, self.raw.example)
        return self

    def records(self, recipe: Recipe, most: int = 0) -> RawCounting:
        return self.raw.records(most)

    def with_schema(self, learnt: Schema, recipe: Recipe) -> NumericTable:
        scaled = Scaled.of(learnt, self.raw.schema, recipe.fit_intercept)
        rows, targets = self.raw.encoded(scaled)
        if isinstance(rows, Source):
            return NumericTable(rows, codes=self.codes)
        table = numeric_table(
            BaseEstimator(), rows, reset=True, missing=True, least=_least_rows(recipe.counts_records)
        )
        return NumericTable(as_block(table), RecordColumns(self.codes(targets)))


def _limited_columns(bounds: Bounds) -> frozenset[str]:
    """The columns of records that bounds limit, and the targets."""
    limits = {
        "weight": bounds.weight, "offset": bounds.offset, "exposure": bounds.offset,
        "unit": bounds.rows_per_unit,
    }  # fmt: skip
    return frozenset({"target", *(name for name, limit in limits.items() if limit is not None)})


def _least_rows(private_size: bool) -> int:
    """The least number of rows: an empty table is a neighbour of one with one record."""
    return 0 if private_size else 1


@dataclass(frozen=True)
class TableReader:
    """Reads tables and columns as users give them.

    Parameters
    ----------
    estimator : estimator
        Remembers the number and the names of the features.
    targets_of : callable
        Checks targets in memory, which stay labels or become numbers.
    rows_per_unit : int or None
        How many records of a unit count.
    private_size : bool
        Whether the number of records is private: then there may be none.
    """

    estimator: Any
    targets_of: TargetReader
    rows_per_unit: int | None = None
    private_size: bool = False

    def read(self, X: object, y: object, columns: RecordColumns) -> NumericTable:
        """X as a table of floats or a source, and the columns of its records that its blocks do not give."""
        return replace(self._read(X, y, columns), kind=type(X).__name__)

    def _read(self, X: object, y: object, columns: RecordColumns) -> NumericTable:
        if is_dask(X):
            return self._read_dask(X, y, columns)
        source = source_of(X, y if isinstance(y, str) else None, columns)
        if y is None and not (source is not None and source.has_targets):
            raise ValueError(
                f"This {type(self.estimator).__name__} estimator requires y to be passed, but the target y "
                "is None."
            )
        if source is not None:
            return self._read_source(source, y, columns)
        return self._read_memory(X, y, columns)

    def _read_dask(self, X: object, y: object, columns: RecordColumns) -> NumericTable:
        if columns.unit is not None:
            raise UnsupportedProblem(
                "units are not for Dask collections: records of one person may lie in several of their "
                "blocks. Store the table sorted by that column, as Parquet, and give the pyarrow data set"
            )
        table = DaskTable(X, y, columns)
        remember_columns(self.estimator, table)
        return NumericTable(table)

    def _read_source(self, source: Source, y: object, columns: RecordColumns) -> NumericTable:
        of_units = columns.unit is not None
        target = column_in_memory(source, y, self.targets_of, of_units)
        others = columns_in_memory(source, columns)._replace(target=target)
        if of_units and not isinstance(columns.unit, str):
            ids = ranked(columns.unit)[0]
            if len(ids) != source.n_samples:
                raise ValueError(LENGTHS)
            others = others._replace(unit=np.where(ids < 0, np.nan, ids))
            if source.is_stored:
                source, others = sorted_by_unit(source, others)
        remember_columns(self.estimator, source)
        return NumericTable(source, others)

    def _read_memory(self, X: object, y: object, columns: RecordColumns) -> NumericTable:
        rows, several = columns_apart(X, columns._replace(target=y))
        if several.unit is not None:
            require_shapes(rows, several)
        least = _least_rows(self.private_size)
        table = numeric_table(self.estimator, rows, reset=True, missing=True, least=least)
        targets: Any = self.targets_of(several.target)
        numbers = [
            None if part is None else numeric_target(part, name)
            for part, name in zip(several[1:-1], NAMES[1:-1], strict=True)
        ]
        if several.unit is None:
            check_consistent_length(table, targets, *numbers)
            return NumericTable(table, RecordColumns(targets, *numbers))
        most = self.rows_per_unit or ROWS_PER_UNIT
        ids = ranked(several.unit)[0]
        number, table, targets, *parts = records_by_unit(ids, most, table, targets, *numbers)
        return NumericTable(table, RecordColumns._make([targets, *parts, number]))
