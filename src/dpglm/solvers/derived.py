"""Models that follow from the last one of a fit without a further release: ridge paths and sparse models."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..arrays import Vector
from ..penalties import L1, L2, ElasticNet, Zero
from ..problem import Problem

FREEDOMS = (0.9, 0.75, 0.5, 0.25)
"""Ridge paths stop where so large a share of the degrees of freedom is left."""

HALVINGS_OF_FEATURES = 6
"""Sparse models have a half of the features, a quarter, ..."""

Named = tuple[str, Vector]
"""A model, and words that say which it is."""


@dataclass(frozen=True, eq=False)
class Quadratic:
    """The released quadratic whose minimiser a fit is: the objective, near enough.

    Attributes
    ----------
    to_records : array of shape (d, d)
        Takes coefficients in a metric, in which the curvature is 1, to those of the records' own features.
    ridge : array of shape (d, d)
        Curvature in the metric of a unit of the L2 penalty.
    """

    to_records: Vector
    ridge: Vector

    def ridge_models(self, w: Vector) -> Iterator[Named]:
        """The ridge path from the minimiser w, in terms of the records' own features."""
        values, vectors = np.linalg.eigh((self.ridge + self.ridge.T) / 2)
        values, along = np.maximum(values, 0.0), vectors.T @ np.linalg.solve(self.to_records, w)
        for share in FREEDOMS:
            shrunk = along / (1 + _strength(values, share) * values)
            yield f"ridge to {share:g} of the freedom", self.to_records @ (vectors @ shrunk)

    def sparse_models(self, problem: Problem, w: Vector) -> Iterator[Named]:
        """The minimisers over the features that matter most, alone or with all others, by w."""
        inverse = np.linalg.inv(self.to_records)
        curvature = inverse.T @ inverse
        p = len(problem.split(w)[0])
        for name, kept in _largest(problem, w[:p] * np.sqrt(np.diag(curvature)[:p])):
            left = np.setdiff1d(np.arange(p), kept)
            here = np.append(kept, np.arange(p, len(w)))
            found = np.zeros_like(w)
            moved = curvature[np.ix_(here, left)] @ w[left]
            found[here] = w[here] + np.linalg.solve(curvature[np.ix_(here, here)], moved)
            yield name, found


def sparse_models(problem: Problem, w: Vector) -> Iterator[Named]:
    """Models with the largest coefficients of w, by what they add to a prediction at most."""
    p = len(problem.split(w)[0])
    for name, kept in _largest(problem, w[:p] * problem.bounds.features(p)):
        found = w.copy()
        found[:p] = 0.0
        found[kept] = w[kept]
        yield name, found


def sparse_counts(problem: Problem, n_features: int) -> list[int]:
    """How many features sparse models have; there are none where a coefficient of 0 may not be allowed."""
    if not isinstance(problem.penalty, Zero | L1 | L2 | ElasticNet):
        return []
    return [n_features >> k for k in range(1, HALVINGS_OF_FEATURES + 1) if n_features >> k]


def _largest(problem: Problem, sizes: Vector) -> Iterator[tuple[str, Vector]]:
    """Sets of the features with the largest absolute sizes, in order of the features."""
    order = np.argsort(-np.abs(sizes), kind="stable")
    for count in sparse_counts(problem, len(sizes)):
        yield f"{count} feature{'s' * (count > 1)}", np.sort(order[:count])


def _strength(values: Vector, share: float) -> float:
    """The strength of a ridge penalty that leaves this share of the degrees of freedom that it can take."""
    penalised = values[values > 1e-9 * values.max(initial=0.0)]
    if not penalised.size:
        return 0.0
    low, high = 1e-12 / float(penalised.max()), 1e12 / float(penalised.min())
    for _ in range(120):
        middle = float(np.sqrt(low * high))
        low, high = (middle, high) if np.mean(1 / (1 + middle * penalised)) > share else (low, middle)
    return high
