"""Kernels that copy frames of feature files with their neighbours, swapping bytes on the way."""

from __future__ import annotations

from typing import Any

import numpy as np

from cntkpy.readers.kernels.jit import kernel, part
from cntkpy.readers.kernels.kernel_types import Int, Int16s, Int64s, Ints, Reals
from cntkpy.readers.kernels.numba_modules import carray
from cntkpy.readers.kernels.words import intrinsic, prefetch_at, read_at, types

ADDRESS, HANDLE, OFFSET, SWAP = 0, 1, 2, 3
"""Columns of the table of files, int64[F, 4]: where the first frame lies in memory, or would lie before those that do
(0: none does, the file is to be read), the descriptor, where the first frame lies in the file, whether bytes are in the
other order."""
_FF, _8, _24 = np.uint32(0xFF00), np.uint32(8), np.uint32(24)
_AHEAD, _LINE, _LINES = 3, 64, 8  # the first lines of the next window but two are fetched; the rest follows by itself


@intrinsic
def _at(typing: Any, address: Any, like: Any) -> Any:
    """Return a pointer to elements like those of an array; nothing says how many there are, see `copy_frames`."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], context.get_value_type(signature.return_type))

    return types.CPointer(like.dtype)(address, like), generate


@part
def _swap(words: Ints):
    """Swap the bytes of words of 2 or 4 bytes, in place."""
    if words.itemsize == 2:
        for d in range(len(words)):
            words[d] = (words[d] << _8) | (words[d] >> _8)
    else:
        for d in range(len(words)):
            w = words[d]
            words[d] = (w << _24) | ((w & _FF) << _8) | ((w >> _8) & _FF) | (w >> _24)


@part
def _read(handle: Int, offset: Int, target: Ints):
    """Fill target from a file; whether that many bytes are there.

    In range: pread is never asked for more than what is left of `target`, which is contiguous.
    """
    done, count = 0, len(target) * target.itemsize
    raw = target.view(np.uint8)
    while done < count:
        got = read_at(handle, raw.ctypes.data + done, count - done, offset + done)
        if got <= 0:
            return False
        done += got
    return True


@kernel
def copy_frames(
    files: Int64s,
    file: Int64s,
    low: Int64s,
    high: Int64s,
    dim: Int,
    which: Int64s,
    begin: Int64s,
    end: Int64s,
    out: Ints,
    place: Int64s,
):
    """Copy frames begin[i]..end[i]-1 of utterance which[i] to out, whose row is a frame, from row place[i] on.

    Utterance u is frames low[u]..high[u] of file[u]; a frame before the first is the first, one after the last is the
    last. dim: words of a frame; out: uint16 or uint32[n * dim]; all else int64. Returns -1, or the i that could not be
    read.

    In range: frame numbers are clamped to low[u]..high[u], and the frames from the first to the last one that any
    utterance of a file has are those that `OpenFiles` holds in memory, so ADDRESS + frame * size lies there.
    Rows of `out` are checked here, for every i: [begin, end) is not empty, reaches to frame 0 or beyond, and fits.
    Prefetching needs no bound. which and file are numbers of the script's tables, made when it was read.
    """
    count, size = len(which), dim * out.itemsize
    for i in range(count):
        if i + _AHEAD < count:
            u = which[i + _AHEAD]
            address = files[file[u], ADDRESS] + min(low[u] + max(begin[i + _AHEAD], 0), high[u]) * size
            for line in range(min((end[i + _AHEAD] - begin[i + _AHEAD]) * size // _LINE + 1, _LINES)):
                prefetch_at(address + _LINE * line)
        u = which[i]
        k = file[u]
        if not (
            begin[i] < end[i] and end[i] > 0 and place[i] >= 0 and (place[i] + end[i] - begin[i]) * dim <= len(out)
        ):
            return i
        first = min(max(low[u] + begin[i], low[u]), high[u])
        last = min(max(low[u] + end[i] - 1, low[u]), high[u])
        n = (last - first + 1) * dim
        row = place[i] * dim
        position = row + (first - min(low[u] + begin[i], first)) * dim
        target = out[position : position + n]
        if files[k, ADDRESS]:
            source = carray(_at(files[k, ADDRESS] + first * size, out), n)
            if not files[k, SWAP]:
                for d in range(n):
                    target[d] = source[d]
            elif out.itemsize == 2:
                for d in range(n):
                    target[d] = (source[d] << _8) | (source[d] >> _8)
            else:  # not a call, which is not turned into vector instructions
                for d in range(n):
                    w = source[d]
                    target[d] = (w << _24) | ((w & _FF) << _8) | ((w >> _8) & _FF) | (w >> _24)
        else:
            if not _read(files[k, HANDLE], files[k, OFFSET] + first * size, target):
                return i
            if files[k, SWAP]:
                _swap(target)
        for d in range(row, position):  # before the first frame there is the first, again
            out[d] = out[position + (d - row) % dim]
        for d in range(position + n, row + (end[i] - begin[i]) * dim):
            out[d] = out[d - dim]
    return -1


@kernel
def expand(
    shorts: Int16s,
    scales: Reals,
    file: Int64s,
    which: Int64s,
    begin: Int64s,
    end: Int64s,
    place: Int64s,
    out: Reals,
):
    """Rows of copied int16[n, dim] to the float32 numbers that they stand for, (short + b) / a. scales: [F, 2, dim].

    In range: rows place[i].. are those that `copy_frames` has filled; `out` has the shape of `shorts`.
    """
    for i in range(len(which)):
        a, b = scales[file[which[i]], 0], scales[file[which[i]], 1]
        for row in range(place[i], place[i] + end[i] - begin[i]):
            for d in range(shorts.shape[1]):
                out[row, d] = (np.float32(shorts[row, d]) + b[d]) / a[d]
