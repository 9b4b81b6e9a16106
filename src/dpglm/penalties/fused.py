"""The fused lasso: total variation and L1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

from .. import strict
from .extensions import Chain, Extension
from .graph_fused import checked_edges, extension_of, shown
from .plateaus import Plateaus


@dataclass(frozen=True, repr=False)
class Fused(Plateaus):
    """The fused lasso: strength * total variation + l1 * sum of abs(w_j) + l2 / 2 * norm(w)².

    Neighbouring coefficients become equal, and small ones 0. See Tibshirani, Saunders, Rosset, Zhu and
    Knight, "Sparsity and smoothness via the fused lasso".

    Parameters
    ----------
    strength : float
        Weight of the total variation beside the mean loss.
    l1 : float
        Weight of the L1 part.
    edges, weights : optional
        Which coefficients are neighbours, as in `GraphFused`; by default all form a chain, as in
        `TotalVariation`.
    l2 : float
        Weight of the L2 part. Output perturbation needs one.

    Examples
    --------
    >>> import numpy as np
    >>> Fused(1.0, l1=3.0).prox(np.array([1.0, 2.0, 9.0, 8.0]), step=1.0)
    array([0., 0., 5., 5.])
    """

    l1: float
    edges: Sequence[tuple[int, int]] | None = None
    weights: Sequence[float] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        strict.level("l1", self.l1)
        if self.edges is not None:
            edges, weights = checked_edges(self.edges, self.weights)
            object.__setattr__(self, "edges", edges)
            object.__setattr__(self, "weights", weights)
        elif self.weights is not None:
            raise ValueError("weights are those of edges: give edges, too")

    def __repr__(self) -> str:
        return shown(self)

    @property
    def l1_part(self) -> float:
        return self.l1

    def scaled(self, factor: float) -> Self:
        return replace(super().scaled(factor), l1=factor * self.l1)

    @cached_property
    def extension(self) -> Extension:
        return Chain() if self.edges is None else extension_of(self.edges, self.weights)
