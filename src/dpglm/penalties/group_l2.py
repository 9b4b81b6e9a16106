"""Group lasso and sparse group lasso."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

from .group_norm import Group, GroupNorm, root_sizes, whole_groups


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
        given = self.groups.values() if isinstance(self.groups, Mapping) else self.groups
        groups = whole_groups(given)
        object.__setattr__(self, "groups", groups)
        if self.weights is None:
            object.__setattr__(self, "weights", root_sizes(groups))
        self._check()

    def scaled(self, factor: float) -> Self:
        return replace(self, strength=factor * self.strength, l1=factor * self.l1, l2=factor * self.l2)

    @property
    def members(self) -> tuple[Group, ...]:
        return self.groups  # type: ignore[return-value]  # as it was set when the penalty was made
