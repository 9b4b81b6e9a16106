"""From features of single columns to one table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..arrays import Vector
from .cells import Mask
from .column import Ragged, Slots

Group = tuple[Slots | Ragged, float]
"""The features of a column, and what they are multiplied by."""


def table_of(
    groups: Sequence[Group], edges: Sequence[int], count: int, sparse: bool, null: bool
) -> Vector | sp.csr_array:
    """The table of all features, the first of each group at its edge; NaN in the rows of null records."""
    lost = np.zeros(count, dtype=bool)
    for part, _ in groups:
        lost |= part.null
    if not sparse:
        return _dense(groups, edges, lost, null)
    if all(isinstance(part, Slots) for part, _ in groups):
        return _from_slots(groups, edges, edges[-1], lost if null else None)
    parts = []
    for k, group in enumerate(groups):
        hidden = lost if null and not k else None
        if isinstance(group[0], Ragged):
            parts.append(_from_ragged(group[0], group[1], hidden))
        else:
            parts.append(_from_slots([group], [0], edges[k + 1] - edges[k], hidden))
    return sp.csr_array(sp.hstack(parts, format="csr"))


def _dense(groups: Sequence[Group], edges: Sequence[int], lost: Mask, null: bool) -> Vector:
    table = np.zeros((len(lost), edges[-1]))
    for k, (part, weight) in enumerate(groups):
        assert isinstance(part, Slots)  # a table with other parts is sparse
        rows, slots = np.nonzero(part.places >= 0)
        table[rows, edges[k] + part.places[rows, slots]] = weight * part.value[rows, slots]
    if null:
        table[lost, 0] = np.nan
    return table


def _from_slots(groups: Sequence[Group], edges: Sequence[int], width: int, lost: Mask | None) -> sp.csr_array:
    """A CSR table, its columns in ascending order in every row; a lost row has NaN as its only entry."""
    slots = [part for part, _ in groups if isinstance(part, Slots)]
    index = np.concatenate(
        [np.where(part.places >= 0, part.places + edges[k], -1) for k, part in enumerate(slots)], axis=1
    )
    value = np.concatenate(
        [weight * part.value for part, weight in groups if isinstance(part, Slots)], axis=1
    )
    if lost is not None and lost.any():
        index[lost], index[lost, 0] = -1, 0
        value[lost, 0] = np.nan
    stored = index >= 0
    ends = np.concatenate([[0], np.cumsum(stored.sum(axis=1))])
    return _csr(value[stored], index[stored], ends, (len(index), width))


def _from_ragged(part: Ragged, weight: float, lost: Mask | None) -> sp.csr_array:
    table = part.table.copy()
    table.data = weight * table.data
    if lost is None or not lost.any():
        return table
    marks = sp.csr_array(
        (np.full(lost.sum(), np.nan), (np.flatnonzero(lost), np.zeros(lost.sum(), dtype=np.intp))),
        shape=table.shape,
    )
    return sp.csr_array(table + marks)


def _csr(
    value: Vector, index: NDArray[np.int32], ends: NDArray[np.int64], shape: tuple[int, int]
) -> sp.csr_array:
    small = ends[-1] < 2**31
    return sp.csr_array((value, index, ends.astype(np.int32) if small else ends), shape=shape)
