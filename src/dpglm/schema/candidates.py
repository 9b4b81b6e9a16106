"""Candidates for the ends of a range, from its widest range alone."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ..arrays import Vector
from .number import Number

COUNT = 512
"""How many candidates a column has."""

_PER_OCTAVE = 12


class Candidates(NamedTuple):
    """Candidates in increasing order: as values of the column, and on the scale of its features."""

    values: Vector
    scale: Vector


def candidates_of(column: Number) -> Candidates:
    """The candidates for the range of a column that is to be learnt."""
    low, high = column.widest or (column.low, column.high)
    ends = column.transformed(np.array([low, high])).tolist()
    scale = _spread(float(ends[0]), float(ends[1]))
    values = np.clip(column.back(scale), low, high)
    if (np.diff(values) <= 0).any():
        raise ValueError("widest is too narrow for doubles to tell its parts apart")
    return Candidates(values, scale)


@lru_cache(maxsize=256)
def _spread(low: float, high: float) -> Vector:
    """Half of the candidates evenly between the ends, half in twelfths of octaves around 0.

    If 0 is outside, octaves are counted from the end that is nearer to it. So neither a range that is too
    wide by far nor one that is far from 0 leaves a column without candidates near its values.
    """
    if low < 0 < high:
        steps = 2.0 ** (-np.arange(COUNT // 4) / _PER_OCTAVE)
        fixed = np.concatenate([[0.0], low * steps, high * steps])
    else:
        steps = (high - low) * 2.0 ** (-np.arange(COUNT // 2) / _PER_OCTAVE)
        fixed = np.concatenate([[low], low + steps]) if low >= 0 else np.concatenate([[high], high - steps])
    fixed = np.unique(np.clip(fixed, low, high))
    for extra in range(COUNT):
        even = np.linspace(low, high, COUNT - len(fixed) + extra + 2)[1:-1]
        found = np.union1d(fixed, even)
        if len(found) >= COUNT:
            surplus = np.flatnonzero(~np.isin(found, fixed))[: len(found) - COUNT]
            whole = np.delete(found, surplus)
            whole.flags.writeable = False
            return whole
    raise ValueError("widest is too narrow for doubles to tell its parts apart")
