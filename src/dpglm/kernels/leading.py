"""Leading columns, whose sums are linear models in the factor (see `Leading`)."""

from __future__ import annotations

import numpy as np

from .arguments import Compressed, Entries, Floats, Form, Leading, Terms, Whole, Words
from .compiled import compiled, part
from .forms import curvature, slope

_1 = np.uint64(1)


def some_columns(table: Compressed, columns: Words, n: int) -> tuple[Words, Entries]:
    """By rows, where each begins and (number, entry) of some columns of a table that is stored by columns.

    NumPy has large arrays in large pages of memory, which compiled code would not: steps read them at random.
    """
    begins = np.zeros(n + 1, dtype=np.uint64)
    _count(table, columns, begins)
    pairs = np.empty((int(begins[n]), 2), dtype=table.entries.dtype)
    _fill(table, columns, begins, pairs)
    return begins, pairs


@compiled(nogil=True)
def _count(table: Compressed, columns: Words, begins: Words) -> None:
    """Turn zeros into where the entries of each row begin."""
    indptr, indices = table.indptr, table.indices
    for j in columns:
        for e in range(indptr[j], indptr[j + _1]):
            begins[indices[e] + _1] += _1
    for i in range(np.uint64(begins.size - 1)):
        begins[i + _1] += begins[i]


@compiled(nogil=True)
def _fill(table: Compressed, columns: Words, begins: Words, pairs: Entries) -> None:
    indptr, indices, entries = table
    # Each beginning moves to the end of its row, and back.
    for number in range(columns.size):
        j = columns[number]
        for e in range(indptr[j], indptr[j + _1]):
            at = begins[indices[e]]
            pairs[at, 0], pairs[at, 1] = number, entries[e]
            begins[indices[e]] = at + _1
    for i in range(begins.size - 1, 0, -1):
        begins[i] = begins[i - 1]
    begins[0] = 0


@part
def _line_of(form: Form, here: float, part: float, shift: float, y: float, v: float) -> tuple[float, float]:
    """(constant, multiple of the factor): linear model of a slope, ``here`` at the present factor."""
    bend = curvature(form, part + shift, y, here)
    return here - bend * part, bend * v


@part
def _add(i: Whole, constant: float, multiple: float, scale: float, leading: Leading) -> None:
    """Add a linear model times the entries of row i."""
    lines, begins, entries = leading.lines, leading.begins, leading.entries
    for e in range(begins[i], begins[i + _1]):
        k, x = np.uint64(np.int32(entries[e, 0])), np.float64(entries[e, 1]) * scale
        lines[k, 0] += constant * x
        lines[k, 1] += multiple * x


@compiled(nogil=True)
def start_leading(rows: Floats, leading: Leading, terms: Terms) -> None:
    """Set the models of the leading columns, at a factor of 1."""
    form, lines = terms.form, leading.lines
    lines[:, 0], lines[:, 1], leading.drift[0] = 0.0, 0.0, 0.0
    for i in range(np.uint64(rows.shape[0])):
        v, y, scale = rows[i, 0], rows[i, 2], rows[i, 3]
        shift = terms.base if scale > 0 else 0.0
        rows[i, 4], rows[i, 5], rows[i, 7] = v, slope(form, v + shift, y), v
        constant, multiple = _line_of(form, rows[i, 5], v, shift, y, v)
        _add(i, constant, multiple, scale, leading)


@part
def lead(i: Whole, v: float, part: float, rows: Floats, leading: Leading, terms: Terms) -> None:
    """Update the models to row i, whose v becomes ``v`` and whose part of the margin is ``part``."""
    form, y, scale = terms.form, rows[i, 2], rows[i, 3]
    shift = terms.base if scale > 0 else 0.0
    old_constant, old_multiple = _line_of(form, rows[i, 5], rows[i, 4], shift, y, rows[i, 7])
    rows[i, 4], rows[i, 5], rows[i, 7] = part, slope(form, part + shift, y), v
    constant, multiple = _line_of(form, rows[i, 5], part, shift, y, v)
    _add(i, constant - old_constant, multiple - old_multiple, scale, leading)
