"""Private scores of a fitted model on records: a release, paid for as any other."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from .. import strict
from ..data import as_block
from ..data.cluster import DaskTable, by_blocks, is_dask
from ..data.columns import RecordColumns
from ..data.stream import Source
from ..errors import UnsupportedProblem
from ..evaluation import LOG_LOSS_CUT, METRICS, Evaluation, EvaluationPlan, Evaluator
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
from ..fit.readers import Codes, column_in_memory, source_like
from ..ledger import resolved
from ..privacy import Budget, Neighbours
from ..schema.encoder import encoded
from ..schema.source import EncodedSource, EncodedTable
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
