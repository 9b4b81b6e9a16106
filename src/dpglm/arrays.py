"""Arrays that all parts share: their type, and rows that start at a line of the cache."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
"""An array of double precision."""


def cache_lines(count: int) -> Vector:
    """Rows of eight zeros, each in one line of 64 bytes of the processor's cache."""
    room = np.zeros(8 * count + 7)
    begin = -room.ctypes.data // 8 % 8
    return room[begin : begin + 8 * count].reshape(count, 8)
