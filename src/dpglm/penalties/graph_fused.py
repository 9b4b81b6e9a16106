"""Total variation along the edges of a graph of features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any

import numpy as np

from .. import strict
from ..arrays import Vector
from .extensions import Extension, cut_of
from .plateaus import Plateaus

Edges = tuple[tuple[int, int], ...]

_SHOWN = 100  # edges and weights


@dataclass(frozen=True, repr=False)
class GraphFused(Plateaus):
    """strength * sum over edges (i, j) of weight * abs(w_i - w_j) + l2 / 2 * norm(w)².

    Coefficients that an edge joins become equal: neighbouring regions, levels of a taxonomy, bins in two
    dimensions. The proximal step is exact, by flows in whole numbers.

    Parameters
    ----------
    strength : float
        Weight of the penalty beside the mean loss.
    edges : sequence of pairs of int
        Pairs of different features, counted from 0. Features of no edge are not penalised. An edge that is
        given twice counts twice.
    weights : sequence of float, optional
        One for each edge, at least 0; by default 1.
    l2 : float
        Weight of the L2 part, over all features. Output perturbation needs one.

    Examples
    --------
    >>> import numpy as np
    >>> GraphFused(1.0, [(0, 1), (0, 2)]).prox(np.array([1.0, 3.0, 9.0]), step=1.0)
    array([2.5, 2.5, 8. ])
    """

    edges: Sequence[tuple[int, int]]
    weights: Sequence[float] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        edges, weights = checked_edges(self.edges, self.weights)
        object.__setattr__(self, "edges", edges)
        object.__setattr__(self, "weights", weights)

    def __repr__(self) -> str:
        return shown(self)

    @cached_property
    def extension(self) -> Extension:
        return extension_of(self.edges, self.weights)


def checked_edges(edges: object, weights: object) -> tuple[Edges, tuple[float, ...]]:
    """Edges and their weights as plain Python, if they are those of a graph."""
    found = strict.doubles(edges if isinstance(edges, np.ndarray) else _listed(edges))
    if found is None or found.ndim != 2 or found.shape[1] != 2 or not np.all(found == np.rint(found)):
        raise ValueError("edges must be pairs of features such as [(0, 1), (1, 2)], one pair at least")
    if found.min() < 0 or found.max() >= 2**31:
        wrong = found.min() if found.min() < 0 else found.max()
        raise ValueError(f"edges must join features that are counted from 0, got feature {wrong:.0f}")
    if np.any(loops := found[:, 0] == found[:, 1]):
        raise ValueError(f"an edge must join two different features, got {_pair(found[np.argmax(loops)])}")
    given = np.ones(len(found)) if weights is None else strict.doubles(weights)
    if given is None or given.ndim != 1 or not np.all((given >= 0) & (given < np.inf)):
        raise ValueError("weights must be finite numbers of at least 0")
    if len(given) != len(found):
        raise ValueError(f"weights must be one for each of {len(found)} edges, got {len(given)}")
    return tuple(map(_pair, found)), tuple(given.tolist())


def extension_of(edges: Any, weights: Any) -> Extension:
    """The extension of edges that were checked."""
    return cut_of(np.array(edges, dtype=np.intp), np.array(weights))


def shown(penalty: Any) -> str:
    """The penalty as text, without the edges if there are many."""
    parts = []
    for name in strict.names(type(penalty)):
        value = getattr(penalty, name)
        many = isinstance(value, tuple) and len(value) > _SHOWN
        text = f"<{len(value):,}, {sha256(repr(value).encode()).hexdigest()[:16]}>" if many else repr(value)
        parts.append(f"{name}={text}")
    return f"{type(penalty).__name__}({', '.join(parts)})"


def _listed(edges: object) -> object:
    return list(edges) if isinstance(edges, tuple | list | set | frozenset) else edges


def _pair(ends: Vector) -> tuple[int, int]:
    return int(ends[0]), int(ends[1])
