"""Audits of what is released before a fit: facts of a schema, and how many records each class has."""

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
from ..data.census import RawRecords
from ..data.summed import Summed
from ..estimators.class_weight import ClassCounter, ClassWeights
from ..estimators.classifiers import LogisticRegression
from ..estimators.learning import Learner, joined, left
from ..estimators.pipeline import make_private_pipeline
from ..mechanisms import Randomness
from ..plan import Plan
from ..privacy import PUBLIC_SIZE, Budget, Neighbours
from ..schema import Category, Number, Schema
from ..schema import Target as Role
from ..schema.raw import Unlearnt
from ..solvers import GradientDescent
from .claim import Claim
from .comparison import differing
from .targets import compared
from .transcript import Recorder, Replayer, TranscriptMismatch

NAME = "learning"
"""What the audit of dpglm itself calls these targets."""

_ALMOST_ALL = 0.98
_CERTAIN = 1e6

Cells = dict[str, list[object]]


@dataclass(frozen=True)
class LearningTarget:
    """What a schema leaves to be learnt, of which all releases and the learnt schema are seen.

    Every run is replayed over the other table; ``strayed`` names what differs then.

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
    strayed: list[str] = field(default_factory=list)
    views: ClassVar[dict[str, slice]] = {"transcript": slice(None)}

    @property
    def subject(self) -> str:
        return f"{NAME}: {self.case}"

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
            recorders.append(Recorder(cast(Summed, records), self.plan.neighbours, randomness))
            return recorders[-1]

        learnt = self._learnt(second, record)
        replayers: list[Replayer] = []

        def replay(records: RawRecords) -> Curator:
            replayers.append(Replayer(cast(Summed, records), recorders[len(replayers)]))
            return replayers[-1]

        ratio = 0.0
        try:
            self.strayed.extend(differing(learnt, self._learnt(not second, replay)))
            ratio = compared(zip(recorders, replayers, strict=True), self.strayed)
        except TranscriptMismatch as mismatch:
            self.strayed.append(str(mismatch))
        self.strayed.extend(name for replayer in replayers for name in replayer.strayed)
        numbers = [recorder.transcript.numbers for recorder in recorders]
        likely = float(np.clip(ratio, -_CERTAIN, _CERTAIN))  # a level that only one table has is a proof
        return np.concatenate([[-likely if second else likely], *numbers])

    def _learnt(self, second: bool, curator_of: Any) -> object:
        raw = Unlearnt(self.schema, self.second if second else self.first)
        learner = Learner(self.schema, _ALMOST_ALL)
        return learner.run(self.plan, raw.records(), curator_of)[0]


class CountingTarget(LearningTarget):
    """The counts of two classes and the weights that follow from them; targets are codes of classes."""

    def _learnt(self, second: bool, curator_of: Any) -> object:
        table = self.second if second else self.first
        rows, codes = (np.array(table[name], dtype=np.float64) for name in ("x", "y"))
        records = as_data(rows[:, None], codes, Bounds(row_norm=1.0))
        return ClassWeights(2, None).found(self.plan, curator_of(records))


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
    before = [ClassCounter(2, _ALMOST_ALL)]
    for neighbours in PUBLIC_SIZE:
        rest = left(budget, before, neighbours)
        estimator = LogisticRegression(
            rest.epsilon, delta=rest.delta, neighbours=neighbours.value, solver=GradientDescent(steps=1)
        )
        plan = joined(estimator.plan(len(x), 1), budget, before)
        other = 0.0 if neighbours is Neighbours.REPLACE_ONE else math.nan
        yield CountingTarget(
            "class counts", schema, plan, {"x": x, "y": [1.0, *codes]}, {"x": x, "y": [other, *codes]}
        )
