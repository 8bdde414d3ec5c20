"""Reading pieces of a file into an array without the interpreter lock in between."""

from __future__ import annotations

from cntkpy.readers.kernels.jit import kernel
from cntkpy.readers.kernels.kernel_types import Bytes, Int, Int64s
from cntkpy.readers.kernels.words import read_at


@kernel
def read_pieces(descriptor: Int, offsets: Int64s, sizes: Int64s, places: Int64s, into: Bytes, first: Int):
    """Read sizes[i] bytes from byte at[i] of an open file to into[places[i]:], for i = first, first + 1, ...

    Returns the first i whose piece could not be read in one go, or len(at).

    In range: every piece is compared with the length of `into`, which is contiguous: pread is given an address.
    """
    base = into.ctypes.data
    for i in range(first, len(offsets)):
        if sizes[i] < 0 or places[i] < 0 or places[i] + sizes[i] > len(into):
            return i
        if read_at(descriptor, base + places[i], sizes[i], offsets[i]) != sizes[i]:
            return i
    return len(offsets)
