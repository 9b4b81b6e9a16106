"""A move along one column and the sum of the next one, in one pass over the margins.

It is written down as operations on eight doubles, since the compiler makes no vectors of a loop with requests
(see ``lanes``). Each has the result of the same operation on single doubles.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from .arguments import Entries, Floats, Whole
from .lanes import DOUBLES, INDEX, LANES, SECOND_CACHE, WORD, loader, prefetch

_WORDS = ir.VectorType(WORD, LANES)
_FUSED = ("contract",)  # a product may keep all its digits until it is added


def _move_in_lanes(
    _: Any, move: Any, column: Any, z: Any, other: Any, limit: Any, rounding: Any, soon: Any, ahead: Any,
    blocks: Any,
) -> Any:  # fmt: skip

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        load_column, load_z, load_other = (
            loader(context, builder, signature.args[k], values[k]) for k in (1, 2, 3)
        )
        requested = context.make_array(soon)(context, builder, values[6]).data
        margins = context.make_array(z)(context, builder, values[2]).data
        factor, top, whole = (_repeated(builder, values[k]) for k in (0, 4, 5))
        bottom = builder.fneg(top)
        total = cgutils.alloca_once_value(builder, ir.Constant(_WORDS, [0] * LANES))
        with cgutils.for_range(builder, values[8]) as loop:
            place = builder.mul(loop.index, ir.Constant(WORD, LANES))
            later = builder.gep(requested, [builder.add(place, values[7])])
            prefetch(builder, builder.bitcast(later, cgutils.voidptr_t), to_write=0, nearness=SECOND_CACHE)
            product = builder.fmul(factor, load_column(place), flags=_FUSED)
            moved = builder.fadd(load_z(place), product, flags=_FUSED)
            here = builder.bitcast(builder.gep(margins, [place]), DOUBLES.as_pointer())
            builder.store(moved, here, align=z.dtype.bitwidth // 8)
            term = builder.fmul(moved, load_other(place))
            term = builder.select(builder.fcmp_ordered(">", term, bottom), term, bottom)
            term = builder.select(builder.fcmp_ordered("<", term, top), term, top)
            digits = builder.bitcast(builder.fadd(term, whole), _WORDS)
            steps = builder.sub(digits, builder.bitcast(whole, _WORDS))
            builder.store(builder.add(builder.load(total), steps), total)
        sums = builder.load(total)
        result = ir.Constant(WORD, 0)
        for lane in range(LANES):
            result = builder.add(result, builder.extract_element(sums, ir.Constant(INDEX, lane)))
        return result

    if z.layout != "C":
        raise TypeError("margins are contiguous")
    whole = types.uint64
    return types.int64(
        types.float64, column, z, other, types.float64, types.float64, soon, whole, whole
    ), codegen


def _repeated(builder: Any, value: Any) -> Any:
    """Eight times the same double."""
    nothing = ir.Constant(DOUBLES, ir.Undefined)
    first = builder.insert_element(nothing, value, ir.Constant(INDEX, 0))
    return builder.shuffle_vector(first, nothing, ir.Constant(ir.VectorType(INDEX, LANES), [0] * LANES))


move_in_lanes: Callable[[float, Entries, Floats, Entries, float, float, Entries, Whole, Whole], int] = cast(
    Any, intrinsic(_move_in_lanes)
)
"""Add ``move * column`` to z, and return the sum of the cut terms z * other in steps: for compiled code only.

Arguments are the move, the column, z, the other column, the limit and the rounding constant of its terms; a
column that is needed soon, and how many entries ahead to request it; how many blocks of eight rows to pass.
"""
