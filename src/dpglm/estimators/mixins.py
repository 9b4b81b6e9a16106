"""Parts of estimators beside their fit: prediction, inference, reports and accounts that pay."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, is_regressor
from sklearn.utils.validation import check_is_fitted

from ..arrays import Vector
from ..data import as_data
from ..data.cluster import in_memory, is_dask, split_target
from ..data.columns import JoinedSource, RecordColumns
from ..errors import NotReleased
from ..fit.inputs import Table, column_apart, columns_apart, numeric_table
from ..fit.readers import (
    Codes,
    codes_in_block,
    column_in_memory,
    columns_in_memory,
    filled,
    nameless,
    offsets,
    source_like,
)
from ..inference import INTERCEPT, Coefficients, Summary, WaldTest
from ..ledger import Account, current_account, extract, resolved
from ..losses import LOSSES
from ..penalties import Zero
from ..plan import Plan
from ..privacy import Guarantee
from ..problem import Problem
from ..solvers import Result
from ..solvers.base import Uncertainty
from ..solvers.newton import serves

if TYPE_CHECKING:
    from ..report import Report


NO_COLUMNS = RecordColumns()
"""Nothing stands beside the rows."""


class LinearPredictor:
    """The part of an estimator that follows from its coefficients and bounds. Nothing here needs a record."""

    _fitted_problem: Problem
    n_features_in_: int
    coef_: Any
    intercept_: Any

    @abstractmethod
    def _plain(self, clip: bool) -> BaseEstimator:
        """A scikit-learn estimator with the fitted coefficients, for rows within the bounds."""

    def to_sklearn(self, clip: bool = True) -> BaseEstimator:
        """A scikit-learn estimator that predicts what this one predicts.

        Parameters
        ----------
        clip : bool
            Where the bounds can clip a row, the result is a pipeline whose first step clips rows as
            `predict` does. With False it is the bare linear model, for rows that are known to lie within
            the bounds and for formats that know no such step; it does not limit predicted targets either.
        """
        check_is_fitted(self)
        bounds = self._fitted_problem.bounds
        plain = self._plain(clip)
        if not clip or not bounds.limits_rows:
            return plain
        from sklearn.pipeline import make_pipeline  # slow to import, and seldom needed
        from sklearn.preprocessing import FunctionTransformer

        clipping = FunctionTransformer(bounds.clip, accept_sparse=True, feature_names_out="one-to-one")
        return make_pipeline(clipping.fit(np.zeros((1, self.n_features_in_))), plain)

    def sparsify(self) -> Self:
        """Store ``coef_`` as a scipy sparse matrix, one row for each output; predictions stay the same.

        Worth it where few coefficients differ from zero, as after greedy coordinate descent.
        """
        self.coef_ = sp.csr_matrix(self._rows_of_coef())
        return self

    def densify(self) -> Self:
        """Store ``coef_`` as an array again."""
        rows = self._rows_of_coef()
        self.coef_ = rows[0] if is_regressor(self) else rows
        return self

    def _rows_of_coef(self) -> Vector:
        """Coefficients as an array, one row for each output."""
        check_is_fitted(self)
        return self.coef_.toarray() if sp.issparse(self.coef_) else np.atleast_2d(self.coef_)

    def _split(self, w: Vector, n_features: int) -> tuple[Vector, float]:
        """Coefficients of one output, and the intercept of a constant feature of 1 and declared offsets."""
        features, intercept = w[:n_features], w[n_features:]
        problem = self._fitted_problem
        return features, float(intercept.sum() * problem.constant(n_features)) - problem.offset_middle

    @np.errstate(all="ignore")  # a warning about a number would reveal something about a row
    def _margins(self, X: object, beside: RecordColumns = NO_COLUMNS) -> Vector:
        """Rows, clipped into the bounds as in the fit, times the coefficients; shape (n, outputs).

        Offsets are added as they are given.
        """
        check_is_fitted(self)
        if beside.exposure is not None and self._fitted_problem.loss.kind != "count":
            raise ValueError(f"{type(self).__name__} has no log link, so an exposure means nothing to it")
        source = source_like(self, X, beside=beside)
        if source is None:
            rows, several = columns_apart(X, beside)
            found = self._margins_of(numeric_table(self, rows, reset=False, missing=False))
            return found + _offsets(several, len(found)) if several.has_offset else found
        plain = nameless(self)
        columns = columns_in_memory(source, beside)
        if columns.has_more:
            source = JoinedSource(source, columns)

        def margins_of(rows: object, found: object) -> Vector:
            here = self._margins_of(numeric_table(plain, rows, reset=False, missing=False))
            if not (isinstance(found, RecordColumns) and (beside.has_offset or source.gives_offsets)):
                return here
            read = found if source.gives_offsets else found.where(beside)
            return here + _offsets(read, len(here))

        margins: Vector = filled(source, np.empty((source.n_samples, len(self._rows_of_coef()))), margins_of)
        return margins

    def _margins_of(self, table: Table) -> Vector:
        rows = as_data(table, np.zeros(table.shape[0]), self._fitted_problem.bounds)
        products = np.column_stack([rows.margins(w) for w in self._rows_of_coef()])
        margins: Vector = products + np.ravel(self.intercept_)
        return margins

    def _read_again(self, X: object, y: object, codes: Codes) -> tuple[object, Vector]:
        """What `predict` takes of X, and the numbers of the targets, for a score."""
        check_is_fitted(self)
        X, y = split_target(X, y)
        if is_dask(X):
            return X, codes(in_memory(y))
        source = source_like(self, X, y if isinstance(y, str) else None)
        if source is None:
            X, y = column_apart(X, y)
            return X, codes(y)
        targets = column_in_memory(source, y, codes)
        if targets is None:
            targets = filled(
                source, np.empty(source.n_samples),
                lambda _, part: codes_in_block(
                    part.target if isinstance(part, RecordColumns) else part, codes
                ),
            )  # fmt: skip
        return source, targets


def _offsets(columns: RecordColumns, count: int) -> Vector:
    """Offsets of rows to predict, in a column."""
    return offsets(columns, np.zeros(count))[:, None]


def uncertainty_of(results: Sequence[Result]) -> tuple[Uncertainty, ...] | None:
    """What the fits of all classes state of their errors, if they do."""
    stated = tuple(result.uncertainty for result in results if result.uncertainty is not None)
    return stated if len(stated) == len(results) else None


class Inference:
    """The part of an estimator that states how far its coefficients may be off.

    Nothing here reads a record. Only `Newton`, without a penalty, releases what is needed; fits by other
    solvers refuse with `NotReleased`, which is an AttributeError, so that ``hasattr`` works.
    """

    _fitted_problem: Problem
    _uncertainty: tuple[Uncertainty, ...] | None
    plan_: Plan
    privacy_: Guarantee
    n_features_in_: int
    intercept_: Any

    @abstractmethod
    def _rows_of_coef(self) -> Vector: ...

    @property
    def covariance_(self) -> Vector:
        """Covariance of the coefficients: features first, then the intercept if there is one."""
        return _stacked([block.covariance for block in self._blocks("covariance_")])

    @property
    def privacy_covariance_(self) -> Vector:
        """The part of ``covariance_`` that noise causes."""
        return _stacked([block.privacy for block in self._blocks("privacy_covariance_")])

    @property
    def standard_errors_(self) -> Vector:
        """Standard errors of the coefficients, from sampling and noise; infinite if not determined."""
        return _stacked([block.standard_errors for block in self._blocks("standard_errors_")])

    @property
    def determined_(self) -> bool | Vector:
        """Whether noise left enough of the records to state intervals; of each class if there are several."""
        determined = [block.determined for block in self._blocks("determined_")]
        return determined[0] if len(determined) == 1 else np.array(determined)

    def confidence_intervals(self, level: float = 0.95) -> Vector:
        """Confidence intervals of the coefficients; (-inf, inf) if the fit is not determined.

        Parameters
        ----------
        level : float
            Probability that an interval covers what its coefficient estimates.

        Returns
        -------
        array of shape (d, 2) or (n_classes, d, 2)
            Lower and upper ends: features first, then the intercept if there is one.
        """
        blocks = self._blocks("confidence_intervals()")
        return _stacked([block.intervals(level) for block in blocks])

    def wald_test(self, hypothesis: object, values: ArrayLike | None = None) -> WaldTest | list[WaldTest]:
        """Wald's test that coefficients are 0, or of other linear conditions.

        Parameters
        ----------
        hypothesis : str, int, list of these, or array of shape (k, d)
            A feature by name or index, or several, which are tested jointly; or a matrix R with a column for
            each coefficient, for the conditions R w = values. The intercept is the last coefficient, and has
            the name "intercept".
        values : array of shape (k,), optional
            What the conditions state; by default 0.

        Returns
        -------
        WaldTest or list of WaldTest
            With more than two classes one test for each.
        """
        tests = [block.wald_test(hypothesis, values) for block in self._blocks("wald_test()")]
        return replace(tests[0], outcome="") if len(tests) == 1 else tests

    def summary(self, level: float = 0.95) -> Summary:
        """The table of coefficients with standard errors, p-values and intervals, and the promise.

        Parameters
        ----------
        level : float
            Probability that an interval covers what its coefficient estimates.
        """
        blocks = self._blocks("summary()")
        plan = self.plan_
        return Summary(
            type(self).__name__, plan.solver, plan.n_records, plan.n_features, blocks, self.privacy_, level
        )

    def deviance(self) -> tuple[float, float] | list[tuple[float, float]]:
        """The deviance and the standard error of its noise, if the fit paid for them.

        With more than two classes one pair for each.
        """
        pairs = [block.deviance for block in self._blocks("deviance()")]
        paid = [pair for pair in pairs if pair is not None]
        if len(paid) < len(pairs):
            raise NotReleased(
                "deviance is a statistic of the records that nobody paid for in this fit: "
                "solver=Newton(deviance_share=0.05) spends a twentieth of the budget on it"
            )
        return paid[0] if len(paid) == 1 else paid

    def _blocks(self, asked: str) -> tuple[Coefficients, ...]:
        """Coefficients with their errors on the scale of the columns; one block for each fit."""
        check_is_fitted(self)
        stated, problem = getattr(self, "_uncertainty", None), self._fitted_problem
        if stated is None:
            raise NotReleased(
                f"this {type(self).__name__} has no {asked}: {self.plan_.solver} with penalty "
                f"{problem.penalty!r} does not release how far coefficients may be off. {_way_out(problem)}"
            )
        names = tuple(getattr(self, "feature_names_in_", [f"x{j}" for j in range(self.n_features_in_)]))
        rows, intercepts = self._rows_of_coef(), np.ravel(self.intercept_)
        scale = problem.join(np.ones(len(names)), problem.constant(self.n_features_in_))
        if problem.fit_intercept:
            names, rows = (*names, INTERCEPT), np.column_stack([rows, intercepts])
        scales = np.outer(scale, scale)
        return tuple(
            Coefficients(
                names, values, scales * one.covariance, scales * one.privacy, one.determined, one.reason,
                one.estimand, one.deviance, outcome,
            )
            for values, one, outcome in zip(rows, stated, self._outcomes(), strict=True)
        )  # fmt: skip

    def _outcomes(self) -> list[str]:
        """What the coefficients of each fit are for."""
        classes = getattr(self, "classes_", None)
        if classes is None:
            return [""]
        if len(classes) == 2:
            return [f"{classes[1]} against {classes[0]}"]
        return [f"{label} against the rest" for label in classes]


def _way_out(problem: Problem) -> str:
    """What releases how far the coefficients of a problem may be off."""
    if serves(problem.loss, Zero()):
        return (
            "solver=Newton() of dpglm.solvers does, without a penalty: "
            'C=float("inf"), alpha=0, penalty=None or LinearRegression'
        )
    served = sorted({loss.name for loss in LOSSES if serves(loss(), Zero())})
    return f"Newton of dpglm.solvers does, but not for the {problem.loss.name} loss: for {', '.join(served)}"


def _stacked(arrays: Sequence[Vector]) -> Vector:
    """The only array, or all of them along a new first axis."""
    return arrays[0] if len(arrays) == 1 else np.stack(arrays)


class Reported:
    """The part of an estimator that makes its report. Nothing here reads a record."""

    def report(
        self,
        path: str | Path | None = None,
        *,
        level: float = 0.95,
        evaluation: Any = None,
        audit: Any = None,
        account: Account | str | None = None,
    ) -> Report:
        """The report of the fit: promise, releases, coefficients and what is not covered.

        Everything in it was released by the fit or is public, so it may be shown to everybody who may see the
        model.

        Parameters
        ----------
        path : str or Path, optional
            A file to write: .html for people, .json for machines, .md for a model card, .yaml for an entry of
            the OpenDP deployments registry.
        level : float
            Probability with which an interval covers its coefficient.
        evaluation : Evaluation, optional
            Private scores to be shown, from `dpglm.evaluate`.
        audit : dpglm.audit.Report, optional
            What an audit found.
        account : Account or str, optional
            The account of a ledger whose journal is to be shown, or its address.

        Returns
        -------
        Report
            With ``html()``, ``json()``, ``model_card()`` and ``registry_entry()``.

        Examples
        --------
        >>> from dpglm import LogisticRegression
        >>> from dpglm.datasets import load_adult
        >>> adult = load_adult()
        >>> model = LogisticRegression(epsilon=1.0, classes=[-1, 1]).fit(adult.X, adult.y)
        >>> report = model.report()
        >>> report.facts["measures"]["guess"]["right"] < 0.54
        True
        """
        from ..report import Report, statement

        check_is_fitted(self)
        journal = None if account is None else extract(account)
        report = Report(statement(self, level, evaluation=evaluation, audit=audit, ledger=journal))
        if path is not None:
            report.save(path)
        return report


_CARRIED = "_carried_ledger"


class Charged:
    """What estimators know of ledgers: an address, never a connection or a secret.

    An estimator that names no ledger and is sent to another process, or cloned there, inside a block
    ``with account:`` carries the address of that account with it.
    """

    ledger: str | None
    epsilon: float

    @property
    def _account(self) -> str | None:
        """Address of the account that pays for the next fit, if one does."""
        return resolved(self.ledger, vars(self).get(_CARRIED))

    def _to_carry(self) -> dict[str, str]:
        address = None
        if self.ledger is None:
            address = current_account() or vars(self).get(_CARRIED)
        return {_CARRIED: address} if address else {}

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()  # type: ignore[assignment]
        return {**state, **self._to_carry()}

    def __sklearn_clone__(self) -> Self:
        made: Self = super().__sklearn_clone__()  # type: ignore[misc]
        vars(made).update(self._to_carry())
        return made
