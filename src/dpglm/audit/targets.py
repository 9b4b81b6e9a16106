"""What is audited, a row of numbers for each run on one of two neighbouring tables; and such tables."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from ..arrays import Vector
from ..curator import Curator
from ..data import as_data
from ..data.record_set import RecordSet
from ..data.stream import Stream
from ..data.streamed import StreamedRecords
from ..estimators.base import PrivateGLM
from ..ledger import suspended
from ..mechanisms import Mechanism, Randomness
from ..mechanisms.sampling import Poisson
from ..plan import Plan
from ..privacy import Budget, Neighbours
from ..problem import Problem
from ..solvers import AuditCase
from .findings import Claim
from .transcript import (
    Recorder,
    Replayer,
    TranscriptMismatch,
    differing,
    differing_releases,
    log_likelihood,
    separate,
)

Holding = Callable[[Vector, Vector, Problem, int], RecordSet]
"""From rows, targets and the most rows that there can be to records inside the bounds of a problem."""

_ROWS_A_BLOCK, _MOST_BLOCKS = 3, 8


def in_memory(X: Vector, y: Vector, problem: Problem, most: int = 0) -> RecordSet:
    """Resident records."""
    return as_data(X, y, problem.bounds, problem.constant(X.shape[1]), most)


def on_a_stream(X: Vector, y: Vector, problem: Problem, most: int = 0) -> RecordSet:
    """Records that are read in small blocks."""
    units = len(np.unique(y[:, 3])) if problem.has_units else None
    n, p = X.shape
    return streamed(Stream(lambda: blocks(X, y), n, p, n_units=units), problem, most)


def blocks(X: Vector, y: Vector) -> Iterator[tuple[Vector, Vector]]:
    """The rows and targets of small blocks: of three rows, or of more where these would be many blocks."""
    size = max(_ROWS_A_BLOCK, -(-len(y) // _MOST_BLOCKS))
    for start in range(0, len(y), size):
        here = slice(start, start + size)
        yield X[here], y[here]


def streamed(stream: Stream, problem: Problem, most: int = 0) -> StreamedRecords:
    """The records of a stream whose blocks are numbers already."""
    constant = problem.constant(stream.n_features)
    return StreamedRecords(stream, _as_they_are, problem.bounds, constant, most=most, n_units=stream.n_units)


def _as_they_are(rows: object, targets: object) -> tuple[object, Vector]:
    return rows, targets  # type: ignore[return-value]  # blocks of this file


Table = tuple[ArrayLike, ArrayLike]
"""X, which may be sparse, and y."""

Record = tuple[ArrayLike, object]
"""A row, which may be sparse, and its target."""

_BYSTANDERS = 19


@dataclass(frozen=True)
class Tables:
    """(X, y) of two neighbouring tables, the relation between them, and the finite rows that differ."""

    first: Table
    second: Table
    relation: str
    canaries: tuple[Vector, ...] = ()

    @classmethod
    def with_record(
        cls, X: ArrayLike, y: ArrayLike, first: Record, second: Record | None, relation: str | None = None
    ) -> Tables:
        """Bystanders with one more record on top; ``second=None`` leaves it out."""
        rows = X if sp.issparse(X) else np.asarray(X, dtype=np.float64)
        stack = sp.vstack if sp.issparse(X) else np.vstack
        targets = np.asarray(y)
        tables = [
            (rows, targets)
            if record is None
            else (stack([np.atleast_2d(dense(record[0])), rows]), np.append(np.array([record[1]]), targets))
            for record in (first, second)
        ]
        rows_in_question = (np.ravel(dense(record[0])) for record in (first, second) if record is not None)
        canaries = tuple(row for row in rows_in_question if np.isfinite(row).all())
        words = "left-out" if second is None else "replace-one"
        return cls(tables[0], tables[1], relation or words, canaries)


def dense(row: ArrayLike) -> Vector:
    """A row as an array, also from a sparse one."""
    if isinstance(row, sp.sparray | sp.spmatrix):
        row = row.toarray()
    return np.asarray(row, dtype=np.float64)


def worst_tables(estimator: PrivateGLM) -> Tables:
    """Neighbouring tables that the releases of an estimator of dpglm should tell apart best.

    The record has the full norm that the bounds allow and one extreme target in the first table, the
    other extreme in the second, so that its gradients are opposed in every coordinate. For zero-out it is
    null in the second table, for add-remove it is not there. Signs alternate from feature to feature: noise
    must differ between them. All other records have half that row and either target in turn, so that they
    contribute and leave the model where it starts.
    There are as many features as bounds are declared, or else two.
    """
    bounds = estimator._bounds()
    ends = bounds.feature if isinstance(bounds.feature, tuple) else (bounds.feature,)
    n_features = max((len(end) for end in ends if isinstance(end, np.ndarray)), default=2)
    # So long that clipping leaves a row in a corner, or as long as it may be.
    row = bounds.clip(1e3 * bounds.radius(n_features) * np.resize([0.8, -0.6], n_features))[0]
    low, high = _extremes(estimator)
    targets = np.resize(np.array([low, high]), _BYSTANDERS)
    relation = Neighbours(estimator.neighbours)
    others: dict[Neighbours, Record | None] = {
        Neighbours.REPLACE_ONE: (row, low),
        Neighbours.ZERO_OUT: (np.full(n_features, np.nan), low),
        Neighbours.ADD_REMOVE: None,
    }
    other = others[relation]
    return Tables.with_record(np.tile(row / 2, (_BYSTANDERS, 1)), targets, (row, high), other, relation.value)


def _extremes(estimator: PrivateGLM) -> tuple[object, object]:
    """Two targets as far apart as the estimator allows."""
    bounds = estimator._bounds()
    if estimator._loss().kind == "classification":
        classes = getattr(estimator, "classes", None)
        labels = np.unique([-1, 1] if classes is None else classes)
        return labels[0], labels[-1]
    return bounds.target if bounds.target is not None else (-1.0, 1.0)


_COMPARED_WHOLE = 20


class Target(Protocol):
    """What an audit needs to know."""

    @property
    def subject(self) -> str: ...
    @property
    def views(self) -> dict[str, slice]:
        """Names of what is seen, and the columns of a run that belong to each."""
        ...

    @property
    def neighbours(self) -> str: ...
    @property
    def claim(self) -> Claim: ...
    def run(self, second: bool, randomness: Randomness) -> ArrayLike:
        """The numbers that one run puts out, on the first or on the second table."""
        ...


@dataclass(frozen=True)
class MechanismTarget:
    """A mechanism that releases one of two answers at distance 1, some times over."""

    mechanism: Mechanism
    case: str
    answers: tuple[object, object]
    repeats: int
    claim: Claim
    views: ClassVar[dict[str, slice]] = {"output": slice(None)}
    neighbours: str = "distance 1"

    @property
    def subject(self) -> str:
        times = f"{self.repeats} x " if self.repeats > 1 else ""
        return f"{self.mechanism.name} mechanism: {times}{self.case}"

    def run(self, second: bool, randomness: Randomness) -> Vector:
        released = [
            self.mechanism.release(self.answers[second], 1.0, randomness) for _ in range(self.repeats)
        ]
        first, other = (
            sum(self.mechanism.log_likelihood(value, answer, 1.0) for value in released)
            for answer in self.answers
        )
        return np.append(first - other, np.ravel(released))


@dataclass
class TranscriptTarget:
    """A solver of which every release is seen.

    The row of a run has its log-likelihood ratio first, then the coefficients and every released number.
    Every run is replayed over the other table; ``mismatches`` names what differs then, of all that a run
    returns, leaves behind in its solver and asks the curator for. The last columns are the coefficients of
    another run, with the curator of an ordinary fit, which may release in compiled blocks: they are audited
    alone, as the model. ``holding`` makes the records of both tables.
    """

    case: AuditCase
    plan: Plan
    holding: Holding = in_memory
    mismatches: list[str] = field(default_factory=list, init=False)
    _runs: int = field(default=0, init=False)

    @classmethod
    def of(
        cls, case: AuditCase, budget: Budget, neighbours: Neighbours, holding: Holding = in_memory
    ) -> TranscriptTarget:
        """The target with the plan that the case's solver makes for a budget and such tables."""
        n, p = case.units, case.bystanders[0].shape[1]
        resident = holding is in_memory
        return cls(case, case.solver.plan(case.problem, n, p, budget, neighbours, resident=resident), holding)

    @property
    def subject(self) -> str:
        return (
            f"{self.plan.solver}: "
            + ", ".join(
                f"{release.count} x {line.query}"
                + (" on batches" if isinstance(release.sampling, Poisson) else "")
                for release in self.plan.releases
                for line in release.lines
            )
            + (", of persons" if self.case.problem.has_units else "")
            + (", on a stream" if self.holding is not in_memory else "")
        )

    @property
    def neighbours(self) -> str:
        return self.plan.neighbours.value

    @property
    def claim(self) -> Claim:
        return Claim(self.plan.budget.epsilon, self.plan.budget.delta, self.plan.event)

    @property
    def views(self) -> dict[str, slice]:
        dimension = self.case.problem.dimension(self.plan.n_features)
        return {"model": slice(-dimension, None), "transcript": slice(0, -dimension)}

    @cached_property
    def _records(self) -> tuple[RecordSet, RecordSet]:
        """The first table and the second."""
        nothing = (np.full(self.plan.n_features, np.nan), np.zeros(self.case.bystanders[1].shape[1:]))
        replaced = self.plan.neighbours is Neighbours.REPLACE_ONE
        X, y = self.case.bystanders
        first, second = (
            self.holding(np.vstack([row, X]), _on_top(target, y), self.case.problem, 0)
            for row, target in (self.case.first, self.case.second if replaced else nothing)
        )
        if not self.plan.neighbours.size_is_public:  # the record is left out; the most there can be is public
            second = self.holding(X, y, self.case.problem, self.plan.table_size)
        return first, second

    def run(self, second: bool, randomness: Randomness) -> Vector:
        here, there = self._records[second], self._records[not second]
        recorder = Recorder(here, self.plan.neighbours, randomness)
        w, left = self._carried_out(recorder)
        plain, _ = self._carried_out(Curator(here, self.plan.neighbours, randomness))
        replayer = Replayer(there, recorder)
        ratio = 0.0
        try:
            self.mismatches.extend(differing(left, self._carried_out(replayer)[1]))
            ratio = compare_releases([(recorder, replayer)], self.mismatches)
        except TranscriptMismatch as mismatch:
            self.mismatches.append(str(mismatch))
        self.mismatches.extend(replayer.mismatches)
        self._runs += 1
        return np.concatenate([[-ratio if second else ratio], w, recorder.transcript.numbers, plain])

    def _carried_out(self, curator: Curator) -> tuple[Vector, dict[str, object]]:
        """The coefficients of a run; all that it returns, and leaves behind in the objects it was handed."""
        solver, problem, plan = separate(self.case.solver), self.case.problem, self.plan
        if self._runs < _COMPARED_WHOLE:  # copies of these take as long as a run
            problem, plan = separate(problem), separate(plan)
        result = solver.run(plan, problem, curator)
        return result.w, {"result": result, "solver": solver, "problem": problem, "plan": plan}


def _on_top(target: float | Vector, others: Vector) -> Vector:
    """The target of one record, or of all records of one person, and those of others."""
    return np.concatenate([np.atleast_2d(target) if others.ndim > 1 else [target], others])


@dataclass(frozen=True)
class ModelTarget:
    """Any estimator with ``fit``, of which the fitted model is seen."""

    estimator: Any
    tables: Tables
    claim: Claim
    view: Callable[[Any], ArrayLike] | None = None
    seeded: bool = False
    views: ClassVar[dict[str, slice]] = {"model": slice(None)}

    @property
    def _known(self) -> bool:
        return isinstance(self.estimator, PrivateGLM)

    @property
    def subject(self) -> str:
        return type(self.estimator).__name__

    @property
    def neighbours(self) -> str:
        return self.tables.relation

    def run(self, second: bool, randomness: Randomness) -> Vector:
        return self.viewed(self.fitted(second, randomness))

    def viewed(self, model: Any) -> Vector:
        """What of a model is seen: by default all of it, and what it says of the record in question."""
        if self.view is not None:
            return np.ravel(self.view(model))
        if not hasattr(model, "coef_"):
            raise ValueError(f"{self.subject} has no coef_: say by view=... what of it is to be looked at")
        w, b = np.atleast_2d(model.coef_), np.ravel(getattr(model, "intercept_", 0.0))
        said = [w @ row + b for row in self.tables.canaries]
        return np.concatenate([np.ravel(said), np.ravel(w), b])

    def fitted(
        self, second: bool, randomness: Randomness, curator: Callable[..., Curator] | None = None
    ) -> Any:
        """A copy of the estimator, fitted to one of the tables, if wanted with another kind of curator."""
        # What another library holds is not known well enough for more: its generators must go on.
        model = separate(self.estimator) if self._known else copy.copy(self.estimator)
        if self.seeded:
            model.set_params(random_state=int(randomness.integers(2**62, 1)[0]))
        if curator is not None:
            model._curator = curator
        if isinstance(model, PrivateGLM):
            model.ledger = None
        with suspended():  # these tables are made up: no account pays for them
            model.fit(*(self.tables.second if second else self.tables.first))
        return model


@dataclass(frozen=True)
class FitTarget(ModelTarget):
    """An estimator of dpglm, of which the model and every release are seen.

    Every fit is replayed over the other table; ``mismatches`` names what differs then.
    """

    views: ClassVar[dict[str, slice]] = {"transcript": slice(None)}
    mismatches: list[str] = field(default_factory=list)

    def run(self, second: bool, randomness: Randomness) -> Vector:
        recorders: list[Recorder] = []

        def record(records: RecordSet, neighbours: Neighbours, randomness: Randomness) -> Recorder:
            recorders.append(Recorder(records, neighbours, randomness))
            return recorders[-1]

        model = self.fitted(second, randomness, record)
        replayers: list[Replayer] = []

        def replay(records: RecordSet, *_: object) -> Replayer:
            replayers.append(Replayer(records, recorders[len(replayers)]))
            return replayers[-1]

        ratio = 0.0
        try:
            again = self.fitted(not second, randomness, replay)
            self.mismatches.extend(differing(_stored(model), _stored(again)))
            ratio = compare_releases(zip(recorders, replayers, strict=True), self.mismatches)
        except TranscriptMismatch as mismatch:
            self.mismatches.append(str(mismatch))
        self.mismatches.extend(name for replayer in replayers for name in replayer.mismatches)
        numbers = [recorder.transcript.numbers for recorder in recorders]
        return np.concatenate([[-ratio if second else ratio], self.viewed(model), *numbers])


@dataclass(frozen=True)
class FunctionTarget:
    """A function that runs anything on the table it is asked for, and returns what that puts out."""

    function: Callable[[bool], ArrayLike]
    claim: Claim
    subject: str
    neighbours: str
    views: ClassVar[dict[str, slice]] = {"output": slice(None)}

    def run(self, second: bool, randomness: Randomness) -> ArrayLike:
        return self.function(second)


def compare_releases(runs: Iterable[tuple[Recorder, Replayer]], mismatches: list[str]) -> float:
    """The log-likelihood ratio of all releases; adds what differs in how they are made to ``mismatches``."""
    ratio = 0.0
    for recorder, replayer in runs:
        mismatches.extend(differing_releases(recorder.answers, replayer.answers))
        ratio += log_likelihood(recorder.transcript, recorder.answers)
        ratio -= log_likelihood(recorder.transcript, replayer.answers)
    return ratio


def _stored(model: object) -> dict[str, object]:
    """All attributes of a model but the curator of the audit itself and its seed."""
    return {name: value for name, value in vars(model).items() if name not in ("_curator", "random_state")}
