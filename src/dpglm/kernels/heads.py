"""Columns that weigh much, whose sums follow all margins to first order in the factor (see `Heads`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from .compiled import compiled, part
from .forms import curvature, slope

_1 = np.uint64(1)


@compiled(nogil=True, allocates=True)
def some_columns(table: Any, columns: Any, n: int) -> Any:
    """By rows, where each begins and (number, entry) of some columns of a table that is stored by columns."""
    indptr, indices, entries = table
    begins = np.zeros(n + 1, dtype=np.uint64)
    for j in columns:
        for e in range(indptr[j], indptr[j + _1]):
            begins[indices[e] + _1] += _1
    for i in range(np.uint64(n)):
        begins[i + _1] += begins[i]
    pairs = np.empty((begins[n], 2), dtype=entries.dtype)
    # Each beginning moves to the end of its row, and back.
    for number in range(columns.size):
        j = columns[number]
        for e in range(indptr[j], indptr[j + _1]):
            at = begins[indices[e]]
            pairs[at, 0], pairs[at, 1] = number, entries[e]
            begins[indices[e]] = at + _1
    for i in range(n, 0, -1):
        begins[i] = begins[i - 1]
    begins[0] = 0
    return begins, pairs


@part
def _line_of(form: Any, here: float, part: float, shift: float, y: float, v: float) -> Any:
    """(constant, multiple of the factor): a slope to first order in the factor, from where it is ``here``."""
    bend = curvature(form, part + shift, y, here)
    return here - bend * part, bend * v


@part
def _add(i: Any, constant: float, multiple: float, scale: float, heads: Any) -> None:
    """Add a line times the entries of row i."""
    lines, begins, entries = heads.lines, heads.begins, heads.entries
    for e in range(begins[i], begins[i + _1]):
        k, x = np.uint64(np.int32(entries[e, 0])), np.float64(entries[e, 1]) * scale
        lines[k, 0] += constant * x
        lines[k, 1] += multiple * x


@compiled(nogil=True)
def start_heads(rows: Any, heads: Any, terms: Any) -> None:
    """Set the lines of the heads, at a factor of 1, and their bounds."""
    form, lines = terms.form, heads.lines
    for i in range(np.uint64(rows.shape[0])):
        v, y, scale = rows[i, 0], rows[i, 2], rows[i, 3]
        shift = terms.base if scale > 0 else 0.0
        rows[i, 4], rows[i, 5] = v, slope(form, v + shift, y)
        constant, multiple = _line_of(form, rows[i, 5], v, shift, y, v)
        _add(i, constant, multiple, scale, heads)
    for h in range(lines.shape[0]):
        lines[h, 3] = abs(lines[h, 0] + lines[h, 1]) + lines[h, 2]


@part
def lead(i: Any, v: float, part: float, rows: Any, heads: Any, terms: Any) -> None:
    """Let the heads follow row i, whose v becomes ``v`` and whose part of the margin is ``part``."""
    form, y, scale = terms.form, rows[i, 2], rows[i, 3]
    shift = terms.base if scale > 0 else 0.0
    old_constant, old_multiple = _line_of(form, rows[i, 5], rows[i, 4], shift, y, rows[i, 0])
    rows[i, 4], rows[i, 5] = part, slope(form, part + shift, y)
    constant, multiple = _line_of(form, rows[i, 5], part, shift, y, v)
    _add(i, constant - old_constant, multiple - old_multiple, scale, heads)
