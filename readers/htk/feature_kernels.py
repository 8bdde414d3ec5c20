"""Kernels that copy frames of feature files with their neighbours, swapping bytes on the way."""

from __future__ import annotations

import numpy as np

from ..jit import kernel

_FF, _8, _24 = np.uint32(0xFF00), np.uint32(8), np.uint32(24)


@kernel
def copy_frames(words, dim, begin, end, low, high, swap, out, place):
    """Copy frames begin[i]..end[i]-1, words uint32[frames * dim], to out uint32[n * dim] from row place[i] on.

    A frame below low[i] is low[i], one above high[i] is high[i]. All are int64[]; swap: bytes are in the other order.
    """
    for i in range(len(begin)):
        first, last = min(max(begin[i], low[i]), high[i]), min(max(end[i] - 1, low[i]), high[i])
        n = (last - first + 1) * dim
        at = (place[i] + first - min(begin[i], first)) * dim
        source, target = words[first * dim : first * dim + n], out[at : at + n]
        if swap:
            for d in range(n):
                w = source[d]
                target[d] = (w << _24) | ((w & _FF) << _8) | ((w >> _8) & _FF) | (w >> _24)
        else:
            for d in range(n):
                target[d] = source[d]
        for d in range(place[i] * dim, at):  # before the first frame there is the first, again
            out[d] = out[at + (d - place[i] * dim) % dim]
        for d in range(at + n, (place[i] + end[i] - begin[i]) * dim):
            out[d] = out[d - dim]


@kernel
def copy_compressed(shorts, a, b, begin, end, low, high, swap, out, place):
    """As copy_frames, from shorts uint16[frames, dim] that stand for the numbers (short + b) / a; out float32."""
    dim = shorts.shape[1]
    for i in range(len(begin)):
        row = place[i]
        for f in range(begin[i], end[i]):
            frame = min(max(f, low[i]), high[i])
            for d in range(dim):
                w = np.int32(shorts[frame, d])
                if swap:
                    w = ((w & 255) << 8) | (w >> 8)
                if w >= 32768:
                    w -= 65536
                out[row, d] = (np.float32(w) + b[d]) / a[d]
            row += 1
