"""Kernels that copy rows of matrices out of mapped archives, and turn compressed ones into numbers on the way.

Values of an archive begin at any byte, so numbers are loaded without regard to alignment.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import extending, types

from readers.common.jit import kernel

from .object_kernels import CM, CM2, CM3, DM, DV

intrinsic: Any = extending.intrinsic
# Columns of the table of utterances, int64[U, 7]: the address of the values, their kind, rows and columns as stored,
# the first row and column that are used, and how many rows are.
ADDRESS, STORED, ALL_ROWS, ALL_COLS, ROW, COL, USED = range(7)
_ROWS = 64
_QUARTER, _HALF = np.float32(1 / 64), np.float32(1 / 128)
_LAST, _SHORT = 1 / 63, np.float32(1 / 65535)


def _load(typed: Any, kind: Any) -> Any:
    """Element `index` of an array at an address, which need not be aligned.

    The index is no part of the address, so that loops are turned into vector instructions.
    """

    @intrinsic
    def at(typing: Any, address: Any, index: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            base = builder.inttoptr(arguments[0], kind.as_pointer())
            value = builder.load(builder.gep(base, [arguments[1]]))
            value.align = 1
            return value

        return typed(types.intp, types.intp), generate

    return at


_octet_at = _load(types.uint8, ir.IntType(8))
_short_at = _load(types.uint16, ir.IntType(16))
_float_at = _load(types.float32, ir.FloatType())
_double_at = _load(types.float64, ir.DoubleType())


@kernel
def _floats(address, line):
    for d in range(len(line)):
        line[d] = _float_at(address, d)


@kernel
def _doubles(address, line):
    for d in range(len(line)):
        line[d] = _double_at(address, d)


@kernel
def _shorts(address, low, scale, line):
    for d in range(len(line)):
        line[d] = low + np.float32(_short_at(address, d)) * scale


@kernel
def _octets(address, low, scale, line):
    for d in range(len(line)):
        line[d] = low + np.float32(_octet_at(address, d)) * scale


@kernel
def _values(kind, address, low, scale, line):
    """Consecutive values from an address on."""
    if kind == CM2:
        _shorts(address, low, scale, line)
    elif kind == CM3:
        _octets(address, low, scale, line)
    elif kind in (DM, DV):
        _doubles(address, line)
    else:
        _floats(address, line)


@kernel
def _quarters(address, all_rows, all_cols, row, col, low, span, out):
    """CM: a column has the values at 0, 1/4, 3/4 and 1 of its order; a byte is a point on the line between two of them.

    The last line is computed in double precision, so that the result has the same bits as Kaldi's. All three are
    computed and one is taken, which is faster than to branch. Rows go in blocks, whose results stay in the cache.
    """
    scale = span * _SHORT
    some = np.empty(_ROWS, np.float32)
    for first in range(0, out.shape[0], _ROWS):
        part = out[first : first + _ROWS]
        for d in range(out.shape[1]):
            head = address + 8 * (col + d)
            p0 = low + scale * np.float32(_short_at(head, 0))
            p1 = low + scale * np.float32(_short_at(head, 1))
            p2 = low + scale * np.float32(_short_at(head, 2))
            a, b, c = p1 - p0, p2 - p1, low + scale * np.float32(_short_at(head, 3)) - p2
            body = address + 8 * all_cols + (col + d) * all_rows + row + first
            wide = np.float64(p2)
            for r in range(len(part)):
                x = np.float32(_octet_at(body, r))
                y = p1 + b * (x - np.float32(64)) * _HALF
                z = np.float32(wide + np.float64(c * (x - np.float32(192))) * _LAST)
                y = z if x > np.float32(192) else y
                some[r] = p0 + a * x * _QUARTER if x <= np.float32(64) else y
            for r in range(len(part)):
                part[r, d] = some[r]


@kernel
def copy_rows(table, spans, which, begin, end, place, out):
    """Copy rows begin[i]..end[i]-1 of utterance which[i] to the rows of out from place[i] on.

    A row before the first is the first, one after the last is the last, so every row that is read lies in
    table[u, ROW] .. + table[u, USED] - 1, which `archive.Matrices` keeps within the rows that `read_object` found to
    lie in the mapped file; columns COL .. + out.shape[1] - 1 likewise. table: int64[U, 7]; spans: float32[U, 2],
    smallest value and range of compressed matrices; out: float32 or float64[n, dim], with room for all rows.
    """
    for i in range(len(which)):
        u = which[i]
        kind, last = table[u, STORED], table[u, USED] - 1
        if last < 0 or end[i] <= begin[i]:
            continue
        first = min(max(begin[i], 0), last)
        count = min(max(end[i] - 1, 0), last) - first + 1
        at = place[i] + min(first - min(begin[i], first), end[i] - begin[i] - 1)
        address, all_rows, all_cols, col = table[u, ADDRESS], table[u, ALL_ROWS], table[u, ALL_COLS], table[u, COL]
        row = table[u, ROW] + first
        low, span = spans[u, 0], spans[u, 1]
        target = out[at : at + count]
        if kind == CM:
            _quarters(address, all_rows, all_cols, row, col, low, span, target)
        else:
            size = 2 if kind == CM2 else 1 if kind == CM3 else 8 if kind in (DM, DV) else 4
            scale = span / np.float32(65535 if kind == CM2 else 255)
            if all_cols == out.shape[1]:
                _values(kind, address + size * row * all_cols, low, scale, target.reshape(-1))
            else:
                for r in range(count):
                    _values(kind, address + size * ((row + r) * all_cols + col), low, scale, target[r])
        for r in range(place[i], at):  # before the first row there is the first, again
            for d in range(out.shape[1]):
                out[r, d] = out[at, d]
        for r in range(at + count, place[i] + end[i] - begin[i]):
            for d in range(out.shape[1]):
                out[r, d] = out[r - 1, d]
