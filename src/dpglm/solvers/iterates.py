"""The iterates of a descent: noisy steps, the mean of the last, and the models that are kept on the way."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from ..arrays import Vector
from ..losses import Logistic
from ..penalties import L1, L2, ElasticNet, Zero
from ..problem import Problem

_DEVIATIONS = 3.0
_MOST_MOMENTUM = 0.95

FREEDOMS = (0.9, 0.75, 0.5, 0.25)
"""Ridge paths stop where so large a share of the degrees of freedom is left."""

HALVINGS_OF_FEATURES = 6
"""Sparse models have a half of the features, a quarter, ..."""


def tail_weights(steps: int, share: float = 0.25) -> Vector:
    """1 for each iterate that the mean is over, the last share of them, 0 for the others."""
    return (np.arange(steps) >= steps - math.ceil(steps * share)).astype(np.float64)


class TailMean:
    """The mean of the last share, by default a quarter, of so many iterates, which are added one by one."""

    def __init__(self, steps: int, start: Vector, share: float = 0.25) -> None:
        weights = tail_weights(steps, share)
        self._count, self._left, self._sum = float(weights.sum()), iter(weights), np.zeros_like(start)

    def add(self, w: Vector) -> None:
        """Take the next iterate into account."""
        if next(self._left):
            self._sum += w

    @property
    def mean(self) -> Vector:
        """The mean, once all iterates are added."""
        return self._sum / self._count


class StepGuard:
    """Step size and momentum, from what two released gradients in turn say of the curvature between them.

    A step is at most the inverse of that curvature, less what noise makes of it. Momentum grows by as much as
    steps get shorter, so that all steps together go as far. With infinite ``noise`` they stay as they are.
    """

    def __init__(self, step_size: float, momentum: float, noise: float) -> None:
        self.step_size, self.momentum = step_size, momentum
        self._noise = noise * math.sqrt(2.0)
        self._last: tuple[Vector, Vector] | None = None

    def observe(self, w: Vector, gradient: Vector) -> None:
        """Take the gradient at w into account, which has noise in each entry."""
        if self._last is not None:
            move, change = w - self._last[0], gradient - self._last[1]
            length = float(np.linalg.norm(move))
            if length > 0:
                curvature = (float(np.vdot(move, change)) / length - _DEVIATIONS * self._noise) / length
                if curvature * self.step_size > 1.0:
                    shorter = 1.0 / curvature
                    reach = self.step_size / (1.0 - self.momentum)
                    most = max(self.momentum, _MOST_MOMENTUM)
                    self.step_size, self.momentum = shorter, min(1.0 - shorter / reach, most)
        self._last = w, gradient


class Iterates:
    """The models along a fit that a run returns: those at some stops, and those that follow from the last.

    All of them are functions of releases, so to keep them costs nothing.

    Parameters
    ----------
    stops : sequence of int, optional
        After how many steps a model is kept, in increasing order; without it, none is.
    """

    def __init__(self, stops: Sequence[int] | None) -> None:
        self._stops, self._models = stops, list[Model]()
        self._sum: Vector | None = None
        self._count = 0

    @property
    def models(self) -> tuple[Model, ...]:
        """The models that were kept so far."""
        return tuple(self._models)

    def within(self, start: int, stop: int) -> list[int]:
        """The stops after ``start`` and up to ``stop`` steps: for solvers that make many steps at once."""
        return [step for step in self._stops or () if start < step <= stop]

    def add(self, steps: int, point: Callable[[], Vector]) -> None:
        """Keep, at a stop, the coefficients that ``point`` returns in terms of the records' own features."""
        if self._stops and steps in self._stops:
            self._keep(Model(f"{steps} steps", point()))

    def add_noisy(self, steps: int, w: Vector, finish: Callable[[Vector], Vector]) -> None:
        """Add each iterate of a noisy descent: at a stop, the mean of those since the last one is kept."""
        if self._stops and steps <= self._stops[-1]:
            self._sum = w.copy() if self._sum is None else self._sum + w
            self._count += 1
            mean = self._sum / self._count
            self.add(steps, lambda: finish(mean))

    def add_models(self, models: Callable[[], Iterable[Model]]) -> None:
        """Keep models that follow from the last one, if any are wanted."""
        if self._stops is not None:
            for model in models():
                self._keep(model)

    def _keep(self, model: Model) -> None:
        self._models.append(model._replace(w=model.w.copy()))
        self._sum, self._count = None, 0


def descend(
    gradient: Callable[[Vector], Vector], prox: Callable[[Vector, float], Vector], w: Vector, steps: int,
    guard: StepGuard, *, iterates: Iterates, finish: Callable[[Vector], Vector], tail_share: float = 0.25,
) -> tuple[Vector, Vector]:  # fmt: skip
    """Take proximal steps along released gradients, with Nesterov's momentum; the last point and the mean.

    Parameters
    ----------
    gradient : callable
        Releases the mean gradient at a point.
    prox : callable
        The proximal step of the penalty, of a point and a step size.
    w : array
        The start.
    steps : int
    guard : StepGuard
        Step size and momentum.
    iterates : Iterates
        Keeps models on the way.
    finish : callable
        Takes an iterate to coefficients of the records' own features.
    tail_share : float
        The mean is over this share of the iterates, the last ones.
    """
    tail, ahead = TailMean(steps, w, tail_share), w
    for t in range(steps):
        slope = gradient(ahead)
        guard.observe(ahead, slope)
        before, w = w, prox(ahead - guard.step_size * slope, guard.step_size)
        ahead = w + min(guard.momentum, t / (t + 3)) * (w - before) if guard.momentum else w
        tail.add(w)
        iterates.add_noisy(t + 1, w, finish)
    return w, tail.mean


class Model(NamedTuple):
    """A model along a fit.

    Attributes
    ----------
    name : str
        Words that say which it is.
    w : array
        Its coefficients, in terms of the records' own features.
    credit : float
        How much more than the whole fit it would gain on other rows than on those of the fit, in the sum
        over as many of them: the whole fit is fitted more closely to its own rows. An estimate, 0 if there
        is none.
    """

    name: str
    w: Vector
    credit: float = 0.0


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
