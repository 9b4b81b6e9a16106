"""Things that can be audited: each puts out a row of numbers for a run on one of two neighbouring tables."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike

from ..arrays import Vector
from ..curator import Curator
from ..data.record_set import RecordSet
from ..estimators.base import PrivateGLM
from ..ledger import context
from ..mechanisms import Mechanism, Randomness
from ..mechanisms.sampling import Poisson
from ..plan import Plan
from ..privacy import Budget, Neighbours
from ..solvers import AuditCase
from .findings import Claim
from .tables import Holding, Tables, in_memory
from .transcript import (
    Recorder,
    Replayer,
    TranscriptMismatch,
    differing,
    differing_releases,
    log_likelihood,
    separate,
)

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
    Every run is replayed over the other table; ``strayed`` names what differs then, of all that a run
    returns, leaves behind in its solver and asks the curator for. The last columns are the coefficients of
    another run, with the curator of an ordinary fit, which may release in compiled blocks: they are audited
    alone, as the model. ``holding`` makes the records of both tables.
    """

    case: AuditCase
    plan: Plan
    holding: Holding = in_memory
    strayed: list[str] = field(default_factory=list, init=False)
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
            self.strayed.extend(differing(left, self._carried_out(replayer)[1]))
            ratio = compared([(recorder, replayer)], self.strayed)
        except TranscriptMismatch as mismatch:
            self.strayed.append(str(mismatch))
        self.strayed.extend(replayer.strayed)
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
        with context.suspended():  # these tables are made up: no account pays for them
            model.fit(*(self.tables.second if second else self.tables.first))
        return model


@dataclass(frozen=True)
class FitTarget(ModelTarget):
    """An estimator of dpglm, of which the model and every release are seen.

    Every fit is replayed over the other table; ``strayed`` names what differs then.
    """

    views: ClassVar[dict[str, slice]] = {"transcript": slice(None)}
    strayed: list[str] = field(default_factory=list)

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
            self.strayed.extend(differing(_stored(model), _stored(again)))
            ratio = compared(zip(recorders, replayers, strict=True), self.strayed)
        except TranscriptMismatch as mismatch:
            self.strayed.append(str(mismatch))
        self.strayed.extend(name for replayer in replayers for name in replayer.strayed)
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


def compared(runs: Iterable[tuple[Recorder, Replayer]], strayed: list[str]) -> float:
    """The log-likelihood ratio of all releases; what differs in how they are made is added to ``strayed``."""
    ratio = 0.0
    for recorder, replayer in runs:
        strayed.extend(differing_releases(recorder.answers, replayer.answers))
        ratio += log_likelihood(recorder.transcript, recorder.answers)
        ratio -= log_likelihood(recorder.transcript, replayer.answers)
    return ratio


def _stored(model: object) -> dict[str, object]:
    """All attributes of a model but the curator of the audit itself and its seed."""
    return {name: value for name, value in vars(model).items() if name not in ("_curator", "random_state")}
