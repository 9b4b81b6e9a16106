"""Scores of the vertices of a dual ball that has two for each feature."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..arrays import Vector
from ..data.record_set import RecordSet
from ..mechanisms import Selection
from ..privacy import Neighbours
from .base import Opening, Query, WorstCase, require_moderate
from .minimiser import Minimiser


@dataclass(frozen=True)
class DualVertices(Query):
    """The inner product of the minimiser with each vertex, +radius along every feature, then -radius.

    Guarantee
    ---------
    An entry of a vector moves by no more than the vector in the L2 norm, so each score moves by at most the
    radius times the sensitivity of the minimiser.
    """

    name: ClassVar[str] = "dual vertex scores"
    minimiser: Minimiser
    radius: float

    def __call__(self, data: RecordSet, *public: Vector) -> Vector:
        features, _ = data.split(self.radius * self.minimiser(data, *public))
        return np.concatenate([features, -features])

    def sensitivity(self, neighbours: Neighbours) -> Vector:
        return np.full(2 * self.minimiser.n_features, self.radius * self.minimiser.sensitivity(neighbours))

    def worst_case(self, n_features: int, radius: float, constant: float) -> WorstCase:
        return self.minimiser.worst_case(n_features, radius, constant)

    def open(self, opening: Opening) -> OpenDualVertices:
        """The scores for minimisers with the start w."""
        return OpenDualVertices(self, opening)


class OpenDualVertices:
    """Scores behind ``select``."""

    def __init__(self, query: DualVertices, opening: Opening) -> None:
        if not isinstance(opening.mechanism, Selection):
            raise opening.wrong_kind(query, "selects")
        self._query, self._opening = query, opening
        self._sensitivity = float(query.sensitivity(opening.neighbours)[0])

    def select(self, linear: Vector) -> int:
        """A vertex whose score for a linear term is nearly the largest: costs one event."""
        require_moderate(linear)
        opening = self._opening
        scores = self._query(opening.data, linear, opening.w)
        vertex: int = opening.releases.give(scores, self._sensitivity, opening.mechanism)
        return vertex
