"""Kernels that copy rows of matrices as archives have them, and turn compressed ones into numbers on the way.

Values of an archive begin at any byte, so numbers are loaded without regard to alignment.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cntkpy.readers.kernels.jit import kernel, part
from cntkpy.readers.kernels.kernel_types import Bytes, Int, Int64s, Real, Reals
from cntkpy.readers.kernels.words import intrinsic, ir, read_at, types

from .object_kernels import CM, CM2, CM3, DM, DV, FM, FV

# Columns of the table of utterances, int64[U, 8]: the address of the values (0: they are to be read), their kind, rows
# and columns as stored, the first row and column that are used, how many rows are, where they begin in the file.
ADDRESS, STORED, ALL_ROWS, ALL_COLS, ROW, COL, USED, BEGIN = range(8)
SIZES = np.zeros(12, np.int64)
"""Bytes of a value, by kind."""
SIZES[[FM, DM, CM, CM2, CM3, FV, DV]] = 4, 8, 1, 2, 1, 4, 8
_IN_PLACE = 0  # the kind of values that stand in `out` already
_ROWS = 64
_FAR = 4096  # bytes that are read in the time that another call takes
_QUARTER, _HALF = np.float32(1 / 64), np.float32(1 / 128)
_LAST, _SHORT = 1 / 63, np.float32(1 / 65535)


def _load(typed: Any, kind: Any) -> Any:
    """Element `index` of an array at an address, which need not be aligned.

    The index is not a part of the address, so that loops are turned into vector instructions.
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


@part
def _floats(address: Int, line: Reals):
    for d in range(len(line)):
        line[d] = _float_at(address, d)


@part
def _doubles(address: Int, line: Reals):
    for d in range(len(line)):
        line[d] = _double_at(address, d)


@part
def _shorts(address: Int, low: Real, scale: Real, line: Reals):
    for d in range(len(line)):
        line[d] = low + np.float32(_short_at(address, d)) * scale


@part
def _octets(address: Int, low: Real, scale: Real, line: Reals):
    for d in range(len(line)):
        line[d] = low + np.float32(_octet_at(address, d)) * scale


@part
def _values(kind: Int, address: Int, low: Real, scale: Real, line: Reals):
    """Consecutive values from an address on."""
    if kind == CM2:
        _shorts(address, low, scale, line)
    elif kind == CM3:
        _octets(address, low, scale, line)
    elif kind in (DM, DV):
        _doubles(address, line)
    else:
        _floats(address, line)


@part
def _quarters(address: Int, all_rows: Int, all_cols: Int, row: Int, col: Int, low: Real, span: Real, out: Reals):
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
def part_of(line: Int64s, first: Int, count: Int):
    """Which bytes of the values of an utterance hold its rows first .. + count - 1: where they begin, how many.

    The columns of CM stand one after the other, so all of them are needed; see `_read_columns`.
    """
    size, cols = SIZES[line[STORED]], line[ALL_COLS]
    if line[STORED] == CM:
        return np.int64(0), (line[ALL_ROWS] + 8) * cols
    return (line[ROW] + first) * cols * size, count * cols * size


@part
def _read_columns(handle: Int, line: Int64s, first: Int, count: Int, dim: Int, to: Int):
    """Rows first .. + count - 1 of `dim` columns of a CM, as a CM of only these rows; whether all could be read."""
    all_rows, all_cols, col = line[ALL_ROWS], line[ALL_COLS], line[COL]
    heads = 8 * all_cols
    if read_at(handle, to, heads, line[BEGIN]) != heads:
        return False
    for d in range(col, col + dim):
        if read_at(handle, to + heads + d * count, count, line[BEGIN] + heads + d * all_rows + first) != count:
            return False
    return True


@kernel
def copy_rows(
    table: Int64s,
    spans: Reals,
    handles: Int64s,
    begin: Int64s,
    end: Int64s,
    places: Int64s,
    shift: Int,
    out: Reals,
    scratch: Bytes,
    done: Int,
    stop: Int,
):
    """Copy rows begin[i]..end[i]-1 of the utterance of table[i] to the rows of out from places[i] - shift on.

    This is done for i from `done` to `stop` - 1.
    A row before the first is the first, one after the last is the last. Values that have no address are read from the
    file handles[i], unless that is -1, into `scratch` (uint8), or into `out` where they are stored as they are wanted.

    table: int64[m, 8]; spans: float32[m, 2], smallest value and range of compressed matrices; out: float32 or
    float64[n, dim]. Returns -1, or the i whose rows could not be read.

    In range: the rows that are read are among table[i, ROW] .. + table[i, USED] - 1 and columns COL .. + dim - 1 among
    ALL_COLS, as `Matrices` keeps them. Values at an address are all of the matrix, or `part_of` it; so are those in
    `scratch`, whose length is compared; rows of `out` are compared too.
    """
    dim = out.shape[1]
    for i in range(done, min(stop, len(table))):
        kind, last = table[i, STORED], table[i, USED] - 1
        if last < 0 or end[i] <= begin[i]:
            continue
        first = min(max(begin[i], 0), last)
        count = min(max(end[i] - 1, 0), last) - first + 1
        place = places[i] - shift
        position = place + min(first - min(begin[i], first), end[i] - begin[i] - 1)
        if place < 0 or place + end[i] - begin[i] > len(out):
            return i
        address, all_rows, all_cols, col = table[i, ADDRESS], table[i, ALL_ROWS], table[i, ALL_COLS], table[i, COL]
        row = table[i, ROW] + first
        low, span = spans[i, 0], spans[i, 1]
        target = out[position : position + count]
        if address == 0:
            previous, size = part_of(table[i], first, count)
            wide = out.itemsize == 8
            few = kind == CM and all_rows - count > _FAR
            if few:
                size = (count + 8) * all_cols
            if all_cols == dim and (kind in (DM, DV) if wide else kind in (FM, FV)):
                to = np.int64(out.ctypes.data) + position * dim * out.itemsize
                kind = _IN_PLACE
            elif size > len(scratch):
                return i
            else:
                to = np.int64(scratch.ctypes.data)
            if few:
                if handles[i] < 0 or not _read_columns(handles[i], table[i], row, count, dim, to):
                    return i
                all_rows, row = count, np.int64(0)
            elif handles[i] < 0 or read_at(handles[i], to, size, table[i, BEGIN] + previous) != size:
                return i
            address = to - previous
        if kind == CM:
            _quarters(address, all_rows, all_cols, row, col, low, span, target)
        elif kind != _IN_PLACE:
            size = SIZES[kind]
            scale = span / np.float32(65535 if kind == CM2 else 255)
            if all_cols == dim:
                _values(kind, address + size * row * all_cols, low, scale, target.reshape(-1))
            else:
                for r in range(count):
                    _values(kind, address + size * ((row + r) * all_cols + col), low, scale, target[r])
        for r in range(place, position):  # before the first row there is the first, again
            for d in range(dim):
                out[r, d] = out[position, d]
        for r in range(position + count, place + end[i] - begin[i]):
            for d in range(dim):
                out[r, d] = out[r - 1, d]
    return -1
