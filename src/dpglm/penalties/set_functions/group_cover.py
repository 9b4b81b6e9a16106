"""The weight of the groups of features that are used."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...arrays import Vector
from .base import Features, SetFunction
from .cardinality import AnyFeature


@dataclass(frozen=True)
class GroupCover(SetFunction):
    """F(A) = the sum of the weights of the groups that A meets.

    The norm is the sum over groups of weight times the largest abs(w_j) in the group. A feature is free
    of charge once every one of its groups is used. Groups may overlap; the proximal step is fastest if any
    two of them are disjoint or one is within the other, as in a hierarchy.

    Parameters
    ----------
    groups : sequence of sequences of int
        The features of each group; every feature 0, 1, ... is in one at least.
    weights : sequence of float, optional
        One for each group, positive; by default 1.

    Examples
    --------
    >>> import numpy as np
    >>> groups = GroupCover([[0, 1], [2, 3, 4]])
    >>> groups.norm(np.array([1.0, -2.0, 0.0, 0.0, 5.0]))
    7.0
    >>> groups.prox(np.array([1.0, -2.0, 0.0, 0.0, 0.5]), step=1.0)
    array([ 1., -1.,  0.,  0.,  0.])
    """

    groups: tuple[tuple[int, ...], ...]
    weights: tuple[float, ...]

    def __init__(self, groups: Sequence[Sequence[int]], weights: Sequence[float] | None = None) -> None:
        kept = tuple(tuple(sorted({int(j) for j in group})) for group in groups)
        weighed = (1.0,) * len(kept) if weights is None else tuple(float(weight) for weight in weights)
        if len(weighed) != len(kept):
            raise ValueError(f"there must be one weight for each group, got {len(weighed)} for {len(kept)}")
        if not all(0 < weight < np.inf for weight in weighed):
            raise ValueError("weights must be positive and finite")
        covered = {j for group in kept for j in group}
        if not covered or not all(kept) or covered != set(range(len(covered))):
            raise ValueError("groups must not be empty, and every feature 0, 1, ... must be in one of them")
        object.__setattr__(self, "groups", kept)
        object.__setattr__(self, "weights", weighed)

    @property
    def n_features(self) -> int:
        return self._size

    @cached_property
    def _size(self) -> int:
        return 1 + max(group[-1] for group in self.groups)

    @cached_property
    def _members(self) -> tuple[Features, Features]:
        """The features of all groups, one group after the other, and where each group begins."""
        sizes = [len(group) for group in self.groups]
        return np.concatenate(self.groups).astype(np.intp), np.cumsum([0, *sizes[:-1]])

    @cached_property
    def _hierarchy(self) -> tuple[tuple[Features, float], ...] | None:
        """Groups and weights, inner groups first, if any two are disjoint or nested."""
        outermost: dict[int, tuple[int, ...]] = {}
        ordered = sorted(zip(self.groups, self.weights, strict=True), key=lambda pair: len(pair[0]))
        for group, _ in ordered:
            inside = Counter(outermost[j] for j in group if j in outermost)
            if any(len(inner) != count for inner, count in inside.items()):
                return None
            outermost.update(dict.fromkeys(group, group))
        return tuple((np.array(group), weight) for group, weight in ordered)

    def gains(self, order: Features) -> Vector:
        place = np.full(self.n_features, len(order))
        place[order] = np.arange(len(order))
        members, begins = self._members
        gains = np.zeros(len(order) + 1)
        np.add.at(gains, np.minimum.reduceat(place[members], begins), self.weights)
        return gains[:-1]

    def shrink(self, size: Vector, step: float) -> Vector:
        """Return the proximal step of coefficients that are at least 0.

        In a hierarchy it is the step of one group after the other, inner groups first; see Jenatton, Mairal,
        Obozinski and Bach, "Proximal methods for hierarchical sparse coding", arXiv:1009.2139.
        """
        if self._hierarchy is None:
            return super().shrink(size, step)
        result = size.copy()
        for group, weight in self._hierarchy:
            result[group] = AnyFeature().shrink(result[group], step * weight)
        return result

    def support(self, size: Vector, step: float) -> Features:
        if self._hierarchy is None:
            return super().support(size, step)
        return np.flatnonzero(self.shrink(size, step))

    def mean_value(self, rate: Vector, n_features: int) -> Vector | None:
        sizes = np.array([len(group) for group in self.groups])
        mean: Vector = (1 - (1 - np.asarray(rate)[..., None]) ** sizes) @ np.array(self.weights)
        return mean
