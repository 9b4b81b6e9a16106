"""Fits whose number of records is private: a count comes first, and the plan follows from it."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

from ..accounting import Event
from ..curator import Curator
from ..ledger import Reservation
from ..plan import Plan, Release
from ..plan.private_size import count_of
from ..privacy import Budget, Neighbours
from ..queries import RecordCount

_MANY = 1 << 20
_APART = 4


@dataclass(frozen=True)
class CountedRecords:
    """A released number of records, what its release has cost, and the charge for the whole fit.

    Attributes
    ----------
    n_records : int
        The number of records that the fit is planned for: public.
    spent : Counter of Event
    paid : Reservation, optional
    """

    n_records: int
    spent: Counter[Event]
    paid: Reservation | None


def budget_of(epsilon: float, delta: float | None, n_records: int, neighbours: Neighbours) -> Budget:
    """The budget of a fit; its delta must be declared if the number of records is private."""
    if neighbours.size_is_public:
        return Budget.for_records(epsilon, delta, n_records)
    if delta is None and math.isfinite(Budget.for_records(epsilon, delta, 1).epsilon):
        raise ValueError(
            f'delta must be declared with neighbours="{neighbours.value}": the default, 1/n², would reveal '
            "the number of records"
        )
    return Budget.for_records(epsilon, delta, 1)


def is_counted(budget: Budget, neighbours: Neighbours) -> bool:
    """Whether the records are counted before the fit is planned."""
    return budget.private and not neighbours.size_is_public


def possible_counts(count: Release) -> list[int]:
    """Numbers of records to try a fit with before its records are counted: many first, then few and more.

    Each is four times the one before, from the least that a count can say on: limits of solvers depend on
    powers of the number of records, and settings change little between two of these.
    """
    least = count_of(0.0, count)
    return [max(least, _MANY)] + [least * _APART**k for k in range(20) if least * _APART**k < _MANY]


def counted_records(curator: Curator, release: Release, paid: Reservation | None) -> CountedRecords:
    """Release the number of records."""
    (released,) = curator.release(RecordCount(), release.mechanism)
    return CountedRecords(count_of(float(released), release), curator.spent, paid)


def stated_size(plan: Plan) -> dict[str, object]:
    """The number of records, as a promise states it."""
    if plan.count is None:
        return {"n": plan.n_records}
    noise = plan.count.mechanism.noise
    return {"n": f"{plan.n_records}, a released count whose noise has deviation {noise:.3g}"}
