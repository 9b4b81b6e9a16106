"""Weights of classes: declared, or those that make all classes count alike."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from .. import strict
from ..accounting import gaussian_mu
from ..accounting.compose import LARGEST_EPSILON
from ..arrays import Vector
from ..data.by_class import ByClass
from ..data.record_set import RecordSet
from ..mechanisms import Gaussian
from ..plan import Plan, Release
from ..privacy import Budget, Neighbours
from ..problem import Problem
from ..queries import ClassCounts
from ..solvers.record_share import RecordShare, of_sum
from .inputs import Labels
from .preludes import CuratorOf, Prelude
from .presentations import Presentation, TargetMap
from .recipe import Recipe
from .tables import FitTable

BALANCED = "balanced"

SHARE = 0.02
"""Share of the budget, in squared mu, that counting the classes takes."""

LARGEST_RATIO = 10.0
"""Of two weights that noisy counts give, the larger is at most this many times the smaller."""

_USELESS = 0.1
"""Classes are not counted if the noise of a count exceeds this share of n_samples / n_classes."""


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


@dataclass(frozen=True)
class ClassCounting(Prelude):
    """Counts the records of each class, with noise, and weighs the classes by it.

    Parameters
    ----------
    n_classes : int
    share : float
        Share of the budget in squared mu.
    """

    n_classes: int
    share: float = SHARE

    def is_useful(self, budget: Budget, neighbours: Neighbours, n_records: int) -> bool:
        if not budget.private:
            return False
        mu = gaussian_mu(min(budget.epsilon, LARGEST_EPSILON), budget.delta) * math.sqrt(self.share)
        noise = self._query(n_records).sensitivity(neighbours) / mu
        return noise <= _USELESS * n_records / self.n_classes

    def releases(self, budget: Budget, neighbours: Neighbours, n_records: int) -> list[Release]:
        stated = f"{self._query(n_records).sensitivity(neighbours):.4g}"
        noise = Gaussian(1 / math.sqrt(self.share))
        return [Release(ClassCounts.name, noise, 1, stated, entries=self.n_classes)]

    def run(self, plan: Plan, records: RecordSet, curator_of: CuratorOf) -> ClassWeights:
        """The weights that follow from counts which the plan may release: n_samples / (n_classes * count).

        Noisy counts are raised to a tenth of the largest one, and the weights are divided by the largest of
        them. If the plan has no release of counts, all weights are 1.
        """
        query, private = self._query(plan.table_size), plan.budget.private
        if private and all(release.query != query.name for release in plan.learning):
            return ClassWeights(self.n_classes, (1.0,) * self.n_classes, "not counted: too few records")
        mechanism = plan[query.name].mechanism if private else Gaussian(0.0)
        counts = curator_of(records).release(query, mechanism)
        noise = math.sqrt(self.n_classes) * mechanism.noise * query.sensitivity(plan.neighbours)
        n = plan.n_records
        share = of_sum(plan, query.name, float(counts.sum()) / n, noise / n) if private else None
        least = max(float(counts.max()) / LARGEST_RATIO, 1.0) if private else 1.0
        counts = np.maximum(counts, least)
        weights = counts.min() / counts if private else counts.sum() / (self.n_classes * counts)
        origin = "balanced by noisy counts, a release of this fit" if private else "balanced by exact counts"
        return ClassWeights(self.n_classes, tuple(weights.tolist()), origin, share)

    def warning(self, plan: Plan) -> str | None:
        if not plan.budget.private or any(release.query == ClassCounts.name for release in plan.learning):
            return None
        return (
            f'class_weight="balanced" has no effect: counts of the classes of {plan.n_records} records would '
            "be noise; declare a mapping of weights, if they are known"
        )

    def _query(self, n_records: int) -> ClassCounts:
        return ClassCounts(self.n_classes, n_records)
