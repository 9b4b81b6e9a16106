"""The algebra of Newton's rounds: all of it is post-processing of releases.

Vectors are in public coordinates (features in [-1, 1], then the constant 1) or in the metric, in which a
record is u = coordinates @ transform. The page docs/inference.md explains the method.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from ..arrays import Vector
from ..bounds import Coordinates
from ..losses import Loss
from ..privacy import Neighbours
from ..problem import Problem
from ..queries import Deviance, Moments, ScoreAndCurvature
from ..queries.newton import Parts

_LEAST_EIGENVALUE = 1e-10
_LEAST_MEAN, _LONGEST_START = 1e-6, 2.0


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


def count_start(moments: Vector, noise: float, a: float, n: int, intercept: bool) -> tuple[State, float]:
    """Coefficients of a log-linear model, but for log(mean) in the intercept, and that mean.

    Moments are those of (exposure * coordinates, a * target), targets in [0, 1]: least squares fits targets
    as exposure * (coordinates · b), of which the logarithm is linear to first order. Without an intercept the
    start is 0.
    """
    d = len(moments) - 1
    gram, cross = moments[:d, :d], moments[:d, d] / a
    floor = noise * math.sqrt(d)
    raised, _ = floored(gram, floor)
    inverse, root = inverse_of(raised), root_of(raised / n)
    if not intercept:
        return State(np.zeros(d), root, inverse), 1.0
    size = max(float(gram[-1, -1]), floor)
    mean = max(float(cross[-1]) / size, _LEAST_MEAN)
    slopes = (inverse_of(raised + 2 * floor * np.eye(d)) @ cross)[:-1] / mean
    longest = float(np.linalg.norm(slopes))
    slopes = slopes * min(1.0, _LONGEST_START / longest) if longest > 0 else slopes
    return State(np.append(slopes, -float(gram[-1, :-1] @ slopes) / size), root, inverse), mean


@dataclass(frozen=True, eq=False)
class Round:
    """A round: where it started, what was released there, and with how much noise.

    Attributes
    ----------
    state : State
    parts : Parts
    noise : Deviations
    typical : float
        Norm of a record of typical leverage in the metric.
    unit : float
        What steps are compared with: the clip of residuals, or a logit.
    ridge : array of shape (d,)
        Curvature of the penalty along each coordinate.
    floor : float
        The floor of the eigenvalues of the Hessian, in units of half the norm of its noise.
    """

    state: State
    parts: Parts
    noise: Deviations
    typical: float
    unit: float
    ridge: Vector
    floor: float = 1.0

    @property
    def least(self) -> float:
        """Eigenvalues of the Hessian below this are raised to it: ``floor`` times half its noise's norm."""
        return self.floor * self.noise.hessian * math.sqrt(len(self.state.w))

    def estimate(self) -> tuple[Estimate, Vector]:
        """The estimate of this round, and its step in the metric."""
        d = len(self.state.w)
        hessian, eigenvalues = floored(self.parts.hessian, self.least)
        back = self.state.transform
        inverse = inverse_of(hessian + (back.T * self.ridge) @ back)
        step = -inverse @ (self.parts.gradient + back.T @ (self.ridge * self.state.w))
        scores, _ = floored(self.parts.scores, 0.0)
        size, variance = float(step @ step), self.noise.hessian**2
        added = (self.noise.gradient**2 + variance * size) * np.eye(d) + variance * np.outer(step, step)
        found = Estimate(
            self.state.w + back @ step,
            back @ noise_aware(inverse, scores, self.noise.hessian) @ back.T,
            back @ noise_aware(inverse, added, self.noise.hessian) @ back.T,
            self.floor * float(eigenvalues[0]) / self.least if self.least else math.inf,
            math.sqrt(size) * self.typical,
        )
        return found, step

    def with_curvature_of(self, last: Round, linear: bool) -> Round:
        """The round with the mean of its Hessian and that of a later round, which is nearer to the truth.

        The gradient changes between the two points by the mean Hessian on the way. Half of both is that mean
        to second order in the step, one of them to first order only. The Hessian of squares does not change
        with the point, but for the clip: there, both are weighted by their precision, and the later one is
        scaled to the trace of this one.
        """
        change = inverse_of(self.state.root) @ last.state.root
        other = change @ last.parts.hessian @ change.T
        own = self.noise.hessian**2
        late = (last.noise.hessian * float(np.trace(change @ change.T)) / len(change)) ** 2
        share = 0.5
        if linear:
            traces = float(np.trace(self.parts.hessian)), float(np.trace(other))
            factor = traces[0] / traces[1] if min(traces) > 0 else 1.0
            share = late / (own + late) if own + late > 0 else 0.5
            other, late = factor * other, factor**2 * late
        mean = share * self.parts.hessian + (1 - share) * other
        deviation = math.sqrt(share**2 * own + (1 - share) ** 2 * late)
        return replace(
            self, parts=self.parts._replace(hessian=mean), noise=replace(self.noise, hessian=deviation)
        )


def moved(round_: Round, step: Vector, most: float, estimate: Estimate) -> State:
    """The next start: a step of at most that norm, in the metric of the new Hessian.

    A step is shortened by what noise makes it longer (James and Stein): one that noise alone explains leaves
    the start where it is.
    """
    state, (hessian, _) = round_.state, floored(round_.parts.hessian, round_.least)
    norm, by = float(np.linalg.norm(step)), estimate.w - state.w
    if norm > 0 and np.any(estimate.noise):
        explained = len(step) / float(by @ inverse_of(estimate.noise) @ by)
        step = step * min(max(1.0 - explained, 0.0), most / norm)
    root = state.root @ root_of(hessian / (np.trace(hessian) / len(step)))
    return State(state.w + state.transform @ step, root, estimate.sampling + estimate.noise)


def combined(estimates: list[Estimate]) -> Estimate:
    """Estimates weighted by the inverse of their noise; the sampling part is that of the last.

    Those count that noise does not set apart from the last. Where curvature falls on the way, the estimate of
    an earlier round is off by more than its noise, which was small there.
    """
    last = estimates[-1]
    estimates = [one for one in estimates if one is last or _agree(one, last)]
    if len(estimates) == 1:
        return last
    precisions = [inverse_of(one.noise) for one in estimates]
    noise = inverse_of(sum(precisions[1:], precisions[0]))
    pulled = [precision @ one.w for precision, one in zip(precisions, estimates, strict=True)]
    return Estimate(noise @ sum(pulled[1:], pulled[0]), last.sampling, noise, last.curvature, last.step)


def _agree(one: Estimate, last: Estimate) -> bool:
    """Whether noise can explain how far two estimates are apart: three deviations of a chi-square law."""
    d, apart, noise = len(last.w), one.w - last.w, one.noise + last.noise
    return bool(np.any(noise)) and bool(apart @ inverse_of(noise) @ apart <= d + 3 * math.sqrt(2 * d))


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


_LARGEST_LOSS = 3.0
_OUTWEIGHS = 1e7


def name_of(round_: int) -> str:
    """The name of the release of a round after the first."""
    return f"{ScoreAndCurvature.name}, round {round_}"


@dataclass(frozen=True, eq=False)
class Setting:
    """The public scales of a problem.

    Attributes
    ----------
    coordinates : Coordinates
    radius : float
        Largest norm of the features in these coordinates.
    middle, half : float
        The range of targets: a target is middle + half * t for t in [-1, 1].
    constant : float
        The constant feature of the records.
    strength : float
        Strength of the L2 penalty.
    top : float
        The largest offset, if the start allows for offsets; else infinite.
    table_size : int
        The most records that there can be, if n is a released count; else n.
    """

    coordinates: Coordinates
    radius: float
    middle: float
    half: float
    constant: float
    loss: Loss
    strength: float
    n: int
    top: float = math.inf
    table_size: int = 0

    @classmethod
    def of(cls, problem: Problem, n: int, p: int, table_size: int = 0) -> Setting:
        """The scales of a problem over n records of p features."""
        coordinates = problem.bounds.coordinates(p, problem.fit_intercept)
        middle, half, norm = coordinates.middle, coordinates.half, problem.bounds.row_norm
        farthest = math.inf if norm is None else norm / half.min() + float(np.linalg.norm(middle / half))
        bottom, top = problem.bounds.target or (-1.0, 1.0)
        if not problem.fit_intercept or problem.loss.kind == "count":
            bottom, top = -max(-bottom, top), max(-bottom, top)  # a count is proportional to its exposure
        return cls(
            coordinates, min(math.sqrt(p), farthest), (bottom + top) / 2, (top - bottom) / 2,
            problem.constant(p), problem.loss, problem.penalty.strong_convexity, n,
            problem.bounds.offset_range[1] if problem.loss.kind == "count" else math.inf,
            max(n, table_size),
        )  # fmt: skip

    @property
    def dimension(self) -> int:
        return self.coordinates.dimension

    @property
    def is_linear(self) -> bool:
        """Whether the margin itself predicts the target."""
        return self.loss.kind == "regression"

    @property
    def is_count(self) -> bool:
        """Whether the margin is the logarithm of the predicted target."""
        return self.loss.kind == "count"

    @property
    def unit(self) -> float:
        """What a margin of 1 is in coefficients of a round."""
        return self.half if self.is_linear else 1.0

    @property
    def ridge(self) -> Vector:
        """Curvature of the penalty along each coordinate: none along the intercept.

        What outweighs the records by ten million outweighs them: more would cost matrices their digits.
        """
        features = self.n * np.minimum(self.strength / np.square(self.coordinates.half), _OUTWEIGHS)
        return np.append(features, np.zeros(int(self.coordinates.intercept)))

    @property
    def target_weight(self) -> float:
        """Weight of the target among second moments: what a start from them wants."""
        return math.sqrt(self.dimension) / 2

    @property
    def moments(self) -> Moments:
        """The query of the first round."""
        norm = math.sqrt(self.radius**2 + self.coordinates.intercept + self.target_weight**2)
        weight = self.target_weight / self.half
        return Moments(self.coordinates, norm, self.middle, weight, self.table_size, self.top)

    def derivatives(self, leverage: float, clip: float, neighbours: Neighbours) -> ScoreAndCurvature:
        """The query of a later round; ``clip`` is in units of half the range of targets."""
        loss = self.loss.softened(clip * self.half)
        weight = ScoreAndCurvature.weight_for(loss, neighbours)
        longest = math.sqrt(leverage * self.dimension)
        return ScoreAndCurvature(loss, self.coordinates, longest, weight, self.table_size)

    def deviance(self, clip: float) -> Deviance:
        """The query of the deviance, at the same clip."""
        loss = self.loss.softened(clip * self.half)
        most = _LARGEST_LOSS * loss.lipschitz() ** 2
        return Deviance(loss, self.coordinates, most, self.table_size)

    def point(self, w: Vector) -> Vector:
        """Coefficients that predict targets from those that predict t in [-1, 1]."""
        if not self.is_linear:
            return w
        point: Vector = self.half * w
        if self.coordinates.intercept:
            point[-1] += self.middle
        return point

    @property
    def to_records(self) -> Vector:
        """The matrix that takes coefficients of the coordinates to those of the records' own features."""
        d, p = self.dimension, len(self.coordinates.middle)
        matrix = np.zeros((d, d))
        matrix[:p, :p] = np.diag(1.0 / self.coordinates.half)
        if self.coordinates.intercept:
            matrix[-1, :p] = -self.coordinates.middle / self.coordinates.half / self.constant
            matrix[-1, -1] = 1.0 / self.constant
        return matrix
