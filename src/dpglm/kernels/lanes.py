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

from .arguments import Entries, Unsigned, Whole

LANES = 8
_DOUBLES = ir.VectorType(ir.DoubleType(), LANES)
_WORD, _INDEX = ir.IntType(64), ir.IntType(32)
_LINE, _REQUESTED = 64, 256


def _dot_in_lanes(_: Any, a: Any, b: Any, blocks: Any) -> Any:

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        load_a, load_b = (_loader(context, builder, signature.args[k], values[k]) for k in range(2))
        total = cgutils.alloca_once_value(builder, ir.Constant(_DOUBLES, [0.0] * LANES))
        with cgutils.for_range(builder, values[2]) as loop:
            place = builder.mul(loop.index, ir.Constant(_WORD, LANES))
            product = builder.fmul(load_a(place), load_b(place))
            builder.store(builder.fadd(builder.load(total), product), total)
        sums = builder.load(total)
        lanes = [builder.extract_element(sums, ir.Constant(_INDEX, lane)) for lane in range(LANES)]
        return context.make_tuple(builder, signature.return_type, lanes)

    return types.UniTuple(types.float64, LANES)(a, b, types.uint64), codegen


_Lanes = tuple[float, float, float, float, float, float, float, float]
dot_in_lanes: Callable[[Entries, Entries, Whole], _Lanes] = cast(Any, intrinsic(_dot_in_lanes))
"""Sums over k < ``blocks`` of a[8 k + lane] * b[8 k + lane], one for each lane: for compiled code only."""


def _loader(context: Any, builder: Any, array: Any, value: Any) -> Any:
    """Code that loads eight entries of an array, from a place on, as doubles."""
    if array.dtype not in (types.float32, types.float64):
        raise TypeError(f"lanes hold entries of float32 or float64, not {array.dtype}")
    struct = context.make_array(array)(context, builder, value)
    entry = context.get_data_type(array.dtype)
    entries = ir.VectorType(entry, LANES)

    def load(place: Any) -> Any:
        if array.layout == "C":
            pointer = builder.bitcast(builder.gep(struct.data, [place]), entries.as_pointer())
            found = builder.load(pointer, align=array.dtype.bitwidth // 8)
        else:
            found = ir.Constant(entries, ir.Undefined)
            for lane in range(LANES):
                here = builder.add(place, ir.Constant(_WORD, lane))
                pointer = cgutils.get_item_pointer(context, builder, array, struct, [here])
                found = builder.insert_element(found, builder.load(pointer), ir.Constant(_INDEX, lane))
        return found if array.dtype == types.float64 else builder.fpext(found, _DOUBLES)

    return load


def _requester(length: int) -> Any:
    """Code that requests so many bytes from the start of a row on."""

    def requested(_: Any, row: Any) -> Any:

        def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            data = context.make_array(row)(context, builder, values[0]).data
            start = builder.bitcast(data, cgutils.voidptr_t)
            for place in range(0, length, _LINE):
                _prefetch(builder, builder.gep(start, [ir.Constant(_WORD, place)]), to_write=0)
            return context.get_dummy_value()

        return types.void(row), codegen

    return intrinsic(requested)


request: Callable[[Entries | Unsigned], None] = cast(Any, _requester(_REQUESTED))
"""Have 256 bytes from the start of a row on brought to the cache: for compiled code only.

It changes no result, and may reach beyond the table. Processors notice by themselves that the rest of a long
row is needed.
"""

request_one: Callable[[Entries | Unsigned], None] = cast(Any, _requester(_LINE))
"""The same for the first entry of an array, with those that share its line."""


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

request_place: Callable[[Entries | Unsigned, Whole], None] = cast(Any, intrinsic(_request_line))
"""The same for entry k of an array, to be read."""


def _prefetch(builder: Any, place: Any, to_write: int) -> None:
    """Code that requests the cache line of a place."""
    number = ir.IntType(32)
    kind = ir.FunctionType(ir.VoidType(), [place.type, number, number, number])
    prefetch = builder.module.declare_intrinsic("llvm.prefetch", [place.type], kind)
    nearest_cache, is_data = 3, 1
    builder.call(prefetch, [place, *(ir.Constant(number, k) for k in (to_write, nearest_cache, is_data))])
