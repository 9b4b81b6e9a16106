"""Products, moves and sums as vectors of eight doubles, and requests for what is needed soon.

The compiler does not find these vectors by itself. They are written down as operations on eight doubles, each
with the result of the same operation on single doubles. A processor whose vectors are shorter takes several.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, cast

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from .arguments import Entries, Floats, Integers, Unsigned, Whole

LANES, PLACES = 8, 32
_DOUBLE = ir.DoubleType()
_DOUBLES = ir.VectorType(_DOUBLE, LANES)
_STARTS = range(0, PLACES, LANES)
_WORD, _INDEX = ir.IntType(64), ir.IntType(32)
_WORDS = ir.VectorType(_WORD, LANES)
_FUSED = ("contract",)  # a product may keep all its digits until it is added
_LINE, _REQUESTED, _MOST_REQUESTED = 64, 256, 1024
_SECOND_CACHE, _NEAREST_CACHE = 2, 3


def _dots_in(lanes: int) -> Any:
    """Code for sums of products in some number of lanes."""

    def typed(_: Any, a: Any, b: Any, blocks: Any) -> Any:

        def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            load_a, load_b = (
                _loader(context, builder, signature.args[k], values[k], lanes) for k in range(2)
            )
            zeros = ir.Constant(ir.VectorType(_DOUBLE, lanes), [0.0] * lanes)
            total = cgutils.alloca_once_value(builder, zeros)
            with cgutils.for_range(builder, values[2]) as loop:
                place = builder.mul(loop.index, ir.Constant(_WORD, lanes))
                product = builder.fmul(load_a(place), load_b(place))
                builder.store(builder.fadd(builder.load(total), product), total)
            sums = builder.load(total)
            each = [builder.extract_element(sums, ir.Constant(_INDEX, lane)) for lane in range(lanes)]
            return context.make_tuple(builder, signature.return_type, each)

        return types.UniTuple(types.float64, lanes)(a, b, types.uint64), codegen

    return typed


_Four = tuple[float, float, float, float]
_Lanes = tuple[float, float, float, float, float, float, float, float]
dot_in_lanes: Callable[[Entries, Entries, Whole], _Lanes] = cast(Any, intrinsic(_dots_in(LANES)))
"""Sums over k < ``blocks`` of a[8 k + lane] * b[8 k + lane], one for each lane: for compiled code only."""
dot_in_four_lanes: Callable[[Entries, Entries, Whole], _Four] = cast(Any, intrinsic(_dots_in(4)))
"""The same for four lanes: for compiled code only."""


def _four_dots(_: Any, a: Any, b: Any, c: Any, d: Any, w: Any, out: Any, k: Any) -> Any:
    _require_doubles(w, out)

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        rows = [_loader(context, builder, signature.args[k], values[k]) for k in range(4)]
        weights = _loader(context, builder, w, values[4])
        width = context.make_array(w)(context, builder, values[4]).nitems
        totals = [cgutils.alloca_once_value(builder, ir.Constant(_DOUBLES, [0.0] * LANES)) for _ in rows]

        def add(place: Any, left: Any = None) -> None:
            factors = weights(place, left)
            for row, total in zip(rows, totals, strict=True):
                product = builder.fmul(row(place, left), factors)
                builder.store(builder.fadd(builder.load(total), product), total)

        with cgutils.for_range(builder, builder.udiv(width, ir.Constant(_WORD, LANES))) as loop:
            add(builder.mul(loop.index, ir.Constant(_WORD, LANES)))
        left = builder.urem(width, ir.Constant(_WORD, LANES))
        with builder.if_then(builder.icmp_unsigned(">", left, ir.Constant(_WORD, 0)), likely=False):
            add(builder.sub(width, left), left)
        joined = _joined(builder, [builder.load(total) for total in totals])
        start = context.make_array(out)(context, builder, values[5]).data
        place = builder.bitcast(builder.gep(start, [values[6]]), joined.type.as_pointer())
        builder.store(joined, place, align=8)
        return context.get_dummy_value()

    return types.void(a, b, c, d, w, out, types.uint64), codegen


def _joined(builder: Any, rows: list[Any]) -> Any:
    """The sums of the lanes of four vectors, each in the order of ``exact.joined``."""
    low, high = ([_chosen(builder, row, row, half) for row in rows] for half in (range(4), range(4, 8)))
    sums = [builder.fadd(a, b) for a, b in zip(low, high, strict=True)]
    first, second = (
        builder.fadd(_chosen(builder, a, b, (0, 1, 4, 5)), _chosen(builder, a, b, (2, 3, 6, 7)))
        for a, b in (sums[:2], sums[2:])
    )
    even, odd = (_chosen(builder, first, second, places) for places in ((0, 2, 4, 6), (1, 3, 5, 7)))
    return builder.fadd(even, odd)


def _chosen(builder: Any, a: Any, b: Any, places: Iterable[int]) -> Any:
    """Some numbers of two vectors, those of the second counted on from those of the first."""
    chosen = list(places)
    return builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(_INDEX, len(chosen)), chosen))


four_dots: Callable[[Entries, Entries, Entries, Entries, Floats, Floats, Whole], None] = cast(
    Any, intrinsic(_four_dots)
)
"""Write the products of four rows with w to out[k : k + 4]: for compiled code only.

Each has the bits of ``exact.dot``. The compiler would make vectors of neither four rows nor lanes.
"""


def _loader(context: Any, builder: Any, array: Any, value: Any, lanes: int = LANES) -> Any:
    """Code that loads entries of an array from a place on, one a lane, or ``left`` and zeros, as doubles."""
    if array.dtype not in (types.float32, types.float64):
        raise TypeError(f"lanes hold entries of float32 or float64, not {array.dtype}")
    struct = context.make_array(array)(context, builder, value)
    entry = context.get_data_type(array.dtype)
    entries = ir.VectorType(entry, lanes)

    def place_of(at: Any) -> Any:
        return cgutils.get_item_pointer(context, builder, array, struct, [at])

    def load(place: Any, left: Any = None) -> Any:
        if array.layout in "CF":  # of one dimension: entries follow each other
            pointer = builder.bitcast(builder.gep(struct.data, [place]), entries.as_pointer())
            align = array.dtype.bitwidth // 8
            if left is None:
                found = builder.load(pointer, align=align)
            else:
                found = _load_some(builder, entries, pointer, align, left)
        else:
            found = ir.Constant(entries, [0.0] * lanes)
            for lane in range(lanes):
                at = builder.add(place, ir.Constant(_WORD, lane))
                if left is None:
                    value = builder.load(place_of(at))
                else:  # an entry that is there, and 0 in its place
                    inside = builder.icmp_unsigned(">", left, ir.Constant(_WORD, lane))
                    there = builder.load(place_of(builder.select(inside, at, place)))
                    value = builder.select(inside, there, ir.Constant(entry, 0.0))
                found = builder.insert_element(found, value, ir.Constant(_INDEX, lane))
        return found if array.dtype == types.float64 else builder.fpext(found, ir.VectorType(_DOUBLE, lanes))

    return load


def _load_some(builder: Any, entries: Any, pointer: Any, align: int, left: Any) -> Any:
    """The first entries of a vector in memory, and zeros in the place of the others, which are not read."""
    places = ir.Constant(_WORDS, list(range(LANES)))
    many = builder.insert_element(ir.Constant(_WORDS, ir.Undefined), left, ir.Constant(_INDEX, 0))
    mask = builder.icmp_unsigned("<", places, _chosen(builder, many, many, [0] * LANES))
    kind = ir.FunctionType(entries, [pointer.type, _INDEX, mask.type, entries])
    name = f"llvm.masked.load.v{LANES}f{8 * align}.p0"
    load = cgutils.get_or_insert_function(builder.module, kind, name)
    zeros = ir.Constant(entries, [0.0] * LANES)
    return builder.call(load, [pointer, ir.Constant(_INDEX, align), mask, zeros])


def _move_in_lanes(
    _: Any, move: Any, column: Any, z: Any, other: Any, limit: Any, rounding: Any, soon: Any, ahead: Any,
    blocks: Any,
) -> Any:  # fmt: skip

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        load_column, load_z, load_other = (
            _loader(context, builder, signature.args[k], values[k]) for k in (1, 2, 3)
        )
        requested = context.make_array(soon)(context, builder, values[6]).data
        margins = context.make_array(z)(context, builder, values[2]).data
        factor, top, whole = (_repeated(builder, values[k]) for k in (0, 4, 5))
        bottom = builder.fneg(top)
        total = cgutils.alloca_once_value(builder, ir.Constant(_WORDS, [0] * LANES))
        with cgutils.for_range(builder, values[8]) as loop:
            place = builder.mul(loop.index, ir.Constant(_WORD, LANES))
            later = builder.gep(requested, [builder.add(place, values[7])])
            _prefetch(builder, builder.bitcast(later, cgutils.voidptr_t), to_write=0, nearness=_SECOND_CACHE)
            product = builder.fmul(factor, load_column(place), flags=_FUSED)
            moved = builder.fadd(load_z(place), product, flags=_FUSED)
            here = builder.bitcast(builder.gep(margins, [place]), _DOUBLES.as_pointer())
            builder.store(moved, here, align=z.dtype.bitwidth // 8)
            term = builder.fmul(moved, load_other(place))
            term = builder.select(builder.fcmp_ordered(">", term, bottom), term, bottom)
            term = builder.select(builder.fcmp_ordered("<", term, top), term, top)
            digits = builder.bitcast(builder.fadd(term, whole), _WORDS)
            steps = builder.sub(digits, builder.bitcast(whole, _WORDS))
            builder.store(builder.add(builder.load(total), steps), total)
        sums = builder.load(total)
        result = ir.Constant(_WORD, 0)
        for lane in range(LANES):
            result = builder.add(result, builder.extract_element(sums, ir.Constant(_INDEX, lane)))
        return result

    if z.layout != "C":
        raise TypeError("margins are contiguous")
    whole = types.uint64
    return types.int64(
        types.float64, column, z, other, types.float64, types.float64, soon, whole, whole
    ), codegen


def _repeated(builder: Any, value: Any) -> Any:
    """Eight times the same double."""
    nothing = ir.Constant(_DOUBLES, ir.Undefined)
    first = builder.insert_element(nothing, value, ir.Constant(_INDEX, 0))
    return builder.shuffle_vector(first, nothing, ir.Constant(ir.VectorType(_INDEX, LANES), [0] * LANES))


move_in_lanes: Callable[[float, Entries, Floats, Entries, float, float, Entries, Whole, Whole], int] = cast(
    Any, intrinsic(_move_in_lanes)
)
"""Add ``move * column`` to z, and return the sum of the cut terms z * other in steps: for compiled code only.

Margins pass the processor once for both. Arguments are the move, the column, z, the other column, the limit
and the rounding constant of its terms; a column that is needed soon, and how many entries ahead to request
it; how many blocks of eight rows to pass.
"""


def _add_eights(
    _: Any, indices: Any, entries: Any, begin: Any, blocks: Any, factor: Any, rounding: Any, out: Any
) -> Any:
    if not indices.layout == out.layout == "C" or out.dtype != types.int64:
        raise TypeError("sums and their indices are contiguous")

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        places, sums = (
            context.make_array(signature.args[k])(context, builder, values[k]).data for k in (0, 6)
        )
        load = _loader(context, builder, entries, values[1])
        factors, whole = (_repeated(builder, values[k]) for k in (4, 5))
        none = builder.bitcast(whole, _WORDS)
        with cgutils.for_range(builder, values[3]) as loop:
            t = builder.add(values[2], builder.mul(loop.index, ir.Constant(_WORD, LANES)))
            digits = builder.fadd(builder.fmul(factors, load(t)), whole)
            steps = builder.sub(builder.bitcast(digits, _WORDS), none)
            for lane in range(LANES):
                at = builder.load(builder.gep(places, [builder.add(t, ir.Constant(_WORD, lane))]))
                place = builder.gep(sums, [builder.zext(at, _WORD)])
                step = builder.extract_element(steps, ir.Constant(_INDEX, lane))
                builder.store(builder.add(builder.load(place), step), place)
        return context.get_dummy_value()

    whole = types.uint64
    return types.void(indices, entries, whole, whole, types.float64, types.float64, out), codegen


add_eights: Callable[[Unsigned, Entries, Whole, Whole, float, float, Integers], None] = cast(
    Any, intrinsic(_add_eights)
)
"""Add entries, each times a factor and in steps, to the sums that their indices name: for compiled code only.

Entries are so many blocks of eight from a first one on. Arguments are the indices, the entries, the first,
the number of blocks, the factor, the rounding constant and the sums.
"""


def _request(_: Any, row: Any) -> Any:

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        data = context.make_array(row)(context, builder, values[0]).data
        start = builder.bitcast(data, cgutils.voidptr_t)
        for place in range(0, _REQUESTED, _LINE):
            _prefetch(builder, builder.gep(start, [ir.Constant(_WORD, place)]), to_write=0)
        return context.get_dummy_value()

    return types.void(row), codegen


request: Callable[[Entries | Unsigned], None] = cast(Any, intrinsic(_request))
"""Have 256 bytes from the start of a row on brought to the cache: for compiled code only.

It changes no result, and may reach beyond the table. Processors notice by themselves that the rest of a long
row is needed.
"""


def _request_row(_: Any, row: Any) -> Any:

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        struct = context.make_array(row)(context, builder, values[0])
        start = builder.bitcast(struct.data, cgutils.voidptr_t)
        size = builder.mul(struct.nitems, struct.itemsize)
        most = ir.Constant(_WORD, _MOST_REQUESTED)
        size = builder.select(builder.icmp_unsigned("<", size, most), size, most)
        lines = builder.udiv(builder.add(size, ir.Constant(_WORD, _LINE - 1)), ir.Constant(_WORD, _LINE))
        with cgutils.for_range(builder, lines) as loop:
            place = builder.gep(start, [builder.mul(loop.index, ir.Constant(_WORD, _LINE))])
            _prefetch(builder, place, to_write=0)
        return context.get_dummy_value()

    return types.void(row), codegen


request_row: Callable[[Entries], None] = cast(Any, intrinsic(_request_row))
"""Have a contiguous row, or 1,024 bytes of it, brought to the cache: for compiled code only."""


def _request_line(_: Any, table: Any, k: Any) -> Any:

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        struct = context.make_array(table)(context, builder, values[0])
        at = [values[1], ir.Constant(_WORD, 0)][: table.ndim]
        place = cgutils.get_item_pointer(context, builder, table, struct, at)
        _prefetch(builder, builder.bitcast(place, cgutils.voidptr_t), to_write=table.ndim - 1)
        return context.get_dummy_value()

    return types.void(table, types.uint64), codegen


request_line: Callable[[Entries, Whole], None] = cast(Any, intrinsic(_request_line))
"""Have the beginning of row k of a table brought to the cache, to be changed: for compiled code only.

It changes no result. Processors cannot foresee rows in an order of their own: with requests some dozens of
them are under way at once.
"""

request_entry: Callable[[Entries | Unsigned, Whole], None] = cast(Any, intrinsic(_request_line))
"""The same for entry k of an array, which may be beyond its end, to be read."""


def _prefetch(builder: Any, place: Any, to_write: int, nearness: int = _NEAREST_CACHE) -> None:
    """Code that requests the cache line of a place."""
    number = ir.IntType(32)
    kind = ir.FunctionType(ir.VoidType(), [place.type, number, number, number])
    prefetch = builder.module.declare_intrinsic("llvm.prefetch", [place.type], kind)
    is_data = 1
    builder.call(prefetch, [place, *(ir.Constant(number, k) for k in (to_write, nearness, is_data))])


class _Places:
    """Code for 32 places at once, as vectors that stay in registers.

    The compiler would load and store each place again for every few terms.
    """

    def __init__(self, context: Any, builder: Any, signature: Any, values: Any) -> None:
        self.builder = builder
        self._data = {
            k: context.make_array(kind)(context, builder, values[k]).data
            for k, kind in enumerate(signature.args)
            if isinstance(kind, types.Array)
        }

    def totals(self, value: Any) -> list[Any]:
        """Space for all places, with a number in each."""
        return [cgutils.alloca_once_value(self.builder, self.same(value)) for _ in _STARTS]

    def place(self, array: int, at: Any, offset: int) -> Any:
        """The address of an entry."""
        where = self.builder.add(at, ir.Constant(_WORD, offset))
        return self.builder.gep(self._data[array], [where])

    def eight(self, array: int, at: Any, offset: int) -> Any:
        """Eight entries."""
        pointer = self.builder.bitcast(self.place(array, at, offset), _DOUBLES.as_pointer())
        return self.builder.load(pointer, align=8)

    def same(self, value: Any) -> Any:
        """A number in all lanes."""
        return _repeated(self.builder, value)

    def store(self, totals: list[Any], array: int, at: Any) -> None:
        """Write the totals of all places."""
        for start, total in zip(_STARTS, totals, strict=True):
            pointer = self.builder.bitcast(self.place(array, at, start), _DOUBLES.as_pointer())
            self.builder.store(self.builder.load(total), pointer, align=8)


def _require_doubles(*arrays: Any) -> None:
    if any((array.dtype, array.layout) != (types.float64, "C") for array in arrays):
        raise TypeError("these lanes hold contiguous arrays of float64")


def _weigh_places(_: Any, wide: Any, mass: Any, fours: Any, i: Any, first: Any, after: Any) -> Any:
    _require_doubles(wide, mass, after)

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        code = _Places(context, builder, signature, values)
        totals = code.totals(values[4])
        size = context.make_array(signature.args[1])(context, builder, values[1]).nitems
        end = builder.add(values[3], builder.sub(size, ir.Constant(_WORD, 1)))
        with cgutils.for_range(builder, values[2]) as loop:
            k = builder.mul(loop.index, ir.Constant(_WORD, 4))
            shares = [code.same(builder.load(code.place(1, k, d))) for d in range(4)]
            at = builder.sub(end, k)
            for start, total in zip(_STARTS, totals, strict=True):
                p, q, r, s = (builder.fmul(shares[d], code.eight(0, at, start - d)) for d in range(4))
                added = builder.fadd(builder.fadd(p, q), builder.fadd(r, s))
                builder.store(builder.fadd(builder.load(total), added), total)
        code.store(totals, 5, values[3])
        return context.get_dummy_value()

    return types.void(wide, mass, types.int64, types.int64, types.float64, after), codegen


weigh_places: Callable[[Floats, Floats, int, int, float, Floats], None] = cast(Any, intrinsic(_weigh_places))
"""Set 32 places of ``after``, from i on, to ``first`` plus what 4 ``fours`` losses add.

Four products are added to each other, then to the total. For compiled code only.
"""


def _best_places(_: Any, after: Any, rises: Any, i: Any, best: Any) -> Any:
    _require_doubles(after, rises, best)

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        code = _Places(context, builder, signature, values)
        totals = code.totals(ir.Constant(_DOUBLE, 0.0))
        count = context.make_array(signature.args[1])(context, builder, values[1]).nitems
        m = builder.sub(count, ir.Constant(_WORD, 1))
        low = builder.load(code.place(1, ir.Constant(_WORD, 0), 0))
        with cgutils.for_range(builder, count) as loop:
            weight = builder.fdiv(builder.load(code.place(1, loop.index, 0)), low)
            rest = code.same(builder.fsub(ir.Constant(_DOUBLE, 1.0), weight))
            weight = code.same(weight)
            at = builder.add(values[2], builder.sub(m, loop.index))
            above = builder.add(at, m)
            for start, total in zip(_STARTS, totals, strict=True):
                lower = builder.fmul(weight, code.eight(0, at, start))
                value = builder.fadd(lower, builder.fmul(rest, code.eight(0, above, start)))
                most = builder.load(total)
                larger = builder.fcmp_ordered(">", value, most)
                builder.store(builder.select(larger, value, most), total)
        code.store(totals, 3, values[2])
        return context.get_dummy_value()

    return types.void(after, rises, types.int64, best), codegen


best_places: Callable[[Floats, Floats, int, Floats], None] = cast(Any, intrinsic(_best_places))
"""Set 32 places of ``best``, from i on, to the maxima over grid points (see ``selection_recursion``), or 0.

For compiled code only.
"""
