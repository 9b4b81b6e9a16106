"""Releases that come before a fit, in its plan; learning the facts that a schema leaves open."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from scipy.special import ndtri

from ..accounting import (
    Composed,
    Event,
    Repeated,
    calibrate_beside,
    calibrate_covered,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_mu,
)
from ..accounting.compose import LARGEST_EPSILON
from ..bounds import Bounds
from ..curator import Curator
from ..data.raw_counts import RawRecords
from ..mechanisms import Exponential, Levels, Mechanism, Thresholded
from ..mechanisms.thresholded import in_order
from ..plan import Plan, Release
from ..plan.private_size import COUNT_SHARE, count_release, left_for_learning, share_of, spare_of
from ..privacy import Budget, Neighbours
from ..queries import ColumnRanges, LevelCounts, RowNorms
from ..queries.learning import entries_of_a_range, tail_of
from ..schema import Schema
from ..schema.candidates import COUNT
from ..schema.learning import (
    NORMS,
    Scaled,
    categories_to_learn,
    norms_of,
    numbers_to_learn,
    ranges_of,
    with_facts,
)
from ..schema.raw import Counted
from ..schema.schema import LEARN

SHARE = 0.1
"""Share of the budget, in squared mu, that is spent on learning."""

_UNSEEN_SHARE = 2.0**-16
"""Share of delta for levels of a single record that are released against all odds. What pays for it is small:
a fiftieth of the slack that is left in an account, or a slack beside a private number of records. A smaller
share hardly raises the threshold."""


class Before(Protocol):
    """What is released before a fit, with a share of the budget in squared mu."""

    @property
    def share(self) -> float: ...

    def releases(self, budget: Budget, neighbours: Neighbours, n_records: int) -> list[Release]:
        """What is released, with noise in proportion."""
        ...


def left(budget: Budget, parts: Sequence[Before], neighbours: Neighbours) -> Budget:
    """The budget of the fit that follows."""
    rest = math.prod(1 - part.share for part in parts)
    if budget.private and not neighbours.size_is_public:
        return share_of(budget, rest * (1 - COUNT_SHARE))
    if not budget.private or not parts:
        return budget
    most = min(budget.epsilon, LARGEST_EPSILON)
    mu = gaussian_mu(most, budget.delta) * math.sqrt(rest)
    epsilon = gaussian_epsilon(mu, budget.delta)
    if epsilon > 0:
        return Budget(epsilon, budget.delta)
    return Budget(most, gaussian_delta(mu, most))  # delta alone pays for this much


def joined(plan: Plan, budget: Budget, parts: Sequence[Before]) -> Plan:
    """The plan of a fit together with what is released before it, within the whole budget.

    The noise of the fit stays as it is; that of the other releases is the least that keeps within the budget.
    """
    if not budget.private or (not parts and plan.neighbours.size_is_public):
        return plan
    counts = [] if plan.neighbours.size_is_public else [count_release(budget)]
    size = plan.n_records + sum(map(spare_of, counts))
    releases = [release for part in parts for release in part.releases(budget, plan.neighbours, size)]
    events = [
        Repeated(event, count) for release in releases for event, count in _priced(release, plan.neighbours)
    ]
    event = Composed(tuple(events))
    if not counts:
        factor = calibrate_beside(plan.event, event, budget.epsilon, budget.delta)
    else:  # what follows from a count is not composed with it, nor with the fit, by exact curves
        factor = calibrate_covered(event, *left_for_learning(budget, counts[0], plan.composed))
    learning = (*counts, *(release.scaled(factor) for release in releases))
    whole = replace(plan, budget=budget, learning=learning)
    if counts:
        whole.require_reserved()
    return whole


@dataclass(frozen=True)
class Learner:
    """Learns what a schema leaves open, with a share of the budget.

    Parameters
    ----------
    schema : Schema
    share : float
        Share of the budget in squared mu; columns have equal parts of it, and so has the norm of rows.
    """

    schema: Schema
    share: float = SHARE

    def put_into(self, model: Any) -> None:
        """Let the next fit of an estimator learn first."""
        model._learner = self

    def releases(self, budget: Budget, neighbours: Neighbours, n_records: int) -> list[Release]:
        """What is released, with noise in proportion."""
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

    def run(
        self, plan: Plan, records: Counted, curator_of: Callable[[RawRecords], Curator]
    ) -> tuple[Schema, list[Curator]]:
        """The schema with what was learnt, and the curators that logged it."""
        schema, n = self.schema, plan.n_records
        used: list[Curator] = []
        nowhere = np.empty(0)
        candidates, categories = ranges_of(schema), categories_to_learn(schema)
        if candidates or categories:
            used.append(curator_of(records))
        ranges = []
        if candidates:
            scales = np.array([found.scale for found in candidates])
            mechanism = _by(plan, ColumnRanges.name, Exponential(0.0))
            scale = mechanism.noise * ColumnRanges.of_a_score(plan.neighbours)
            opened = used[0].open(ColumnRanges(scales, tail_of(n, scale)), nowhere, mechanism)
            for k, found in enumerate(candidates):
                low, high = opened.select(k)
                ranges.append((float(found.values[low]), float(found.values[high])))
        levels: list[list[float | str]] = []
        if categories:
            query = LevelCounts(len(categories))
            counted = used[0].open(query, nowhere, _by(plan, LevelCounts.name, Thresholded(0.0))).release()
            levels = _largest(counted, [column.most for column in categories.values()])
        learnt = with_facts(schema, ranges, levels)
        if schema.row_norm == LEARN:
            known = replace(learnt, row_norm=None)
            curator = curator_of(records.learnt(known))
            used.append(curator)
            mechanism = _by(plan, RowNorms.name, Exponential(0.0))
            query_of_norms = RowNorms(norms_of(known), tail_of(n, mechanism.noise * RowNorms.of_a_score))
            norm = curator.open(query_of_norms, nowhere, mechanism).select()
            learnt = replace(learnt, row_norm=norm)
        return learnt, used


def _by(plan: Plan, query: str, exact: Mechanism) -> Mechanism:
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


def _priced(release: Release, neighbours: Neighbours) -> list[tuple[Event, int]]:
    extra = release.mechanism.imprecision(release.entries)
    return [(release.event(neighbours), release.count)] + [
        (event, count * release.count) for event, count in extra.items()
    ]


def fit_bounds(schema: Schema) -> Bounds:
    """The bounds of a fit: those of the schema, on scales that do not depend on what is learnt.

    Rows are stretched by what is learnt of their norm, so only the radius bounds their features.
    """
    bounds, target = schema.bounds(), schema._target
    if target is not None and target.pending:
        bounds = replace(bounds, target=(-1.0, 1.0))
    return replace(bounds, feature=None) if schema.row_norm == LEARN else bounds


def taken_out(model: Any, declared: Schema) -> Schema:
    """What a fit has learnt; its model, of stretched rows and scaled targets, becomes one of that schema."""
    learnt: Schema = model._learnt_schema
    del model._learner, model._learnt_schema
    _in_raw_units(model, learnt, declared)
    return learnt


def _in_raw_units(model: Any, learnt: Schema, declared: Schema) -> None:
    scaled = Scaled.of(learnt, declared, bool(model.fit_intercept))
    before, p = model._fitted_problem, learnt.n_features
    after = replace(before, bounds=learnt.bounds())
    model.set_params(bounds=after.bounds)
    model._fitted_problem = after
    model.coef_ = model.coef_ * (scaled.stretch * scaled.half)
    model.intercept_ = model.intercept_ * scaled.half + scaled.middle
    if model._uncertainty is not None:
        ratio = before.constant(p) / after.constant(p) if before.fit_intercept else 1.0
        moved = after.join(np.full(p, scaled.stretch * scaled.half), scaled.half * ratio)
        factors = np.outer(moved, moved)
        model._uncertainty = tuple(
            replace(one, covariance=factors * one.covariance, privacy=factors * one.privacy)
            for one in model._uncertainty
        )
