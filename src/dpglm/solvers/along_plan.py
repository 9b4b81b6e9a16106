"""The plan of a choice along a fit, and the handicap of all models beside the whole fit."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import ClassVar

from ..accounting import Event, Parallel, together
from ..mechanisms import Exponential
from ..plan import PassCount, Plan, Releasable
from ..queries import Gains
from ..tables import Split

ODDS = 4.0
"""The whole fit is so much likelier to be taken than all other models together, if none of them is better."""

SPREAD = 0.2
"""Sampling error of a sum of gains, over the largest that it can have: of gains that are all at the cut."""


@dataclass(frozen=True)
class AlongPlan(Plan):
    """Plan of `Along`: its one part is the plan of the fit; without releases that fit is all there is."""

    solver: ClassVar[str] = "path"
    may_release: ClassVar[Releasable] = {Gains.name: (Exponential,)}

    share: float
    budget_share: float
    stops: tuple[float, ...]
    candidates: int
    most: float

    @property
    def split(self) -> Split:
        """The rows for training, and the rows that are held out."""
        return Split(self.share)

    @property
    def held_out(self) -> int:
        """Number of rows that are held out."""
        return self.n_records - self.parts[0].n_records

    @property
    def judges(self) -> int:
        """Number of rows that the choice is by: those that are held out, or all."""
        return self.held_out or self.n_records

    @property
    def handicap(self) -> float:
        """What all models but the whole fit lose of their gains, which are sums over the rows that judge."""
        noise = self.releases[0].mechanism.noise
        return self.most * handicap_of(noise * self.neighbours.records_moved, self.candidates, self.judges)

    @property
    def chooses(self) -> bool:
        """Whether there is a choice."""
        return bool(self.releases)

    @property
    def price_of_a_fit(self) -> Counter[Event]:
        (fit,) = self.parts
        if not self.chooses:
            return fit.price_of_a_fit
        prices = fit.price_of_a_fit, super().price_of_a_fit
        if not self.held_out:
            return prices[0] + prices[1]
        return Counter({Parallel(tuple(map(together, prices)), self.split.rule): 1})

    @property
    def composition(self) -> str:
        (fit,) = self.parts
        if not self.chooses:
            return fit.composition
        if not self.held_out:
            return super().composition
        return (
            f"a record is in one of two disjoint parts ({self.split.rule}), and pays for that one; the fit: "
            f"{fit.composition}"
        )

    @property
    def forecast(self) -> str | None:
        (fit,) = self.parts
        if not self.budget.private:
            return None
        if not self.chooses:
            words = (
                f"nothing to choose, or too few records to choose by: one fit by {fit.solver} to all of them"
            )
        else:
            rows = f"the other {self.held_out}"
            if not self.held_out:
                rows = f"the same records, for {100 * self.budget_share:.2g} % of the budget, in squared mu"
            words = (
                f"one of {self.candidates} models along a fit by {fit.solver} to {fit.n_records} records, by "
                f"its loss on {rows}; one that is not the last must have a loss that is less by "
                f"{self.handicap / self.judges:.2g} in the mean"
            )
        return words if fit.forecast is None else f"{words}; {fit.forecast}"

    @property
    def warning(self) -> str | None:
        return self.parts[0].warning

    @property
    def _counts(self) -> list[int]:
        return [self.parts[0].steps]

    def _passes_of_a_fit(self) -> PassCount | None:
        each = self.parts[0]._passes_of_a_fit()
        return None if each is None else PassCount(each.usual + self.chooses, each.most + self.chooses)


def handicap_of(noise: float, candidates: int, rows: float) -> float:
    """The handicap of models beside the whole fit, over the cut of a record's gain.

    If no model is better, the exponential mechanism takes the whole fit with probability ODDS / (1 + ODDS).
    What held-out rows show by chance comes on top. ``noise`` is the scale of a draw, over that cut.
    """
    return noise * math.log(ODDS * (candidates - 1)) + SPREAD * math.sqrt(rows)
