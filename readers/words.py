"""Eight bytes of text at a time: two machine instructions that Numba does not offer, and digits without branches."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from .jit import inlined

_ZEROS, _SIX, _HIGH = np.uint64(0x3030303030303030), np.uint64(0x7676767676767676), np.uint64(0x8080808080808080)
_PAIR, _MASK = np.uint64(10), np.uint64(0x000000FF000000FF)
_MUL1, _MUL2 = np.uint64(0x000F424000000064), np.uint64(0x0000271000000001)
_8, _16, _32, _64 = np.uint64(8), np.uint64(16), np.uint64(32), np.uint64(64)


@intrinsic
def load_word(typing: Any, buffer: Any, index: Any) -> Any:
    """buffer[index : index + 8] (uint8, contiguous) as a little-endian uint64, at any alignment, unchecked."""
    signature = types.uint64(buffer, types.intp)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        address = builder.gep(array.data, [arguments[1]])
        word = builder.load(builder.bitcast(address, cgutils.intp_t.as_pointer()))
        word.align = 1
        return word

    return signature, generate


@intrinsic
def trailing_zeros(typing: Any, word: Any) -> Any:
    """Number of zero bits below the lowest one; 64 for zero."""
    signature = types.int64(types.uint64)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return signature, generate


@intrinsic
def leading_zeros(typing: Any, word: Any) -> Any:
    """Number of zero bits above the highest one; 64 for zero."""
    signature = types.int64(types.uint64)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctlz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return signature, generate


@inlined
def digits_at(buffer, p):
    """Up to eight digits at buffer[p]: (their number, their value). Needs eight readable bytes."""
    word = load_word(buffer, p) ^ _ZEROS
    count = trailing_zeros(((word + _SIX) | word) & _HIGH) >> 3
    if count == 0:
        return count, np.uint64(0)
    word <<= _64 - np.uint64(count) * _8
    word = word * _PAIR + (word >> _8)
    return count, ((word & _MASK) * _MUL1 + ((word >> _16) & _MASK) * _MUL2) >> _32
