"""How much less the losses of some models are than those of a first one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..arrays import Vector
from ..data.bounded_numbers import CutGains, Valued
from ..losses import Loss
from ..mechanisms.selection import Selection
from ..privacy import Neighbours
from .base import Opening, require_moderate
from .held_out import HeldOutScores, score_for

_CUT_OF_LABELS, _CUT_OF_TARGETS = 0.25, 0.5
"""What differences of losses are cut to, as a share of what losses are cut to."""


@dataclass(frozen=True, eq=False)
class Gains(HeldOutScores):
    """The sum over records of the loss at a first model minus that at each of some others, cut at ``most``.

    The models are the columns of a matrix. Losses of models along one fit differ by little, so their
    differences can be cut to a much smaller range than the losses themselves.

    Parameters
    ----------
    loss : Loss, Errors or SquaredErrors
    most : float
        What the difference of two losses of a record is cut to.
    count : int
        Number of models beside the first.
    n_records : int
        The public number of records: it decides on the grid that values are rounded to.

    Guarantee
    ---------
    A record adds a number in [-most, most] to each gain, rounded to a grid: neighbours move each gain by at
    most 2 * most if a record is replaced, by ``most`` if it is zeroed out, up to a step of the grid.
    """

    name: ClassVar[str] = "gain"

    def of_one(self, neighbours: Neighbours) -> float:
        return neighbours.records_moved * self.most + self.grid

    def open(self, opening: Opening) -> OpenGains:
        """Gains of the models in the columns of the public point, to choose one of them."""
        return OpenGains(self, opening)

    @property
    def _columns(self) -> int:
        return self.count + 1

    def _term(self, points: Vector) -> CutGains:
        return CutGains(self.loss, self.most, self.n_records, points)


class OpenGains:
    """Gains that a selection chooses by."""

    def __init__(self, query: Gains, opening: Opening) -> None:
        if not isinstance(opening.mechanism, Selection):
            raise opening.wrong_kind(query, "chooses one of some scores")
        require_moderate(opening.w)
        self._query, self._opening = query, opening

    def choose(self, handicaps: Vector) -> int:
        """The index of one of the models; each but the first loses a handicap of its gain.

        Handicaps follow from public numbers and from releases. They are rounded up to the grid of the gains,
        so that to take them off is exact.
        """
        opening, query = self._opening, self._query
        gains = np.asarray(query(opening.data, opening.w)) - np.ceil(handicaps / query.grid) * query.grid
        moved = query.of_one(opening.neighbours)
        return int(opening.releases.give(np.append(0.0, gains), moved, opening.mechanism))


def gain_for(loss: Loss, target: tuple[float, float] | None) -> tuple[Valued, float]:
    """How held-out records are scored under models of a loss, and what a record's gain is cut to.

    For labels it is half the loss at a margin of 0. For numbers it is half the squared error of a quarter of
    the declared range: a smaller cut would choose by the median record, where targets are skewed.
    """
    score, most = score_for([loss], target)
    return score, most * (_CUT_OF_LABELS if loss.kind == "classification" else _CUT_OF_TARGETS)
