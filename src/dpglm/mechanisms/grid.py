"""The public grid that answers are rounded to before integer noise is added."""

from __future__ import annotations

from functools import lru_cache
from typing import overload

import numpy as np
from numpy.typing import NDArray

from ..arrays import Vector
from ..errors import UnsupportedProblem

Numbers = float | Vector
"""One number, or an array of them."""

Integers = int | NDArray[np.int64]
"""One whole number, or an array of them."""

MOST_GRID_STEPS = 2**41
"""Largest scale of integer noise, in steps of its grid."""

_SMALLEST = 2.0**-1000


@overload
def public_grid(
    sensitivity: float, noise: float, rounding: float, finest: float = 0.0
) -> tuple[float, int]: ...
@overload
def public_grid(
    sensitivity: Vector, noise: float, rounding: float, finest: float = 0.0
) -> tuple[Vector, NDArray[np.int64]]: ...
def public_grid(
    sensitivity: Numbers, noise: float, rounding: float, finest: float = 0.0
) -> tuple[Numbers, Integers]:
    """A grid and the scale of noise in whole steps of it, from public values only.

    Parameters
    ----------
    sensitivity : float or array
        How far neighbours move the exact answer.
    noise : float
        Scale of the noise over the sensitivity.
    rounding : float
        How many steps rounding can add to the sensitivity.
    finest : float
        No grid is finer: the answer lies on this one, a power of two, or on any if it is 0.

    Returns
    -------
    grid, steps
        A power of two, and a whole number with grid * steps >= noise * (sensitivity + rounding * grid).
        Both are 0 where the sensitivity is: such an answer is public.
    """
    if np.ndim(sensitivity) == 0:
        return _one(float(sensitivity), noise, rounding, finest)
    return _grid(np.asarray(sensitivity, dtype=np.float64), noise, rounding, finest)


@lru_cache(maxsize=4096)
def _one(sensitivity: float, noise: float, rounding: float, finest: float) -> tuple[float, int]:
    grid, steps = _grid(np.asarray(sensitivity), noise, rounding, finest)
    return float(grid), int(steps)


def _grid(size: Vector, noise: float, rounding: float, finest: float) -> tuple[Vector, NDArray[np.int64]]:
    if not np.all((size >= 0) & (size < np.inf)):
        raise UnsupportedProblem("a sensitivity must be finite and at least 0")
    wanted = np.maximum(size * 2.0**-20 / rounding, size * 2.0**-40 * noise)
    grid = np.where(size > 0, np.maximum(power_of_two(wanted), max(finest, _SMALLEST)), 0.0)
    with np.errstate(invalid="ignore"):
        steps = np.floor(noise * (size / grid + rounding) * (1 + 2.0**-50)) + 1
    steps = np.where(size > 0, steps, 0.0)
    if not (np.all(steps <= MOST_GRID_STEPS) and np.all(grid < np.inf)):
        raise UnsupportedProblem("this much noise cannot be drawn on a grid: the budget is too small")
    return grid, steps.astype(np.int64)


def power_of_two(value: Vector) -> Vector:
    """The least power of two that is not below a positive number."""
    part, exponent = np.frexp(value)
    return np.asarray(np.ldexp(1.0, exponent - (part == 0.5)))


@overload
def on_grid(answer: float, grid: float) -> float: ...
@overload
def on_grid(answer: Vector, grid: Numbers) -> Vector: ...
@overload
def on_grid(answer: Numbers, grid: Numbers) -> Numbers: ...
def on_grid(answer: Numbers, grid: Numbers) -> Numbers:
    """The answer rounded to a multiple of the grid, exactly; large doubles are multiples already."""
    if isinstance(answer, float) and isinstance(grid, float):
        return round(answer / grid) * grid if abs(answer) < 2.0**53 * grid else answer
    with np.errstate(all="ignore"):
        rounded = np.rint(answer / grid) * grid
    return np.where(np.abs(answer) < 2.0**53 * grid, rounded, answer)
