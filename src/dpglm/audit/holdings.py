"""How the records of an audit are held: in memory, or read block by block in every pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from ..arrays import Vector
from ..data import as_data
from ..data.stream import Stream
from ..data.streamed import Streamed
from ..data.summed import Summed
from ..problem import Problem

Holding = Callable[[Vector, Vector, Problem, int], Summed]
"""From rows, targets and the most rows that there can be to records inside the bounds of a problem."""

_ROWS_A_BLOCK, _MOST_BLOCKS = 3, 8


def in_memory(X: Vector, y: Vector, problem: Problem, most: int = 0) -> Summed:
    """Resident records."""
    return as_data(X, y, problem.bounds, problem.constant(X.shape[1]), most)


def on_a_stream(X: Vector, y: Vector, problem: Problem, most: int = 0) -> Summed:
    """Records that are read in small blocks."""
    units = len(np.unique(y[:, 3])) if problem.has_persons else None
    n, p = X.shape
    return streamed(Stream(lambda: blocks(X, y), n, p, n_units=units), problem, most)


def blocks(X: Vector, y: Vector) -> Iterator[tuple[Vector, Vector]]:
    """The rows and targets of small blocks: of three rows, or of more where these would be many blocks."""
    size = max(_ROWS_A_BLOCK, -(-len(y) // _MOST_BLOCKS))
    for start in range(0, len(y), size):
        here = slice(start, start + size)
        yield X[here], y[here]


def streamed(stream: Stream, problem: Problem, most: int = 0) -> Streamed:
    """The records of a stream whose blocks are numbers already."""
    constant = problem.constant(stream.n_features)
    return Streamed(stream, _as_they_are, problem.bounds, constant, most=most, n_units=stream.n_units)


def _as_they_are(rows: object, targets: object) -> tuple[object, Vector]:
    return rows, targets  # type: ignore[return-value]  # blocks of this file
