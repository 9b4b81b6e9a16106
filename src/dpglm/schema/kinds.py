"""What a cell is to its column: fine, missing, unreadable, out of the declared range, or of no known level.

Columns say so from the same reading of their cells that they encode.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ..arrays import Vector
from ..data.bounded_numbers import FINE, MISSING, OUTSIDE, UNKNOWN, UNREADABLE
from .cells import ABSENT, UNREAD, Mask, Read
from .cells import UNKNOWN as NO_LEVEL

Kinds = NDArray[np.int8]
"""One of FINE, MISSING, UNREADABLE, OUTSIDE and UNKNOWN for each cell."""

WORDS = {
    MISSING: "missing",
    UNREADABLE: "unreadable",
    OUTSIDE: "out of range",
    UNKNOWN: "unknown level",
}
"""What each kind is called, but for the cells that nothing is wrong with."""


def of_numbers(read: Read, low: float = -math.inf, high: float = math.inf) -> Kinds:
    """Of numbers with a declared range."""
    with np.errstate(invalid="ignore"):
        outside = (read.values < low) | (read.values > high)
    return _kinds(read.missing, read.bad, np.where(outside, OUTSIDE, FINE))


def of_levels(codes: NDArray[np.intp], unknown: int = UNKNOWN) -> Kinds:
    """Of codes of levels, or of what has none; ``unknown`` is what a level without a code is."""
    return _kinds(codes == ABSENT, codes == UNREAD, np.where(codes == NO_LEVEL, unknown, FINE))


def of_texts(missing: Mask, bad: Mask) -> Kinds:
    """Of cells that any text suits."""
    return _kinds(missing, bad, np.zeros(len(missing)))


def _kinds(missing: Mask, bad: Mask, others: Vector | NDArray[np.intp]) -> Kinds:
    return np.where(missing, MISSING, np.where(bad, UNREADABLE, others)).astype(np.int8)
