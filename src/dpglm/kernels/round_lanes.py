"""Sums and maxima of ``rounds`` for 32 places at once, as vectors of eight doubles that stay in registers.

The compiler would load and store each place again for every few terms. Each operation has the result of the
same operation on single doubles, in the same order. A processor whose vectors are shorter takes several.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from .arguments import Floats

LANES, PLACES = 8, 32
_DOUBLE, _WORD, _INDEX = ir.DoubleType(), ir.IntType(64), ir.IntType(32)
_DOUBLES = ir.VectorType(_DOUBLE, LANES)
_STARTS = range(0, PLACES, LANES)


class _Code:
    """What both functions are made of."""

    def __init__(self, context: Any, builder: Any, signature: Any, values: Any) -> None:
        self.builder = builder
        self._data = {
            k: context.make_array(kind)(context, builder, values[k]).data
            for k, kind in enumerate(signature.args)
            if isinstance(kind, types.Array)
        }

    def totals(self, value: Any) -> list[Any]:
        """Space for all places, with a number in each."""
        return [cast(Any, cgutils).alloca_once_value(self.builder, self.same(value)) for _ in _STARTS]

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
        undefined = ir.Constant(_DOUBLES, ir.Undefined)
        first = self.builder.insert_element(undefined, value, ir.Constant(_INDEX, 0))
        everywhere = ir.Constant(ir.VectorType(_INDEX, LANES), [0] * LANES)
        return self.builder.shuffle_vector(first, undefined, everywhere)

    def store(self, totals: list[Any], array: int, at: Any) -> None:
        """Write the totals of all places."""
        for start, total in zip(_STARTS, totals, strict=True):
            pointer = self.builder.bitcast(self.place(array, at, start), _DOUBLES.as_pointer())
            self.builder.store(self.builder.load(total), pointer, align=8)


def _kind(*arrays: Any) -> None:
    if any((array.dtype, array.layout) != (types.float64, "C") for array in arrays):
        raise TypeError("these lanes hold contiguous arrays of float64")


def _weigh_places(_: Any, wide: Any, mass: Any, fours: Any, i: Any, first: Any, after: Any) -> Any:
    _kind(wide, mass, after)

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        code = _Code(context, builder, signature, values)
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
"""Set 32 places of ``after``, from i on, to ``first`` plus what 4 ``fours`` losses add in ``rounds``.

Four products are added to each other, then to the total. For compiled code only.
"""


def _best_places(_: Any, after: Any, rises: Any, i: Any, best: Any) -> Any:
    _kind(after, rises, best)

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        code = _Code(context, builder, signature, values)
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
"""Set 32 places of ``best``, from i on, to the maxima over grid points of ``rounds._select``, or 0.

For compiled code only.
"""
