"""Memory for the plain text of compressed files: what was unpacked last is kept, what was made ahead is not dropped."""

from __future__ import annotations

import weakref
from threading import Lock
from typing import Protocol

RECENT = 256 << 20
"""Bytes that are held of all files: data are read after their index is made."""
SPARE = 64 << 20
"""Bytes of them that stay free of what is reserved for long."""


class Owner(Protocol):
    """A compressed file."""

    recent: dict[int, bytes]
    """Its pieces that are kept, by where they begin."""


class Recent:
    """Most recently unpacked blocks of all files; evicts the oldest first; and how many bytes others hold in its
    place."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._kept: dict[tuple[int, int], tuple[weakref.ref[Owner], int]] = {}
        self._held = 0
        self._reserved: weakref.WeakKeyDictionary[object, int] = weakref.WeakKeyDictionary()

    def add(self, owner: Owner, begin: int, content: bytes) -> None:
        """Keep a piece."""
        with self._lock:
            owner.recent[begin] = content
            self._let_go((id(owner), begin))  # of a file that is gone, whose number this one has now
            self._kept[id(owner), begin] = weakref.ref(owner), len(content)
            self._held += len(content)
            self._make_room()

    def forget(self, owner: Owner, end: int) -> None:
        """Let go of the pieces of a file that end at byte `end` or before it: nobody will read them."""
        with self._lock:
            for begin, content in list(owner.recent.items()):
                if begin + len(content) <= end:
                    owner.recent.pop(begin, None)
                    self._let_go((id(owner), begin))

    def reserve(self, owner: object, size: int, spare: int = 0) -> bool:
        """Count bytes that somebody holds; False if `spare` bytes would not be left."""
        with self._lock:
            if sum(self._reserved.values()) + size + spare > RECENT:
                return False
            self._reserved[owner] = self._reserved.get(owner, 0) + size
            self._make_room()
            return True

    def release(self, owner: object, size: int) -> None:
        """Count bytes no longer."""
        with self._lock:
            self._reserved[owner] = self._reserved.get(owner, 0) - size

    def _let_go(self, key: tuple[int, int]) -> weakref.ref[Owner] | None:
        of, size = self._kept.pop(key, (None, 0))
        self._held -= size
        return of

    def _make_room(self) -> None:
        room = RECENT - sum(self._reserved.values())
        while self._held > room and len(self._kept) > 1:
            key = next(iter(self._kept))
            of = self._let_go(key)
            if of is not None and (result := of()) is not None:
                result.recent.pop(key[1], None)


RECENTLY = Recent()
"""The memory of this process."""
