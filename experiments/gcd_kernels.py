"""Compiled DP-SGD with batches of expected size one, for studies: noise and batches are drawn outside."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit


@njit(cache=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz"})
def sgd(
    indptr: Any, indices: Any, entries: Any, norms: Any, y: Any, logistic: bool,
    batches: Any, batch: Any, noise: Any, clip: float, deviation: float, step: float, l1: float, l2: float,
) -> Any:  # fmt: skip
    """Iterate w <- prox(w - step * (clipped gradients of the batch + deviation * noise)) from 0.

    Records of step t are ``batch[batches[t]:batches[t + 1]]``; its noise is row t, standard normal.
    """
    p = noise.shape[1]
    w = np.zeros(p)
    gradient = np.zeros(p)
    threshold, shrink = step * l1, 1.0 / (1.0 + step * l2)
    for t in range(batches.size - 1):
        for b in range(batches[t], batches[t + 1]):
            i = batch[b]
            z = 0.0
            for k in range(indptr[i], indptr[i + 1]):
                z += entries[k] * w[indices[k]]
            slope = -y[i] / (1.0 + math.exp(min(y[i] * z, 700.0))) if logistic else z - y[i]
            slope *= min(1.0, clip / max(abs(slope) * norms[i], 1e-300))
            for k in range(indptr[i], indptr[i + 1]):
                gradient[indices[k]] += slope * entries[k]
        for j in range(p):
            value = w[j] - step * (gradient[j] + deviation * noise[t, j])
            w[j] = math.copysign(max(abs(value) - threshold, 0.0), value) * shrink
            gradient[j] = 0.0
    return w
