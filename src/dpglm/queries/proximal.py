"""Proximal gradient steps with momentum, and how long they may be: what exact minimisers are made of."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np

from ..arrays import Vector

Map = Callable[[Vector], Vector]
Prox = Callable[[Vector, float], Vector]


@dataclass
class Steps:
    """Proximal gradient steps of one length, counted: ``step`` is a function of a point and a length."""

    step: Prox
    length: float
    taken: int = 0

    @classmethod
    def of(cls, gradient: Map, prox: Prox, length: float, taken: int = 0) -> Self:
        """Steps along a gradient, each followed by a proximal step."""
        return cls(lambda w, step: prox(w - step * gradient(w), step), length, taken)

    def __call__(self, w: Vector) -> Vector:
        self.taken += 1
        return self.step(w, self.length)


def accelerated(
    steps: Steps, w: Vector, goal: float, count: int, limit: float = math.inf, relative: bool = False
) -> tuple[Vector, float]:
    """Steps with momentum that restarts (O'Donoghue and Candes, 2015), and the length of the last one.

    They end when one is no longer than the goal, or longer than a limit. If ``relative``, the goal is in
    units of the first step.
    """
    ahead, momentum, residual = w, 1.0, math.inf
    for k in range(count):
        new = steps(ahead)
        residual = norm(new - ahead)
        if relative and k == 0:
            goal *= residual
        if not goal < residual <= limit:
            return new, residual
        if inner(ahead - new, new - w) > 0:
            momentum = 1.0
        following = (1 + math.sqrt(1 + 4 * momentum**2)) / 2
        ahead = new + (momentum - 1) / following * (new - w)
        w, momentum = new, following
    return w, residual


def largest_eigenvalue(curve: Map, dimension: int, most: int, nearly: float) -> float:
    """Largest eigenvalue of a positive linear map, from below, by at most so many power iterations.

    They end early when one changes the value by no more than the share ``nearly``.
    """
    v = np.random.default_rng(0).standard_normal(dimension)
    value = 0.0
    for _ in range(most):
        v = curve(v / norm(v))
        before, value = value, norm(v)
        if not value > 0:
            return 0.0
        if abs(value - before) <= nearly * value:
            break
    return value


def norm(v: Vector) -> float:
    """The Euclidean norm."""
    return math.sqrt(inner(v, v))


def inner(v: Vector, w: Vector) -> float:
    """The inner product; not by BLAS, which would start threads for it."""
    return float(np.einsum("i,i->", v, w))
