"""What is known of a fit before the private number of its records is released."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..mechanisms import Gaussian
from ..privacy import Budget, Neighbours
from .plan import Plan
from .private_size import RECORD_COUNT, count_release
from .release import Releasable


@dataclass(frozen=True, repr=False)
class CountedPlan(Plan):
    """A count of the records, and a reserve for whatever plan follows from it.

    The price of both depends on the budget alone: an account pays it before the first release. The number of
    records in this plan means nothing.
    """

    solver: ClassVar[str] = "planned after a private count"
    may_release: ClassVar[Releasable] = {RECORD_COUNT: (Gaussian,)}

    @classmethod
    def of(cls, budget: Budget, n_features: int) -> CountedPlan:
        """The plan for a budget."""
        return cls(1, n_features, budget, Neighbours.ADD_REMOVE, 1, (count_release(budget),), 1)
