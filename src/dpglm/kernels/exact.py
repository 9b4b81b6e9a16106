"""Products of rows that round the same way everywhere, and sums over rows that do not round at all.

A product of a row with w adds its terms in eight lanes: lane k has the terms of the columns j with
j mod 8 = k, in their order. So it depends on the row alone, and is the same by rows, by columns, with and
without the zeros, on every processor. A term of a sum over rows is rounded to a grid: ``rounding``, which is
1.5 * 2**52 grid steps, is added to it. The result is a double whose last binary digits are the number of
steps, so that the digits of all terms add up as 64-bit integers. A sum then depends on the set of rows alone.
Terms are below 2**51 steps.

Rows are those from ``first`` on, or those that ``index`` names from there on: as many as there are factors,
facts or results.
"""

from __future__ import annotations

import numpy as np

from .arguments import (
    PLAIN,
    SQUARES,
    Beside,
    Compressed,
    Duals,
    Entries,
    Floats,
    Form,
    Integers,
    RowFacts,
    Signed,
    Whole,
)
from .compiled import compiled, part
from .formulas import cut, to_dual_steps, to_slopes
from .simd import LANES as LANES
from .simd import add_eights, dot_in_lanes, four_dots, request, request_row

_STEPS = 1.5 * 2.0**52
_ROWS_AHEAD = np.uint64(16)  # so early is a row requested: memory works while slopes and sums are computed
_0, _1, _2, _3, _4, _5, _6, _7, _8 = (np.uint64(n) for n in range(9))


@part
def digits(value: float) -> int:
    """The binary digits of a double as an integer."""
    return np.float64(value).view(np.int64)  # type: ignore[return-value]


@part
def dot(row: Entries, w: Floats) -> float:
    """Product of a row with w, in lanes."""
    p = np.uint64(w.size)
    a, b, c, d, e, f, g, h = dot_in_lanes(row, w, p // _8)
    j, left = p - p % _8, p % _8
    if left > _0:
        a += np.float64(row[j]) * w[j]
    if left > _1:
        b += np.float64(row[j + _1]) * w[j + _1]
    if left > _2:
        c += np.float64(row[j + _2]) * w[j + _2]
    if left > _3:
        d += np.float64(row[j + _3]) * w[j + _3]
    if left > _4:
        e += np.float64(row[j + _4]) * w[j + _4]
    if left > _5:
        f += np.float64(row[j + _5]) * w[j + _5]
    if left > _6:
        g += np.float64(row[j + _6]) * w[j + _6]
    return joined(a, b, c, d, e, f, g, h)


@part
def joined(a: float, b: float, c: float, d: float, e: float, f: float, g: float, h: float) -> float:
    """The sum of the lanes."""
    return ((a + e) + (c + g)) + ((b + f) + (d + h))


@part
def sparse_dot(table: Compressed, i: Whole, w: Floats, lanes: Floats) -> float:
    """The same for line i of a compressed table; ``lanes`` is scratch space.

    Four products are computed before the first of them is stored: the compiler does not know that a lane is
    none of the coefficients, and would wait for each.
    """
    indices, entries = table.indices, table.entries
    t, end = np.uint64(table.indptr[i]), np.uint64(table.indptr[i + _1])
    for lane in range(LANES):
        lanes[lane] = 0.0
    while t + _4 <= end:
        j, k, m, o = indices[t], indices[t + _1], indices[t + _2], indices[t + _3]
        a, b = entries[t] * w[j], entries[t + _1] * w[k]
        c, d = entries[t + _2] * w[m], entries[t + _3] * w[o]
        lanes[j & _7] += a
        lanes[k & _7] += b
        lanes[m & _7] += c
        lanes[o & _7] += d
        t += _4
    while t < end:
        lanes[indices[t] & _7] += entries[t] * w[indices[t]]
        t += _1
    return joined(lanes[0], lanes[1], lanes[2], lanes[3], lanes[4], lanes[5], lanes[6], lanes[7])


@part
def _add_line(table: Compressed, i: Whole, factor: float, rounding: float, out: Integers) -> None:
    """Add line i of a compressed table, times a factor; terms are computed eight or four at a time."""
    indices, entries = table.indices, table.entries
    t, end = np.uint64(table.indptr[i]), np.uint64(table.indptr[i + _1])
    eights = (end - t) // _8
    add_eights(indices, entries, t, eights, factor, rounding, out)
    t += _8 * eights
    if t + _4 <= end:
        j, k, m, o = indices[t], indices[t + _1], indices[t + _2], indices[t + _3]
        a, b = steps(factor * entries[t], rounding), steps(factor * entries[t + _1], rounding)
        c, d = steps(factor * entries[t + _2], rounding), steps(factor * entries[t + _3], rounding)
        out[j] += a
        out[k] += b
        out[m] += c
        out[o] += d
        t += _4
    while t < end:
        out[indices[t]] += steps(factor * entries[t], rounding)
        t += _1


@part
def sparse_square(table: Compressed, i: Whole, lanes: Floats) -> float:
    """The squared norm of line i of a compressed table, in lanes."""
    lanes[:] = 0.0
    for t in range(table.indptr[i], table.indptr[i + _1]):
        x = np.float64(table.entries[t])
        lanes[table.indices[t] & _7] += x * x
    return joined(lanes[0], lanes[1], lanes[2], lanes[3], lanes[4], lanes[5], lanes[6], lanes[7])


@part
def steps(value: float, rounding: float) -> int:
    """The number of grid steps nearest to a value."""
    return digits(value + rounding) - digits(rounding)


@part
def grid_of(rounding: float) -> float:
    """The grid that a number rounds to."""
    return rounding / _STEPS


@part
def row_of(k: Whole, index: Signed | None, first: Whole) -> Whole:
    """The place in its table of row k of a piece: a range of rows, or some of an index."""
    here = np.uint64(first) + k
    return here if index is None else np.uint64(index[here])


@part
def margin(k: Whole, product: float, facts: RowFacts, intercept: float) -> float:
    """Prediction of a record from the product of its row with the coefficients; 0 for a null record."""
    scale = facts.scale[k]
    return float(scale * product + facts.constant * intercept) if scale != 0.0 else 0.0


@part
def add_offsets(first: Whole, rows: Whole, beside: Beside | None, values: Floats) -> None:
    """Add the offsets of records to their margins, if they have any."""
    if beside is not None:
        for k in range(rows):
            values[k] += beside.offset[first + k]


@part
def shared(k: Whole, beside: Beside | None, value: float) -> float:
    """The term of record k, times its share."""
    return value if beside is None else value * beside.share[k]


@part
def to_factors(
    first: Whole, rows: Whole, facts: RowFacts, form: Form, intercept: float, clip: float, rounding: float,
    values: Floats,
) -> int:  # fmt: skip
    """Turn products of records with the coefficients into the factors of their rows in a gradient.

    Slope times row is cut to norm ``clip``, then multiplied by the share of the record, and is 0 for a null
    record. Dual steps take the place of slopes if there are dual variables. Returns the sum of what the
    constant feature adds, in steps. There are several loops since the compiler makes vectors of each.
    """
    for k in range(rows):
        values[k] = margin(first + k, values[k], facts, intercept)
    add_offsets(first, rows, facts.beside, values)
    _to_clipped(first, rows, facts, form, clip, values, facts.duals)
    total = 0
    for k in range(rows):
        scale = facts.scale[first + k]
        r = values[k] if scale != 0.0 else 0.0
        total += steps(r * facts.constant, rounding)
        values[k] = r * scale
    return total


@part
def _to_clipped(
    first: Whole, rows: Whole, facts: RowFacts, form: Form, clip: float, values: Floats, duals: Duals | None
) -> None:
    """Turn margins into slopes or dual steps, cut and shared; dual steps are written to ``duals`` too."""
    if duals is None:
        to_slopes(form, facts.y[first : first + rows], values[:rows])
    else:
        end = first + rows
        alpha, weight = duals.alpha[first:end], duals.weight[first:end]
        to_dual_steps(form, alpha, facts.y[first:end], weight, values[:rows])
    for k in range(rows):
        values[k] = shared(first + k, facts.beside, cut(values[k], clip / facts.norms[first + k]))
    if duals is not None:
        for k in range(rows):
            duals.steps[first + k] = values[k]


@compiled(nogil=True)
def dense_dots(X: Entries, index: Signed | None, first: int, w: Floats, out: Floats) -> None:
    """Product of each row with w."""
    for k in range(np.uint64(out.size)):
        i = row_of(k, index, first)
        out[k] = dot(X[i], w)


@compiled(nogil=True)
def dense_squares(X: Entries, index: Signed | None, first: int, out: Floats) -> None:
    """Squared norms of the rows."""
    for k in range(np.uint64(out.size)):
        i = row_of(k, index, first)
        out[k] = dot(X[i], X[i])


@part
def _of_kind(value: float, kind: int) -> float:
    """An entry, its square or its absolute value."""
    if kind == PLAIN:
        return value
    return value * value if kind == SQUARES else abs(value)


@compiled(nogil=True)
def dense_add(
    X: Entries, index: Signed | None, first: int, factors: Floats, kind: int, rounding: float,
    out: Integers,
) -> None:  # fmt: skip
    """Add the rows, each times its factor, or the squares or sizes of their entries then."""
    if kind == PLAIN:
        p = np.uint64(X.shape[1])
        add_rows(X, index, first, np.uint64(factors.size), factors, rounding, out[:p])
        return
    for k in range(np.uint64(factors.size)):
        row, factor = X[row_of(k, index, first)], factors[k]
        for j in range(np.uint64(X.shape[1])):
            out[j] += steps(_of_kind(factor * row[j], kind), rounding)


@compiled(nogil=True)
def dense_add_cut(
    X: Entries, index: Signed | None, first: int, factors: Floats, limit: Floats, rounding: Floats,
    out: Integers,
) -> None:  # fmt: skip
    """Add the rows, each times its factor; entry j is cut to limit j and rounded to its own grid.

    As in ``add_rows``, four rows at a time.
    """
    columns, rows = range(np.uint64(X.shape[1])), np.uint64(factors.size)
    for k in range(_0, rows - rows % _4, _4):
        a, b, c, d = factors[k], factors[k + _1], factors[k + _2], factors[k + _3]
        row_a, row_b = X[row_of(k, index, first)], X[row_of(k + _1, index, first)]
        row_c, row_d = X[row_of(k + _2, index, first)], X[row_of(k + _3, index, first)]
        for j in columns:
            most, none = limit[j], rounding[j]
            ab = digits(cut(a * row_a[j], most) + none) + digits(cut(b * row_b[j], most) + none)
            cd = digits(cut(c * row_c[j], most) + none) + digits(cut(d * row_d[j], most) + none)
            out[j] += (ab + cd) - 4 * digits(none)
    for k in range(rows - rows % _4, rows):
        row, factor = X[row_of(k, index, first)], factors[k]
        for j in columns:
            out[j] += steps(cut(factor * row[j], limit[j]), rounding[j])


@compiled(nogil=True)
def dense_add_finely(
    X: Entries, index: Signed | None, first: int, factors: Floats, rounding: float, finer: float,
    out: Integers, rest: Integers,
) -> None:  # fmt: skip
    """Add the rows, each times its factor; what rounding to the grid leaves is added on a finer grid."""
    columns = range(np.uint64(X.shape[1]))
    for k in range(np.uint64(factors.size)):
        row, factor = X[row_of(k, index, first)], factors[k]
        for j in columns:
            value = factor * row[j]
            out[j] += steps(value, rounding)
            rest[j] += steps(value - ((value + rounding) - rounding), finer)


@compiled(nogil=True)
def dense_gradient(
    X: Entries, index: Signed | None, first: int, facts: RowFacts, form: Form, w: Floats, clip: float,
    rounding: float, factors: Floats, out: Integers,
) -> None:  # fmt: skip
    """Add slope times row at w, clipped, for each record; the last entry of ``out`` is that of the intercept.

    ``factors`` is scratch space for a chunk of rows, which the cache holds from products to sums.
    """
    p, n, chunk = np.uint64(X.shape[1]), np.uint64(facts.y.size), np.uint64(factors.size)
    half = chunk // _2
    for start in range(_0, n, chunk):
        rows, here, left = min(chunk, n - start), np.uint64(first) + start, n - start
        for k in range(_0, rows - rows % _4, _4):
            if k < half:
                _request_rows(X, index, here, half + k, _4, left)
            row_a, row_b = X[row_of(k, index, here)], X[row_of(k + _1, index, here)]
            row_c, row_d = X[row_of(k + _2, index, here)], X[row_of(k + _3, index, here)]
            four_dots(row_a, row_b, row_c, row_d, w[:p], factors, k)
        for k in range(rows - rows % _4, rows):
            factors[k] = dot(X[row_of(k, index, here)], w[:p])
        out[p] += to_factors(start, rows, facts, form, w[p], clip, rounding, factors)
        for k in range(_0, rows, _4):
            _request_rows(X, index, here, chunk + k // _2, _2, left)
            add_rows(X, index, here + k, min(_4, rows - k), factors[k:], rounding, out[:p])


@part
def _request_rows(X: Entries, index: Signed | None, first: Whole, k: Whole, rows: Whole, left: Whole) -> None:
    """Have rows from k on brought to the cache, or the last of those that are left.

    Memory works while products and sums are computed: products request the second half of their rows, sums
    the first half of those that come next.
    """
    for ahead in range(k, k + rows):
        request_row(X[row_of(min(ahead, left - _1), index, first)])


@part
def add_rows(
    X: Entries, index: Signed | None, first: Whole, rows: Whole, factors: Floats, rounding: float,
    out: Integers,
) -> None:  # fmt: skip
    """Add rows, each times its factor; four at a time, so that a sum is written once for four entries."""
    columns, none = range(np.uint64(out.size)), digits(rounding)
    for k in range(_0, rows - rows % _4, _4):
        a, b, c, d = factors[k], factors[k + _1], factors[k + _2], factors[k + _3]
        row_a, row_b = X[row_of(k, index, first)], X[row_of(k + _1, index, first)]
        row_c, row_d = X[row_of(k + _2, index, first)], X[row_of(k + _3, index, first)]
        for j in columns:
            ab = digits(a * row_a[j] + rounding) + digits(b * row_b[j] + rounding)
            cd = digits(c * row_c[j] + rounding) + digits(d * row_d[j] + rounding)
            out[j] += (ab + cd) - 4 * none
    for k in range(rows - rows % _4, rows):
        row, factor = X[row_of(k, index, first)], factors[k]
        for j in columns:
            out[j] += steps(factor * row[j], rounding)


@compiled(nogil=True)
def column_dots(X: Entries, first: int, w: Floats, lanes: Floats, out: Floats) -> None:
    """The same as `dense_dots` for a table by columns; ``lanes`` is scratch space of shape (8, rows)."""
    chunk = np.uint64(lanes.shape[1])
    for start in range(_0, np.uint64(out.size), chunk):
        n = min(chunk, np.uint64(out.size) - start)
        _column_dots(X, np.uint64(first) + start, n, w, lanes)
        for k in range(n):
            out[start + k] = _joined(lanes, k)


@part
def _column_dots(X: Entries, first: Whole, n: Whole, w: Floats, lanes: Floats) -> None:
    lanes[:] = 0.0
    for j in range(np.uint64(X.shape[1])):
        column, lane, factor = X[:, j], lanes[j & _7], w[j]
        for k in range(n):
            lane[k] += np.float64(column[first + k]) * factor


@part
def _joined(lanes: Floats, k: Whole) -> float:
    return joined(
        lanes[0, k], lanes[1, k], lanes[2, k], lanes[3, k], lanes[4, k], lanes[5, k], lanes[6, k], lanes[7, k]
    )


@compiled(nogil=True)
def column_squares(X: Entries, first: int, lanes: Floats, out: Floats) -> None:
    """The same as `dense_squares` for a table stored by columns."""
    chunk = np.uint64(lanes.shape[1])
    for start in range(_0, np.uint64(out.size), chunk):
        n = min(chunk, np.uint64(out.size) - start)
        lanes[:] = 0.0
        for j in range(np.uint64(X.shape[1])):
            column, lane = X[:, j], lanes[j & _7]
            for k in range(n):
                x = np.float64(column[np.uint64(first) + start + k])
                lane[k] += x * x
        for k in range(n):
            out[start + k] = _joined(lanes, k)


@compiled(nogil=True)
def column_add(X: Entries, first: int, factors: Floats, kind: int, rounding: float, out: Integers) -> None:
    """The same as `dense_add` for a table stored by columns."""
    rows, start = range(np.uint64(factors.size)), np.uint64(first)
    for j in range(np.uint64(X.shape[1])):
        column, total = X[:, j], 0
        if kind == PLAIN:
            for k in rows:
                total += steps(factors[k] * column[start + k], rounding)
        else:
            for k in rows:
                total += steps(_of_kind(factors[k] * column[start + k], kind), rounding)
        out[j] += total


@compiled(nogil=True)
def column_add_cut(
    X: Entries, first: int, factors: Floats, limit: Floats, rounding: Floats, out: Integers
) -> None:
    """The same as `dense_add_cut` for a table stored by columns, two at a time."""
    rows, start, p = range(np.uint64(factors.size)), np.uint64(first), np.uint64(X.shape[1])
    for j in range(_0, p, _2):
        k = min(j + _1, p - _1)  # of an odd number of columns the last is its own partner
        a, b, one, two = X[:, j], X[:, k], 0, 0
        for i in rows:
            one += steps(cut(factors[i] * a[start + i], limit[j]), rounding[j])
            two += steps(cut(factors[i] * b[start + i], limit[k]), rounding[k])
        out[j] += one
        if k > j:
            out[k] += two


@compiled(nogil=True)
def column_gradient(
    X: Entries, first: int, facts: RowFacts, form: Form, w: Floats, clip: float, rounding: float,
    lanes: Floats, out: Integers,
) -> None:  # fmt: skip
    """The same as `dense_gradient` for a table stored by columns, a chunk of rows after the other."""
    p, chunk, rows = np.uint64(X.shape[1]), np.uint64(lanes.shape[1]), np.uint64(facts.y.size)
    factors = lanes[0]
    for start in range(_0, rows, chunk):
        n, place = min(chunk, rows - start), np.uint64(first) + start
        _column_dots(X, place, n, w[:p], lanes)
        for k in range(n):
            factors[k] = _joined(lanes, k)
        out[p] += to_factors(start, n, facts, form, w[p], clip, rounding, factors)
        for j in range(p):
            column, total = X[:, j], 0
            for k in range(n):
                total += steps(factors[k] * column[place + k], rounding)
            out[j] += total


@part
def _request_line(table: Compressed, k: Whole, index: Signed | None, first: Whole) -> None:
    """Have row k brought to the cache, if it is one of an index: processors follow a range by themselves."""
    if index is not None:
        begin = table.indptr[np.uint64(index[np.uint64(first) + k])]
        request(table.indices[begin:])
        request(table.entries[begin:])


@compiled(nogil=True)
def sparse_dots(
    table: Compressed, index: Signed | None, first: Whole, w: Floats, lanes: Floats, out: Floats
) -> None:
    """The same as `dense_dots` for a table stored by rows without its zeros."""
    n = np.uint64(out.size)
    for k in range(n):
        _request_line(table, min(k + _ROWS_AHEAD, n - _1), index, first)
        out[k] = sparse_dot(table, row_of(k, index, first), w, lanes)


@compiled(nogil=True)
def sparse_squares(table: Compressed, index: Signed | None, first: int, lanes: Floats, out: Floats) -> None:
    """The same as `dense_squares`."""
    for k in range(np.uint64(out.size)):
        out[k] = sparse_square(table, row_of(k, index, first), lanes)


@compiled(nogil=True)
def sparse_add(
    table: Compressed, index: Signed | None, first: Whole, factors: Floats, kind: int,
    rounding: float, out: Integers,
) -> None:  # fmt: skip
    """The same as `dense_add`."""
    for k in range(np.uint64(factors.size)):
        i, factor = row_of(k, index, first), factors[k]
        if factor == 0.0:
            continue
        if kind == PLAIN:
            _add_line(table, i, factor, rounding, out)
            continue
        for t in range(table.indptr[i], table.indptr[i + _1]):
            out[table.indices[t]] += steps(_of_kind(factor * table.entries[t], kind), rounding)


@compiled(nogil=True)
def sparse_add_cut(
    table: Compressed, index: Signed | None, first: int, factors: Floats, limit: Floats,
    rounding: Floats, out: Integers,
) -> None:  # fmt: skip
    """The same as `dense_add_cut`."""
    for k in range(np.uint64(factors.size)):
        i, factor = row_of(k, index, first), factors[k]
        for t in range(table.indptr[i], table.indptr[i + _1]):
            j = table.indices[t]
            out[j] += steps(cut(factor * table.entries[t], limit[j]), rounding[j])


@compiled(nogil=True)
def sparse_add_finely(
    table: Compressed, index: Signed | None, first: int, factors: Floats, rounding: float,
    finer: float, out: Integers, rest: Integers,
) -> None:  # fmt: skip
    """The same as `dense_add_finely`."""
    for k in range(np.uint64(factors.size)):
        i, factor = row_of(k, index, first), factors[k]
        for t in range(table.indptr[i], table.indptr[i + _1]):
            value, j = factor * table.entries[t], table.indices[t]
            out[j] += steps(value, rounding)
            rest[j] += steps(value - ((value + rounding) - rounding), finer)


@compiled(nogil=True)
def sparse_gradient(
    table: Compressed, index: Signed | None, first: int, facts: RowFacts, form: Form, w: Floats, clip: float,
    rounding: float, factors: Floats, out: Integers,
) -> None:  # fmt: skip
    """The same as `dense_gradient`; the last eight entries of ``factors`` are scratch space for lanes."""
    p, n, chunk = w.size - 1, np.uint64(facts.y.size), np.uint64(factors.size) - _8
    lanes = factors[chunk:]
    for start in range(_0, n, chunk):
        rows, here = min(chunk, n - start), np.uint64(first) + start
        values = factors[:rows]
        sparse_dots(table, index, here, w, lanes, values)
        out[p] += to_factors(start, rows, facts, form, w[p], clip, rounding, values)
        sparse_add(table, index, here, values, PLAIN, rounding, out)
