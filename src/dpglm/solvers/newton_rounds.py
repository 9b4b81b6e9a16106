"""The algebra of Newton's rounds: all of it is post-processing of releases.

Vectors are in public coordinates (features in [-1, 1], then the constant 1) or in the metric, in which a
record is u = coordinates @ transform. The page docs/inference.md explains the method.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..arrays import Vector
from ..queries.score_and_curvature import Parts

_LEAST_EIGENVALUE = 1e-10


@dataclass(frozen=True)
class Deviations:
    """Deviations of the noise in the entries of a release: gradient, Hessian, covariance of the scores."""

    gradient: float
    hessian: float
    scores: float


@dataclass(frozen=True, eq=False)
class Estimate:
    """One round's estimate of the coefficients.

    Attributes
    ----------
    w : array
    sampling, noise : array
        Covariance from the drawing of records, and from noise.
    curvature : float
        Least eigenvalue of the Hessian over the deviation of its noise, times the root of the dimension.
    step : float
        How far the round moved the prediction of a record of typical leverage.
    """

    w: Vector
    sampling: Vector
    noise: Vector
    curvature: float
    step: float


@dataclass(frozen=True, eq=False)
class State:
    """Where the next round starts.

    Attributes
    ----------
    w : array
        Coefficients.
    root : array
        Lower triangular: the metric is its inverse.
    covariance : array
        Of w.
    variance : float
        Variance of the residuals of a regression, rather too large.
    """

    w: Vector
    root: Vector
    covariance: Vector
    variance: float = 0.0

    @property
    def transform(self) -> Vector:
        """The matrix that takes coordinates to the metric."""
        return inverse_of(self.root).T

    @property
    def error(self) -> float:
        """Deviation of a prediction in the direction in which w is least certain."""
        spread = self.root.T @ self.covariance @ self.root
        return math.sqrt(max(float(np.linalg.eigvalsh(spread)[-1]), 0.0))


def linear_start(moments: Vector, noise: float, a: float, n: int) -> State:
    """Least squares from noisy second moments of (coordinates, a * target), targets in [-1, 1]."""
    d = len(moments) - 1
    gram, cross, square = moments[:d, :d], moments[:d, d] / a, float(moments[d, d]) / a**2
    raised, _ = floored(gram, noise * math.sqrt(d))
    inverse = inverse_of(raised)
    w = inverse @ cross
    size = float(w @ w)
    spread = noise**2 * ((1 / a**2 + size) * np.eye(d) + np.outer(w, w))
    residual = square - 2 * float(w @ cross) + float(w @ gram @ w) + float(np.trace(inverse @ spread))
    variance = max(residual / max(n - d, 1), 0.02 * max(square / n, 1e-6))
    covariance = inverse @ (variance * raised + spread) @ inverse
    above = math.sqrt(2) * noise * (size + 1 / a**2) / n  # one deviation of its own noise
    return State(w, root_of(raised / n), covariance, min(variance + above, 1.0))


def logistic_start(moments: Vector, noise: float, a: float, n: int, intercept: bool) -> tuple[State, float]:
    """Coefficients of a linear model of the labels, stretched to logits; and the share of positive labels."""
    d = len(moments) - 1
    gram, cross = moments[:d, :d], moments[:d, d] / a
    floor = noise * math.sqrt(d)
    raised, _ = floored(gram, floor)
    ridged = inverse_of(raised + 2 * floor * np.eye(d))
    slopes = ridged @ cross / 2
    inverse = inverse_of(raised)
    state = State(slopes, root_of(raised / n), inverse)
    if not intercept:
        return State(4 * slopes, state.root, inverse), 0.5
    share = min(max(0.5 + float(cross[-1]) / (2 * n), 0.02), 0.98)
    mean = gram[-1, :-1] / n
    explained = float(slopes[:-1] @ (cross[:-1] / (2 * n) - mean * (share - 0.5)))
    spread = share * (1 - share)
    slopes = slopes[:-1] / (spread * (1 - min(max(explained / spread, 0.0), 0.6)))
    start = np.append(slopes, math.log(share / (1 - share)) - float(mean @ slopes))
    return State(start, state.root, inverse), share


def after_round(
    state: State, parts: Parts, noise: Deviations, typical: float
) -> tuple[Estimate, Vector, Vector]:
    """The estimate of a round, its step in the metric, and the Hessian with small eigenvalues raised."""
    d = len(state.w)
    least = noise.hessian * math.sqrt(d)
    hessian, eigenvalues = floored(parts.hessian, least)
    inverse = inverse_of(hessian)
    step = -inverse @ parts.gradient
    scores, _ = floored(parts.scores, 0.0)
    size = float(step @ step)
    added = (noise.gradient**2 + noise.hessian**2 * size) * np.eye(d) + noise.hessian**2 * np.outer(
        step, step
    )
    back = state.transform
    estimate = Estimate(
        state.w + back @ step,
        back @ noise_aware(inverse, scores, noise.hessian) @ back.T,
        back @ noise_aware(inverse, added, noise.hessian) @ back.T,
        float(eigenvalues[0]) / least if least else math.inf,
        math.sqrt(size) * typical,
    )
    return estimate, step, hessian


def moved(state: State, step: Vector, most: float, hessian: Vector, estimate: Estimate) -> State:
    """The next start: a step of at most that norm, in the metric of the new Hessian."""
    norm = float(np.linalg.norm(step))
    step = step * min(1.0, most / norm) if norm > 0 else step
    root = state.root @ root_of(hessian / (np.trace(hessian) / len(step)))
    return State(state.w + state.transform @ step, root, estimate.sampling + estimate.noise)


def combined(estimates: list[Estimate]) -> Estimate:
    """Estimates weighted by the inverse of their noise; the sampling part is that of the last."""
    last = estimates[-1]
    if len(estimates) == 1 or not any(np.any(one.noise) for one in estimates):
        return last
    precisions = [inverse_of(one.noise) for one in estimates]
    noise = inverse_of(sum(precisions[1:], precisions[0]))
    pulled = [precision @ one.w for precision, one in zip(precisions, estimates, strict=True)]
    return Estimate(noise @ sum(pulled[1:], pulled[0]), last.sampling, noise, last.curvature, last.step)


def inverse_of(matrix: Vector) -> Vector:
    """The inverse matrix."""
    return np.asarray(np.linalg.inv(matrix), dtype=np.float64)


def root_of(matrix: Vector) -> Vector:
    """The lower triangular root of a positive matrix."""
    return np.asarray(np.linalg.cholesky(matrix), dtype=np.float64)


def noise_aware(inverse: Vector, covariance: Vector, noise: float) -> Vector:
    """Covariance of H⁻¹ r for r of that covariance where H is noisy: one order more than the delta method."""
    spread = inverse @ covariance @ inverse
    more = noise**2 * (np.trace(spread) * np.eye(len(inverse)) + spread)
    result: Vector = spread + inverse @ more @ inverse
    return result


def floored(matrix: Vector, floor: float) -> tuple[Vector, Vector]:
    """A symmetric matrix with its eigenvalues raised to a floor, and the eigenvalues that it had.

    The floor is at least a fraction of the largest eigenvalue, so that the result can be inverted.
    """
    values, vectors = np.linalg.eigh(matrix)
    floor = max(floor, _LEAST_EIGENVALUE * float(np.abs(values).max()))
    return (vectors * np.maximum(values, floor)) @ vectors.T, values
