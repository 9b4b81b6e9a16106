"""Coefficients in the units of raw columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from . import interaction
from .column import Column


class RawCoefficients(NamedTuple):
    """Coefficients in the units of the raw columns, by the names of features, and the intercept."""

    values: dict[str, float]
    intercept: float


def raw_map(
    columns: Mapping[str, Column], interactions: Sequence[Sequence[str]], edges: Sequence[int]
) -> sp.csr_array:
    """The matrix that takes raw features, then 1, to encoded features, then 1.

    Parameters
    ----------
    columns : mapping of str to Column
        The columns that become features, in their order.
    interactions : sequence of pairs of str
    edges : sequence of int
        Where the features of each column, then those of each pair, begin; and how many there are.
    """
    last = edges[-1]
    places = {name: np.array([last, *range(edges[k], edges[k + 1])]) for k, name in enumerate(columns)}
    parts = [sp.coo_array(([1.0], ([last], [last])))]
    for name, column in columns.items():
        table = sp.coo_array(column.raw())
        inner = table.row > 0
        index = places[name][table.row[inner]], places[name][table.col[inner]]
        parts.append(sp.coo_array((column.weight * table.data[inner], index)))
    for k, (a, b) in enumerate(interactions, start=len(columns)):
        here = np.arange(edges[k], edges[k + 1])
        part = interaction.raw(columns[a], columns[b], places[a], places[b], here)
        part.data *= columns[a].weight * columns[b].weight
        parts.append(part)
    rows, cols = (np.concatenate([part.coords[axis] for part in parts]) for axis in range(2))
    entries = np.concatenate([part.data for part in parts])
    return sp.csr_array((entries, (rows, cols)), shape=(last + 1, last + 1))
