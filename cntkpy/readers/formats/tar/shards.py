"""The samples of tar shards: where the members of each lie. Names and sizes only; the data stay in the archives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from cntkpy.readers.common.beginnings import current
from cntkpy.readers.common.bounds import most_in_member
from cntkpy.readers.common.packed import DataBytes, PackedBytes, open_or_say
from cntkpy.readers.common.sequences import starts_of
from cntkpy.readers.errors import DataError

from .headers import Member, members, name_before

MOST_BYTES = 1 << 28
"""Most bytes of a member that is read."""
_MOST_ENDINGS = 12


@dataclass(eq=False)
class Shards:
    """Archives and the samples in them, one archive after the other.

    keys: the name of each sample; first: int64[C+1], samples before each chunk, none of which is of two archives;
    archive: int32[N], the number of each sample's archive; at, size: int64[N, streams], where its members lie;
    chunk_bytes: int64[C], bytes of the members of each chunk.
    """

    data: list[DataBytes]
    keys: list[str]
    first: np.ndarray
    archive: np.ndarray
    offset: np.ndarray
    size: np.ndarray
    chunk_bytes: np.ndarray

    @property
    def files(self) -> list[str]:
        """The archives."""
        return [value.path for value in self.data]

    @property
    def packed(self) -> bool:
        """True if some are compressed: to read one member, what is before it is unpacked."""
        return any(value.packed for value in self.data)

    def member(self, sample: int, stream: int) -> bytes:
        """Return the data of a member.

        Raises:
            DataError: it is too large, or cannot be read.
        """
        size, data = int(self.size[sample, stream]), self._archive(sample)
        if size > MOST_BYTES:
            raise self.error(sample, stream, f"it has {size} bytes, more than the limit of {MOST_BYTES}")
        if isinstance(data, PackedBytes) and size > most_in_member(data.packed_size):
            reason = f"it has {size:,} bytes in an archive of {data.packed_size:,}: this is not believed to be data"
            raise self.error(sample, stream, reason, "unpack the archive (gunzip), if it is")
        result = data.bytes(int(self.offset[sample, stream]), size)
        if len(result) < size:
            raise data.cut_short()
        return result

    def _archive(self, sample: int) -> DataBytes:
        return self.data[int(self.archive[sample])]

    def path(self, sample: int) -> str:
        """Return the archive of a sample."""
        return self._archive(sample).path

    def name(self, sample: int, stream: int) -> str:
        """Return the name of a member."""
        return name_before(self._archive(sample), int(self.offset[sample, stream]))

    def error(self, sample: int, stream: int, problem: str, hint: str | None = None) -> DataError:
        """Return an error in the data of a member."""
        where = f"{self.path(sample)}, member '{self.name(sample, stream)}' (byte {self.offset[sample, stream]})"
        return DataError(f"{where}: {problem}.", path=self.path(sample), hint=hint)

    def close(self) -> None:
        """Close the archives."""
        for value in self.data:
            value.close()


def open_shards(
    paths: Sequence[str], endings: Sequence[Sequence[str]], chunk_size: int, most: int | None = None
) -> Shards:
    """Read the headers of archives.

    Args:
        paths: their names or URLs; compressed ones are unpacked as they are read.
        endings: for each stream the endings of the names of its members, in lower case, without the first dot.
        chunk_size: bytes of the members of a chunk; a chunk has one sample at least.
        most: samples of each archive that are looked for, about; None: all.

    Raises:
        DataError: an archive cannot be read, or a sample lacks a member or has one twice.
    """
    column = {ending: number for number, several in enumerate(endings) for ending in several}
    data: list[DataBytes] = []
    result = [_Samples(column, endings) for _ in paths]
    for path, samples in zip(paths, result, strict=True):
        data.append(open_or_say(path, f"The archive {path} cannot be opened"))
        for member in members(data[-1]):
            samples.add(data[-1], member)
            if most is not None and len(samples.keys) >= most:
                samples.now.clear()
                if (limits := current()) is not None:
                    limits.cut[data[-1].path] = None
                break
        samples.finish(data[-1])
    counts = [len(shard.keys) for shard in result]
    width = len(endings)
    offsets = np.concatenate([np.array(shard.offset, np.int64).reshape(-1, width) for shard in result])
    size = np.concatenate([np.array(shard.size, np.int64).reshape(-1, width) for shard in result])
    archive = np.repeat(np.arange(len(paths), dtype=np.int32), counts)
    sums = size.sum(axis=1)
    first = _chunks(sums, archive, max(1, chunk_size))
    keys = [key for shard in result for key in shard.keys]
    return Shards(data, keys, first, archive, offsets, size, np.add.reduceat(sums, first[:-1]))


@dataclass(eq=False)
class _Samples:
    """The samples of an archive, member by member."""

    column: dict[str, int]
    endings: Sequence[Sequence[str]]
    keys: list[str] = field(default_factory=list[str])
    offset: list[list[int]] = field(default_factory=list[list[int]])
    size: list[list[int]] = field(default_factory=list[list[int]])
    unused_endings: dict[str, None] = field(default_factory=dict[str, None])
    key: str = ""
    now: dict[int, Member] = field(default_factory=dict[int, Member])

    def add(self, data: DataBytes, member: Member) -> None:
        """The next member. A name without an ending, or that begins with a dot, belongs to no sample."""
        folder, slash, base = member.name.rpartition("/")
        stem, _, ending = base.partition(".")
        if not stem or not ending:
            return
        key = folder + slash + stem
        if key != self.key:
            self._end_sample(data)
            self.key = key
        number = self.column.get(ending.lower())
        if number is None:
            if len(self.unused_endings) < _MOST_ENDINGS:
                self.unused_endings[ending.lower()] = None
            return
        if number in self.now:
            previous = self.now[number].name
            raise _wrong(data, member.offset, f"the sample '{key}' has two members for one stream: '{previous}'")
        self.now[number] = member

    def finish(self, data: DataBytes) -> None:
        """There are no more members."""
        self._end_sample(data)
        if not self.keys:
            wanted = " or ".join(f".{value}" for several in self.endings for value in several)
            raise DataError(
                f"The archive {data.path} has no sample with a member {wanted}.", path=data.path, hint=self._hint()
            )

    def _end_sample(self, data: DataBytes) -> None:
        if not self.now:
            return
        for number, several in enumerate(self.endings):
            if number not in self.now:
                wanted = " or ".join(f".{value}" for value in several)
                offsets = next(iter(self.now.values())).offset
                raise _wrong(data, offsets, f"the sample '{self.key}' has no member {wanted}", self._hint())
        members = [self.now[number] for number in range(len(self.endings))]
        self.keys.append(self.key)
        self.offset.append([member.offset for member in members])
        self.size.append([member.size for member in members])
        self.now = {}

    def _hint(self) -> str:
        there = ", ".join(f".{item}" for item in self.unused_endings)
        return (
            f"it has members {there}: write member = ENDING in the section of the stream"
            if there
            else ("members of a sample follow one another: 000123.jpg, 000123.cls")
        )


def _chunks(sizes: np.ndarray, archive: np.ndarray, most: int) -> np.ndarray:
    """Samples before each chunk, int64[C+1]: a chunk ends where it would be too large, or where an archive ends."""
    first, held = [0], 0
    ends = set(starts_of(np.bincount(archive))[1:-1].tolist())
    for number, size in enumerate(sizes.tolist()):
        if number > first[-1] and (held + size > most or number in ends):
            first.append(number)
            held = 0
        held += size
    return np.array([*first, len(sizes)], np.int64)


def _wrong(data: DataBytes, offset: int, problem: str, hint: str | None = None) -> DataError:
    shown = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in problem)
    return DataError(f"{data.path}, byte {offset}: {shown}.", path=data.path, hint=hint)
