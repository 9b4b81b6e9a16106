"""What a score is: a number in a public range for each record."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from ..arrays import Vector


@dataclass(frozen=True, eq=False)
class Score(ABC):
    """A number for each record, from the margins of a public model and the record's target.

    A value outside of the range, or one that is not a number, is cut to the range, so that every record is
    bounded whatever the score computes.
    """

    @property
    @abstractmethod
    def range(self) -> tuple[float, float]:
        """The least and the largest value: public."""

    @abstractmethod
    def value(self, margins: Vector, y: Vector) -> Vector:
        """The score of each record; margins have shape (n, outputs), classes are numbered from 0."""

    @property
    def middle(self) -> float:
        """The middle of the range."""
        low, high = self.range
        return (low + high) / 2

    @property
    def half(self) -> float:
        """Half of the range."""
        low, high = self.range
        return (high - low) / 2

    @np.errstate(all="ignore")  # a warning about a number would reveal something about a record
    def scaled(self, margins: Vector, y: Vector) -> Vector:
        """The score moved and scaled to [-1, 1]; 0 for one that is not a number."""
        found = (self.value(margins, y) - self.middle) / self.half
        return np.clip(np.nan_to_num(found, nan=0.0), -1.0, 1.0)
