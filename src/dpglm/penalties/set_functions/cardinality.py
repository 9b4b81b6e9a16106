"""Set functions that depend on the number of features alone."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
from scipy.optimize import isotonic_regression
from scipy.special import betainc

from ...arrays import Vector
from .base import Features, SetFunction


@dataclass(frozen=True)
class OfCardinality(SetFunction):
    """F(A) = the sum of the first abs(A) of some weights that do not increase.

    norm(w) is the sum of the weights times the abs(w_j) in falling order.
    """

    @abstractmethod
    def increments(self, n_features: int) -> Vector:
        """Return the weights, one for each feature."""

    def gains(self, order: Features) -> Vector:
        return self.increments(len(order))

    def dual_norm(self, g: Vector) -> float:
        """Return the largest ratio of the k largest abs(g_j) to the k first weights."""
        largest = np.sort(self._sizes(g))[::-1]
        return float(np.max(np.cumsum(largest) / np.cumsum(self.increments(len(g))), initial=0.0))

    def shrink(self, size: Vector, step: float) -> Vector:
        """Return the proximal step of coefficients that are at least 0, by pooling adjacent violators.

        See Bogdan, van den Berg, Sabatti, Su and Candes, "SLOPE: adaptive variable selection via convex
        optimization", doi:10.1214/15-AOAS842.
        """
        order = np.argsort(-size, kind="stable")
        result = np.empty(size.shape)
        shrunk = size[order] - step * self.increments(size.size)
        result[order] = isotonic_regression(shrunk, increasing=False).x if size.size else shrunk
        return np.maximum(result, 0)

    def mean_value(self, rate: Vector, n_features: int) -> Vector | None:
        k = np.arange(1, n_features + 1)
        reached: Vector = betainc(k, n_features + 1 - k, np.asarray(rate)[..., None])
        return reached @ self.increments(n_features)


@dataclass(frozen=True)
class Cardinality(OfCardinality):
    """F(A) = the number of features in A; its norm is the L1 norm.

    Examples
    --------
    >>> import numpy as np
    >>> Cardinality().norm(np.array([3.0, -2.0]))
    5.0
    """

    def increments(self, n_features: int) -> Vector:
        return np.ones(n_features)

    def mean_value(self, rate: Vector, n_features: int) -> Vector | None:
        return n_features * np.asarray(rate)


@dataclass(frozen=True)
class AnyFeature(OfCardinality):
    """F(A) = 1 if A has any feature; its norm is the largest abs(w_j).

    Examples
    --------
    >>> import numpy as np
    >>> AnyFeature().prox(np.array([3.0, -2.0]), step=2.0)
    array([ 1.5, -1.5])
    """

    @property
    def few_vertices(self) -> bool:
        return True

    def increments(self, n_features: int) -> Vector:
        return np.eye(1, n_features).ravel()

    def mean_value(self, rate: Vector, n_features: int) -> Vector | None:
        return 1 - (1 - np.asarray(rate)) ** n_features


@dataclass(frozen=True)
class Ordered(OfCardinality):
    """F(A) = weights[0] + ... + weights[abs(A) - 1], a concave function of the number of features.

    The norm is the sum of weights[k] times the k-th largest abs(w_j): ordered weighted L1, SLOPE or OSCAR.

    Parameters
    ----------
    weights : sequence of float
        One for each feature: at least 0, not increasing, and the first one positive. For a concave h with
        h(0) = 0 they are h(1) - h(0), h(2) - h(1), ...

    Examples
    --------
    >>> import numpy as np
    >>> Ordered((2.0, 1.0)).norm(np.array([-1.0, 3.0]))
    7.0
    """

    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        weights = tuple(float(weight) for weight in self.weights)
        if not (weights and np.all(np.isfinite(weights)) and weights[0] > 0 and weights[-1] >= 0):
            raise ValueError("weights must be finite and at least 0, the first one positive")
        if np.any(np.diff(weights) > 0):
            raise ValueError("weights must not increase")
        object.__setattr__(self, "weights", weights)

    @property
    def n_features(self) -> int:
        return len(self.weights)

    def increments(self, n_features: int) -> Vector:
        return np.array(self.weights[:n_features])
