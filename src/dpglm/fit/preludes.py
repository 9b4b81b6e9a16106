"""Preludes: what is released before a fit, in its plan; learning the facts that a schema leaves open."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from scipy.special import ndtri

from ..accounting import gaussian_mu
from ..accounting.compose import LARGEST_EPSILON
from ..bounds import Bounds
from ..curator import Curator
from ..data.raw_counts import RawRecords
from ..data.record_set import RecordSet
from ..mechanisms import Exponential, Gaussian, Levels, Mechanism, Thresholded
from ..mechanisms.additive import in_order
from ..plan import Plan, Release
from ..privacy import Budget, Neighbours
from ..queries import ClassCounts, ColumnRanges, LevelCounts, RowNorms
from ..queries.learning import entries_of_a_range, tail_of
from ..schema import Schema
from ..schema.learning import (
    NORMS,
    categories_to_learn,
    norms_of,
    numbers_to_learn,
    ranges_of,
    with_facts,
)
from ..schema.numbers import COUNT
from ..schema.schema import LEARN
from ..solvers.record_share import of_sum
from .presentations import ClassWeights
from .recipe import Recipe

if TYPE_CHECKING:
    from .tables import FitTable

SHARE = 0.1
"""Share of the budget, in squared mu, that is spent on learning."""

_UNSEEN_SHARE = 2.0**-16
"""Share of delta for levels of a single record that are released against all odds. What pays for it is small:
a fiftieth of the slack that is left in an account, or a slack beside a private number of records. A smaller
share hardly raises the threshold."""

COUNT_SHARE = 0.02
"""Share of the budget, in squared mu, that counting the classes takes."""

LARGEST_RATIO = 10.0
"""Of two weights that noisy counts give, the larger is at most this many times the smaller."""

_USELESS = 0.1
"""Classes are not counted if the noise of a count exceeds this share of n_samples / n_classes."""

CuratorOf = Callable[[Any], Curator]
"""The curator of some records, whose log is part of the fit's."""


class Finding(Protocol):
    """What a prelude released: a public value."""

    def applied(self, recipe: Recipe) -> Recipe:
        """The recipe with it. No release of the plan depends on it."""
        ...

    def table(self, before: FitTable, recipe: Recipe) -> FitTable:
        """The table with it; the same object if it does not change."""
        ...


class Prelude(ABC):
    """What is released before a fit, with a share of its budget in squared mu."""

    share: float

    def is_useful(self, budget: Budget, neighbours: Neighbours, n_records: int) -> bool:
        """Whether it is released with this budget; public numbers may say that it would be noise."""
        return True

    @abstractmethod
    def releases(self, budget: Budget, neighbours: Neighbours, n_records: int) -> list[Release]:
        """What is released, with noise in proportion."""

    @abstractmethod
    def run(self, plan: Plan, records: Any, curator_of: CuratorOf) -> Finding:
        """Release by the plan, or exactly in a plan without noise."""

    def warning(self, plan: Plan) -> str | None:
        """Why it has no effect in this plan, if public numbers say so."""
        return None


@dataclass(frozen=True)
class LearntSchema:
    """A schema with all that was learnt."""

    schema: Schema

    def applied(self, recipe: Recipe) -> Recipe:
        """The same recipe: bounds are on scales that do not depend on what was learnt."""
        return recipe

    def table(self, before: FitTable, recipe: Recipe) -> FitTable:
        """The table, encoded."""
        return before.with_schema(self.schema, recipe)


@dataclass(frozen=True)
class SchemaLearning(Prelude):
    """Learns what a schema leaves open, with a share of the budget.

    Parameters
    ----------
    schema : Schema
    share : float
        Share of the budget in squared mu; columns have equal parts of it, and so has the norm of rows.
    """

    schema: Schema
    share: float = SHARE

    def releases(self, budget: Budget, neighbours: Neighbours, n_records: int) -> list[Release]:
        schema = self.schema
        ranges, levels = len(numbers_to_learn(schema)), len(categories_to_learn(schema))
        norms = int(schema.row_norm == LEARN)
        part = self.share / (ranges + levels + norms)
        score = f"{ColumnRanges.of_a_score(neighbours):g}"
        found = []
        if ranges:
            noise = Exponential(1 / math.sqrt(part))
            found.append(Release(ColumnRanges.name, noise, ranges, score, entries=entries_of_a_range(COUNT)))
        if levels:
            found.append(
                Release(
                    LevelCounts.name,
                    Thresholded(1 / math.sqrt(levels * part), _cutoff(budget, levels), levels),
                    1,
                    f"{LevelCounts(levels).sensitivity(neighbours):.4g}",
                    entries=levels * n_records,
                )
            )
        if norms:
            stated = f"{RowNorms.of_a_score:g}"
            found.append(Release(RowNorms.name, Exponential(1 / math.sqrt(part)), 1, stated, entries=NORMS))
        return found

    def run(self, plan: Plan, records: RawRecords, curator_of: CuratorOf) -> LearntSchema:
        schema, n = self.schema, plan.n_records
        nowhere = np.empty(0)
        candidates, categories = ranges_of(schema), categories_to_learn(schema)
        curator = curator_of(records) if candidates or categories else None
        ranges = []
        if candidates and curator is not None:
            scales = np.array([each.scale for each in candidates])
            mechanism = _mechanism(plan, ColumnRanges.name, Exponential(0.0))
            scale = mechanism.noise * ColumnRanges.of_a_score(plan.neighbours)
            opened = curator.open(ColumnRanges(scales, tail_of(n, scale)), nowhere, mechanism)
            for k, each in enumerate(candidates):
                low, high = opened.select(k)
                ranges.append((float(each.values[low]), float(each.values[high])))
        levels: list[list[float | str]] = []
        if categories and curator is not None:
            query = LevelCounts(len(categories))
            mechanism = _mechanism(plan, LevelCounts.name, Thresholded(0.0))
            counts = curator.open(query, nowhere, mechanism).release()
            levels = _largest(counts, [column.most for column in categories.values()])
        learnt = with_facts(schema, ranges, levels)
        if schema.row_norm == LEARN:
            known = replace(learnt, row_norm=None)
            mechanism = _mechanism(plan, RowNorms.name, Exponential(0.0))
            norms = RowNorms(norms_of(known), tail_of(n, mechanism.noise * RowNorms.of_a_score))
            norm = curator_of(records.with_schema(known)).open(norms, nowhere, mechanism).select()
            learnt = replace(learnt, row_norm=norm)
        return LearntSchema(learnt)


def _mechanism(plan: Plan, query: str, exact: Mechanism) -> Mechanism:
    """The mechanism of a plan for a query; the exact one in a plan without noise."""
    return plan[query].mechanism if plan.budget.private else exact


def _largest(counted: Levels, most: Sequence[int]) -> list[list[float | str]]:
    """The levels with the largest counts of each column, in the order of levels."""
    found = []
    for table, limit in zip(counted.counts, most, strict=True):
        by_count = sorted(table, key=lambda level: (-table[level], in_order(level)))
        found.append(sorted(by_count[:limit], key=in_order))
    return found


def _cutoff(budget: Budget, columns: int) -> float:
    """How far above a count of one the threshold is, so that unseen levels take their share of delta."""
    most = 1 + math.exp(min(budget.epsilon, LARGEST_EPSILON))
    return float(-ndtri(_UNSEEN_SHARE * budget.delta / (most * columns)))


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
    share: float = COUNT_SHARE

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


def fit_bounds(schema: Schema) -> Bounds:
    """The bounds of a fit: those of the schema, on scales that do not depend on what is learnt.

    Rows are stretched by what is learnt of their norm, so only the radius bounds their features.
    """
    bounds, target = schema.bounds(), schema._target
    if target is not None and target.pending:
        bounds = replace(bounds, target=(-1.0, 1.0))
    return replace(bounds, feature=None) if schema.row_norm == LEARN else bounds
