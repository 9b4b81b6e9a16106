"""What all estimators share: from a table to coefficients, through problem, plan and curator."""

from __future__ import annotations

import math
import warnings
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, ClassVar, Self, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags
from sklearn.utils.validation import check_consistent_length

from .. import solvers, strict
from ..accounting import Event
from ..arrays import Vector
from ..bounds import Bounds
from ..curator import Curator
from ..data import as_block
from ..data.by_class import ByClass
from ..data.cluster import DaskTable, is_dask
from ..data.columns import JoinedSource, RecordColumns
from ..data.piece import Stored
from ..data.raw_counts import RawRecords, TableSize
from ..data.record_set import RecordSet
from ..data.stream import Source
from ..errors import PrivacyWarning, UnsupportedProblem
from ..fit.class_weights import ClassWeights
from ..fit.columns import NAMES, declared
from ..fit.counting import CountedRecords, budget_of, counted_records, is_counted, possible_counts
from ..fit.frames import columns_apart
from ..fit.guarantee import guarantee_of, randomness_of, require_kept, warn_of_delta
from ..fit.inputs import Labels, Table, numeric_table, numeric_target
from ..fit.preludes import Before, Learner, joined, left
from ..fit.records import in_order, records_in, table_for
from ..fit.sources import Codes, given_targets, held_beside, remember_columns, source_of
from ..fit.units import LENGTHS, ranked, records_by_unit, require_shapes, sorted_by_unit
from ..losses import Loss
from ..mechanisms import Randomness
from ..penalties import Penalty
from ..plan import CountedPlan, Plan
from ..plan.private_size import count_release, spare_of
from ..privacy import Budget, Neighbours
from ..problem import Problem
from ..schema.learning import Scaled
from ..schema.raw import RawTable
from ..silence import silent
from ..solvers import AnySolver, Result, Task, record_share
from ..solvers.base import positive_count
from .charged import Charged
from .constraints import constrained
from .docs import estimator
from .inference import Inference, uncertainty_of
from .predictor import NO_COLUMNS, LinearPredictor
from .reported import Reported
from .strengths import given, warn_of_strong_l1
from .watched import watched

Targets = TypeVar("Targets", bound=Labels)


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

    _learner: ClassVar[Learner | None] = None
    """What learns facts of a schema before the fit; a pipeline sets it."""

    _class_weights = cast(ClassWeights | None, None)  # no parameter; classifiers set it

    @abstractmethod
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

    @abstractmethod
    def _loss(self) -> Loss: ...

    def _penalty(self, n_samples: int) -> Penalty:
        return given(self.penalty)

    def _bounds(self) -> Bounds:
        if self.bounds is not None and not isinstance(self.bounds, Bounds):
            raise strict.wrong("bounds", self.bounds, "a dpglm.Bounds or None")
        bounds = self.bounds or Bounds(row_norm=1.0 if self._is_private() else math.inf)
        given: RecordColumns = getattr(self, "_beside_given", NO_COLUMNS)
        if not given.has_more:
            return bounds
        return replace(bounds, weight=given.weight, offset=given.offset, rows_per_unit=given.unit)

    def _is_private(self) -> bool:
        """Whether noise will be added."""
        return Budget.for_records(self.epsilon, self.delta, 1).private

    def _problem(self, n_samples: int, n_features: int) -> Problem:
        fit_intercept = strict.flag("fit_intercept", self.fit_intercept)
        loss, penalty, bounds = self._loss(), self._penalty(n_samples), self._bounds()
        if bounds.rows_per_unit is not None and not Neighbours.from_name(self.neighbours).size_is_public:
            raise UnsupportedProblem(
                "units are for neighbours whose number is public: replace-one or zero-out, not "
                f"{self.neighbours}"
            )
        penalty = constrained(
            penalty, self.positive, self.lower, self.upper, self.monotone, n_features,
            getattr(self, "feature_names_in_", None),
        )  # fmt: skip
        unit = bounds.weight_unit
        if self._class_weights is not None:
            unit, bounds = unit * self._class_weights.largest, self._class_weights.within(bounds)
        if unit != 1:
            penalty = penalty.scaled(1 / unit)
        if bounds.offset is None:
            return Problem(loss, penalty, bounds, fit_intercept)
        if loss.kind != "regression":
            return Problem(loss, penalty, bounds, fit_intercept).with_centred_offsets()
        # The loss depends on margin minus target: an offset is taken off the target.
        (bottom, top), target = bounds.offset_range, bounds.target
        if target is not None:
            target = target[0] - top, target[1] - bottom
        return Problem(
            loss, penalty, replace(bounds, target=target, offset=None), fit_intercept, bounds.target
        )

    def _declare(self, beside: RecordColumns, log_link: bool) -> None:
        """Note the bounds of weights and offsets that are given, where none are declared."""
        self._beside_given = NO_COLUMNS
        if beside.exposure is not None and not log_link:
            raise ValueError(
                f"{type(self).__name__} has no log link, so an exposure means nothing to it: give an offset"
            )
        bounds = self._bounds()
        found = declared(bounds, beside, self._is_private())
        if found != bounds:
            self._beside_given = RecordColumns(
                weight=found.weight, offset=found.offset, unit=found.rows_per_unit
            )  # fmt: skip
        self._beside_columns = RecordColumns(*(part if isinstance(part, str) else None for part in beside))

    def _plan(self, n_samples: int, n_features: int, fits: int, resident: bool) -> Plan:
        strict.flag("resident", resident)
        return self._prepared(n_samples, n_features, fits, resident)[-1]

    @np.errstate(all="ignore")
    def _prepared(
        self, n_samples: int, n_features: int, fits: int, resident: bool
    ) -> tuple[Problem, AnySolver, Plan]:
        """All that is decided before a record is read."""
        positive_count(n_samples=n_samples, n_features=n_features)
        strict.verbosity("verbose", self.verbose)
        neighbours = Neighbours.from_name(self.neighbours)
        budget = budget_of(self.epsilon, self.delta, n_samples, neighbours)
        problem = self._problem(n_samples, n_features)
        if budget.private and not math.isfinite(problem.radius(n_features)):
            raise ValueError("bounds must limit the norm of a row unless epsilon is infinite")
        if budget.private and problem.bounds.weight == math.inf:
            raise ValueError("bounds must limit the weight of a record unless epsilon is infinite")
        problem.start(n_features)  # refuses a penalty that is for another number of features
        before = self._before(budget, neighbours, n_samples)
        spare = spare_of(count_release(budget)) if is_counted(budget, neighbours) else 0
        rest = left(budget, before, neighbours)
        task = Task(problem, n_samples, n_features, rest, neighbours, fits, resident, spare)
        solver = solvers.get(self.solver, task)
        solvers.require_suited(solver, problem)
        plan = solver.plan_for(task).protecting(problem.unit)
        plan = joined(plan, budget, before)
        solvers.require_drawable(solver, plan)
        return problem, solver, plan

    def _before(self, budget: Budget, neighbours: Neighbours, n_samples: int) -> list[Before]:
        """What is released before the fit."""
        weights = self._class_weights
        counter = None if weights is None else weights.counter(budget, neighbours, n_samples)
        return [part for part in (self._learner, counter) if part is not None]

    def _read(
        self, X: object, y: object, targets_of: Callable[[object], Targets], beside: RecordColumns
    ) -> tuple[Table | Source | RawTable, Targets | None, RecordColumns]:
        """X as a table of floats or a source, as many targets, and what stands beside them.

        These are None if a source gives them itself.
        """
        if isinstance(X, RawTable):
            if beside.unit is not None:
                raise UnsupportedProblem("a schema with facts that are still to be learnt takes no units")
            self.n_features_in_ = X.shape[1]
            return X, None, NO_COLUMNS
        if is_dask(X):
            if beside.unit is not None:
                raise UnsupportedProblem(
                    "units are not for Dask collections: records of one person may lie in several of their "
                    "blocks. Store the table sorted by that column, as Parquet, and give the pyarrow data set"
                )
            table_of_blocks = DaskTable(X, y, beside)
            remember_columns(self, table_of_blocks)
            return table_of_blocks, None, NO_COLUMNS
        source = source_of(X, y if isinstance(y, str) else None, beside)
        if y is None and not (source is not None and source.has_targets):
            raise ValueError(
                f"This {type(self).__name__} estimator requires y to be passed, but the target y is None."
            )
        if source is not None:
            found = given_targets(source, y, targets_of, beside.unit is not None)
            held = held_beside(source, beside)
            if beside.unit is not None and not isinstance(beside.unit, str):
                ids = ranked(beside.unit)[0]
                if len(ids) != source.n_samples:
                    raise ValueError(LENGTHS)
                held = held._replace(unit=np.where(ids < 0, np.nan, ids))
                if source.is_stored:
                    source, found, held = sorted_by_unit(source, found, held)
            remember_columns(self, source)
            return source, found, held
        rows, several = columns_apart(X, beside._replace(target=y))
        if several.unit is not None:
            require_shapes(rows, several)
        # An empty table is a neighbour of one with one record.
        least = 0 if self._is_counted() else 1
        table = numeric_table(self, rows, reset=True, missing=True, least=least)
        targets = targets_of(several.target)
        numbers = [
            None if part is None else numeric_target(part, name)
            for part, name in zip(several[1:4], NAMES[1:4], strict=True)
        ]
        held = RecordColumns._make([None, *numbers, None])
        if several.unit is None:
            check_consistent_length(table, targets, *held)
            return table, targets, held
        most = self._bounds().rows_per_unit
        assert most is not None
        number, table, targets, *parts = records_by_unit(
            ranked(several.unit)[0], most, table, targets, *held[1:4]
        )
        return table, targets, RecordColumns._make([None, *parts, number])

    def _curator(self, records: RecordSet, neighbours: Neighbours, randomness: Randomness) -> Curator:
        """The object that holds the records; an audit replaces it by one that records all releases."""
        return Curator(records, neighbours, randomness)

    def _solve(
        self,
        X: Table | Source | RawTable,
        codes: Vector | Codes,
        targets: Sequence[Callable[[Vector], Vector]],
        public: dict[str, str],
        held: RecordColumns,
    ) -> list[Result]:
        """Plan, run and check one fit for each target; a target maps codes to the loss's y.

        The codes of a source that gives targets are a function of the targets of a block. ``held`` are
        weights, offsets and exposures that the source does not give itself.
        """
        n, p = X.shape
        if isinstance(X, Source) and self._bounds().rows_per_unit is not None:
            n = in_order(JoinedSource(X, held) if held.unit is not None else X).n_units
        elif held.unit is not None:  # numbers of persons, in order
            n = int(held.unit[-1]) + 1 if len(held.unit) else 0
        elif self._bounds().rows_per_unit is not None:
            raise ValueError(
                "the bounds have rows_per_unit, which promises privacy to persons: give units, the id of the "
                "person of each record"
            )
        resident = X.resident if isinstance(X, RawTable) else not isinstance(X, Source) or X.is_stored
        randomness, spent = randomness_of(self.random_state), Counter[Event]()
        counted = self._counted(X, codes, len(targets), resident, randomness, held)
        if counted is not None:
            n, spent = counted.n_records, counted.spent
        problem, solver, plan = self._prepared(n, p, len(targets), resident)
        if plan.hopeless is not None and counted is None and self._spends(randomness.secure):
            raise UnsupportedProblem(plan.hopeless)
        warn_of_delta(plan)
        if plan.warning is not None:
            warnings.warn(plan.warning, PrivacyWarning, stacklevel=3)
        weights = self._class_weights
        useless = None if weights is None else weights.warning(plan)
        if useless is not None:
            warnings.warn(useless, PrivacyWarning, stacklevel=3)
        if self.verbose:
            print(plan)
        warn_of_strong_l1(problem, p)
        results = []
        # A warning about a number would reveal something about a record.
        with np.errstate(all="ignore"), watched(plan, self.verbose):
            table = table_for(X, codes, solver, plan, problem)
            most = 0 if counted is None else plan.table_size
            records = self._records(table, codes, problem, held, n, most)
            if counted is None:
                paid = self._reserved(
                    plan,
                    randomness.secure,
                    lambda it: it._plan(n, p, len(targets), resident),
                    records.require_readable,
                )
            else:
                paid = counted.paid
            if isinstance(records, RawTable):
                table, codes, logged = self._learnt(plan, records, codes, randomness)
                spent += logged
                records = self._records(table, codes, problem, held, n, most)
            assert isinstance(records, RecordSet)
            if weights is not None:
                if weights.factors is None:
                    counting = self._curator(records, plan.neighbours, randomness)
                    self._class_weights = weights = weights.found(plan, counting)
                    spent += counting.spent
                    if not plan.budget.private:  # the largest weight is known now
                        problem, solver, plan = self._prepared(n, p, len(targets), resident)
                targets = [ByClass(target, weights.shares) for target in targets]
                public = public | {"class weights": str(weights)}
            for target in targets:
                curator = self._curator(records.with_target(target), plan.neighbours, randomness)
                results.append(solver.run(plan, problem, curator))
                spent += curator.spent
        require_kept(type(self).__name__, plan, spent)
        if paid is not None:
            paid.commit()
            public = public | {"ledger": paid.words}
        if not plan.budget.private and any(result.steps >= plan.steps for result in results):
            warnings.warn(
                f"{plan.solver} took all of its steps without noise and may not have reached the minimum",
                ConvergenceWarning,
                stacklevel=3,
            )
        self._fitted_problem = problem
        self._chosen = [result.chosen for result in results]
        self._uncertainty = uncertainty_of(results)
        gaps = [result.gap for result in results if result.gap is not None]
        if gaps:
            self.gap_ = max(gaps)
        elif hasattr(self, "gap_"):
            del self.gap_
        self.plan_ = plan
        trusted = {"trusted": records.trusted} if records.trusted else {}
        stated = {
            "bounds": str(problem.declared_bounds),
            "loss": repr(problem.loss),
            "penalty": repr(problem.penalty),
        }
        counted_share = None
        if plan.budget.private:
            shares = [result.records for result in results]
            shares.append(None if self._class_weights is None else self._class_weights.records)
            found = record_share.combined([share for share in shares if share is not None])
            counted_share = record_share.in_words(found, plan.unit)
            small = record_share.warning(found)
            if small is not None:
                warnings.warn(small, PrivacyWarning, stacklevel=3)
        self.privacy_ = guarantee_of(plan, randomness, {**stated, **public, **trusted}, counted_share)
        return results

    def _records(
        self, table: Stored | Source | RawTable, codes: Vector | Codes, problem: Problem, held: RecordColumns,
        n_units: int = 0, most: int = 0,
    ) -> RecordSet | RawTable:  # fmt: skip
        """The records of a table, inside of the problem's bounds; a table that is unlearnt stays one."""
        if isinstance(table, RawTable):
            return table
        declared = self._bounds()
        beside = declared.weight, declared.offset, declared.rows_per_unit
        # Weights of records are cut before those of classes multiply them.
        bounds = replace(problem.bounds, weight=declared.weight)
        return records_in(
            table, codes, replace(problem, bounds=bounds), held=held,
            is_beside=self._class_weights is not None or beside != (None,) * 3,
            folded=declared if not problem.has_offsets and declared.offset else None,
            most=most, n_units=n_units,
        )  # fmt: skip

    def _is_counted(self) -> bool:
        """Whether the number of records is private, and counted first."""
        neighbours = Neighbours.from_name(self.neighbours)
        return is_counted(budget_of(self.epsilon, self.delta, 1, neighbours), neighbours)

    def _counted(
        self, X: Table | Source | RawTable, codes: Vector | Codes, fits: int, resident: bool,
        randomness: Randomness, held: RecordColumns,
    ) -> CountedRecords | None:  # fmt: skip
        """The released number of records, where it is private, and the charge for the whole fit; else None.

        What an account pays for is checked first with plans for few and for many records, since any of them
        may follow from the count: an error must not cost it. A refusal depends on no count.
        """
        if not self._is_counted():
            return None
        p, neighbours = X.shape[1], Neighbours.from_name(self.neighbours)
        budget = budget_of(self.epsilon, self.delta, 1, neighbours)
        self._problem(1, p)  # refuses persons, for whom a count of records is not private
        if self._pays():
            kinds: dict[type[AnySolver], tuple[AnySolver, Plan, Problem]] = {}
            for n in possible_counts(count_release(budget)):
                try:
                    with silent():  # the plan of the fit may be another one
                        problem, solver, plan = self._prepared(n, p, fits, resident)
                except ValueError as error:
                    if not kinds:
                        raise
                    raise UnsupportedProblem(
                        f"the number of records is private, so the fit must be possible whatever it is, and "
                        f"if it is {n:,} it is not: {error}"
                    ) from None
                kinds[type(solver)] = solver, plan, problem
            for solver, plan, problem in kinds.values():
                table_for(X, codes, solver, plan, problem)

        def read_once() -> None:
            if isinstance(X, Source | RawTable):  # records in memory are converted already
                self._records(X, codes, self._problem(1, p), held).require_readable()

        def planned(it: PrivateGLM) -> Plan:
            return CountedPlan.of(budget_of(it.epsilon, it.delta, 1, neighbours), p)

        planned(self).require_drawable()
        paid = self._reserved(planned(self), randomness.secure, planned, read_once)
        curator = self._curator(cast(RecordSet, TableSize(X.shape[0])), neighbours, randomness)
        return counted_records(curator, count_release(budget), paid)

    def _learnt(
        self, plan: Plan, raw: RawTable, codes: Vector | Codes, randomness: Randomness
    ) -> tuple[Stored | Source, Vector | Codes, Counter[Event]]:
        """The table that is fitted once what its schema leaves open is learnt, its targets, and the price."""
        assert self._learner is not None and callable(codes)

        def curator_of(records: RawRecords) -> Curator:
            return self._curator(cast(RecordSet, records), plan.neighbours, randomness)

        self._learnt_schema, used = self._learner.run(plan, raw.records(plan.table_size), curator_of)
        scaled = Scaled.of(self._learnt_schema, raw.schema, bool(self.fit_intercept))
        rows, given = raw.encoded(scaled)
        spent = sum((curator.spent for curator in used), Counter[Event]())
        if isinstance(rows, Source):
            return rows, codes, spent
        least = 0 if plan.count is not None else 1  # as in ``_read``
        table = numeric_table(BaseEstimator(), rows, reset=True, missing=True, least=least)
        return as_block(table), codes(given), spent

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags
