"""Rows of numbers on grids so coarse that BLAS multiplies them exactly, whatever its order of operations.

Every number written here is a function of one record, from additions, products, quotients and roots alone:
the same bits on every processor.
"""

from __future__ import annotations

import math

import numpy as np

from .arguments import Beside, Bools, Box, Entries, Floats, Form, Soft
from .compiled import compiled, part
from .exact import dot
from .formulas import curvature, cut, exp, slope, value
from .simd import dot_in_four_lanes

_LANES = np.uint64(4)
_LEAST_NORM = 1e-300


@part
def _square(row: Floats) -> float:
    """Squared norm of a row, in a fixed order of operations."""
    whole = np.uint64(row.size) // _LANES
    a, b, c, d = dot_in_four_lanes(row, row, whole)
    for j in range(whole * _LANES, np.uint64(row.size)):
        a += row[j] * row[j]
    return (a + b) + (c + d)


@part
def _coordinate(value: float, middle: float, inverse: float, rounding: float) -> float:
    """A feature, moved and scaled into [-1, 1] and rounded."""
    return (cut((value - middle) * inverse, 1.0) + rounding) - rounding


@part
def _to_coordinates(row: Floats, scale: float, box: Box, out: Floats) -> None:
    """Write the coordinates of a row, and then a 1 if the box has a dimension more."""
    p = box.middle.size
    for j in range(p):
        out[j] = _coordinate(row[j] * scale, box.middle[j], box.inverse[j], box.rounding)
    for j in range(p, box.dimension):
        out[j] = 1.0


@compiled(nogil=True)
def coordinates(rows: Floats, scale: Floats, box: Box, out: Floats) -> None:
    """Write the coordinates of each row, and zeros up to the width of ``out``.

    A row of scale 0 is written as zeros.
    """
    for i in range(rows.shape[0]):
        if scale[i] == 0.0:
            out[i] = 0.0
            continue
        _to_coordinates(rows[i], scale[i], box, out[i])
        out[i, box.dimension :] = 0.0


@compiled(nogil=True)
def squares(rows: Floats, scale: Floats, box: Box, row: Floats, out: Floats) -> None:
    """Write the squared norm of the coordinates of each row; ``row`` is scratch space for one."""
    for i in range(rows.shape[0]):
        _to_coordinates(rows[i], scale[i], box, row)
        out[i] = _square(row) if scale[i] != 0.0 else 0.0


@part
def _offset(i: int, beside: Beside | None) -> float:
    return 0.0 if beside is None else beside.offset[i]


@part
def _share(i: int, beside: Beside | None) -> float:
    return 1.0 if beside is None else beside.share[i]


@part
def _exposure(i: int, beside: Beside | None, top: float) -> float:
    """The factor exp(offset - top), at most 1; it is 1 where ``top`` is infinite."""
    if beside is None:
        return 1.0
    return 1.0 if math.isinf(top) else exp(min(beside.offset[i] - top, 0.0))


@compiled(nogil=True)
def moment_rows(
    rows: Floats, scale: Floats, box: Box, last: Floats, beside: Beside | None, top: float, limit: float,
    rounding: float, out: Floats,
) -> None:  # fmt: skip
    """Write the coordinates of each row and its last number, scaled down to norm at most ``limit``, rounded.

    The coordinates, but not the number, are multiplied by the exposure of the row first; all of it by the
    root of its share last. Zeros follow up to the width of ``out``. A row of scale 0 is written as zeros.
    """
    d = box.dimension
    for i in range(rows.shape[0]):
        if scale[i] == 0.0:
            out[i] = 0.0
            continue
        row = out[i]
        row[d:] = 0.0
        _to_coordinates(rows[i], scale[i], box, row)
        exposure = _exposure(i, beside, top)
        norm = math.sqrt(exposure * exposure * _square(row[:d]) + last[i] * last[i])
        factor = min(limit / max(norm, _LEAST_NORM), 1.0)  # no branch: nobody could foresee it
        factor *= math.sqrt(_share(i, beside))
        for j in range(row.size):
            row[j] = (row[j] * exposure * factor + rounding) - rounding
        row[d] = (last[i] * factor + rounding) - rounding


@compiled(nogil=True)
def shortened_rows(beside: Beside | None, limit: float, rounding: float, rows: Floats) -> None:
    """Scale each row down to norm at most ``limit``, multiply it by the root of its share and round it."""
    for i in range(rows.shape[0]):
        row = rows[i]
        factor = min(limit / max(math.sqrt(_square(row)), _LEAST_NORM), 1.0)
        factor *= math.sqrt(_share(i, beside))
        for j in range(row.size):
            row[j] = (row[j] * factor + rounding) - rounding


@compiled(nogil=True)
def narrow(products: Floats, least: float, table: Entries, norms: Floats) -> None:
    """Round rows to the type of a table, and write their norms there, or ``least`` if that is more."""
    for i in range(products.shape[0]):
        row, narrowed = products[i], table[i]
        for j in range(row.size):
            narrowed[j] = row[j]
        norms[i] = max(math.sqrt(dot(narrowed, narrowed)), least)


@compiled(nogil=True)
def mean_rows(
    rows: Floats, scale: Floats, box: Box, shares: Floats, limit: float, weight: float, rounding: float,
    row: Floats, total: Floats,
) -> None:  # fmt: skip
    """Add the coordinates of each row, scaled down to norm at most ``limit``, and a number for their size.

    The number is weight * (2 norm² / limit² - 1). Both are multiplied by the share of the row and rounded
    first. A row of share 0 adds nothing. ``row`` is scratch space for one.
    """
    d = row.size
    for i in range(rows.shape[0]):
        share = shares[i]
        if share == 0.0:
            continue
        _to_coordinates(rows[i], scale[i], box, row)
        square = _square(row)
        factor = min(limit / max(math.sqrt(square), _LEAST_NORM), 1.0) * share
        size = min(square / (limit * limit), 1.0)
        for j in range(d):
            total[j] += (row[j] * factor + rounding) - rounding
        total[d] += (share * weight * (2.0 * size - 1.0) + rounding) - rounding


@compiled(nogil=True)
def joint_rows(
    products: Floats, y: Floats, beside: Beside | None, several: Bools, form: Form, soft: Soft, bent: Floats,
    pulled: Floats, total: Floats,
) -> None:  # fmt: skip
    """Write for each row u its multiples sqrt(weight * curvature) u and weight * slope u, rounded.

    A row of ``products`` is u, and then the margin without the offset. The weight is min(1, limit² /
    norm(u)²). The slope is in units of its bound, and the curvature is cut to what the joint constant allows
    beside that slope: the sensitivity rests on these cuts and on nothing that a loss states. Both are
    multiplied by the share of the record then. ``total`` is the sum of the second multiples. The first
    multiple of a record of a person with ``several`` is made shorter by what rounding can add; none has more
    if that is empty.
    """
    d = bent.shape[1]
    total[:] = 0.0
    for i in range(products.shape[0]):
        row, z, share = products[i, :d], products[i, d] + _offset(i, beside), _share(i, beside)
        square = _square(row)
        weight = 1.0 if square <= soft.limit * soft.limit else soft.limit * soft.limit / square
        here = slope(form, z, y[i])
        e = cut(here / soft.bound, 1.0)
        most = soft.curvature * math.sqrt((1.0 - abs(e)) * (1.0 + abs(e)))
        k = min(max(curvature(form, z, y[i], here), 0.0), most)
        first, second = math.sqrt(weight * (share * k)), weight * (share * e)
        if several.size and several[i] and square > 0.0:
            first = max(first - soft.added / math.sqrt(square), 0.0)
        for j in range(d):
            bent[i, j] = (first * row[j] + soft.rounding_bent) - soft.rounding_bent
            pulled[i, j] = (second * row[j] + soft.rounding_pulled) - soft.rounding_pulled
            total[j] += pulled[i, j]


@compiled(nogil=True)
def loss_values(
    z: Floats, y: Floats, scale: Floats, beside: Beside | None, form: Form, most: float, rounding: float,
    out: Floats,
) -> None:  # fmt: skip
    """Write the loss of each record, cut, times its share, and rounded; 0 for a row of scale 0."""
    for i in range(z.size):
        here = value(form, z[i] + _offset(i, beside), y[i])
        here = min(max(here, 0.0), most) * _share(i, beside) if scale[i] != 0.0 else 0.0
        out[i] = (here + rounding) - rounding
