"""Short words between the processes of one machine, through a pair of sockets for each two of them.

Nobody spins, because another may need the core. Who waits for one that has ended gets an error.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable, Sequence


class Gone(Exception):
    """Another process has ended."""


class Signals:
    """The sockets of one process.

    Args:
        sockets: By rank, to the others; None for this process.
    """

    def __init__(self, sockets: Sequence[socket.socket | None]):
        self._peers = {rank: end for rank, end in enumerate(sockets) if end is not None}

    def exchange(self, word: bytes, still: Callable[[int], None] | None = None, every: float = 1.0) -> dict[int, bytes]:
        """Send all a word of a length that all know, and return theirs, by rank.

        Args:
            word: For the others.
            still: Called with the rank of the one that is waited for, time and again; it may raise what ends that.
            every: Seconds between two calls of it.

        Raises:
            Gone: Another process has ended.
        """
        try:
            for peer in self._peers.values():
                peer.sendall(word)
            return {rank: self._wait(rank, len(word), still, every) for rank in self._peers}
        except OSError as error:
            self._leave()
            raise Gone(str(error)) from None

    def _wait(self, rank: int, length: int, still: Callable[[int], None] | None, every: float) -> bytes:
        peer, word = self._peers[rank], b""
        if still is not None:
            peer.settimeout(every)
        while len(word) < length:
            try:
                come = peer.recv(length - len(word))
            except TimeoutError:
                if still is None:
                    raise
                still(rank)
                continue
            if not come:
                raise OSError("another worker has ended")
            word += come
        return word

    def _leave(self) -> None:
        """Let no other process wait for this one: one of them may not know yet that another has ended."""
        for peer in self._peers.values():
            with contextlib.suppress(OSError):
                peer.shutdown(socket.SHUT_RDWR)
