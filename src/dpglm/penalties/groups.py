"""Euclidean norms of groups of features that are disjoint or nested: group lasso and hierarchies."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincinv

from .. import strict
from ..arrays import Vector, soft_threshold
from .base import CONFIDENCE, Penalty

Group = tuple[int, ...]


class GroupNorm(Penalty):
    """strength * sum of weight * norm(w_group) + l1 * sum of abs(w_j) + l2 / 2 * norm(w)².

    Any two groups are disjoint, or one is within the other, and every feature is in one at least. A subclass
    is a frozen dataclass that sets the four values below, and says its groups.
    """

    strength: float
    weights: Sequence[float] | None
    l1: float
    l2: float

    @property
    @abstractmethod
    def members(self) -> tuple[Group, ...]:
        """The features of each group, sorted."""

    @property
    def strong_convexity(self) -> float:
        return self.l2

    @property
    def is_zero(self) -> bool:
        return self.l1 == 0 and self.l2 == 0 and not np.any(self._thresholds)

    def value(self, w: Vector) -> float:
        self._require_width(w)
        norms = sum(float(level.norms(w) @ self._thresholds[level.indices]) for level in self._levels)
        return norms + self.l1 * float(np.sum(np.abs(w))) + self.l2 / 2 * float(np.sum(np.square(w)))

    def prox(self, w: Vector, step: float | Vector) -> Vector:
        """Return the u that minimises norm(u - w)² / 2 + step * penalty(u).

        Single features are shrunk first, then one group after the other, inner groups first, then all by the
        L2 part. For groups of this kind the composition is exact; see Jenatton, Mairal, Obozinski and Bach,
        "Proximal methods for hierarchical sparse coding".
        """
        self._require_one_step(step)
        self._require_width(w)
        result = soft_threshold(w, step * self.l1)
        for level in self._levels:
            level.shrink(result, step * self._thresholds[level.indices])
        return result / (1 + step * self.l2)

    def prox_rounding(self, n_features: int, given: float = 0.0) -> float:
        """Return how far from the exact proximal step the computed one may be; see `Penalty.prox_rounding`.

        It is proven (docs/proofs/minimiser.md, *the proximal step*). An L1 and an L2 part round as often as
        those of separable penalties. A norm of k entries is off by k / 2 + 1 units. Errors of the norms count
        as much as their groups shrink, and the squares of that add up to at most norm(w)²; beside it each
        level of groups rounds three times.
        """
        if self.is_zero:
            return given
        singles = (2.0 + given if self.l1 else 0.0) + (3.0 + given if self.l2 else 0.0)
        if not np.any(self._thresholds):
            return given + singles
        squares = sum((float(level.sizes.max()) / 2 + given) ** 2 for level in self._levels)
        return given + singles + 3.0 * len(self._levels) + math.sqrt(squares) + 1.0

    def support(self, w: Vector, noise: float) -> NDArray[np.bool_]:
        """Return which coefficients are to differ from 0 if w carries noise of that deviation.

        Those all of whose groups are longer than noise alone would make them, in all but a twentieth of
        cases. With an L1 part each feature is a group, too. A group of weight 0 is not tested.
        """
        tested = self._thresholds > 0
        count = int(tested.sum()) + (w.size if self.l1 else 0)
        if count == 0:
            return super().support(w, noise)
        self._require_width(w)
        longest = noise * _noise_lengths(np.array([len(group) for group in self.members]), count)
        kept = np.ones(w.shape, dtype=bool)
        for level in self._levels:
            long = (level.norms(w) > longest[level.indices]) | ~tested[level.indices]
            kept[level.features] &= np.repeat(long, level.sizes)
        return kept & (np.abs(w) > noise * _noise_lengths(np.ones(1), count)) if self.l1 else kept

    def rounded(self, w: Vector, width: float) -> Vector:
        return np.where(self.pattern(np.abs(w) > width), w, 0.0)

    def pattern(self, kept: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return all but the groups of which no coefficient is kept; an L1 part makes single zeros."""
        if self.l1:
            return kept
        pattern = np.ones(kept.shape, dtype=bool)
        for level in self._levels:
            used = np.logical_or.reduceat(kept[level.features], level.begins)
            pattern[level.features] &= np.repeat(used | (self._thresholds[level.indices] == 0), level.sizes)
        return pattern

    def _check(self) -> None:
        """Refuse strengths, weights and groups that make no such penalty."""
        for name in ("strength", "l1", "l2"):
            strict.level(name, getattr(self, name))
        weights, shape = strict.doubles(self.weights), (len(self.members),)
        if weights is None or weights.shape != shape or not np.all((weights >= 0) & (weights < np.inf)):
            needed = f"{len(self.members)} numbers, finite and >= 0, one for each group"
            raise strict.wrong("weights", self.weights, needed)
        object.__setattr__(self, "weights", tuple(weights.tolist()))
        _ = self._levels  # refuses groups that overlap

    def _require_width(self, w: Vector) -> None:
        if len(w) != self._width:
            raise ValueError(f"{type(self).__name__} is for {self._width} features, got {len(w)}")

    @cached_property
    def _width(self) -> int:
        return 1 + max(group[-1] for group in self.members)

    @cached_property
    def _thresholds(self) -> Vector:
        return self.strength * np.array(self.weights, dtype=np.float64)

    @cached_property
    def _levels(self) -> tuple[DisjointGroups, ...]:
        """Groups by how many are nested within: those of one level are disjoint, inner ones come first."""
        outermost: dict[int, int] = {}
        levels: dict[int, list[int]] = {}
        heights: dict[int, int] = {}
        for index in sorted(range(len(self.members)), key=lambda index: len(self.members[index])):
            group = self.members[index]
            within = Counter(outermost[j] for j in group if j in outermost)
            for inner, count in within.items():
                self._require_nested(self.members[inner], group, count)
            heights[index] = 1 + max((heights[inner] for inner in within), default=-1)
            levels.setdefault(heights[index], []).append(index)
            outermost.update(dict.fromkeys(group, index))
        return tuple(DisjointGroups.of(levels[height], self.members) for height in sorted(levels))

    def _require_nested(self, inner: Group, group: Group, common: int) -> None:
        if inner == group:
            raise ValueError(f"the group {list(group)} is given twice")
        if common < len(inner):
            shared = min(set(inner) & set(group))
            raise ValueError(
                f"feature {shared} is in two groups, neither of which is within the other: "
                "Submodular(strength, GroupCover(groups)) takes groups that overlap"
            )


@dataclass(frozen=True, eq=False)
class DisjointGroups:
    """Disjoint groups.

    Parameters
    ----------
    indices : array of int
        Their indices among all groups.
    features : array of int
        The features of one group after the other.
    sizes, begins : array of int
        How many features each group has, and where they begin.
    """

    indices: NDArray[np.intp]
    features: NDArray[np.intp]
    sizes: NDArray[np.intp]
    begins: NDArray[np.intp]

    @classmethod
    def of(cls, indices: Sequence[int], groups: Sequence[Group]) -> Self:
        """The groups at these indices among all."""
        members = [groups[index] for index in indices]
        sizes = np.array([len(group) for group in members], dtype=np.intp)
        features = np.array([j for group in members for j in group], dtype=np.intp)
        return cls(np.array(indices, dtype=np.intp), features, sizes, np.cumsum(sizes) - sizes)

    def norms(self, w: Vector) -> Vector:
        """The Euclidean norm of each group."""
        norms: Vector = np.sqrt(np.add.reduceat(np.square(w[self.features]), self.begins))
        return norms

    def shrink(self, w: Vector, thresholds: Vector) -> None:
        """Shorten each group by its threshold, to 0 if it is not longer."""
        norms = self.norms(w)
        factors = np.asarray(thresholds == 0, dtype=np.float64)  # also where squares vanish in doubles
        shrunk = np.maximum(norms - thresholds, 0.0)
        np.divide(shrunk, norms, out=factors, where=(norms > 0) & (thresholds > 0))
        w[self.features] *= np.repeat(factors, self.sizes)


def checked_groups(groups: Iterable[Iterable[int]]) -> tuple[Group, ...]:
    """The groups as sorted tuples, if they hold every feature 0, 1, ... and none twice."""
    try:
        listed = [list(group) for group in groups]
    except TypeError:
        raise strict.wrong("groups", groups, "a sequence of sequences of features") from None
    checked = []
    for group in listed:
        features = [strict.whole("a feature of a group", j, 0) for j in group]
        if not features:
            raise ValueError("a group must have a feature, got an empty one")
        if len(set(features)) < len(features):
            raise ValueError(f"a group must not have a feature twice, got {features}")
        checked.append(tuple(sorted(features)))
    covered = {j for group in checked for j in group}
    if not covered:
        raise ValueError("there must be a group, got none")
    lacking = next((j for j in range(len(covered)) if j not in covered), None)
    if lacking is not None:
        raise ValueError(
            f"feature {lacking} is in no group, {max(covered)} is in one: features of a group of weight 0 "
            "are free of the penalty"
        )
    return tuple(checked)


def root_sizes(groups: Sequence[Group]) -> list[float]:
    """The usual weights: noise makes a group about as long as the root of its size."""
    return [math.sqrt(len(group)) for group in groups]


def _noise_lengths(sizes: NDArray[np.generic], count: int) -> Vector:
    """The length of a group of so many unit normal entries that the longest of ``count`` groups seldom has.

    Lengths of groups that share entries exceed theirs together, so that any exceeds its own less often than
    if they were independent: that is the Gaussian correlation inequality of Royen.
    """
    quantiles = gammaincinv(np.asarray(sizes, dtype=np.float64) / 2, CONFIDENCE ** (1 / count))
    lengths: Vector = np.sqrt(2 * quantiles)
    return lengths


@dataclass(frozen=True)
class GroupL2(GroupNorm):
    """strength * sum over groups of weight * norm(w_group): the group lasso's penalty.

    A group is kept or left out as a whole. With an L1 part, ``l1 * sum of abs(w_j)``, it is the penalty of
    the sparse group lasso: few groups, and few features in each. With ``l2`` it has a ridge part,
    ``l2 / 2 * norm(w)²``, too. See Yuan and Lin, "Model selection and estimation in regression with grouped
    variables", and Simon, Friedman, Hastie and Tibshirani, "A sparse-group lasso".

    Parameters
    ----------
    strength : float
        Weight of the norms of groups beside the mean loss.
    groups : sequence of sequences of int, or mapping to these
        The features of each group, as `Schema.groups` states those of the columns of a raw table. Every
        feature 0, 1, ... is in a group. Any two groups are disjoint, or one is within the other.
    weights : sequence of float, optional
        One for each group; by default the root of its size. Features of a group of weight 0 are free.
    l1 : float
        Weight of the L1 part beside the mean loss.
    l2 : float
        Weight of the L2 part. Output perturbation needs one.

    Examples
    --------
    >>> import numpy as np
    >>> from dpglm import Bounds, GLMRegressor
    >>> penalty = GroupL2(0.1, [[0, 1], [2, 3]], weights=[1.0, 1.0])
    >>> penalty.prox(np.array([3.0, -4.0, 0.6, 0.8]), step=10.0)
    array([ 2.4, -3.2,  0. ,  0. ])
    >>> X = np.random.default_rng(0).uniform(-0.5, 0.5, (5000, 4))
    >>> bounds = Bounds(row_norm=1.0, target=(-1, 1))
    >>> model = GLMRegressor(epsilon=1.0, penalty=penalty, bounds=bounds).fit(X, X[:, 0] - X[:, 1])
    >>> model.coef_.shape
    (4,)
    """

    strength: float
    groups: Sequence[Sequence[int]] | Mapping[str, Sequence[int]]
    weights: Sequence[float] | None = None
    l1: float = 0.0
    l2: float = 0.0

    def __post_init__(self) -> None:
        groups = checked_groups(self.groups.values() if isinstance(self.groups, Mapping) else self.groups)
        object.__setattr__(self, "groups", groups)
        if self.weights is None:
            object.__setattr__(self, "weights", root_sizes(groups))
        self._check()

    def scaled(self, factor: float) -> Self:
        return replace(self, strength=factor * self.strength, l1=factor * self.l1, l2=factor * self.l2)

    @property
    def members(self) -> tuple[Group, ...]:
        return self.groups  # type: ignore[return-value]  # as it was set when the penalty was made


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
    parents = tuple(strict.whole("a parent in tree", parent, _ROOT) for parent in tree)
    if not parents:
        raise ValueError("tree must have a feature, got none")
    outside = next((feature for feature, parent in enumerate(parents) if parent >= len(parents)), None)
    if outside is not None:
        raise ValueError(
            f"the parent of feature {outside} is {parents[outside]}, but tree has {len(parents)} features"
        )
    return parents


def _parents_of(tree: Mapping[int, Sequence[int]]) -> Group:
    """The parent of each feature, of a mapping from features to their children."""
    parents: dict[int, int] = {}
    for feature, children in tree.items():
        parent = strict.whole("a feature of tree", feature, 0)
        for child in (strict.whole("a child in tree", child, 0) for child in children):
            if child in parents:
                raise ValueError(f"feature {child} has two parents in tree, {parents[child]} and {parent}")
            parents[child] = parent
    features = {*parents, *parents.values(), *(int(feature) for feature in tree)}
    lacking = next((j for j in range(len(features)) if j not in features), None)
    if not features or lacking is not None:
        raise ValueError(f"feature {lacking or 0} is not in tree: it must have every feature 0, 1, ...")
    return tuple(parents.get(feature, _ROOT) for feature in range(len(features)))


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
