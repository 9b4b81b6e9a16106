"""Cells: which of some public cells a record falls into."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from ..arrays import Vector

Places = NDArray[np.intp]


def places(values: Vector, low: float, high: float, count: int) -> Places:
    """The index of the bin of each value, for bins of equal width; values outside are in the end bins."""
    with np.errstate(all="ignore"):
        found = np.floor((values - low) * (count / (high - low)))
    return np.asarray(np.clip(np.nan_to_num(found), 0, count - 1).astype(np.intp))


@dataclass(frozen=True, eq=False)
class CellsOf(ABC):
    """A cell for each record, and an amount in [-1, 1].

    Attributes
    ----------
    spread : float
        How far the amounts of two records of the same cell can be apart.
    """

    spread: float

    @property
    @abstractmethod
    def count(self) -> int:
        """Number of cells."""

    @property
    def has_amounts(self) -> bool:
        """Whether amounts are summed, too, or records are only counted."""
        return self.spread > 0

    @abstractmethod
    def cells(self, margins: Vector, y: Vector) -> tuple[Places, Vector]:
        """The cell and the amount of each record."""


@dataclass(frozen=True, eq=False)
class ClassesByMargin(CellsOf):
    """Bins of the margin, apart for two classes: those of class 0 first.

    Parameters
    ----------
    bins : int
    reach : float
        Margins from -reach to reach are divided into bins of equal width; others fall into the end bins.
    """

    bins: int
    reach: float

    @property
    def count(self) -> int:
        return 2 * self.bins

    def places(self, margins: Vector) -> Places:
        """The bin of each record."""
        return places(margins[:, 0], -self.reach, self.reach, self.bins)

    def cells(self, margins: Vector, y: Vector) -> tuple[Places, Vector]:
        return self.places(margins) + self.bins * (y > 0), np.zeros(len(y))


@dataclass(frozen=True, eq=False)
class Reliability(CellsOf):
    """Bins of the predicted probability of class 1; the amount is outcome - probability.

    In a bin of width 1/bins the amounts of two records are at most 1 + 1/bins apart.
    """

    bins: int

    @property
    def count(self) -> int:
        return self.bins

    def cells(self, margins: Vector, y: Vector) -> tuple[Places, Vector]:
        chance = expit(margins[:, 0])
        return places(chance, 0.0, 1.0, self.bins), (y > 0) - chance
