"""From a table that was read to the records that the curator holds."""

from __future__ import annotations

from typing import cast

import numpy as np
from sklearn.base import BaseEstimator

from .. import solvers
from ..arrays import Vector
from ..bounds import Bounds
from ..data import as_block, as_data
from ..data.cluster import DaskTable, records_of
from ..data.columns import JoinedSource, Paired, RecordColumns
from ..data.piece import Stored
from ..data.record_set import RecordSet
from ..data.stream import Source
from ..data.units import NumberedUnits
from ..plan import Plan
from ..problem import Problem
from ..schema.raw import RawTable
from ..solvers import AnySolver
from .columns import CodesBeside, numbers_beside
from .inputs import Table, numeric_table
from .sources import BlockReader, Codes
from .units import ranked

_NO_COLUMNS = RecordColumns()


def records_in(
    table: Stored | Source, codes: Vector | Codes, problem: Problem, constant: float | None = None, *,
    held: RecordColumns = _NO_COLUMNS, is_beside: bool = False, folded: Bounds | None = None, most: int = 0,
    n_units: int = 0,
) -> RecordSet:  # fmt: skip
    """The records of a table, or of a source that is read in every pass, inside of the problem's bounds.

    The constant feature is that of the problem unless another one is given. ``held`` are the arrays that
    stand beside the targets, ``is_beside`` says whether records have weights or offsets, and ``folded`` is as
    in `numbers_beside`. ``most`` is how many records there can be, if their number is private, and
    ``n_units`` the number of persons, for bounds of persons.
    """
    p = table.shape[1]
    constant = problem.constant(p) if constant is None else constant
    if not isinstance(table, Source):
        values = cast(Vector, codes)
        if is_beside:
            values = numbers_beside(held._replace(target=values), np.asarray, folded, problem.offset_middle)
        if most and not len(values):  # kernels want a record: a null one adds nothing
            table, values = as_block(np.full((1, p), np.nan)), np.full((1, *values.shape[1:]), np.nan)
        return as_data(table, values, problem.bounds, constant, most)
    codes_of_block: Codes = codes if callable(codes) else np.asarray
    if is_beside:
        codes_of_block = CodesBeside(codes_of_block, folded, problem.offset_middle)
    reader = BlockReader(p, codes_of_block)
    if isinstance(table, DaskTable):
        reader(*table.example)  # refuses types that hold no numbers, before a record is read
    source = table if callable(codes) else Paired(table, codes)
    if held.has_more:
        source = JoinedSource(table, held if callable(codes) else held._replace(target=codes))
    if problem.has_units:
        return records_of(in_order(source), reader, problem.bounds, constant, problem.loss, n_units=n_units)
    return records_of(source, reader, problem.bounds, constant, problem.loss, most)


def table_for(
    X: Table | Source | RawTable, codes: Vector | Codes, solver: AnySolver, plan: Plan, problem: Problem
) -> Stored | Source | RawTable:
    """The table as the solver needs it; one that lacks what the solver needs is refused."""
    if isinstance(X, Source) and not callable(codes) and not solvers.is_able(solver, plan, X):
        X = _in_memory(X)
    table = X if isinstance(X, Source | RawTable) else as_block(X)
    solvers.require_able(solver, plan, problem, table.example if isinstance(table, RawTable) else table)
    return table


def in_order(source: Source) -> NumberedUnits:
    """A source that is sorted by persons, with numbers for their ids."""
    return NumberedUnits(source, ranked)


def _in_memory(source: Source) -> Table | Source:
    """The table of a source that can be had as one; the source itself if it cannot."""
    whole = source.resident()
    return source if whole is None else numeric_table(BaseEstimator(), whole, reset=True, missing=True)
