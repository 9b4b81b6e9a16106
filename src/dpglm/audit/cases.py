"""Targets that are no solver: private counts, checks of raw tables, evaluations, learnt facts."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, cast

import numpy as np

from ..accounting import Composed, Event, Repeated
from ..arrays import Vector
from ..bounds import Bounds
from ..curator import Curator
from ..data import as_data
from ..data.bounded_numbers import FINE, MISSING, OUTSIDE, UNREADABLE, Codes
from ..data.raw_counts import RawRecords
from ..data.record_set import RecordSet
from ..estimators.base import PrivateGLM
from ..estimators.classifiers import LogisticRegression
from ..estimators.pipeline import make_private_pipeline
from ..evaluation import METRICS, Checker, CheckPlan, EvaluationPlan, Evaluator
from ..evaluation.metrics import Setting
from ..fit import ClassCounting, SchemaLearning
from ..fit.recipe import budget_after, with_preludes
from ..losses import Logistic, Squared
from ..mechanisms import Randomness
from ..penalties import L2, Penalty, Zero
from ..plan import Plan
from ..privacy import PUBLIC_SIZE, Budget, Neighbours
from ..problem import Problem
from ..queries import CellCounts
from ..schema import Category, Number, Schema
from ..schema import Target as Role
from ..schema.raw import RawTable
from ..scores import PublicModel
from ..solvers import (
    AnySolver,
    AuditCase,
    CoordinateDescent,
    DualCoordinateDescent,
    GradientDescent,
    GreedyCoordinateDescent,
    ObjectivePerturbation,
    OutputPerturbation,
    Result,
)
from .findings import Claim
from .targets import FitTarget, Tables, TranscriptTarget, compare_releases, on_a_stream
from .transcript import Recorder, Replayer, TranscriptMismatch, differing

ADD_REMOVE = "add-remove"
"""By this name `audit_registry` audits fits with a private number of records."""

_BYSTANDERS = 7
_CASES: tuple[tuple[AnySolver, Penalty | None], ...] = (
    (GradientDescent(steps=2, clip=0.1, step_size=0.1), None),
    (
        GradientDescent(steps=2, clip=0.1, step_size=0.1, batch_size=20),
        None,
    ),  # a plan of its own for each count
    (CoordinateDescent(steps=3, clip=0.1, step_size=0.1, second_moments="bounds"), None),
    (
        GreedyCoordinateDescent(
            steps=2, clip=0.1, step_size=0.1, second_moments="bounds", release="gaussian"
        ),
        None,
    ),
    (DualCoordinateDescent(steps=2, clip=0.1, batch_size=10**6), L2(1.0)),
    (ObjectivePerturbation(clip=0.1, quadratic=0.0), L2(1.0)),
    (OutputPerturbation(clip=0.1), L2(1.0)),
)


def add_remove_targets(budget: Budget) -> Iterator[FitTarget]:
    """Fits to null records, with one record more or without it: the count and all that follows are seen."""
    for solver, penalty in _CASES:
        yield add_remove_target(_estimator(solver, penalty, budget))


def add_remove_target(estimator: PrivateGLM) -> FitTarget:
    """An estimator at tables that differ in one record, whose gradients are as long as they may be."""
    row = np.array([0.8, -0.6])
    crowd = np.full((_BYSTANDERS, 2), np.nan), np.ones(_BYSTANDERS)
    tables = Tables.with_record(*crowd, (row, 1.0), None, Neighbours.ADD_REMOVE.value)
    plan = estimator.plan(_BYSTANDERS + 1, 2)
    claim = Claim(plan.budget.epsilon, plan.budget.delta, plan.event)
    return FitTarget(estimator, tables, claim)


def _estimator(solver: AnySolver, penalty: Penalty | None, budget: Budget) -> PrivateGLM:
    """A fit whose releases all move by their whole sensitivity."""
    return LogisticRegression(
        budget.epsilon, delta=budget.delta, solver=solver, neighbours=Neighbours.ADD_REMOVE.value,
        bounds=Bounds(row_norm=1.0), classes=[-1, 1], fit_intercept=False, penalty=penalty,
    )  # fmt: skip


CHECK = "check"
"""By this name `audit_registry` audits checks."""

_CHECKED = 15
_CODES: Codes = ((MISSING, UNREADABLE, OUTSIDE),) * 2 + ((MISSING,),)
_COLUMNS = {name: ("missing", "unreadable", "out of range") for name in ("a", "b")}


@dataclass(frozen=True)
class Checks:
    """A check in the place of a solver: the released shares are its model."""

    def plan(
        self, problem: Problem, n: int, p: int, budget: Budget, neighbours: Neighbours, *,
        resident: bool = True,
    ) -> CheckPlan:  # fmt: skip
        """The plan of the check."""
        return CheckPlan.of(CellCounts(_CODES, n), budget, neighbours, problem.unit)

    def run(self, plan: Plan, problem: Problem, curator: Curator) -> Result:
        """The shares, in an array as long as the coefficients of the problem."""
        assert isinstance(plan, CheckPlan)
        shares = Checker(_COLUMNS, CellCounts(_CODES, plan.n_records)).run(plan, curator)
        return Result(np.resize([share.value for share in shares], problem.dimension(plan.n_features)), 1)


def check_targets(budget: Budget) -> Iterator[TranscriptTarget]:
    """A record whose cells are all out of range, against one without cells or a null one."""
    problem = Problem(Squared(), Zero(), Bounds(row_norm=math.inf), fit_intercept=False)
    crowd = np.full((_CHECKED, len(_CODES)), float(FINE)), np.zeros(_CHECKED)
    outside, nothing = np.array([OUTSIDE, OUTSIDE, FINE]), np.full(len(_CODES), MISSING)
    case = AuditCase(
        cast(AnySolver, Checks()), problem, crowd, (outside.astype(float), 0.0), (nothing.astype(float), 0.0)
    )
    for neighbours in PUBLIC_SIZE:
        yield TranscriptTarget.of(case, budget, neighbours)
    for neighbours in PUBLIC_SIZE:
        yield TranscriptTarget.of(case, budget, neighbours, on_a_stream)
    yield TranscriptTarget.of(case.with_units(first=1, second=25), budget, Neighbours.REPLACE_ONE)


EVALUATION = "evaluation"
"""By this name `audit_registry` audits evaluations."""

_EVALUATED, _STEEP, _CUT = 15, 50.0, 4.0


@dataclass(frozen=True)
class Scored:
    """An evaluation in the place of a solver: the released scores are its model."""

    metric: str

    def plan(
        self,
        problem: Problem,
        n: int,
        p: int,
        budget: Budget,
        neighbours: Neighbours,
        *,
        resident: bool = True,
    ) -> EvaluationPlan:
        """The plan of the evaluation."""
        return self._evaluator(problem, n, neighbours).plan(p, budget)

    def run(self, plan: Plan, problem: Problem, curator: Curator) -> Result:
        """The scores, in an array as long as the coefficients of the problem."""
        assert isinstance(plan, EvaluationPlan)
        evaluator = self._evaluator(problem, plan.n_records, plan.neighbours)
        (found,) = evaluator.run(plan, curator)
        numbers = [found.value, found.standard_error, *(one.gap for one in found.bins)]
        return Result(np.resize(np.nan_to_num(numbers, posinf=-1.0), problem.dimension(plan.n_features)), 1)

    def _evaluator(self, problem: Problem, n: int, neighbours: Neighbours) -> Evaluator:
        """A model that is sure of itself: a record is predicted either entirely right or entirely wrong."""
        model = PublicModel(np.array([[_STEEP, 0.0]]), np.zeros(1))
        classes = 2 if problem.loss.kind == "classification" else 0
        setting = Setting(
            model, problem.loss, problem.bounds.target, None, classes, n, neighbours, _CUT, _STEEP
        )  # fmt: skip
        return Evaluator((self.metric,), setting)


def evaluation_targets(budget: Budget) -> Iterator[TranscriptTarget]:
    """Every metric at a record that is predicted right in one table and wrong, or null, in the other."""
    for name in METRICS:
        for neighbours in PUBLIC_SIZE:
            yield TranscriptTarget.of(_case(name), budget, neighbours)
    for neighbours in PUBLIC_SIZE:
        yield TranscriptTarget.of(_case("accuracy"), budget, neighbours, on_a_stream)


def _case(name: str) -> AuditCase:
    numbers = name in ("r2", "mean_squared_error", "mean_absolute_error")
    problem = Problem(
        Squared() if numbers else Logistic(),
        Zero(),
        Bounds(1.0, target=(-1.0, 1.0) if numbers else None),
        False,
    )
    rows = np.zeros((_EVALUATED, 2))
    rows[:, 0] = np.resize([0.5, -0.5], _EVALUATED)
    targets = np.resize([1.0, -1.0, -1.0, 1.0], _EVALUATED) * (math.sqrt(0.5) if numbers else 1.0)
    row = np.array([1.0, 0.0])
    # Cells are told apart by rows, scores by targets.
    other = (-row, 1.0) if name in ("calibration", "auc") else (row, 1.0)
    return AuditCase(cast(AnySolver, Scored(name)), problem, (rows, targets), (row, -1.0), cast(Any, other))


LEARNING = "learning"
"""What the audit of dpglm itself calls these targets."""

_ALMOST_ALL = 0.98
_CERTAIN = 1e6

Cells = dict[str, list[object]]


@dataclass(frozen=True)
class LearningTarget:
    """What a schema leaves to be learnt, of which all releases and the learnt schema are seen.

    Every run is replayed over the other table; ``mismatches`` names what differs then.

    Attributes
    ----------
    case : str
    schema : Schema
    plan : Plan
        One that spends almost all of its budget on learning.
    first, second : dict of lists
        Neighbouring raw tables.
    """

    case: str
    schema: Schema
    plan: Plan
    first: Cells
    second: Cells
    mismatches: list[str] = field(default_factory=list)
    views: ClassVar[dict[str, slice]] = {"transcript": slice(None)}

    @property
    def subject(self) -> str:
        return f"{LEARNING}: {self.case}"

    @property
    def neighbours(self) -> str:
        return self.plan.neighbours.value

    @property
    def claim(self) -> Claim:
        events: list[Event] = []
        for release in self.plan.learning:
            extra = release.mechanism.imprecision(release.entries)
            events.append(Repeated(release.event(self.plan.neighbours), release.count))
            events += [Repeated(event, count * release.count) for event, count in extra.items()]
        return Claim(self.plan.budget.epsilon, self.plan.budget.delta, Composed(tuple(events)))

    def run(self, second: bool, randomness: Randomness) -> Vector:
        recorders: list[Recorder] = []

        def record(records: RawRecords) -> Curator:
            recorders.append(Recorder(cast(RecordSet, records), self.plan.neighbours, randomness))
            return recorders[-1]

        learnt = self._learnt(second, record)
        replayers: list[Replayer] = []

        def replay(records: RawRecords) -> Curator:
            replayers.append(Replayer(cast(RecordSet, records), recorders[len(replayers)]))
            return replayers[-1]

        ratio = 0.0
        try:
            self.mismatches.extend(differing(learnt, self._learnt(not second, replay)))
            ratio = compare_releases(zip(recorders, replayers, strict=True), self.mismatches)
        except TranscriptMismatch as mismatch:
            self.mismatches.append(str(mismatch))
        self.mismatches.extend(name for replayer in replayers for name in replayer.mismatches)
        numbers = [recorder.transcript.numbers for recorder in recorders]
        likely = float(np.clip(ratio, -_CERTAIN, _CERTAIN))  # a level that only one table has is a proof
        return np.concatenate([[-likely if second else likely], *numbers])

    def _learnt(self, second: bool, curator_of: Any) -> object:
        raw = RawTable(self.schema, self.second if second else self.first)
        return SchemaLearning(self.schema, _ALMOST_ALL).run(self.plan, raw.records(), curator_of).schema


class CountingTarget(LearningTarget):
    """The counts of two classes and the weights that follow from them; targets are codes of classes."""

    def _learnt(self, second: bool, curator_of: Any) -> object:
        table = self.second if second else self.first
        rows, codes = (np.array(table[name], dtype=np.float64) for name in ("x", "y"))
        records = as_data(rows[:, None], codes, Bounds(row_norm=1.0))
        return ClassCounting(2, _ALMOST_ALL).run(self.plan, records, curator_of)


def learning_targets(budget: Budget) -> Iterator[LearningTarget]:
    """Each kind of fact at neighbouring raw tables that should show it best, for both relations."""
    classes = Role(classes=["a", "b"])
    number, category = Number(learn=True, widest=(-8, 8)), Category(learn=True)
    cases: dict[str, tuple[Schema, list[object], tuple[object, object]]] = {
        "range of a column": (Schema({"x": number, "y": classes}), [-1.0, 0.0, 1.0] * 3, (-4.0, 4.0)),
        "levels of a column": (Schema({"x": category, "y": classes}), ["u", "v"] * 20, ("u", "v")),
        "a level of one record": (Schema({"x": category, "y": classes}), ["u"] * 20, ("w", "u")),
        "norm of rows": (
            Schema({"x": Number(-1, 1), "y": classes}, row_norm="learn"), [0.5] * 9, (1.0, 0.0),
        ),
    }  # fmt: skip
    for case, (schema, others, cells) in cases.items():
        for neighbours in PUBLIC_SIZE:
            estimator = LogisticRegression(
                budget.epsilon,
                delta=budget.delta,
                neighbours=neighbours.value,
                solver=GradientDescent(steps=1),
            )
            model = make_private_pipeline(schema, estimator, learn_share=_ALMOST_ALL)
            targets: list[object] = ["a"] * (len(others) + 1)
            absent: list[object] = [None, *targets[1:]]  # a record without a target is a null record
            replaced = neighbours is Neighbours.REPLACE_ONE
            first: Cells = {"x": [cells[0], *others], "y": targets}
            second: Cells = {"x": [cells[1], *others], "y": targets if replaced else absent}
            yield LearningTarget(case, schema, model.plan(len(targets)), first, second)
    yield from _counting_targets(budget)


def _counting_targets(budget: Budget) -> Iterator[CountingTarget]:
    """A record of the rare class against one of the frequent class, or against none."""
    codes: list[object] = [*([0.0] * 30), *([1.0] * 10)]
    x: list[object] = [0.0] * (len(codes) + 1)
    schema = Schema({"x": Number(-1, 1), "y": Role(classes=[0, 1])})
    counting = ClassCounting(2, _ALMOST_ALL)
    for neighbours in PUBLIC_SIZE:
        rest = budget_after(budget, [counting.share], neighbours)
        estimator = LogisticRegression(
            rest.epsilon, delta=rest.delta, neighbours=neighbours.value, solver=GradientDescent(steps=1)
        )
        plan = with_preludes(estimator.plan(len(x), 1), budget, [counting])
        other = 0.0 if neighbours is Neighbours.REPLACE_ONE else math.nan
        yield CountingTarget(
            "class counts", schema, plan, {"x": x, "y": [1.0, *codes]}, {"x": x, "y": [other, *codes]}
        )
