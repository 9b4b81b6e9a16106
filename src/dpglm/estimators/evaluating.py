"""Paid statistics outside of fits: scores of a model, and counts of the cells that a schema cannot read."""

from __future__ import annotations

import hashlib
import math
import warnings
from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from .. import strict
from ..bounds import Bounds
from ..data import as_block
from ..data.cluster import DaskTable, by_blocks, is_dask
from ..data.columns import RecordColumns
from ..data.frames import text_names
from ..data.stream import Source
from ..errors import PrivacyWarning, UnsupportedProblem
from ..evaluation import LOG_LOSS_CUT, METRICS, Evaluation, EvaluationPlan, Evaluator
from ..evaluation.check import Check, Checker, CheckPlan
from ..evaluation.metrics import Setting
from ..fit import (
    NumericTable,
    Session,
    Table,
    guarantee_of,
    numeric_table,
    numeric_target,
    randomness_of,
    warn_of_delta,
)
from ..fit.inputs import column_apart
from ..fit.keys import ranked, records_by_unit
from ..fit.readers import Codes, column_in_memory, source_like
from ..ledger import resolved
from ..losses import Squared
from ..penalties import Zero
from ..privacy import Budget, Neighbours
from ..problem import Problem
from ..queries import CellCounts
from ..schema import Schema, Unit
from ..schema.diagnosis import KindSchema
from ..schema.encoder import encoded
from ..schema.source import EncodedSource, EncodedTable, Held
from ..scores import PublicModel
from .base import PrivateGLM
from .classifiers import codes_among
from .parameters import explained
from .pipeline import PrivatePipeline

_FARTHEST = 6.0
"""Margins beyond count as this one when they are sorted into bins."""


@explained
def evaluate(
    model: PrivateGLM | PrivatePipeline,
    X: object,
    y: object = None,
    metric: str | Sequence[str] = "accuracy",
    *,
    epsilon: float,
    delta: float | None = None,
    neighbours: str = "replace-one",
    ledger: str | None = None,
    level: float = 0.95,
    log_loss_cut: float = LOG_LOSS_CUT,
    random_state: int | None = None,
    verbose: int = 0,
) -> Evaluation:
    """Private scores of a fitted model on records, with intervals that count sampling and noise.

    A score on the records of the fit, or on any other private records, is a statistic of them; `score` is
    **not private**. Here each score is released with noise, and an account of a ledger can pay for it. All
    metrics of a call share one budget. See the page on evaluation.

    Parameters
    ----------
    model : estimator of dpglm or private pipeline, fitted
        It counts as public.
    X, y : table and targets
        As in ``fit``: a pipeline takes raw tables that hold the target. A record without a target, or whose
        row holds something that is no number, counts nowhere. A raw cell that a schema cannot read counts as
        0, as in ``predict``.
    metric : str or list of str
        "accuracy", "log_loss", "auc", "calibration" for classes; "r2", "mean_squared_error",
        "mean_absolute_error" for numbers.
    epsilon, delta : float
        What may be spent on all scores together; delta is 1/n² by default.
    neighbours : {"replace-one", "zero-out"}
    ledger : str, optional
        Account that pays, as in estimators.
    level : float
        Probability with which an interval covers its score.
    log_loss_cut : float
        Largest log loss of a record.
    random_state : int, optional
        Makes the noise repeatable and the scores **not private**.
    verbose : int
        Show progress.

    Returns
    -------
    Evaluation
        ``result["accuracy"].value``, ``.low`` and ``.high``; ``result.privacy``.

    Examples
    --------
    >>> from dpglm import LogisticRegression, evaluate
    >>> from dpglm.datasets import load_adult
    >>> adult = load_adult()
    >>> model = LogisticRegression(epsilon=1.0, classes=[-1, 1]).fit(adult.X, adult.y)
    >>> result = evaluate(model, adult.X_test, adult.y_test, ["accuracy", "auc"], epsilon=0.5)
    >>> bool(0.82 < result["accuracy"].value < 0.87)
    True
    """
    strict.positive("log_loss_cut", log_loss_cut)
    names = _names(metric)
    fitted, table = _read(model, X, y)
    n, p = table.shape
    problem, relation = fitted._fitted_problem, Neighbours.from_name(neighbours)
    if not relation.size_is_public:
        raise UnsupportedProblem(
            f"scores are means over a public number of records, which {relation.value} neighbours do not "
            'have: use neighbours="zero-out" or "replace-one" if the number of evaluated records may be known'
        )
    if (problem.bounds.offset, getattr(fitted, "_fitted_bounds", fitted._bounds()).offset) != (None, None):
        raise UnsupportedProblem("evaluations know no offsets or exposures, which this model has")
    # Scores are of records, also those of a model that was fitted to persons.
    problem = replace(problem, bounds=replace(problem.bounds, weight=None, rows_per_unit=None))
    public = PublicModel(fitted._rows_of_coef(), np.ravel(fitted.intercept_))
    setting = Setting(
        public,
        problem.loss,
        problem.bounds.target,
        None if is_classifier(fitted) else fitted._range,
        len(fitted.classes_) if is_classifier(fitted) else 0,
        n,
        relation,
        log_loss_cut,
        _reach(public, problem.bounds.radius(p)),
    )
    evaluator = Evaluator(names, setting, level)
    budget = Budget.for_records(epsilon, delta, n)
    plan = evaluator.plan(p, budget)
    plan.require_drawable()
    warn_of_delta(plan)
    session = Session("the evaluation", randomness_of(random_state), resolved(ledger, None), verbose)
    with np.errstate(all="ignore"), session.progress(plan):
        records = table.records_in(problem, constant=0.0)
        session.reserve(plan, partial(_planned, evaluator, p, budget), records.require_readable)
        estimates = evaluator.run(plan, session.curator(records, relation))
    digest = hashlib.sha256(public.coef.tobytes() + public.intercept.tobytes()).hexdigest()
    facts: dict[str, object] = {
        "model": f"{type(fitted).__name__}, coefficients with SHA-256 {digest}",
        "bounds": str(problem.bounds),
        **session.close(plan),
    }
    if records.trusted:
        facts["trusted"] = records.trusted
    guarantee = guarantee_of(plan, session.randomness, facts)
    return Evaluation(type(fitted).__name__, estimates, plan, guarantee)


def _names(metric: object) -> tuple[str, ...]:
    """The metrics by their names."""
    names = (metric,) if isinstance(metric, str) else metric
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise strict.wrong("metric", metric, f"the name of a metric or a list of names: {', '.join(METRICS)}")
    return tuple(names)


def _planned(evaluator: Evaluator, n_features: int, budget: Budget, epsilon: float) -> EvaluationPlan:
    return evaluator.plan(n_features, Budget(epsilon, budget.delta))


def _reach(model: PublicModel, radius: float) -> float:
    """The largest margin that rows of this norm can have, at most 6."""
    largest = float(np.max(np.linalg.norm(model.coef, axis=1) * radius + np.abs(model.intercept)))
    return min(largest, _FARTHEST) if 0 < largest < math.inf else _FARTHEST


def _read(model: Any, X: object, y: object) -> tuple[Any, NumericTable]:
    """The fitted estimator and its table."""
    check_is_fitted(model)
    if isinstance(model, PrivatePipeline):
        if y is not None:
            raise ValueError("y must be left out: the schema names the column that holds the targets")
        if model.schema_.beside.has_more:
            raise UnsupportedProblem(
                "scores are of records: schemas with weights, offsets, exposures or units have no scores"
            )
        if isinstance(X, EncodedTable):
            y, X = X.target, X.rows
        elif isinstance(X, EncodedSource):
            pass
        elif is_dask(X):
            y = by_blocks(model.schema_.read_target, X)
            X = encoded(model.schema_, X, null=False)
        else:
            rows = encoded(model.schema_, X, targets=True, null=False)
            X, y = rows, None if isinstance(rows, Source) else model.schema_.read_target(X)
        model = model.estimator_
    if not isinstance(model, PrivateGLM):
        raise ValueError(f"model must be an estimator of dpglm, got a {type(model).__name__}")
    codes: Codes = partial(codes_among, model.classes_) if is_classifier(model) else numeric_target
    return model, _table(model, X, y, codes)


def _table(model: Any, X: object, y: object, codes: Codes) -> NumericTable:
    source: Source | None
    if is_dask(X):
        source = DaskTable(X, y)
        if source.n_features != model.n_features_in_:
            raise ValueError(f"X has {source.n_features} features, the model has {model.n_features_in_}")
        return NumericTable(source, codes=codes)
    source = source_like(model, X, y if isinstance(y, str) else None)
    if source is None:
        if y is None:
            raise ValueError("y must be given: the targets, or the name of the column of X that holds them")
        rows, y = column_apart(X, y)
        table: Table = numeric_table(copy(model), rows, reset=False, missing=True)
        targets = codes(y)
        check_consistent_length(table, targets)
        return NumericTable(as_block(table), RecordColumns(targets))
    if y is None and not source.has_targets:
        raise ValueError("y must be given: the targets, or the name of the column of X that holds them")
    return NumericTable(source, RecordColumns(column_in_memory(source, y, codes)), codes)


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
    table = _read_cells(kinds, X)
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
            plan, partial(_planned_check, query, budget, relation, problem.unit), records.require_readable
        )
        shares = Checker(kinds.names, query).run(plan, session.curator(records, relation))
    digest = hashlib.sha256(schema.to_toml().encode()).hexdigest()
    facts: dict[str, object] = {"schema": f"{len(schema.columns)} declared columns, SHA-256 {digest}"}
    facts |= session.close(plan)
    if records.trusted:
        facts["trusted"] = records.trusted
    return Check(shares, plan, guarantee_of(plan, session.randomness, facts))


def _planned_check(
    query: CellCounts, budget: Budget, neighbours: Neighbours, unit: str, epsilon: float
) -> CheckPlan:
    return CheckPlan.of(query, Budget(epsilon, budget.delta), neighbours, unit)


def _read_cells(kinds: KindSchema, X: Any) -> NumericTable:
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
