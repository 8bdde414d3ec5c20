"""Text by memory address, eight bytes at a time: instructions that Numba does not offer, and digits without branches.

Numba counts references whenever an array is passed to another kernel, which costs more than reading a number, and much
more when several threads count references of the same array. So the innermost kernels are given the address of a byte
(`array.ctypes.data + i`) or `borrowed` arrays; their callers hold the arrays.

Nothing checks an address, not even NUMBA_BOUNDSCHECK. Text read by address lies in a buffer with 32 more bytes after
the data, all LF when lines are parsed. Whoever goes forward through text stops at an LF at the latest, and nobody looks
at more than the 24 bytes from one on. Finding records needs eight readable bytes after the data, `matches` and
`separators` 64.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np

from cntkpy.cntk_config.base.systems.files import can_read_at
from cntkpy.readers.kernels.jit import inlined
from cntkpy.readers.kernels.kernel_types import Int
from cntkpy.readers.kernels.numba_modules import binding, cgutils, extending, ir, types

intrinsic: Any = extending.intrinsic
CAN_READ = can_read_at()
_ZEROS, _SIX, _HIGH = np.uint64(0x3030303030303030), np.uint64(0x7676767676767676), np.uint64(0x8080808080808080)
_PAIR, _MASK = np.uint64(10), np.uint64(0x000000FF000000FF)
_MUL1, _MUL2 = np.uint64(0x000F424000000064), np.uint64(0x0000271000000001)
_8, _16, _32, _64 = np.uint64(8), np.uint64(16), np.uint64(32), np.uint64(64)


@intrinsic
def word_at(typing: Any, address: Any) -> Any:
    """Return the eight bytes at a memory address as a little-endian uint64, unchecked: the caller knows that they
    exist.
    """
    signature = types.uint64(types.intp)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        word = builder.load(builder.inttoptr(arguments[0], ir.IntType(64).as_pointer()))
        word.align = 1
        return word

    return signature, generate


@intrinsic
def byte_at(typing: Any, address: Any) -> Any:
    """Return the byte at a memory address as an int64, unchecked: the caller knows that it is there."""
    signature = types.int64(types.intp)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        byte = builder.load(builder.inttoptr(arguments[0], ir.IntType(8).as_pointer()))
        return builder.zext(byte, ir.IntType(64))

    return signature, generate


def _bytes_from(builder: Any, address: Any) -> Any:
    there = builder.load(builder.inttoptr(address, ir.VectorType(ir.IntType(8), 64).as_pointer()))
    there.align = 1
    return there


def _filled(builder: Any, byte: Any) -> Any:
    none = ir.Constant(ir.VectorType(ir.IntType(8), 64), ir.Undefined)
    first = ir.Constant(ir.VectorType(ir.IntType(32), 64), [0] * 64)
    return builder.shuffle_vector(builder.insert_element(none, byte, ir.Constant(ir.IntType(32), 0)), none, first)


@intrinsic
def matches(typing: Any, address: Any, byte: Any) -> Any:
    """Which of the 64 bytes at a memory address are this one, unchecked: bit i of a uint64 is that of address + i."""
    signature = types.uint64(types.intp, types.int64)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        wanted = _filled(builder, builder.trunc(arguments[1], ir.IntType(8)))
        same = builder.icmp_unsigned("==", _bytes_from(builder, arguments[0]), wanted)
        return builder.bitcast(same, ir.IntType(64))

    return signature, generate


@intrinsic
def separators(typing: Any, address: Any) -> Any:
    """Which of the 64 bytes at a memory address are blanks, tabs, CR or LF, unchecked: bits as `matches` has them."""
    signature = types.uint64(types.intp)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        there = _bytes_from(builder, arguments[0])
        kinds = [builder.icmp_unsigned("==", there, _filled(builder, ir.IntType(8)(byte))) for byte in b" \n\t\r"]
        return builder.bitcast(reduce(builder.or_, kinds), ir.IntType(64))

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


@intrinsic
def read_at(typing: Any, descriptor: Any, address: Any, count: Any, offset: Any) -> Any:
    """POSIX `pread`: up to `count` bytes of a file, from byte `offset` on, to an address; how many it read, or -1.

    On other systems it is always -1. The caller has checked that there is room for `count` bytes, see `read_and_parse`.
    """
    signature = types.int64(types.int64, types.int64, types.int64, types.int64)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        long, integer, pointer = ir.IntType(64), ir.IntType(32), ir.IntType(8).as_pointer()
        if not CAN_READ:
            return long(-1)
        pread = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(long, [integer, pointer, long, long]), "pread"
        )
        file, to, size, begin = arguments
        return builder.call(pread, [builder.trunc(file, integer), builder.inttoptr(to, pointer), size, begin])

    return signature, generate


@intrinsic
def borrowed(typing: Any, array: Any) -> Any:
    """Return the same array without an owner, so that nobody counts references; valid as long as the array itself is
    held.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        struct = context.make_array(array)
        out = struct(context, builder, arguments[0])
        out.meminfo = cgutils.get_null_value(out.meminfo.type)
        out.parent = cgutils.get_null_value(out.parent.type)
        return out._getvalue()

    return array(array), generate


def _fetch(builder: Any, pointer: Any) -> None:
    byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
    kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
    name = "llvm.prefetch.p0" if binding.llvm_version_info >= (15,) else "llvm.prefetch.p0i8"
    fetch = cgutils.get_or_insert_function(builder.module, kind, name)
    builder.call(fetch, [pointer, number(0), number(3), number(1)])


@intrinsic
def prefetch(typing: Any, array: Any, index: Any) -> Any:
    """Let the processor fetch an element of an array that is needed soon; an index out of range does no harm."""
    signature = types.void(array, types.intp)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = builder.gep(context.make_array(array)(context, builder, arguments[0]).data, [arguments[1]])
        _fetch(builder, builder.bitcast(place, ir.IntType(8).as_pointer()))
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def prefetch_at(typing: Any, address: Any) -> Any:
    """Let the processor fetch the line of memory at an address; harmless if there is none."""
    signature = types.void(types.intp)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        _fetch(builder, builder.inttoptr(arguments[0], ir.IntType(8).as_pointer()))
        return context.get_dummy_value()

    return signature, generate


@inlined
def after_digits(p: Int):
    """Address of the first byte at or after p that is no digit. Needs eight readable bytes from there on.

    In range: it continues only after eight digits, so it stops at the word with the LF that ends the text.
    """
    word = word_at(p) ^ _ZEROS
    remainder = ((word + _SIX) | word) & _HIGH
    while remainder == 0:
        p += 8
        word = word_at(p) ^ _ZEROS
        remainder = ((word + _SIX) | word) & _HIGH
    return p + (trailing_zeros(remainder) >> 3)


@inlined
def digits(word: Int):
    """Up to eight leading digits of eight bytes of text: (their number, their value)."""
    word ^= _ZEROS
    count = trailing_zeros(((word + _SIX) | word) & _HIGH) >> 3
    if count == 0:
        return count, np.uint64(0)
    word <<= _64 - np.uint64(count) * _8
    word = word * _PAIR + (word >> _8)
    return count, ((word & _MASK) * _MUL1 + ((word >> _16) & _MASK) * _MUL2) >> _32
