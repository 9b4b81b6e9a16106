"""A feature only with its ancestors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np

from .. import strict
from .group_norm import Group, GroupNorm, root_sizes

_ROOT = -1


@dataclass(frozen=True)
class Hierarchy(GroupNorm):
    """strength * sum over features of weight * norm of the coefficients of the feature and its descendants.

    The features are the nodes of a tree, or of several. A feature is left out together with all below it, so
    one that is kept has all its ancestors: interactions only with their main effects, or fine regions only
    with those that contain them. See Zhao, Rocha and Yu, "The composite absolute penalties family for grouped
    and hierarchical variable selection", and Jenatton, Mairal, Obozinski and Bach, "Proximal methods for
    hierarchical sparse coding".

    Parameters
    ----------
    strength : float
        Weight of the norms beside the mean loss.
    tree : sequence of int, or mapping of int to sequence of int
        The parent of each feature, -1 for one without; or the children of each feature that has some.
    weights : sequence of float, optional
        One for each feature, of the norm of it and its descendants; by default the root of how many they are.
        With 1 for each, fewer features are kept that do not matter, and those that do are shrunk more.
    l2 : float
        Weight of an L2 part, ``l2 / 2 * norm(w)²``. Output perturbation needs one.

    Examples
    --------
    >>> import numpy as np
    >>> penalty = Hierarchy(1.0, [-1, 0, 0, -1], weights=[2, 1, 1, 1])
    >>> penalty == Hierarchy(1.0, {0: [1, 2], 3: []}, weights=[2, 1, 1, 1])
    True
    >>> penalty.value(np.array([0.0, 3.0, 4.0, 2.0]))
    19.0
    >>> penalty.prox(np.array([0.2, 2.5, 0.5, 2.0]), step=1.0)
    array([0., 0., 0., 1.])
    """

    strength: float
    tree: Sequence[int] | Mapping[int, Sequence[int]]
    weights: Sequence[float] | None = None
    l2: float = 0.0
    l1 = 0.0  # it would leave out ancestors of features that are kept

    def __post_init__(self) -> None:
        parents = _parents_of(self.tree) if isinstance(self.tree, Mapping) else _parents(self.tree)
        object.__setattr__(self, "tree", parents)
        _require_no_cycle(parents)
        if self.weights is None:
            object.__setattr__(self, "weights", root_sizes(self.members))
        self._check()

    def scaled(self, factor: float) -> Self:
        return replace(self, strength=factor * self.strength, l2=factor * self.l2)

    @cached_property
    def members(self) -> tuple[Group, ...]:
        """Each feature with its descendants."""
        below: list[list[int]] = [[] for _ in self.tree]
        for feature in range(len(below)):
            above = feature
            while above != _ROOT:
                below[above].append(feature)
                above = self.tree[above]  # type: ignore[assignment]  # as it was set: parents
        return tuple(map(tuple, below))


def _parents(tree: Sequence[int]) -> Group:
    """The parent of each feature, of a sequence of them."""
    if not isinstance(tree, Sequence | np.ndarray) or isinstance(tree, str):
        raise strict.wrong("tree", tree, "the parent of each feature, or a mapping to children")
    found = tuple(strict.whole("a parent in tree", parent, _ROOT) for parent in tree)
    if not found:
        raise ValueError("tree must have a feature, got none")
    outside = next((feature for feature, parent in enumerate(found) if parent >= len(found)), None)
    if outside is not None:
        raise ValueError(
            f"the parent of feature {outside} is {found[outside]}, but tree has {len(found)} features"
        )
    return found


def _parents_of(tree: Mapping[int, Sequence[int]]) -> Group:
    """The parent of each feature, of a mapping from features to their children."""
    found: dict[int, int] = {}
    for given, children in tree.items():
        parent = strict.whole("a feature of tree", given, 0)
        for child in (strict.whole("a child in tree", one, 0) for one in children):
            if child in found:
                raise ValueError(f"feature {child} has two parents in tree, {found[child]} and {parent}")
            found[child] = parent
    features = {*found, *found.values(), *(int(feature) for feature in tree)}
    lacking = next((j for j in range(len(features)) if j not in features), None)
    if not features or lacking is not None:
        raise ValueError(f"feature {lacking or 0} is not in tree: it must have every feature 0, 1, ...")
    return tuple(found.get(feature, _ROOT) for feature in range(len(features)))


def _require_no_cycle(parents: Group) -> None:
    rooted = {_ROOT}
    for feature in range(len(parents)):
        path: set[int] = set()
        while feature not in rooted:
            if feature in path:
                raise ValueError(f"tree has a cycle: feature {feature} is below itself")
            path.add(feature)
            feature = parents[feature]
        rooted |= path
