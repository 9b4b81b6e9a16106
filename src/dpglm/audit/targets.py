"""Things that can be audited: each puts out a row of numbers for a run on one of two neighbouring tables."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..curator import Curator
from ..data import Records, as_data
from ..mechanisms import Mechanism, Randomness
from ..plan import Plan
from ..privacy import Budget, Neighbours
from ..sampling import Poisson
from ..solvers import AuditCase
from .claim import Claim
from .tables import Tables
from .transcript import Recorder, Replayer, TranscriptMismatch, log_likelihood

Array = NDArray[np.float64]


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
    answers: tuple[Any, Any]
    repeats: int
    claim: Claim
    views: ClassVar[dict[str, slice]] = {"output": slice(None)}
    neighbours: str = "distance 1"

    @property
    def subject(self) -> str:
        times = f"{self.repeats} x " if self.repeats > 1 else ""
        return f"{self.mechanism.name} mechanism: {times}{self.case}"

    def run(self, second: bool, randomness: Randomness) -> Array:
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
    Every run is replayed over the other table; ``strayed`` names what came out otherwise. The last columns
    are the coefficients of another run, with a curator as in use, which may release in compiled blocks: they
    are audited alone, as the model.
    """

    case: AuditCase
    plan: Plan
    strayed: list[str] = field(default_factory=list, init=False)

    @classmethod
    def of(cls, case: AuditCase, budget: Budget, neighbours: Neighbours) -> TranscriptTarget:
        """The target with the plan that the case's solver makes for a budget."""
        n, p = len(case.bystanders[1]) + 1, case.bystanders[0].shape[1]
        return cls(case, case.solver.plan(case.problem, n, p, budget, neighbours))

    @property
    def subject(self) -> str:
        return f"{self.plan.solver}: " + ", ".join(
            f"{release.count} x {release.query}"
            + (" on batches" if isinstance(release.sampling, Poisson) else "")
            for release in self.plan.releases
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
    def _sampled(self) -> bool:
        return any(isinstance(release.sampling, Poisson) for release in self.plan.releases)

    @cached_property
    def _records(self) -> tuple[Records, Records, Records]:
        """The first table, the second, and the bystanders with a null record."""
        nothing = (np.full(self.plan.n_features, np.nan), 0.0)
        replaced = self.plan.neighbours is Neighbours.REPLACE_ONE
        canaries = (self.case.first, self.case.second if replaced else nothing, nothing)
        X, y = self.case.bystanders
        problem = self.case.problem
        first, second, without = (
            as_data(np.vstack([row, X]), np.append(target, y), problem.bounds, problem.constant(X.shape[1]))
            for row, target in canaries
        )
        return first, second, without

    def run(self, second: bool, randomness: Randomness) -> Array:
        solver, problem, plan = self.case.solver, self.case.problem, self.plan
        recorder = Recorder(self._records[second], plan.neighbours, randomness)
        w = solver.run(plan, problem, recorder).w
        there, without = (
            Replayer(records, recorder) for records in (self._records[not second], self._records[2])
        )
        plain = solver.run(plan, problem, Curator(self._records[second], plan.neighbours, randomness)).w
        try:
            if not np.array_equal(solver.run(plan, problem, there).w, w):
                self.strayed.append("coefficients")
            if self._sampled:
                solver.run(plan, problem, without)
            rest = without.answers if self._sampled else recorder.answers
            own, other = (
                log_likelihood(recorder.transcript, given, rest)
                for given in (recorder.answers, there.answers)
            )
        except TranscriptMismatch:
            self.strayed.append("number of releases")
            own = other = 0.0
        ratio = other - own if second else own - other
        return np.concatenate([[ratio], w, recorder.transcript.numbers, plain])


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
    def subject(self) -> str:
        return type(self.estimator).__name__

    @property
    def neighbours(self) -> str:
        return self.tables.relation

    def run(self, second: bool, randomness: Randomness) -> Array:
        return self.viewed(self.fitted(second, randomness))

    def viewed(self, model: Any) -> Array:
        """What of a model is seen: by default all of it, and what it says of the record in question."""
        if self.view is not None:
            return np.ravel(self.view(model))
        if not hasattr(model, "coef_"):
            raise ValueError(f"{self.subject} has no coef_: say by view=... what of it is to be looked at")
        w, b = np.atleast_2d(model.coef_), np.ravel(getattr(model, "intercept_", 0.0))
        said = [w @ row + b for row in self.tables.canaries]
        return np.concatenate([np.ravel(said), np.ravel(w), b])

    def fitted(self, second: bool, randomness: Randomness, curator: Any = None) -> Any:
        """A copy of the estimator, fitted to one of the tables, if wanted with another kind of curator."""
        # Not a deep copy: a generator that the estimator holds must go on, as it does in use.
        model = copy.copy(self.estimator)
        if self.seeded:
            model.set_params(random_state=int(randomness.integers(2**62, 1)[0]))
        if curator is not None:
            model._curator = curator
        model.fit(*(self.tables.second if second else self.tables.first))
        return model


@dataclass(frozen=True)
class FitTarget(ModelTarget):
    """An estimator of dpglm, of which the model and every release are seen.

    Every fit is replayed over the other table; ``strayed`` names what came out otherwise.
    """

    views: ClassVar[dict[str, slice]] = {"transcript": slice(None)}
    strayed: list[str] = field(default_factory=list)

    def run(self, second: bool, randomness: Randomness) -> Array:
        recorders: list[Recorder] = []

        def record(*arguments: Any) -> Recorder:
            recorders.append(Recorder(*arguments))
            return recorders[-1]

        model = self.fitted(second, randomness, record)
        replayers: list[Replayer] = []

        def replay(records: Any, *_: Any) -> Replayer:
            replayers.append(Replayer(records, recorders[len(replayers)]))
            return replayers[-1]

        ratio = 0.0
        try:
            again = self.fitted(not second, randomness, replay)
            self.strayed.extend(_differing(vars(model), vars(again)))
            for recorder, replayer in zip(recorders, replayers, strict=True):
                # The answers without the record are not at hand: batches count as all records, a weaker test.
                own = log_likelihood(recorder.transcript, recorder.answers, recorder.answers)
                ratio += own - log_likelihood(recorder.transcript, replayer.answers, replayer.answers)
        except TranscriptMismatch:
            self.strayed.append("number of releases")
        numbers = [recorder.transcript.numbers for recorder in recorders]
        return np.concatenate([[-ratio if second else ratio], self.viewed(model), *numbers])


@dataclass(frozen=True)
class FunctionTarget:
    """A function of the table's number that runs anything and returns what it puts out."""

    function: Callable[[bool], ArrayLike]
    claim: Claim
    subject: str
    neighbours: str
    views: ClassVar[dict[str, slice]] = {"output": slice(None)}

    def run(self, second: bool, randomness: Randomness) -> ArrayLike:
        return self.function(second)


def _differing(here: dict[str, Any], there: dict[str, Any]) -> list[str]:
    """Names of attributes that differ, the curator of the audit itself and its seed left out."""
    own = {"_curator", "random_state"}
    return [
        name
        for name in sorted((here.keys() | there.keys()) - own)
        if not _same(here.get(name), there.get(name))
    ]


def _same(here: Any, there: Any) -> bool:
    """Whether two attributes are equal, or stored alike: NaN and most objects equal nothing else."""
    try:
        if np.array_equal(here, there) if isinstance(here, np.ndarray) else bool(here == there):
            return True
    except ValueError:  # a comparison that has no single answer, as of sparse tables
        pass
    return pickle.dumps(here) == pickle.dumps(there)
