"""Presentations: pure maps of records, each with its effect on the problem.

A feature that changes what a record is to the solver (an offset that is folded into the target, weights of
classes) is one of these. They are composed in a tuple, and sent to workers as they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np

from ..arrays import Vector
from ..bounds import Bounds
from ..losses import Loss
from ..problem import Problem

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
