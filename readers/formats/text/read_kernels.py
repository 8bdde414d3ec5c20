"""Reading pieces of a file and parsing them in one go, without the interpreter lock in between.

A thread that has finished something small takes longer to get the lock back, if others want it too, than to read.
"""

from __future__ import annotations

from readers.kernels.jit import kernel
from readers.kernels.kernel_types import Bools, Bytes, Int, Int32s, Int64s, Reals
from readers.kernels.words import read_at

from .events import UNREAD
from .parse_kernels import parse_sequences


@kernel
def read_and_parse(
    descriptor: Int, from_: Int64s, to: Int64s, places: Int64s, buffer: Bytes, begins: Int64s, ends: Int64s,
    nominal: Int32s, names: Bytes, name_starts: Int64s, dims: Int64s, sparse: Bools, defining: Bools, budget: Int,
    values: Reals, indices: Int32s, starts: Int64s, counts: Int32s, bounds: Int64s, events: Int64s, slows: Int64s,
    state: Int64s, named: bool, end_of_file: Int,
):  # fmt: skip
    """Read bytes from_[i]..to[i]-1 of an open file to buffer[places[i]:], for each i, and LF after each; then parse.

    The rest: see `parse_sequences`. Returns UNREAD if a piece could not be read in one go.

    In range: what is read has its bounds compared with the length of the buffer here: pread is given an address.
    """
    base = buffer.ctypes.data
    for i in range(len(from_)):
        size = to[i] - from_[i]
        if size < 0 or places[i] < 0 or places[i] + size >= len(buffer):
            return UNREAD
        if read_at(descriptor, base + places[i], size, from_[i]) != size:
            return UNREAD
        buffer[places[i] + size] = 10
    return parse_sequences(
        buffer, begins, ends, nominal, names, name_starts, dims, sparse, defining, budget,
        values, indices, starts, counts, bounds, events, slows, state, named, end_of_file,
    )  # fmt: skip
