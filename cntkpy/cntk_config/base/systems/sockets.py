"""Memory, sockets and descriptors that processes of one machine hand to each other: Linux only.

Elsewhere `machine()` is None, and processes use what works between machines.
"""

from __future__ import annotations

import os
import socket
import struct
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def have_paths() -> bool:
    """Return whether sockets can have the names of files."""
    return hasattr(socket, "AF_UNIX") and sys.platform != "win32"


def machine() -> list[Any] | None:
    """Return facts that processes must share to share memory: start of the system, network, files, user."""
    if sys.platform != "linux":
        return None
    try:
        spaces = [str(Path(f"/proc/self/ns/{name}").readlink()) for name in ("net", "mnt", "user")]
        booted = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return [booted, *spaces, os.getuid()]
    except OSError:
        return None


def listen(name: bytes, count: int) -> socket.socket:
    """Return a socket to which processes of this machine connect.

    Args:
        name: of a file, which stays until somebody removes it.
        count: how many may wait to be accepted.

    Raises:
        OSError: there is none.
    """
    endpoint = _socket()
    try:
        endpoint.bind(name)
        endpoint.listen(count)
    except BaseException:
        endpoint.close()
        raise
    return endpoint


def connect(name: bytes, seconds: float) -> socket.socket:
    """Return a socket that is connected to one of this name.

    Raises:
        OSError: there is none, or it does not answer in time.
    """
    endpoint = _socket()
    try:
        endpoint.settimeout(seconds)
        endpoint.connect(name)
    except BaseException:
        endpoint.close()
        raise
    return endpoint


def check_user(peer: socket.socket) -> None:
    """Check that the other side is a process of this user.

    Raises:
        OSError: it is not.
    """
    _, user, _ = struct.unpack("3i", peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    if user != os.getuid():
        raise OSError(f"it is a process of the user with the number {user}")


def make_memory(name: str, size: int) -> int:
    """Return the descriptor of memory without a file, which all have that get the descriptor; `name` is for people.

    Raises:
        OSError: the system gives no more.
    """
    memory = os.memfd_create(name)
    try:
        os.posix_fallocate(memory, 0, size)
    except BaseException:
        os.close(memory)
        raise
    return memory


def send_descriptors(to: socket.socket, descriptors: Sequence[int]) -> None:
    """Let another process have open files too.

    Raises:
        OSError: it has ended.
    """
    socket.send_fds(to, [b"."], list(descriptors))


def receive_descriptors(connection: socket.socket, count: int) -> list[int]:
    """Return the descriptors of `send_descriptors`, at most `count`.

    Raises:
        OSError: the other side has ended, or does not answer.
    """
    return list(socket.recv_fds(connection, 1, count, socket.MSG_CMSG_CLOEXEC)[1])


def _socket() -> socket.socket:
    """Return a socket between processes of this machine.

    Raises:
        OSError: the system has none.
    """
    if not hasattr(socket, "AF_UNIX"):
        raise OSError("this system has no sockets with names")
    return socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
