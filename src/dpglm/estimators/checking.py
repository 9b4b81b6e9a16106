"""Priced counts of the cells that a schema does not read as it should."""

from __future__ import annotations

import hashlib
import math
import warnings
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ..bounds import Bounds
from ..data import as_block
from ..data.cluster import DaskTable, by_blocks, is_dask
from ..data.columns import RecordColumns
from ..data.frames import text_names
from ..data.stream import Source
from ..errors import PrivacyWarning, UnsupportedProblem
from ..evaluation.check import Check, Checker, CheckPlan
from ..fit import NumericTable, Session, guarantee_of, numeric_target, randomness_of, warn_of_delta
from ..fit.keys import ranked, records_by_unit
from ..ledger import resolved
from ..losses import Squared
from ..penalties import Zero
from ..privacy import Budget, Neighbours
from ..problem import Problem
from ..queries import CellCounts
from ..schema import Schema, Unit
from ..schema.diagnosis import KindSchema
from ..schema.encoder import encoded
from ..schema.source import Held


def check(
    schema: Schema,
    X: object,
    *,
    epsilon: float,
    delta: float | None = None,
    neighbours: str = "replace-one",
    ledger: str | None = None,
    random_state: int | None = None,
    verbose: int = 0,
) -> Check:
    """Count, with noise, the cells of each column that a schema does not read as it should.

    A fit cannot say that a date or an amount was unreadable: its record counts for nothing, and an error
    would reveal it. This is a release of its own, with a price: for each column the share of cells that are
    missing, unreadable, out of the declared range, or of a level that is not declared, and the share of
    records that count for nothing in a fit. A small epsilon is enough for tables of some thousand records.

    Parameters
    ----------
    schema : Schema
        With facts that are to be learnt, too: a range that is not known yet has no outside.
    X : raw table
        As in ``fit`` of `make_private_pipeline`, with all declared columns. Where the schema declares a
        `Unit`, the promise is one to persons, and each person counts once, as the mean of its records.
    epsilon, delta : float
        What may be spent on all counts together; delta is 1/n² by default.
    neighbours : {"replace-one", "zero-out"}
        The price is the same, since a null record is counted like any other.
    ledger : str, optional
        Account that pays, as in estimators.
    random_state : int, optional
        Makes the noise repeatable and the counts **not private**.
    verbose : int
        Show progress.

    Returns
    -------
    Check
        Print it; ``result["age"]["unreadable"].value`` and ``.error``, ``result.null_records``,
        ``result.privacy``.

    Examples
    --------
    >>> from dpglm import check
    >>> from dpglm.schema import Number, Schema
    >>> result = check(Schema({"cost": Number(0, 5_000)}), {"cost": ["1,123.40"] * 5_000}, epsilon=0.1)
    >>> result["cost"]["unreadable"].value > 0.9
    True
    """
    if not isinstance(schema, Schema):
        raise ValueError(f"schema must be a dpglm.schema.Schema, got a {type(schema).__name__}")
    relation = Neighbours.from_name(neighbours)
    if not relation.size_is_public:
        raise UnsupportedProblem(
            f"shares are of a public number of records, which {relation.value} neighbours do not have: use "
            'neighbours="zero-out" or "replace-one" if the number of records may be known'
        )
    Budget.for_records(epsilon, delta, 1)  # refuses what is no budget before the table is encoded
    session = Session("the check", randomness_of(random_state), resolved(ledger, None), verbose)
    kinds = KindSchema.of(schema)
    table = _read(kinds, X)
    problem = Problem(Squared(), Zero(), Bounds(row_norm=math.inf), fit_intercept=False)
    unit = schema.beside.unit
    if unit is not None:
        column = schema.columns[unit]
        assert isinstance(column, Unit)
        problem = replace(problem, bounds=replace(problem.bounds, rows_per_unit=column.rows))
    n = table.size(problem.bounds)
    if n < 1:
        raise ValueError("the table has no records that could be checked")
    budget = Budget.for_records(epsilon, delta, n)
    query = CellCounts(kinds.codes, n)
    plan = CheckPlan.of(query, budget, relation, problem.unit)
    warn_of_delta(plan)
    if plan.warning is not None:
        warnings.warn(plan.warning, PrivacyWarning, stacklevel=2)
    with np.errstate(all="ignore"), session.progress(plan):
        records = table.records_in(problem, constant=0.0, n_units=n)
        session.reserve(
            plan, partial(_planned, query, budget, relation, problem.unit), records.require_readable
        )
        shares = Checker(kinds.names, query).run(plan, session.curator(records, relation))
    digest = hashlib.sha256(schema.to_toml().encode()).hexdigest()
    facts: dict[str, object] = {"schema": f"{len(schema.columns)} declared columns, SHA-256 {digest}"}
    facts |= session.close(plan)
    if records.trusted:
        facts["trusted"] = records.trusted
    return Check(shares, plan, guarantee_of(plan, session.randomness, facts))


def _planned(
    query: CellCounts, budget: Budget, neighbours: Neighbours, unit: str, epsilon: float
) -> CheckPlan:
    return CheckPlan.of(query, Budget(epsilon, budget.delta), neighbours, unit)


def _read(kinds: KindSchema, X: Any) -> NumericTable:
    """Codes of cells, as targets of rows."""
    if is_dask(X):
        if kinds.beside.unit is not None:
            raise UnsupportedProblem(
                "units are not for Dask collections: store the table sorted by that column, as Parquet, and "
                "give the pyarrow data set"
            )
        kinds.require_columns(text_names(getattr(X, "columns", [])))
        return NumericTable(
            DaskTable(encoded(kinds, X), by_blocks(kinds.read_target, X)), codes=numeric_target
        )
    if isinstance(X, Held):
        table = encoded(kinds, X.source, targets=True).in_memory()
        rows, targets, ids = table.rows, table.target, table.beside.unit
    else:
        rows = encoded(kinds, X, targets=True)
        if isinstance(rows, Source):
            return NumericTable(rows, codes=numeric_target)
        targets, ids = kinds.read_target(X), kinds.read_beside(X).unit
    if ids is None:
        return NumericTable(as_block(rows), RecordColumns(targets))
    unit_column = kinds.columns[kinds.beside.unit]
    assert isinstance(unit_column, Unit)
    number, rows, targets = records_by_unit(ranked(ids)[0], unit_column.rows, rows, targets)
    return NumericTable(as_block(rows), RecordColumns(targets, unit=number))
