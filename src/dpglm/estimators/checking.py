"""Priced counts of the cells that a schema does not read as it should."""

from __future__ import annotations

import hashlib
import math
import warnings
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ..bounds import Bounds
from ..curator import Curator
from ..data import as_block
from ..data.cluster import DaskTable, by_blocks, is_dask
from ..data.columns import RecordColumns
from ..data.stream import Source
from ..errors import PrivacyWarning, UnsupportedProblem
from ..evaluation.check import Check, Checker, CheckPlan
from ..fit.guarantee import guarantee_of, randomness_of, require_kept, warn_of_delta
from ..fit.inputs import numeric_target
from ..fit.records import in_order, records_in
from ..fit.units import ranked, records_by_unit
from ..ledger import reserve, resolved
from ..losses import Squared
from ..penalties import Zero
from ..privacy import Budget, Neighbours
from ..problem import Problem
from ..queries import CellCounts
from ..schema import Schema
from ..schema.cell_kinds import CellKinds
from ..schema.encoder import encoded
from ..schema.frames import checked_names
from ..schema.kinds import WORDS
from ..schema.roles import Unit
from ..schema.source import Held
from .watched import watched


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
    randomness = randomness_of(random_state)
    kinds = CellKinds.of(schema)
    table = _read(kinds, X)
    if table.n < 1:
        raise ValueError("the table has no records that could be checked")
    budget = Budget.for_records(epsilon, delta, table.n)
    problem = Problem(Squared(), Zero(), Bounds(row_norm=math.inf), fit_intercept=False)
    unit = schema.beside.unit
    if unit is not None:
        column = schema.columns[unit]
        assert isinstance(column, Unit)
        problem = replace(problem, bounds=replace(problem.bounds, rows_per_unit=column.rows))
    query = CellCounts(kinds.codes, table.n)
    plan = CheckPlan.of(query, budget, relation, problem.unit)
    warn_of_delta(plan)
    if plan.warning is not None:
        warnings.warn(plan.warning, PrivacyWarning, stacklevel=2)
    with np.errstate(all="ignore"), watched(plan, verbose):
        records = records_in(
            table.rows, table.targets, problem, constant=0.0, held=table.held, is_beside=unit is not None,
            n_units=table.n,
        )  # fmt: skip
        paid = reserve(
            resolved(ledger, None),
            plan,
            secure=randomness.secure,
            planned=partial(_planned, query, budget, relation, problem.unit),
            ready=records.require_readable,
        )
        curator = Curator(records, relation, randomness)
        names = {
            name: tuple(WORDS[kind] for kind in column.possible_kinds)
            for name, column in kinds.readable.items()
        }
        shares = Checker(names, query).run(plan, curator)
    require_kept("the check", plan, curator.spent)
    digest = hashlib.sha256(schema.to_toml().encode()).hexdigest()
    facts: dict[str, object] = {"schema": f"{len(schema.columns)} declared columns, SHA-256 {digest}"}
    if paid is not None:
        paid.commit()
        facts["ledger"] = paid.words
    if records.trusted:
        facts["trusted"] = records.trusted
    return Check(shares, plan, guarantee_of(plan, randomness, facts))


def _planned(
    query: CellCounts, budget: Budget, neighbours: Neighbours, unit: str, epsilon: float
) -> CheckPlan:
    return CheckPlan.of(query, Budget(epsilon, budget.delta), neighbours, unit)


class _Table(NamedTuple):
    """Codes of cells, in memory or block by block, as `records_in` takes them, and how many units."""

    rows: Any
    targets: Any
    held: RecordColumns
    n: int


def _read(kinds: CellKinds, X: Any) -> _Table:
    alone = RecordColumns()
    if is_dask(X):
        if kinds.beside.unit is not None:
            raise UnsupportedProblem(
                "units are not for Dask collections: store the table sorted by that column, as Parquet, and "
                "give the pyarrow data set"
            )
        kinds.require_columns(checked_names(list(getattr(X, "columns", []))))
        blocks = DaskTable(encoded(kinds, X), by_blocks(kinds.read_target, X))
        return _Table(blocks, numeric_target, alone, blocks.n_samples)
    if isinstance(X, Held):
        whole = encoded(kinds, X.source, targets=True).in_memory()
        rows, targets, ids = whole.rows, whole.target, whole.beside.unit
    else:
        rows = encoded(kinds, X, targets=True)
        if isinstance(rows, Source):
            units = None if kinds.beside.unit is None else in_order(rows).n_units
            return _Table(rows, numeric_target, alone, rows.n_samples if units is None else units)
        targets, ids = kinds.read_target(X), kinds.read_beside(X).unit
    if ids is None:
        return _Table(as_block(rows), targets, alone, len(targets))
    most = kinds.columns[kinds.beside.unit]
    assert isinstance(most, Unit)
    number, rows, targets = records_by_unit(ranked(ids)[0], most.rows, rows, targets)
    return _Table(
        as_block(rows), targets, RecordColumns(unit=number), int(number[-1]) + 1 if len(number) else 0
    )
