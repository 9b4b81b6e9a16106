"""Presentations: pure maps of records, each with its effect on the problem.

A feature that changes what a record is to the solver (an offset that is folded into the target, weights of
classes) is one of these. They are composed in a tuple, and sent to workers as they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from .. import strict
from ..arrays import Vector
from ..bounds import Bounds
from ..data.record_set import ByClass
from ..losses import Loss
from ..problem import Problem
from ..solvers.record_share import RecordShare
from .inputs import Labels

if TYPE_CHECKING:
    from .recipe import Recipe
    from .tables import FitTable

BALANCED = "balanced"

TargetMap = Callable[[Vector], Vector]
"""From codes of targets to those of a loss."""


@dataclass(frozen=True)
class Presentation:
    """A map of records that does nothing; each kind says which of its parts it changes."""

    def problem(self, before: Problem) -> Problem:
        """The problem for records that went through this map."""
        return before

    @property
    def weight_unit(self) -> float:
        """What the weight of a record that has the whole share of a record is multiplied by."""
        return 1.0

    def columns(self, values: Vector) -> Vector:
        """Targets, weights and offsets of records, in three columns, each record by itself."""
        return values

    def target(self, target: TargetMap) -> TargetMap:
        """The map from codes to targets of the loss."""
        return target

    def facts(self) -> dict[str, object]:
        """What the guarantee states of it."""
        return {}


@dataclass(frozen=True)
class FoldedOffsets(Presentation):
    """Offsets taken off the targets, both inside their bounds: the loss depends on margin minus target alone.

    Parameters
    ----------
    bounds : Bounds
        The declared ones, which limit offsets.
    """

    bounds: Bounds

    def problem(self, before: Problem) -> Problem:
        (bottom, top), target = self.bounds.offset_range, before.bounds.target
        moved = None if target is None else (target[0] - top, target[1] - bottom)
        bounds = replace(before.bounds, target=moved, offset=None)
        return replace(before, bounds=bounds, predicted=target)

    def columns(self, values: Vector) -> Vector:
        low, high = self.bounds.target or (-math.inf, math.inf)
        nothing = 0.0 * values[:, [0, 2]]  # NaN where a target or an offset is not finite
        values[:, 0] = np.clip(values[:, 0], low, high) - np.clip(values[:, 2], *self.bounds.offset_range)
        values[:, 2] = nothing.sum(axis=1)
        return values


@dataclass(frozen=True)
class CentredOffsets(Presentation):
    """Offsets less the middle of their range, for which the intercept makes up."""

    middle: float

    def problem(self, before: Problem) -> Problem:
        return before.with_centred_offsets()

    def columns(self, values: Vector) -> Vector:
        values[:, 2] -= self.middle
        return values


def _is_weight(weight: float) -> bool:
    return 0 <= weight < math.inf


@dataclass(frozen=True)
class ClassWeights(Presentation):
    """What the weight of a record is multiplied by, for each class.

    Parameters
    ----------
    n_classes : int
    factors : tuple of float, optional
        The weight of each class; None, as long as they are 1, if they will follow from counts.
    origin : str
        Where they are from, in words.
    records : RecordShare, optional
        The share of the records that counted, if classes were counted with noise.
    """

    n_classes: int
    factors: tuple[float, ...] | None
    origin: str = "declared"
    records: RecordShare | None = None

    @classmethod
    def of(cls, declared: object, n_classes: int, classes: Labels | None) -> ClassWeights | None:
        """The weights that a user declares; None if there are none.

        Without the classes only the set of weights is known, not which class has which.
        """
        if declared is None:
            return None
        if isinstance(declared, str) and declared == BALANCED:
            return cls(n_classes, None)
        if not isinstance(declared, Mapping):
            raise strict.wrong("class_weight", declared, 'None, "balanced" or a mapping of labels to weights')
        for weight in declared.values():
            strict.number("class_weight", weight, "finite weights of at least 0", _is_weight)
        labels = list(declared)[:n_classes] if classes is None else classes.tolist()
        unknown = [label for label in declared if label not in labels]
        if unknown:
            raise ValueError(f"class_weight has weights for {unknown}, which are none of the classes")
        weights = [float(declared.get(label, 1.0)) for label in labels]
        factors = tuple(weights + [1.0] * (n_classes - len(weights)))
        if max(factors) == 0:
            raise strict.wrong("class_weight", declared, "weights of which one is positive")
        return cls(n_classes, factors)

    @property
    def largest(self) -> float:
        """The largest weight; 1 for weights that follow from noisy counts."""
        return 1.0 if self.factors is None else max(self.factors)

    @property
    def shares(self) -> Vector:
        """Each weight in units of the largest one."""
        return np.array(self.factors or (1.0,) * self.n_classes) / self.largest

    @property
    def weight_unit(self) -> float:
        return self.largest

    def problem(self, before: Problem) -> Problem:
        """The problem with the largest weight that a record can have, its class considered."""
        weight = self.largest * (1.0 if before.bounds.weight is None else before.bounds.weight)
        return replace(before, bounds=replace(before.bounds, weight=weight))

    def target(self, target: TargetMap) -> TargetMap:
        return ByClass(target, self.shares)

    def facts(self) -> dict[str, object]:
        shown = ", ".join(f"{weight:.4g}" for weight in self.factors or ())
        return {"class weights": f"{shown} in the order of the classes, {self.origin}"}

    def applied(self, recipe: Recipe) -> Recipe:
        """The recipe with these weights in place of those that it has."""
        others = (each for each in recipe.presentations if not isinstance(each, ClassWeights))
        return replace(recipe, presentations=(self, *others))

    def table(self, before: FitTable, recipe: Recipe) -> FitTable:
        """The same table: its records are weighed by their targets."""
        return before


def of_offsets(loss: Loss, bounds: Bounds, fit_intercept: bool) -> tuple[Presentation, ...]:
    """How a fit presents the offsets of records; nothing if the bounds limit none."""
    if bounds.offset is None:
        return ()
    if loss.kind == "regression":
        return (FoldedOffsets(bounds),)
    low, high = bounds.offset_range
    return (CentredOffsets((low + high) / 2),) if fit_intercept else ()


def presented(problem: Problem, presentations: Iterable[Presentation]) -> Problem:
    """The problem for records that went through all presentations, its penalty relative to their weights."""
    unit = problem.bounds.weight_unit
    for presentation in presentations:
        problem, unit = presentation.problem(problem), unit * presentation.weight_unit
    return problem if unit == 1 else replace(problem, penalty=problem.penalty.scaled(1 / unit))
