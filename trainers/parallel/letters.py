"""Letters that the processes of one machine exchange, through memory that they share.

The key-value store of JAX's coordination service takes a millisecond for a short letter, and as much of a processor in
worker 0; a large one takes longer. Here a letter is copied, and a word tells the others how long it is.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import mmap

    from trainers.parallel.signals import Signals

LONGEST = 2 << 20
"""Bytes of a letter, at most; each process has room for two."""

TOO_LONG = -1
"""What is told instead of a length."""


def room(size: int) -> int:
    """Bytes of memory for the letters of so many processes."""
    return 2 * size * LONGEST


class Letters:
    """Where a process writes its letters, and reads those of the others.

    Args:
        rank, size: Number of this process, and how many there are.
        memory: The memory that they share.
        begin: Where the place for letters begins in it.
        signals: To the others, for nothing else.
    """

    def __init__(self, rank: int, size: int, memory: mmap.mmap, begin: int, signals: Signals):
        self._rank, self._size, self._memory, self._begin, self._signals = rank, size, memory, begin, signals
        self._number = 0

    def exchange(self, letter: bytes, still: Callable[[int], None]) -> list[bytes] | None:
        """The letters of all processes, in order of ranks; None, in all of them, where one is too long.

        Args:
            letter: Of this process.
            still: See `Signals.exchange`.

        Raises:
            Gone: Another process has ended.
        """
        self._number += 1
        fits = len(letter) <= LONGEST
        if fits:  # all have read the one before the last, else they would not have answered the last
            place = self._place(self._rank)
            self._memory[place : place + len(letter)] = letter
        come = self._signals.exchange(struct.pack("=q", len(letter) if fits else TOO_LONG), still)
        lengths = {rank: int(struct.unpack("=q", word)[0]) for rank, word in come.items()}
        if not fits or TOO_LONG in lengths.values():
            return None
        return [letter if rank == self._rank else self._read(rank, lengths[rank]) for rank in range(self._size)]

    def _place(self, rank: int) -> int:
        """Where a process writes this time."""
        return self._begin + (2 * rank + self._number % 2) * LONGEST

    def _read(self, rank: int, length: int) -> bytes:
        place = self._place(rank)
        return self._memory[place : place + length]
