"""Products of the features of two columns."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..arrays import Vector
from .column import Column, Slots

Index = NDArray[np.intp]


def product(first: Slots, second: Slots, width: int) -> Slots:
    """All products of a feature of the first column with one of the second, which has ``width`` features.

    The norm of the products is the product of the norms.
    """
    n = len(first.null)
    a, b = first.places[:, :, None], second.places[:, None, :]
    index = np.where((a >= 0) & (b >= 0), a * width + b, -1)
    value = first.value[:, :, None] * second.value[:, None, :]
    return Slots(index.reshape(n, -1), value.reshape(n, -1), first.null | second.null)


def ranges(first: Column, second: Column) -> tuple[Vector, Vector]:
    """Smallest and largest products."""
    (a, b), (c, d) = first.ranges(), second.ranges()
    corners = np.array([np.outer(x, y).ravel() for x in (a, b) for y in (c, d)])
    return corners.min(axis=0), corners.max(axis=0)


def raw(
    first: Column, second: Column, first_places: Index, second_places: Index, places: Index
) -> sp.coo_array:
    """Entries of the raw map for the products: raw products, raw features of both columns, and 1.

    Parameters
    ----------
    first_places, second_places, places : arrays of int
        Places of (1, features) of each column among all, and of the products.
    """
    table = sp.coo_array(sp.kron(first.raw(), second.raw()))
    width = len(second_places)
    i, j = np.divmod(np.arange(len(first_places) * width), width)
    inner = np.full(len(i), 0)
    inner[(i > 0) & (j > 0)] = places
    whole = np.where(j == 0, first_places[i], np.where(i == 0, second_places[j], inner))
    rows = (i[table.row] > 0) & (j[table.row] > 0)
    entries = table.data[rows], (whole[table.row[rows]], whole[table.col[rows]])
    return sp.coo_array(entries)
