"""Random words by AES-128 in counter mode, on processors with instructions for it.

Block c of the stream is the cipher of the 128-bit number c, of which it has the words 2c and 2c + 1. Its
definition is ``randomgen.AESCounter``, which makes the same words one by one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, cast

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.registry import cpu_target
from numba.extending import intrinsic

from .arguments import Whole, Words
from .compiled import compiled

KEY_WORDS, GROUP = 22, 16
"""Words of the keys of all rounds, and how many words of the stream are made at a time."""

_ROUNDS, _BLOCKS = 10, GROUP // 2  # eight blocks are under way at once: a round takes several cycles
_WORD, _HALF, _BYTE = ir.IntType(64), ir.IntType(32), ir.IntType(8)
_BLOCK, _HALVES = ir.VectorType(_WORD, 2), ir.VectorType(_HALF, 4)


@cache
def is_available() -> bool:
    """Return whether code is compiled for a processor that has the instructions."""
    triple, _, features = cpu_target.target_context.codegen().magic_tuple()
    return triple.startswith(("x86_64", "i686")) and "+aes" in features


def _instruction(builder: Any, name: str, *arguments: Any) -> Any:
    kind = ir.FunctionType(_BLOCK, [argument.type for argument in arguments])
    found = cgutils.get_or_insert_function(builder.module, kind, f"llvm.x86.aesni.{name}")
    return builder.call(found, arguments)


def _data(context: Any, builder: Any, array: Any, value: Any) -> Any:
    """The address of an array of words, as blocks."""
    data = context.make_array(array)(context, builder, value).data
    return builder.bitcast(data, _BLOCK.as_pointer())


def _chosen(builder: Any, value: Any, *places: int) -> Any:
    """Halves of words of a block, or 0 at place 4, in another order."""
    halves, zeros = builder.bitcast(value, _HALVES), ir.Constant(_HALVES, [0] * 4)
    order = ir.Constant(ir.VectorType(_HALF, 4), list(places))
    return builder.bitcast(builder.shuffle_vector(halves, zeros, order), _BLOCK)


def _expand(_: Any, keys: Any) -> Any:

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        start = _data(context, builder, signature.args[0], values[0])
        key, constant = builder.load(start, align=8), 1
        for k in range(1, _ROUNDS + 1):
            mixed = _instruction(builder, "aeskeygenassist", key, ir.Constant(_BYTE, constant))
            for _ in range(3):
                key = builder.xor(key, _chosen(builder, key, 4, 0, 1, 2))
            key = builder.xor(key, _chosen(builder, mixed, 3, 3, 3, 3))
            builder.store(key, builder.gep(start, [ir.Constant(_WORD, k)]), align=8)
            constant = constant << 1 ^ (0x11B if constant & 0x80 else 0)
        return context.get_dummy_value()

    return types.void(keys), codegen


def _encrypt(_: Any, keys: Any, high: Any, low: Any, out: Any) -> Any:

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        rounds, start = (_data(context, builder, signature.args[k], values[k]) for k in (0, 3))
        words = context.make_array(out)(context, builder, values[3]).nitems

        def key(number: Any) -> Any:
            return builder.load(builder.gep(rounds, [number]), align=8)

        def counter(number: Any) -> Any:
            """The first block plus a number, of 128 binary digits."""
            second = builder.add(values[2], number)
            carried = builder.zext(builder.icmp_unsigned("<", second, number), _WORD)
            both = builder.insert_element(ir.Constant(_BLOCK, ir.Undefined), second, ir.Constant(_HALF, 0))
            return builder.insert_element(both, builder.add(values[1], carried), ir.Constant(_HALF, 1))

        states = [cgutils.alloca_once(builder, _BLOCK) for _ in range(_BLOCKS)]
        with cgutils.for_range(builder, builder.udiv(words, ir.Constant(_WORD, GROUP))) as group:
            begin = builder.mul(group.index, ir.Constant(_WORD, _BLOCKS))
            places = [builder.add(begin, ir.Constant(_WORD, k)) for k in range(_BLOCKS)]
            first = key(ir.Constant(_WORD, 0))
            for state, place in zip(states, places, strict=True):
                builder.store(builder.xor(counter(place), first), state)
            with cgutils.for_range(builder, ir.Constant(_WORD, _ROUNDS - 1)) as loop:
                middle = key(builder.add(loop.index, ir.Constant(_WORD, 1)))
                for state in states:
                    builder.store(_instruction(builder, "aesenc", builder.load(state), middle), state)
            last = key(ir.Constant(_WORD, _ROUNDS))
            for state, place in zip(states, places, strict=True):
                block = _instruction(builder, "aesenclast", builder.load(state), last)
                builder.store(block, builder.gep(start, [place]), align=8)
        return context.get_dummy_value()

    return types.void(keys, types.uint64, types.uint64, out), codegen


_expand_in_place: Callable[[Words], None] = cast(Any, intrinsic(_expand))
_encrypt_numbers: Callable[[Words, Whole, Whole, Words], None] = cast(Any, intrinsic(_encrypt))


@compiled(nogil=True)
def expand(keys: Words) -> None:
    """Follow a key, the first two words of ``keys``, by those of the rounds."""
    _expand_in_place(keys)


@compiled(nogil=True)
def write_words(keys: Words, high: Whole, low: Whole, out: Words) -> None:
    """Write the words of the stream from block ``2**64 high + low`` on; their number is a multiple of 16."""
    _encrypt_numbers(keys, high, low, out)
