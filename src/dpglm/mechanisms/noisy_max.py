"""Report noisy max with Laplace noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import accounting
from ..arrays import Vector
from .base import Selection, opposed_scores
from .grid import on_grid, public_grid
from .randomness import Randomness

_FARTHEST = 10_000
_NEAR, _PANEL = 40.0, 0.5
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(24)


@dataclass(frozen=True)
class LaplaceNoisyMax(Selection):
    """Adds Laplace noise of scale noise * sensitivity, on a grid, to each score; returns the largest's index.

    The sensitivity bounds how far any one score moves. Of equal ones the first counts as the largest.

    Guarantee
    ---------
    2 / noise, however scores move. Unlike `Exponential` with the same noise it is not known to have that
    bounded range, so over many rounds it costs more: it is here for comparison, and for methods as they were
    published. Proof: docs/proofs/noisy_max.md.
    """

    name: ClassVar[str] = "Laplace noisy max"

    @property
    def event(self) -> accounting.Event:
        return accounting.Pure(2 / self.noise if self.noise > 0 else math.inf)

    def release(self, answer: ArrayLike, sensitivity: float, randomness: Randomness) -> int:
        scores = np.asarray(answer, dtype=np.float64)
        if self.noise == 0 or sensitivity == 0:
            return int(np.argmax(scores))
        behind, scale = self._in_steps(scores, sensitivity)
        return int(np.argmax(behind + randomness.laplace(scale, scores.shape)))

    def require_drawable(self, entries: int) -> None:
        public_grid(1.0, self.noise, 1.0)

    def _in_steps(self, scores: Vector, sensitivity: float) -> tuple[Vector, int]:
        """Scores below the largest in whole steps of the grid, and the scale of the noise in such steps."""
        grid, scale = public_grid(sensitivity, self.noise, 1.0)
        rounded = on_grid(scores, grid)
        with np.errstate(over="ignore"):
            return (rounded - rounded.max()) / grid, scale

    def log_likelihood(self, released: int, answer: ArrayLike, sensitivity: float) -> float:
        return float(self._log_probabilities(answer, sensitivity)[released])

    def probabilities(self, answer: ArrayLike, sensitivity: float) -> Vector:
        return np.exp(self._log_probabilities(answer, sensitivity))

    def _log_probabilities(self, answer: ArrayLike, sensitivity: float) -> Vector:
        behind, scale = self._in_steps(np.asarray(answer, dtype=np.float64), sensitivity)
        return _log_law(tuple(np.maximum(behind, -_FARTHEST * scale).tolist()), scale)

    def worst_cases(self) -> dict[str, tuple[Vector, Vector]]:
        # A candidate far behind shows all that the loss can be, but is hardly ever seen; two that are equally
        # likely show most over many rounds.
        far, near = 2.0 + 20.0 * self.noise, 2.0 + 2.0 * self.noise
        return opposed_scores(
            {"candidate far behind": far, "candidate behind": near, "equal candidates": 1.0}
        )


@lru_cache(maxsize=256)
def _log_law(scores: tuple[float, ...], scale: int) -> Vector:
    """Log-probability of each index, from whole scores of which the largest is 0.

    With G_i(y) the probability that score i plus noise is below y, for y half-way between whole numbers,
    index j is the first of the largest with probability

        sum over y of (G_j(y + 1) - G_j(y)) * prod_{i < j} G_i(y) * prod_{i > j} G_i(y + 1).

    Each G_i is smooth on both sides of its score. The terms y = score - 1/2 are added one by one; the sum of
    those between two scores is an integral, with relative error of about (candidates / scale)**2 / 24: 1e-9
    where noise is a hundredth of the number of candidates, or more.
    """
    whole = np.array(scores)
    kinks = np.unique(whole)
    total = np.full(whole.size, -np.inf)
    for kink in kinks:
        terms = _log_terms(np.array([kink - 0.5]) / scale, whole, scale, whole < kink, whole == kink)
        total = np.logaddexp(total, terms[:, 0])
    far = scale * (_NEAR + math.log(whole.size))
    starts, ends = np.append(kinks[0] - 1 - far, kinks), np.append(kinks - 1, far)
    for start, end in zip(starts, ends, strict=True):
        if end > start:
            edges = _panels((end - start) / scale)
            half = np.diff(edges)[:, None] / 2
            places = start / scale + (edges[:-1, None] + half * (1 + _NODES)).ravel()
            terms = _log_terms(places, whole, scale, whole <= start, np.zeros(whole.size, dtype=bool))
            terms += np.log(scale * half * _WEIGHTS).ravel()
            total = np.logaddexp(total, np.logaddexp.reduce(terms, axis=1))
    total.flags.writeable = False
    return total


def _log_terms(
    places: Vector, whole: Vector, scale: int, passed: NDArray[np.bool_], at: NDArray[np.bool_]
) -> Vector:
    """Logarithms of the terms of the sum for each index, at y / scale = places.

    ``passed`` says which scores are below y, ``at`` which are between y and y + 1.
    """
    step = 1 / scale
    beyond = places - (whole / scale)[:, None]
    low, high = _log_cdf(beyond), _log_cdf(beyond + step)
    before = np.cumsum(low, axis=0) - low
    after = np.cumsum(high[::-1], axis=0)[::-1] - high
    # Log-probability of y < score + noise < y + 1.
    rising = beyond + math.log(math.expm1(step) / 2)
    falling = -beyond + math.log(-math.expm1(-step) / 2)
    between = np.where(passed[:, None], falling, rising)
    between[at] = math.log(-math.expm1(-step / 2))
    return np.asarray(before + between + after)


def _log_cdf(x: Vector) -> Vector:
    return np.where(x < 0, x - math.log(2), np.log1p(-0.5 * np.exp(-np.abs(x))))


def _panels(length: float) -> Vector:
    """Edges from 0 to a length: even steps near both ends, ever longer ones towards the middle."""
    half = length / 2
    near = min(half, _NEAR)
    edges = np.linspace(0, near, math.ceil(near / _PANEL) + 1).tolist()
    while edges[-1] < half:
        edges.append(min(2 * edges[-1], half))
    return np.append(edges, length - np.array(edges[-2::-1]))
