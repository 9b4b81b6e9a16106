"""Two neighbouring tables, and how their records are read: from memory, or block by block."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from ..arrays import Vector
from ..data import as_data
from ..data.record_set import RecordSet
from ..data.stream import Stream
from ..data.streamed import StreamedRecords
from ..estimators.base import PrivateGLM
from ..privacy import Neighbours
from ..problem import Problem

Holding = Callable[[Vector, Vector, Problem, int], RecordSet]
"""From rows, targets and the most rows that there can be to records inside the bounds of a problem."""

_ROWS_A_BLOCK, _MOST_BLOCKS = 3, 8


def in_memory(X: Vector, y: Vector, problem: Problem, most: int = 0) -> RecordSet:
    """Resident records."""
    return as_data(X, y, problem.bounds, problem.constant(X.shape[1]), most)


def on_a_stream(X: Vector, y: Vector, problem: Problem, most: int = 0) -> RecordSet:
    """Records that are read in small blocks."""
    units = len(np.unique(y[:, 3])) if problem.has_units else None
    n, p = X.shape
    return streamed(Stream(lambda: blocks(X, y), n, p, n_units=units), problem, most)


def blocks(X: Vector, y: Vector) -> Iterator[tuple[Vector, Vector]]:
    """The rows and targets of small blocks: of three rows, or of more where these would be many blocks."""
    size = max(_ROWS_A_BLOCK, -(-len(y) // _MOST_BLOCKS))
    for start in range(0, len(y), size):
        here = slice(start, start + size)
        yield X[here], y[here]


def streamed(stream: Stream, problem: Problem, most: int = 0) -> StreamedRecords:
    """The records of a stream whose blocks are numbers already."""
    constant = problem.constant(stream.n_features)
    return StreamedRecords(stream, _as_they_are, problem.bounds, constant, most=most, n_units=stream.n_units)


def _as_they_are(rows: object, targets: object) -> tuple[object, Vector]:
    return rows, targets  # type: ignore[return-value]  # blocks of this file


Table = tuple[ArrayLike, ArrayLike]
"""X, which may be sparse, and y."""

Record = tuple[ArrayLike, object]
"""A row, which may be sparse, and its target."""

_BYSTANDERS = 19


@dataclass(frozen=True)
class Tables:
    """(X, y) of two neighbouring tables, the relation between them, and the finite rows that differ."""

    first: Table
    second: Table
    relation: str
    canaries: tuple[Vector, ...] = ()

    @classmethod
    def with_record(
        cls, X: ArrayLike, y: ArrayLike, first: Record, second: Record | None, relation: str | None = None
    ) -> Tables:
        """Bystanders with one more record on top; ``second=None`` leaves it out."""
        rows = X if sp.issparse(X) else np.asarray(X, dtype=np.float64)
        stack = sp.vstack if sp.issparse(X) else np.vstack
        targets = np.asarray(y)
        tables = [
            (rows, targets)
            if record is None
            else (stack([np.atleast_2d(dense(record[0])), rows]), np.append(np.array([record[1]]), targets))
            for record in (first, second)
        ]
        rows_in_question = (np.ravel(dense(record[0])) for record in (first, second) if record is not None)
        canaries = tuple(row for row in rows_in_question if np.isfinite(row).all())
        words = "left-out" if second is None else "replace-one"
        return cls(tables[0], tables[1], relation or words, canaries)


def dense(row: ArrayLike) -> Vector:
    """A row as an array, also from a sparse one."""
    if isinstance(row, sp.sparray | sp.spmatrix):
        row = row.toarray()
    return np.asarray(row, dtype=np.float64)


def worst_tables(estimator: PrivateGLM) -> Tables:
    """Neighbouring tables that the releases of an estimator of dpglm should tell apart best.

    The record has the full norm that the bounds allow and one extreme target in the first table, the
    other extreme in the second, so that its gradients are opposed in every coordinate. For zero-out it is
    null in the second table, for add-remove it is not there. Signs alternate from feature to feature: noise
    must differ between them. All other records have half that row and either target in turn, so that they
    contribute and leave the model where it starts.
    There are as many features as bounds are declared, or else two.
    """
    bounds = estimator._bounds()
    ends = bounds.feature if isinstance(bounds.feature, tuple) else (bounds.feature,)
    n_features = max((len(end) for end in ends if isinstance(end, np.ndarray)), default=2)
    # So long that clipping leaves a row in a corner, or as long as it may be.
    row = bounds.clip(1e3 * bounds.radius(n_features) * np.resize([0.8, -0.6], n_features))[0]
    low, high = _extremes(estimator)
    targets = np.resize(np.array([low, high]), _BYSTANDERS)
    relation = Neighbours(estimator.neighbours)
    others: dict[Neighbours, Record | None] = {
        Neighbours.REPLACE_ONE: (row, low),
        Neighbours.ZERO_OUT: (np.full(n_features, np.nan), low),
        Neighbours.ADD_REMOVE: None,
    }
    other = others[relation]
    return Tables.with_record(np.tile(row / 2, (_BYSTANDERS, 1)), targets, (row, high), other, relation.value)


def _extremes(estimator: PrivateGLM) -> tuple[object, object]:
    """Two targets as far apart as the estimator allows."""
    bounds = estimator._bounds()
    if estimator._loss().kind == "classification":
        classes = getattr(estimator, "classes", None)
        labels = np.unique([-1, 1] if classes is None else classes)
        return labels[0], labels[-1]
    return bounds.target if bounds.target is not None else (-1.0, 1.0)
