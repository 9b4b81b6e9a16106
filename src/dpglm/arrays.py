"""What all parts share of arrays: their type, rows aligned to cache lines, soft thresholding."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
"""An array of double precision."""


def cache_lines(count: int) -> Vector:
    """Rows of eight zeros, each in one line of 64 bytes of the processor's cache."""
    memory = np.zeros(8 * count + 7)
    begin = -memory.ctypes.data // 8 % 8
    return memory[begin : begin + 8 * count].reshape(count, 8)


def soft_threshold(values: Vector, threshold: Vector | float) -> Vector:
    """sign(v) max(abs(v) - threshold, 0), for each value v."""
    return np.copysign(np.maximum(np.abs(values) - threshold, 0.0), values)
