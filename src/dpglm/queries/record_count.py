"""How many records there are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..arrays import Vector
from ..privacy import Neighbours
from .base import Query, WorstCase


@dataclass(frozen=True)
class RecordCount(Query):
    """The number of records, null records included, whatever their weights are.

    Guarantee
    ---------
    A record that is added or removed moves the count by 1. Where the number of records is public nothing
    moves it, and a count has no use. It is a whole number: exact.
    """

    name: ClassVar[str] = "record count"

    def __call__(self, data: Any, *public: Vector) -> Vector:
        return np.array([float(data.n_records)])

    def sensitivity(self, neighbours: Neighbours) -> float:
        return 1.0

    def worst_case(self, n_features: int, radius: float, constant: float) -> WorstCase:
        return WorstCase((np.zeros(n_features), 1.0), (np.zeros(n_features), 1.0), ())
