"""Compiled descent on squared and logistic loss for studies: every choice of DP-CD and of DP-GD apart."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit


@njit(cache=True, error_model="numpy")
def coordinates(
    X: Any, y: Any, logistic: bool, order: Any, noise: Any, clips: Any, steps: Any, l1: float, l2: float
) -> Any:
    """w_j <- prox(w_j - step_j (mean of clipped slopes + noise_k)) for the k-th coordinate j of ``order``."""
    n, p = X.shape
    w, z = np.zeros(p), np.zeros(n)
    for k in range(order.size):
        j = order[k]
        value = w[j] - steps[j] * (_slope(X, y, z, j, logistic, clips[j]) + noise[k])
        value = _prox(value, steps[j], l1, l2)
        move = value - w[j]
        w[j] = value
        for i in range(n):
            z[i] += move * X[i, j]
    return w


@njit(cache=True, error_model="numpy")
def together(X: Any, y: Any, logistic: bool, noise: Any, clips: Any, steps: Any, l1: float, l2: float) -> Any:
    """The same where all coordinates move at once; ``noise`` has a row for each step."""
    n, p = X.shape
    w, z, moved = np.zeros(p), np.zeros(n), np.zeros(p)
    for k in range(len(noise)):
        for j in range(p):
            value = w[j] - steps[j] * (_slope(X, y, z, j, logistic, clips[j]) + noise[k, j])
            moved[j] = _prox(value, steps[j], l1, l2)
        for j in range(p):
            move = moved[j] - w[j]
            w[j] = moved[j]
            for i in range(n):
                z[i] += move * X[i, j]
    return w


@njit(cache=True, error_model="numpy")
def _slope(X: Any, y: Any, z: Any, j: int, logistic: bool, clip: float) -> float:
    total = 0.0
    for i in range(z.size):
        slope = -y[i] / (1.0 + math.exp(min(y[i] * z[i], 700.0))) if logistic else z[i] - y[i]
        total += min(max(slope * X[i, j], -clip), clip)
    return total / z.size


@njit(cache=True, error_model="numpy")
def _prox(value: float, step: float, l1: float, l2: float) -> float:
    return math.copysign(max(abs(value) - step * l1, 0.0), value) / (1.0 + step * l2)
