"""Reading pieces of a file and parsing them in one go, without the interpreter lock in between.

A thread that has finished something small takes longer to get the lock back, if others want it too, than to read.
"""

from __future__ import annotations

from cntkpy.readers.kernels.jit import kernel
from cntkpy.readers.kernels.kernel_types import Int
from cntkpy.readers.kernels.words import read_at

from .events import UNREAD
from .parse_kernels import parse_sequences
from .tables import Output, Runs, Streams, Text


@kernel
def read_and_parse(
    runs: Runs, text: Text, streams: Streams, output: Output, budget: Int, named: bool, end_of_file: Int
):
    """Read the runs of an open file to the buffer of the text, with an LF after each; then parse.

    Args:
        runs: Run i is bytes from_[i]..to[i]-1 of the file, which go to buffer[places[i]:].
        text, streams, output, budget, named, end_of_file: See `parse_sequences`.

    Returns:
        What `parse_sequences` returns, or UNREAD if a run could not be read at once.

    In range: what is read has its bounds compared with the length of the buffer here: pread is given an address.
    """
    buffer, from_, places = text.buffer, runs.from_, runs.places
    base = buffer.ctypes.data
    for i in range(len(from_)):
        size = runs.to[i] - from_[i]
        if size < 0 or places[i] < 0 or places[i] + size >= len(buffer):
            return UNREAD
        if read_at(runs.descriptor, base + places[i], size, from_[i]) != size:
            return UNREAD
        buffer[places[i] + size] = 10
    return parse_sequences(text, streams, output, budget, named, end_of_file)
