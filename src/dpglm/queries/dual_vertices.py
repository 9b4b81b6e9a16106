"""Scores of the vertices of a dual ball that has two for each feature."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..arrays import Vector
from ..data.records import Records
from ..mechanisms import Mechanism, Selection
from ..privacy import Neighbours
from .base import Query, Releases, WorstCase, require_moderate, wrong_kind
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

    def __call__(self, data: Records, *public: Vector) -> Vector:
        features, _ = data.split(self.radius * self.minimiser(data, *public))
        return np.concatenate([features, -features])

    def sensitivity(self, neighbours: Neighbours) -> Vector:
        return np.full(2 * self.minimiser.n_features, self.radius * self.minimiser.sensitivity(neighbours))

    def worst_case(self, n_features: int, radius: float, constant: float) -> WorstCase:
        return self.minimiser.worst_case(n_features, radius, constant)

    def open(
        self, data: Records, w: Vector, neighbours: Neighbours, releases: Releases, mechanism: Mechanism
    ) -> OpenDualVertices:
        """The scores for minimisers with the start w."""
        if not isinstance(mechanism, Selection):
            raise wrong_kind(self, mechanism, "selects")
        sensitivity = float(self.sensitivity(neighbours)[0])
        return OpenDualVertices(self, data, w, sensitivity, releases, mechanism)


class OpenDualVertices:
    """Scores behind ``select``."""

    def __init__(
        self, query: DualVertices, data: Records, start: Vector, sensitivity: float,
        releases: Releases, mechanism: Selection,
    ) -> None:  # fmt: skip
        self._query, self._data, self._start = query, data, start
        self._sensitivity, self._releases, self._mechanism = sensitivity, releases, mechanism

    def select(self, linear: Vector) -> int:
        """A vertex whose score for a linear term is nearly the largest: costs one event."""
        require_moderate(linear)
        scores = self._query(self._data, linear, self._start)
        return self._releases.give(scores, self._sensitivity, self._mechanism)
