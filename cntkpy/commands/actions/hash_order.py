"""The order in which CNTK's hash map hands out words, and in which its priority queue takes equal counts.

CNTK keeps counted words in a hash map of the C++ library of GNU (version 10 or later) and takes them out of it
through a binary heap. Neither is stable, but both are deterministic, so the order of words of equal count, and with it
their numbers, is a function of the corpus. Hash: MurmurHash64A (Austin Appleby) with the library's seed. A map is a
chain of groups, one for each bucket in use: new buckets go to the front of the chain, new words to the front of their
group, and growing threads the chain once more through the new buckets.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping

BUCKETS = (
    13, 29, 59, 127, 257, 541, 1109, 2357, 5087, 10273, 20753, 42043, 85229, 172933, 351061, 712697, 1447153, 2938679,
    5967347, 12117689, 24607243, 49969847,
)  # fmt: skip
"""Numbers of buckets of a growing map; each bucket holds one word on average at most."""
SEED = 0xC70F6907
FACTOR = 0xC6A4A7935BD1E995
MASK = (1 << 64) - 1


def hash_of(word: bytes) -> int:
    """MurmurHash64A of some bytes, 0 to 2**64 - 1."""
    value = SEED ^ (len(word) * FACTOR & MASK)
    whole = len(word) & ~7
    for index in range(0, whole, 8):
        piece = int.from_bytes(word[index : index + 8], "little") * FACTOR & MASK
        value = (value ^ ((piece ^ piece >> 47) * FACTOR & MASK)) * FACTOR & MASK
    if whole < len(word):
        value = (value ^ int.from_bytes(word[whole:], "little")) * FACTOR & MASK
    value = (value ^ value >> 47) * FACTOR & MASK
    return value ^ value >> 47


def hash_order(words: Iterable[str]) -> list[str]:
    """Different words in the order of a hash map into which they were put one after the other."""
    sizes = iter(BUCKETS)
    hashes: dict[str, int] = {}
    groups: dict[int, list[str]] = {}
    size = 0
    for word in words:
        if len(hashes) == size:
            size = next(sizes)
            chain, groups = list(_chain(groups)), {}
            for known in chain:
                groups.setdefault(hashes[known] % size, []).append(known)
        hashes[word] = hash_of(word.encode("utf-8", "surrogateescape"))
        groups.setdefault(hashes[word] % size, []).append(word)
    return list(_chain(groups))


def _chain(groups: dict[int, list[str]]) -> Iterator[str]:
    for group in reversed(groups.values()):
        yield from reversed(group)


class _Count(int):
    """Compares as a number, the larger first; words of equal count are equal to the heap."""

    word: str

    def __lt__(self, other: int) -> bool:
        return int(self) > int(other)


def most_frequent_first(counts: Mapping[str, int]) -> Iterator[str]:
    """Yield the words of a hash map as a priority queue hands them out. `heapq` moves entries as the C++ library
    does.
    """
    heap: list[_Count] = []
    for word in hash_order(counts):
        entry = _Count(counts[word])
        entry.word = word
        heap.append(entry)
    heapq.heapify(heap)
    while heap:
        yield heapq.heappop(heap).word
