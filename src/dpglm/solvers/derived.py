"""Models that follow from the last one of a fit without a further release: ridge paths and sparse models."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from ..arrays import Vector
from ..losses import Logistic
from ..penalties import L1, L2, ElasticNet, Zero
from ..problem import Problem
from .path import Model

FREEDOMS = (0.9, 0.75, 0.5, 0.25)
"""Ridge paths stop where so large a share of the degrees of freedom is left."""

HALVINGS_OF_FEATURES = 6
"""Sparse models have a half of the features, a quarter, ..."""


@dataclass(frozen=True, eq=False)
class Quadratic:
    """The released quadratic whose minimiser a fit is: the objective, near enough.

    Attributes
    ----------
    to_records : array of shape (d, d)
        Takes coefficients in a metric, in which the curvature is 1, to those of the records' own features.
    ridge : array of shape (d, d)
        Curvature in the metric of a unit of the L2 penalty.
    optimism : float
        Loss that a degree of freedom saves on the rows of the fit, in their sum, and not on others.
    """

    to_records: Vector
    ridge: Vector
    optimism: float

    def ridge_models(self, w: Vector) -> Iterator[Model]:
        """The ridge path from the minimiser w, in terms of the records' own features."""
        values, vectors = np.linalg.eigh((self.ridge + self.ridge.T) / 2)
        values, along = np.maximum(values, 0.0), vectors.T @ np.linalg.solve(self.to_records, w)
        for share in FREEDOMS:
            left = 1 / (1 + _strength(values, share) * values)
            found = self.to_records @ (vectors @ (along * left))
            yield Model(f"ridge to {share:g} of the freedom", found, self.optimism * float(np.sum(1 - left)))

    def sparse_models(self, problem: Problem, w: Vector) -> Iterator[Model]:
        """The minimisers over the features that matter most beside all others, by w, and over none."""
        inverse = np.linalg.inv(self.to_records)
        curvature = inverse.T @ inverse
        p = len(problem.split(w)[0])
        counts = [*sparse_counts(problem, p), *none_counts(problem)]
        for name, kept in _largest(counts, w[:p] * np.sqrt(np.diag(curvature)[:p])):
            left = np.setdiff1d(np.arange(p), kept)
            here = np.append(kept, np.arange(p, len(w)))
            found = np.zeros_like(w)
            moved = curvature[np.ix_(here, left)] @ w[left]
            found[here] = w[here] + np.linalg.solve(curvature[np.ix_(here, here)], moved)
            yield Model(name, found, self.optimism * (p - freedom_of_largest(len(kept), p)))


def sparse_models(problem: Problem, w: Vector) -> Iterator[Model]:
    """Models with the largest coefficients of w, by what they add to a prediction at most."""
    p = len(problem.split(w)[0])
    for name, kept in _largest(sparse_counts(problem, p), w[:p] * problem.bounds.features(p)):
        found = w.copy()
        found[:p] = 0.0
        found[kept] = w[kept]
        yield Model(name, found)


def sparse_counts(problem: Problem, n_features: int) -> list[int]:
    """How many features sparse models have; there are none where a coefficient of 0 may not be allowed."""
    if not isinstance(problem.penalty, Zero | L1 | L2 | ElasticNet):
        return []
    return [n_features >> k for k in range(1, HALVINGS_OF_FEATURES + 1) if n_features >> k]


def none_counts(problem: Problem) -> list[int]:
    """0 for the best constant prediction, which a refit to a Gram matrix offers beside sparse models."""
    return [0] if sparse_counts(problem, 2) and problem.fit_intercept else []


def freedom_of_largest(count: int, p: int) -> float:
    """Degrees of freedom of the largest of p coefficients: their expected squares, if all of them are noise.

    It is more than the count, because these were selected, and p for all of them.
    """
    if not 0 < count < p:
        return float(count)
    normal = NormalDist()
    least = -normal.inv_cdf(count / (2 * p))
    return count + 2 * p * least * normal.pdf(least)


def optimism_of(problem: Problem, spread: float) -> float:
    """Half of what a degree of freedom saves on the rows of the fit and not on others: an estimate.

    That is 1 for the logistic loss (Akaike), and twice the variance of residuals for squared errors
    (Mallows), for which the variance of targets stands; ``spread`` is their deviation over half of their
    range. A half is right at an R² of 1/2. It is 0 for other losses, if the spread was not learnt, and for
    weighted records and persons.
    """
    if problem.has_weights or problem.has_units:
        return 0.0
    if isinstance(problem.loss, Logistic):
        return 0.5
    target = problem.bounds.target
    if problem.loss.kind != "regression" or target is None or spread >= 1.0:
        return 0.0
    return math.pow(spread * (target[1] - target[0]) / 2, 2)


def _largest(counts: list[int], sizes: Vector) -> Iterator[tuple[str, Vector]]:
    """Sets of so many features with the largest absolute sizes, in order of the features."""
    order = np.argsort(-np.abs(sizes), kind="stable")
    for count in counts:
        yield f"{count} feature{'s' * (count != 1)}", np.sort(order[:count])


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
