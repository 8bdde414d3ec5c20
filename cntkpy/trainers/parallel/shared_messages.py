"""Messages between the processes of one machine, through memory that they share.

The key-value store of JAX's coordination service takes a millisecond for a short message, and as much of a processor in
worker 0; a large one takes longer. Here a message is copied into shared memory, and its length is sent to the others.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import mmap

    from cntkpy.trainers.parallel.signals import Signals

MAX_MESSAGE_BYTES = 2 << 20
"""Bytes of a message, at most; there is memory for two of each process."""

TOO_LARGE = -1
"""Is sent in place of the length of a message that is too large."""


def memory_bytes(size: int) -> int:
    """Bytes of memory for the messages of `size` processes."""
    return 2 * size * MAX_MESSAGE_BYTES


class SharedMessages:
    """Writes the messages of this process, and reads those of the others.

    Args:
        rank, size: Number of this process, and how many there are.
        memory: The memory that they share.
        begin: Offset of the messages in it.
        signals: To the others, used for nothing else.
    """

    def __init__(self, rank: int, size: int, memory: mmap.mmap, begin: int, signals: Signals):
        self._rank, self._size, self._memory, self._begin, self._signals = rank, size, memory, begin, signals
        self._number = 0

    def exchange(self, message: bytes, still: Callable[[int], None]) -> list[bytes] | None:
        """Return the messages of all processes, in order of ranks; None, in all of them, where one is too large.

        Args:
            message: Of this process.
            still: See `Signals.exchange`.

        Raises:
            Gone: Another process has ended.
        """
        self._number += 1
        fits = len(message) <= MAX_MESSAGE_BYTES
        if fits:  # all have read the message before the last, else they would not have answered the last
            offset = self._offset(self._rank)
            self._memory[offset : offset + len(message)] = message
        received = self._signals.exchange(struct.pack("=q", len(message) if fits else TOO_LARGE), still)
        lengths = {rank: int(struct.unpack("=q", answer)[0]) for rank, answer in received.items()}
        if not fits or TOO_LARGE in lengths.values():
            return None
        return [message if rank == self._rank else self._read(rank, lengths[rank]) for rank in range(self._size)]

    def _offset(self, rank: int) -> int:
        """Return the offset at which a process writes this time."""
        return self._begin + (2 * rank + self._number % 2) * MAX_MESSAGE_BYTES

    def _read(self, rank: int, length: int) -> bytes:
        offset = self._offset(rank)
        return self._memory[offset : offset + length]
