"""Products of rows in eight lanes, as vectors of eight doubles, and requests for what is needed soon.

The compiler does not find these vectors by itself. They are written down as operations on eight doubles, each
with the result of the same operation on single doubles. A processor whose vectors are shorter takes several.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from .arguments import Entries, Floats, Unsigned, Whole

LANES = 8
DOUBLES = ir.VectorType(ir.DoubleType(), LANES)
WORD, INDEX = ir.IntType(64), ir.IntType(32)
_LINE, _REQUESTED = 64, 256
SECOND_CACHE, NEAREST_CACHE = 2, 3


def _dot_in_lanes(_: Any, a: Any, b: Any, blocks: Any) -> Any:

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        load_a, load_b = (loader(context, builder, signature.args[k], values[k]) for k in range(2))
        total = cgutils.alloca_once_value(builder, ir.Constant(DOUBLES, [0.0] * LANES))
        with cgutils.for_range(builder, values[2]) as loop:
            place = builder.mul(loop.index, ir.Constant(WORD, LANES))
            product = builder.fmul(load_a(place), load_b(place))
            builder.store(builder.fadd(builder.load(total), product), total)
        sums = builder.load(total)
        lanes = [builder.extract_element(sums, ir.Constant(INDEX, lane)) for lane in range(LANES)]
        return context.make_tuple(builder, signature.return_type, lanes)

    return types.UniTuple(types.float64, LANES)(a, b, types.uint64), codegen


_Lanes = tuple[float, float, float, float, float, float, float, float]
dot_in_lanes: Callable[[Entries, Entries, Whole], _Lanes] = cast(Any, intrinsic(_dot_in_lanes))
"""Sums over k < ``blocks`` of a[8 k + lane] * b[8 k + lane], one for each lane: for compiled code only."""


def loader(context: Any, builder: Any, array: Any, value: Any) -> Any:
    """Code that loads eight entries of an array, from a place on, as doubles."""
    if array.dtype not in (types.float32, types.float64):
        raise TypeError(f"lanes hold entries of float32 or float64, not {array.dtype}")
    struct = context.make_array(array)(context, builder, value)
    entry = context.get_data_type(array.dtype)
    entries = ir.VectorType(entry, LANES)

    def load(place: Any) -> Any:
        if array.layout in "CF":  # of one dimension: entries follow each other
            pointer = builder.bitcast(builder.gep(struct.data, [place]), entries.as_pointer())
            found = builder.load(pointer, align=array.dtype.bitwidth // 8)
        else:
            found = ir.Constant(entries, ir.Undefined)
            for lane in range(LANES):
                here = builder.add(place, ir.Constant(WORD, lane))
                pointer = cgutils.get_item_pointer(context, builder, array, struct, [here])
                found = builder.insert_element(found, builder.load(pointer), ir.Constant(INDEX, lane))
        return found if array.dtype == types.float64 else builder.fpext(found, DOUBLES)

    return load


def _request(_: Any, row: Any) -> Any:

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        data = context.make_array(row)(context, builder, values[0]).data
        start = builder.bitcast(data, cgutils.voidptr_t)
        for place in range(0, _REQUESTED, _LINE):
            prefetch(builder, builder.gep(start, [ir.Constant(WORD, place)]), to_write=0)
        return context.get_dummy_value()

    return types.void(row), codegen


request: Callable[[Entries | Unsigned], None] = cast(Any, intrinsic(_request))
"""Have 256 bytes from the start of a row on brought to the cache: for compiled code only.

It changes no result, and may reach beyond the table. Processors notice by themselves that the rest of a long
row is needed.
"""


def _request_entry(_: Any, array: Any, k: Any) -> Any:

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        place = builder.gep(context.make_array(array)(context, builder, values[0]).data, [values[1]])
        prefetch(builder, builder.bitcast(place, cgutils.voidptr_t), to_write=0)
        return context.get_dummy_value()

    return types.void(array, types.uint64), codegen


request_entry: Callable[[Entries | Unsigned, Whole], None] = cast(Any, intrinsic(_request_entry))
"""The same for the line of entry k of an array, which may be beyond its end."""


def _request_line(_: Any, table: Any, k: Any) -> Any:

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        struct = context.make_array(table)(context, builder, values[0])
        zero = ir.Constant(WORD, 0)
        place = cgutils.get_item_pointer(context, builder, table, struct, [values[1], zero])
        prefetch(builder, builder.bitcast(place, cgutils.voidptr_t), to_write=1)
        return context.get_dummy_value()

    return types.void(table, types.uint64), codegen


request_line: Callable[[Floats, Whole], None] = cast(Any, intrinsic(_request_line))
"""Have the beginning of row k of a table brought to the cache, to be changed: for compiled code only.

It changes no result. Processors cannot foresee rows in an order of their own: with requests some dozens of
them are under way at once.
"""


def prefetch(builder: Any, place: Any, to_write: int, nearness: int = NEAREST_CACHE) -> None:
    """Code that requests the cache line of a place."""
    number = ir.IntType(32)
    kind = ir.FunctionType(ir.VoidType(), [place.type, number, number, number])
    request = builder.module.declare_intrinsic("llvm.prefetch", [place.type], kind)
    is_data = 1
    builder.call(request, [place, *(ir.Constant(number, k) for k in (to_write, nearness, is_data))])
