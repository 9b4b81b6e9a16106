"""What fitted linear models share: coefficients in both forms, margins of rows, and a plain model."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, is_regressor
from sklearn.utils.validation import check_is_fitted

from ..arrays import Vector
from ..data import as_data
from ..data.cluster import in_memory, is_dask, named_apart
from ..data.columns import JoinedSource, RecordColumns
from ..fit.columns import offsets
from ..fit.frames import column_apart, columns_apart
from ..fit.inputs import Table, numeric_table
from ..fit.sources import (
    Codes,
    codes_in_block,
    column_in_memory,
    columns_in_memory,
    filled,
    nameless,
    source_like,
)
from ..problem import Problem

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
        held = columns_in_memory(source, beside)
        if held.has_more:
            source = JoinedSource(source, held)

        def margins_of(rows: object, found: object) -> Vector:
            here = self._margins_of(numeric_table(plain, rows, reset=False, missing=False))
            if not (isinstance(found, RecordColumns) and (beside.has_offset or source.gives_offsets)):
                return here
            return here + _offsets(found, len(here))

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
        X, y = named_apart(X, y)
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
