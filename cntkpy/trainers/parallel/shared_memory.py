"""Sums over the processes of one machine, through memory that they share.

Gloo, which JAX uses between processes, sends gradients through sockets, so they are copied into the kernel and out of
it. Here every process adds up one share of the elements over all processes, in order of ranks. It writes the elements
that others add up into its part of the memory, and reads their sums from there. `docs/decisions` has measurements.

The memory has no name: worker 0 makes it and sends its descriptor to the others through a socket in a folder that only
this user can open, and the system frees it with the last process. Worker 0 sends it only to processes of the same user
that know the secret of this run, and refuses all others; the name of the socket is removed then. Each two workers have
a pair of sockets for sums, used by a thread of XLA, and one for messages.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import mmap
import os
import secrets
import socket
import struct
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cntkpy.cntk_config.base.cache_folders import socket_folder
from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.cntk_config.base.systems import sockets
from cntkpy.trainers.parallel.shared_messages import SharedMessages, memory_bytes
from cntkpy.trainers.parallel.signals import Signals
from cntkpy.trainers.step.memory import HostArray

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from cntkpy.trainers.parallel.communicator import Communicator

log = logging.getLogger("cntkpy.trainers")

Sockets = Sequence[socket.socket | None]
"""By rank, to the others; None for the process itself."""

BLOCK_BYTES = 4 << 20
"""Bytes that every process gives at a time. Larger arrays are summed block after block."""

MAX_WORKERS = 16
"""Processes, at most: each reads what all others write, and has a socket to each of them."""

MAX_PLANS = 64
"""Lists of arrays of which is kept how they are summed."""

ELEMENTS_PER_ADDITION = 1 << 15
"""Elements that are added at once: few enough that the core still has them when they are copied."""

CONNECT_SECONDS = 20.0
"""Seconds to wait while descriptors are handed out."""

HANDSHAKE_SECONDS = 5.0
"""Seconds that a process that has connected may take for its answer."""

NONCE_BYTES = 32
"""Bytes that worker 0 sends to who connects, others each time; the answer proves that both know the secret."""


class _Step(NamedTuple):
    """Plan of the sum of a block.

    Attributes:
        written: Where to write what others sum up.
        added: What to add, where to, and where to copy it.
        read: Where to write the sums that others have made.
    """

    written: list[tuple[NDArray[Any], NDArray[Any]]]
    added: list[tuple[list[NDArray[Any]], NDArray[Any], NDArray[Any]]]
    read: list[tuple[NDArray[Any], NDArray[Any]]]


class SharedSums:
    """The memory that the processes of one machine share.

    Args:
        rank: Number of this process.
        memory: Descriptor of the memory, which can be closed afterwards.
        signals: By rank, sockets to the others; None for this process.
        more: The same, for messages.

    Attributes:
        messages: The messages of the processes.
    """

    def __init__(self, rank: int, memory: int, signals: Sockets, channels: Sockets):
        self._rank, self._size = rank, len(signals)
        self._peers = [peer for peer in range(self._size) if peer != rank]
        self._signals = Signals(signals)
        self._memory = mmap.mmap(memory, _bytes(self._size))
        self._known: dict[tuple[int, ...], tuple[list[NDArray[Any]], list[_Step]]] = {}
        """By the identities of arrays, which are kept so that no others can have them."""
        self.messages = SharedMessages(
            rank, self._size, self._memory, (self._size + 1) * BLOCK_BYTES, Signals(channels)
        )

    def sum(self, arrays: list[HostArray]) -> None:
        """Replace flat arrays by their sums over all processes, which call this with arrays of the same sizes.

        Raises:
            Gone: Another process has ended.
        """
        for step in self._steps_for(arrays):
            for place, piece in step.written:
                place[:] = piece
            self._meet()
            for parts, total, copy in step.added:
                np.add(parts[0], parts[1], out=total)
                for part in parts[2:]:
                    total += part
                copy[:] = total
            self._meet()  # until all have summed up, nobody writes the next block; until all have read, no sums
            for piece, place in step.read:
                piece[:] = place

    def sum_of_real(self, arrays: list[HostArray]) -> None:
        """As `sum`, of the arrays after the first, a single number: 0 where nothing of this process counts.

        Raises:
            Gone: Another process has ended.
        """
        real, *summands = arrays
        if not real[0]:
            for array in summands:
                array[:] = 0
        self.sum(summands)

    def _steps_for(self, arrays: list[HostArray]) -> list[_Step]:
        """Return the plan of the sums of these very arrays, which are most often those of the call before."""
        key = tuple(map(id, arrays))
        if key not in self._known:
            if len(self._known) == MAX_PLANS:
                self._known.clear()
            steps = [
                self._step(dtype, pieces)
                for dtype in sorted({array.dtype for array in arrays}, key=str)
                for pieces in _blocks(
                    [array for array in arrays if array.dtype == dtype], BLOCK_BYTES // dtype.itemsize
                )
            ]
            self._known[key] = arrays, steps
        return self._known[key][1]

    def _step(self, dtype: np.dtype[Any], pieces: list[HostArray]) -> _Step:
        """Return the plan of the sum of pieces of arrays that fit into a block."""
        count = sum(len(piece) for piece in pieces)
        most = (self._size + 1) * BLOCK_BYTES // dtype.itemsize
        places = np.frombuffer(self._memory, dtype, most).reshape(self._size + 1, -1)[:, :count]
        written, total = places[self._rank], places[-1]
        cuts = [count * rank // self._size for rank in range(self._size + 1)]
        outside = [target for rank in self._peers for target in _within(pieces, cuts[rank], cuts[rank + 1])]
        added: list[tuple[list[NDArray[Any]], NDArray[Any], NDArray[Any]]] = []
        for whole, where in _within(pieces, cuts[self._rank], cuts[self._rank + 1]):
            for first in range(0, len(whole), ELEMENTS_PER_ADDITION):
                piece = whole[first : first + ELEMENTS_PER_ADDITION]
                place = slice(where.start + first, where.start + first + len(piece))
                parts = [piece if rank == self._rank else places[rank, place] for rank in range(self._size)]
                # what a third worker has is not added yet, so it stays
                target, copy = (piece, total[place]) if self._rank < 2 else (total[place], piece)
                added.append((parts, target, copy))
        return _Step(
            [(written[place], piece) for piece, place in outside],
            added,
            [(piece, total[place]) for piece, place in outside],
        )

    def _meet(self) -> None:
        """Wait for all."""
        self._signals.exchange(b".")


def _blocks(arrays: list[HostArray], size: int) -> Iterator[list[HostArray]]:
    """Views of consecutive elements of flat arrays, this many elements at a time."""
    block: list[NDArray[Any]] = []
    memory_bytes = size
    for array in arrays:
        for first in _cuts(len(array), memory_bytes, size):
            piece = array[first : first + memory_bytes]
            block.append(piece)
            memory_bytes -= len(piece)
            if not memory_bytes:
                yield block
                block, memory_bytes = [], size
    if block:
        yield block


def _cuts(length: int, memory_bytes: int, size: int) -> list[int]:
    """Return the beginnings of the pieces of an array, the first of which has `memory_bytes` elements."""
    return [0, *range(memory_bytes, length, size)] if length else []


def _within(pieces: list[HostArray], first: int, last: int) -> Iterator[tuple[HostArray, slice]]:
    """Of arrays that are after each other, what lies between two places, and where."""
    begin = 0
    for piece in pieces:
        end = begin + len(piece)
        low, high = max(first, begin), min(last, end)
        if low < high:
            yield piece[low - begin : high - begin], slice(low, high)
        begin = end


def _bytes(size: int) -> int:
    """Of the memory: a block for each process, and one for the sums; messages."""
    return (size + 1) * BLOCK_BYTES + memory_bytes(size)


# ---- how the processes get it


def connect(communicator: Communicator) -> SharedSums | None:
    """Return the memory of all processes of a run; None, in all of them, where they cannot share it.

    They cannot where the system has no such memory, or they are not on one machine; nobody else can bring that about.

    Raises:
        UserError: in all of them, something went wrong while the memory was handed out. Nothing else is tried then.
    """
    rank, size = communicator.rank, communicator.size
    if not 2 <= size <= MAX_WORKERS:
        return None
    offer = _Offer.make(size) if communicator.main else None
    try:
        name = str(offer.path) if offer is not None else ""
        secret = secrets.token_hex(32) if communicator.main else ""
        said = communicator.exchange([sockets.machine(), name, secret])
        machine, name, secret = said[0]
        if not name or any(host != machine for host, *_ in said):
            return None
        sums, why = _shared(offer, name, bytes.fromhex(secret), rank, size)
    finally:
        if offer is not None:
            offer.close()  # who waits for what is not handed out gets an error
    reasons = [f"worker {number}: {text}" for number, text in enumerate(communicator.exchange(why)) if text]
    if reasons:
        raise UserError(
            "NoCoordinator",
            f"the workers cannot share memory ({reasons[0]})",
            hint="start the run again; nothing was sent over the network",
        )
    return sums


def _shared(offer: _Offer | None, name: str, secret: bytes, rank: int, size: int) -> tuple[SharedSums | None, str]:
    """Return the memory of this process, or why it has none."""
    try:
        return (_take(name, secret, rank, size) if offer is None else _hand_out(offer, secret, size)), ""
    except OSError as error:
        return None, error.strerror or str(error) or type(error).__name__


class _Offer(NamedTuple):
    """Worker 0's offer: the memory, and the socket at which it hands it out, in a folder of this user.

    Attributes:
        listening: The socket.
        path: Its name.
        memory: The descriptor of the memory.
    """

    listening: socket.socket
    path: Path
    memory: int

    @classmethod
    def make(cls, size: int) -> _Offer | None:
        """Make both; None: the system has none of the kind, or no memory left."""
        if sockets.machine() is None or (folder := socket_folder()) is None:
            return None
        path = folder / f"sums-{secrets.token_hex(8)}"
        try:
            memory = sockets.make_memory("cntkpy sums", _bytes(size))
        except OSError:
            return None
        try:
            return cls(sockets.listen(os.fsencode(path), size), path, memory)
        except OSError:
            os.close(memory)
            return None

    def close(self) -> None:
        """Close the socket and this descriptor of the memory; nobody connects any more."""
        self.listening.close()
        self.path.unlink(missing_ok=True)
        os.close(self.memory)


def _hand_out(offer: _Offer, secret: bytes, size: int) -> SharedSums:
    """Make sockets, and give the others theirs and the memory.

    Raises:
        OSError: Some other does not come.
    """
    signals, channels = _pairs(size), _pairs(size)
    until = time.monotonic() + CONNECT_SECONDS
    missing = set(range(1, size))
    while missing:
        offer.listening.settimeout(max(0.001, until - time.monotonic()))
        try:
            to = offer.listening.accept()[0]
        except TimeoutError:
            lost = ", ".join(map(str, sorted(missing)))
            raise OSError(f"worker {lost} has not asked for it in {CONNECT_SECONDS:g} s") from None
        with to:
            try:
                rank = _who(to, secret, missing)
            except (_NotAWorker, OSError) as error:
                log.warning(
                    "WARNING: a process that is not a worker of this run has connected to it and was refused: "
                    "%s. The run continues.",
                    str(error),  # a record that is kept would keep the sockets of this call open
                )
                continue
            ends = [end for end in (*signals[rank], *channels[rank]) if end is not None]
            sockets.send_descriptors(to, [offer.memory, *(end.fileno() for end in ends)])
            for end in ends:
                end.close()
            missing.remove(rank)
    return SharedSums(0, offer.memory, signals[0], channels[0])


class _NotAWorker(Exception):
    """A process that has connected is not one of the missing workers."""


def _who(to: socket.socket, secret: bytes, missing: set[int]) -> int:
    """Return the rank of the worker that has connected, which proves that it knows the secret.

    Raises:
        _NotAWorker: it is none of those that are missing.
        OSError: it does not answer.
    """
    sockets.check_user(to)
    to.settimeout(HANDSHAKE_SECONDS)
    nonce = secrets.token_bytes(NONCE_BYTES)
    to.sendall(nonce)
    answer = _received(to, 4 + hashlib.sha256().digest_size)
    (rank,) = struct.unpack("=I", answer[:4])
    if not hmac.compare_digest(answer, _answer(secret, nonce, rank)):
        raise _NotAWorker("it does not know the secret of the run")
    if rank not in missing:
        raise _NotAWorker(f"it says that it is worker {rank}, which is here already")
    return rank


def _answer(secret: bytes, nonce: bytes, rank: int) -> bytes:
    """Return the answer of a worker that knows the secret."""
    said = struct.pack("=I", rank)
    return said + hmac.digest(secret, nonce + said, "sha256")


def _received(peer: socket.socket, count: int) -> bytes:
    """So many bytes.

    Raises:
        OSError: the other side sends fewer.
    """
    come = b""
    while len(come) < count:
        try:
            chunk = peer.recv(count - len(come))
        except TimeoutError:
            raise OSError("it does not answer") from None
        if not chunk:
            raise OSError("it has sent too few bytes")
        come += chunk
    return come


def _pairs(size: int) -> list[list[socket.socket | None]]:
    """Of each two processes, a pair of sockets: by rank, those of each."""
    table: list[list[socket.socket | None]] = [[None] * size for _ in range(size)]
    for first in range(size):
        for second in range(first):
            table[first][second], table[second][first] = socket.socketpair()
    return table


def _take(name: str, secret: bytes, rank: int, size: int) -> SharedSums:
    """Receive the shared memory of worker 0.

    Raises:
        OSError: It does not.
    """
    with sockets.connect(os.fsencode(name), CONNECT_SECONDS) as connection:
        sockets.check_user(connection)
        connection.sendall(_answer(secret, _received(connection, NONCE_BYTES), rank))
        descriptors = sockets.receive_descriptors(connection, 2 * size - 1)
    if len(descriptors) != 2 * size - 1:
        raise OSError("descriptors are missing")
    memory, *numbers = descriptors
    pairs = [socket.socket(fileno=number) for number in numbers]
    signals, channels = pairs[: size - 1], pairs[size - 1 :]
    try:
        return SharedSums(rank, memory, _with_own(signals, rank), _with_own(channels, rank))
    finally:
        os.close(memory)


def _with_own(peers: Sequence[socket.socket], rank: int) -> list[socket.socket | None]:
    """Sockets by rank, of which a process has none to itself."""
    return [*peers[:rank], None, *peers[rank:]]
