"""Reading pieces of a file and parsing them in one go, without the interpreter lock in between.

A thread that has finished something small takes longer to get the lock back, if others want it too, than to read.
"""

from __future__ import annotations

from readers.common.jit import kernel
from readers.common.words import read_at

from .events import UNREAD
from .parse_kernels import parse_sequences


@kernel
def read_and_parse(
    descriptor, from_, to, places, buffer, begins, ends, nominal, names, name_starts, dims, sparse, defining, budget,
    values, indices, starts, counts, bounds, events, slows, state, named, end_of_file,
):  # fmt: skip
    """Read bytes from_[i]..to[i]-1 of an open file to buffer[places[i]:], for each i, and LF behind each; then parse.

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
