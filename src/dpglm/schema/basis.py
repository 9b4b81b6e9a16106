"""Functions of one number that need no data: bins of declared cut points, splines of declared knots."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..arrays import Vector
from .column import shown

DEGREE = 3


def bin_names(low: float, cuts: Sequence[float], high: float) -> list[str]:
    """A name for each bin."""
    ends = [shown(end) for end in (low, *cuts, high)]
    names = [f"[{a}, {b})" for a, b in zip(ends[:-1], ends[1:], strict=True)]
    return [*names[:-1], names[-1][:-1] + "]"]


def bins(x: Vector, cuts: Sequence[float]) -> NDArray[np.intp]:
    """The bin of each number: a cut point belongs to the bin above it."""
    return np.searchsorted(np.asarray(cuts), x, side="right")


def spline(x: Vector, low: float, knots: Sequence[float], high: float) -> tuple[NDArray[np.int32], Vector]:
    """Cubic B-splines: four indices and values for each number of [low, high].

    Their values are not negative and add up to 1, so that their norm is at most 1.
    """
    from scipy.interpolate import BSpline  # slow to import

    ends = np.array([low] * (DEGREE + 1)), np.array([high] * (DEGREE + 1))
    grid = np.concatenate([ends[0], np.asarray(knots), ends[1]])
    table = BSpline.design_matrix(x, grid, DEGREE)
    shape = (len(x), DEGREE + 1)
    return table.indices.reshape(shape).astype(np.int32), table.data.reshape(shape)


def spline_size(knots: Sequence[float]) -> int:
    """Number of splines."""
    return len(knots) + DEGREE + 1
