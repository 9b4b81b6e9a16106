"""Shares of a budget where the number of records is private: a count first, then a plan that follows from it.

Which plan follows depends on the count, so nothing is composed by exact curves: the squares of mu and the
slacks of count, learning and fit add up to what is reserved (docs/proofs/add_remove.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..accounting import Cover, Event, cover, gaussian_epsilon, reserved
from ..mechanisms import Exponential, Gaussian, Thresholded
from ..privacy import Budget
from .release import Releasable, Release

RECORD_COUNT = "record count"
"""Name of the query that comes before a plan: steps, penalties and sizes follow from its release."""

MAY_LEARN: Releasable = {
    "range of a column": (Exponential,),
    "levels of columns": (Thresholded,),
    "norm of rows": (Exponential,),
    "class counts": (Gaussian,),
    RECORD_COUNT: (Gaussian,),
}
"""Names of the queries that come before a fit, and the mechanisms that may release each."""

OWN_PASS = ("norm of rows", "class counts")
"""Queries that read rows once they can be encoded, each in a pass of its own."""


COUNT_SHARE = 0.01
"""Share of the budget, in squared mu, that the count takes."""

FARTHEST = 38.01
"""More than this many deviations of its noise no count can be off: the sampler draws no larger noise."""

COUNT_SLACK, LEARNING_SLACK, REST_SLACK = 0.25, 0.25, 0.5
"""Shares of the slack, for the count, for what is learnt after it, and for the fit."""

_ROUNDING = 1 - 1e-12


def count_release(budget: Budget) -> Release:
    """The release of the number of records."""
    mu = reserved(budget.epsilon, budget.delta).mu * _ROUNDING
    return Release(RECORD_COUNT, Gaussian(1 / (math.sqrt(COUNT_SHARE) * mu)), 1, "1")


def count_of(released: float, release: Release) -> int:
    """The number of records that a plan is made for: at least one deviation of the noise, and at least 1."""
    return max(1, math.ceil(release.mechanism.noise), round(released))


def spare_of(count: Release) -> int:
    """How many more records than counted there can be: rounding of the count may take half a record."""
    return math.ceil(FARTHEST * count.mechanism.noise) + 1


def share_of(budget: Budget, share: float) -> Budget:
    """A budget of which a share, in squared mu, of what another one reserves can be reserved."""
    most = reserved(budget.epsilon, budget.delta)
    mu = most.mu * math.sqrt(share) * _ROUNDING
    epsilon = gaussian_epsilon(mu, budget.delta - most.slack)
    if epsilon > 0:
        return Budget(epsilon, budget.delta)
    low, high = 0.0, budget.delta  # a part of delta pays for this much at an epsilon as large as the whole
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if reserved(budget.epsilon, middle).mu <= mu else (low, middle)
    return Budget(budget.epsilon, low)


def left_for_learning(budget: Budget, count: Release, fit: Event) -> tuple[float, float]:
    """The mu and the slack that count and fit leave of what is reserved."""
    most = reserved(budget.epsilon, budget.delta)
    fit_mu = cover(fit, REST_SLACK * most.slack).mu
    rest = most.mu**2 * _ROUNDING - 1 / count.mechanism.noise**2 - fit_mu**2
    return math.sqrt(max(rest, 0.0)), LEARNING_SLACK * most.slack


def share_before(budget: Budget, parts: Sequence[Event]) -> float:
    """The share of the budget, in squared mu, of all parts but the last, which is the fit."""
    before = [price.mu**2 for price in _prices(budget, parts)[:-1]]
    return math.fsum(before) / reserved(budget.epsilon, budget.delta).mu ** 2


def _prices(budget: Budget, parts: Sequence[Event]) -> list[Cover]:
    slack, shares = reserved(budget.epsilon, budget.delta).slack, (COUNT_SLACK, LEARNING_SLACK, REST_SLACK)
    return [cover(part, share * slack) for part, share in zip(parts, shares, strict=True)]


def require_reserved(budget: Budget, parts: Sequence[Event]) -> None:
    """Refuse a count, what is learnt and a fit that cost more than is reserved for them."""
    most, prices = reserved(budget.epsilon, budget.delta), _prices(budget, parts)
    spent = math.fsum(price.mu**2 for price in prices)
    if not spent <= most.mu**2 or not math.fsum(price.slack for price in prices) <= most.slack:
        raise ValueError("the releases must cost no more than is reserved for them beside the count")
