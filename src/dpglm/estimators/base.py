"""What all estimators share: from a table to coefficients, through a recipe that is run."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils import Tags

from .. import strict
from ..bounds import Bounds
from ..curator import Curator
from ..data.columns import RecordColumns
from ..data.record_set import RecordSet
from ..fit import (
    FitTable,
    Outcome,
    Prelude,
    Presentation,
    Recipe,
    Session,
    TableReader,
    TargetMap,
    TargetReader,
    budget_of,
    of_offsets,
    randomness_of,
    run,
    with_default_bounds,
)
from ..losses import Loss
from ..mechanisms import Randomness
from ..penalties import Penalty
from ..privacy import Budget, Neighbours
from ..problem import Problem
from ..solvers import AnySolver
from .mixins import Charged, Inference, LinearPredictor, Reported, uncertainty_of
from .parameters import constrained, estimator, given
from .sklearn_checks import all_or_nothing


@dataclass(frozen=True)
class Targets:
    """How a fit sees its targets.

    Parameters
    ----------
    loss : Loss
    maps : tuple of callable
        For each fit the map from codes to targets of the loss.
    presentations : tuple of Presentation
    preludes : tuple of Prelude
    facts : tuple of (str, str)
        What the guarantee states of them.
    """

    loss: Loss
    maps: tuple[TargetMap, ...]
    presentations: tuple[Presentation, ...] = ()
    preludes: tuple[Prelude, ...] = ()
    facts: tuple[tuple[str, object], ...] = ()


@estimator
class PrivateGLM(Charged, LinearPredictor, Inference, Reported, BaseEstimator):
    """Common part of the estimators; subclasses say their loss and targets, and may choose the penalty."""

    epsilon: float = field(default=1.0, kw_only=False)
    delta: float | None = None
    penalty: Penalty | None = None
    solver: str | AnySolver = "auto"
    bounds: Bounds | None = None
    neighbours: str = "replace-one"
    fit_intercept: bool = True
    positive: bool = False
    lower: ArrayLike | None = None
    upper: ArrayLike | None = None
    monotone: Mapping[Any, Any] | None = None
    random_state: int | np.random.RandomState | np.random.Generator | None = None
    verbose: int = 0
    ledger: str | None = None

    @all_or_nothing
    def fit(
        self, X: object, y: object = None, sample_weight: object = None, offset: object = None,
        exposure: object = None, units: object = None,
    ) -> Self:  # fmt: skip
        """Fit to private records.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            An array, sparse table or DataFrame; or a table that is read block by block: a large memory map, a
            pyarrow data set, a polars LazyFrame, a DuckDB relation or a `dpglm.Stream`.
        y : array of shape (n_samples,) or str
            Targets, or the name of the column of X that holds them. Not needed for a `dpglm.Stream` whose
            blocks are pairs of rows and targets.
        sample_weight : array of shape (n_samples,) or str, optional
            Weight of each record, or the name of a column of X; cut to [0, weight] of the bounds. The
            objective is sum of weight * loss over n_samples, plus the penalty.
        offset : array of shape (n_samples,) or str, optional
            A number that is added to the linear predictor of each record; cut to the range of the bounds.
        exposure : array of shape (n_samples,) or str, optional
            For models with a log link: its logarithm is added to the offset.
        units : array of shape (n_samples,) or str, optional
            Id of the person whose record each is, or the name of a column of X. The promise is then one to
            persons: neighbours differ in all records of one of them. A person counts as one record, the mean
            of its own: the objective is a mean over persons, whose number is public. At most
            ``rows_per_unit`` of the bounds, by default 1,000, of the records of a person count, the first
            ones. A record without an id counts for nothing.
        """
        columns = RecordColumns(weight=sample_weight, offset=offset, exposure=exposure, unit=units)
        return self._fit(X, y, columns)

    @abstractmethod
    def _loss(self) -> Loss: ...

    @abstractmethod
    def _targets(self, n_classes: int | None = None) -> Targets:
        """How a fit sees targets, as far as parameters tell."""

    @abstractmethod
    def _read_targets(self, table: FitTable, bounds: Bounds) -> tuple[FitTable, Targets]:
        """The table with numbers for its targets, and how a fit sees them."""

    @abstractmethod
    def _target_reader(self) -> TargetReader:
        """What checks targets in memory."""

    @abstractmethod
    def _keep_coefficients(self, outcome: Outcome) -> None: ...

    def _penalty(self, n_samples: int) -> Penalty:
        return given(self.penalty)

    def _constrained_penalty(self, n_features: int, n_samples: int) -> Penalty:
        names = getattr(self, "feature_names_in_", None)
        return constrained(
            self._penalty(n_samples), self.positive, self.lower, self.upper, self.monotone, n_features, names
        )

    def _bounds(self) -> Bounds:
        if self.bounds is not None and not isinstance(self.bounds, Bounds):
            raise strict.wrong("bounds", self.bounds, "a dpglm.Bounds or None")
        return self.bounds or Bounds(row_norm=1.0 if self._is_private() else math.inf)

    def _is_private(self) -> bool:
        """Whether noise will be added."""
        return Budget.for_records(self.epsilon, self.delta, 1).private

    def _recipe(
        self, n_samples: int, n_features: int, targets: Targets, *, resident: bool = True,
        bounds: Bounds | None = None, preludes: tuple[Prelude, ...] = (),
    ) -> Recipe:  # fmt: skip
        """The fit to a table of this size, as a value."""
        strict.verbosity("verbose", self.verbose)
        fit_intercept = strict.flag("fit_intercept", self.fit_intercept)
        bounds = self._bounds() if bounds is None else bounds
        return Recipe(
            targets.loss, partial(self._constrained_penalty, n_features), bounds, fit_intercept, self.epsilon,
            self.delta, Neighbours.from_name(self.neighbours), self.solver, n_samples, n_features,
            strict.flag("resident", resident), targets.maps,
            (*targets.presentations, *of_offsets(targets.loss, bounds, fit_intercept)),
            (*preludes, *targets.preludes), targets.facts,
        )  # fmt: skip

    def _problem(
        self, n_samples: int, n_features: int, bounds: Bounds | None = None, n_classes: int | None = None
    ) -> Problem:
        """The problem of a fit to a table of this size."""
        return self._recipe(n_samples, n_features, self._targets(n_classes), bounds=bounds).problem

    def _fit(self, X: object, y: object, columns: RecordColumns) -> Self:
        if columns.exposure is not None and self._loss().kind != "count":
            raise ValueError(
                f"{type(self).__name__} has no log link, so an exposure means nothing to it: give an offset"
            )
        bounds = with_default_bounds(self._bounds(), columns, self._is_private())
        self._column_names = RecordColumns(*(part if isinstance(part, str) else None for part in columns))
        reader = TableReader(self, self._target_reader(), bounds.rows_per_unit, self._counts_records())
        self._fit_table(reader.read(X, y, columns), bounds)
        return self

    def _fit_table(
        self, table: FitTable, bounds: Bounds | None = None, preludes: tuple[Prelude, ...] = ()
    ) -> Outcome:
        """Fit to a table that was read, after preludes; return what the fit released."""
        self._fitted_bounds = bounds = self._bounds() if bounds is None else bounds
        table, targets = self._read_targets(table, bounds)
        n = 1 if self._counts_records() else table.size(bounds)
        recipe = self._recipe(
            n, table.shape[1], targets, resident=table.is_resident, bounds=bounds, preludes=preludes
        )
        session = Session(
            type(self).__name__, randomness_of(self.random_state), self._account, self.verbose, self._curator
        )
        outcome = run(recipe, table, session)
        self._fitted_problem, self.plan_, self.privacy_ = outcome.problem, outcome.plan, outcome.guarantee
        self._chosen = [result.chosen for result in outcome.results]
        self._uncertainty = uncertainty_of(outcome.results)
        gaps = [result.gap for result in outcome.results if result.gap is not None]
        if gaps:
            self.gap_ = max(gaps)
        elif hasattr(self, "gap_"):
            del self.gap_
        self._keep_coefficients(outcome)
        return outcome

    def _counts_records(self) -> bool:
        """Whether the number of records is private, and counted first."""
        neighbours = Neighbours.from_name(self.neighbours)
        return not neighbours.size_is_public and budget_of(self.epsilon, self.delta, 1, neighbours).private

    def _curator(self, records: RecordSet, neighbours: Neighbours, randomness: Randomness) -> Curator:
        """The object that holds the records; an audit replaces it by one that records all releases."""
        return Curator(records, neighbours, randomness)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags
