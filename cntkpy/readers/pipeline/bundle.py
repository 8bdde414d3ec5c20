"""Several deserializers joined by sequence key: the first decides chunks, order and candidates."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import numpy as np

from cntkpy.readers.common.beginnings import unless_cut
from cntkpy.readers.common.chunk import Chunk
from cntkpy.readers.common.notices import ABOUT_JOINED
from cntkpy.readers.common.sequences import SequenceTable, starts_of
from cntkpy.readers.contracts import DefinesLength, Deserializer, LoadsWholeChunks, ReadsFiles
from cntkpy.readers.errors import DataError
from cntkpy.readers.streams import StreamInformation

log = logging.getLogger("cntkpy.readers")
_MAX_KEYS_SHOWN = 3


class Bundle:
    """A deserializer whose sequences carry the streams of all its parts; sequences missing anywhere are dropped.

    Args:
        parts: what is joined.
        lengths_from: number of the deserializer whose lengths count; None means the longest of all.
        check_data: leave out such sequences; False means that there are none, and that one is an error.
        allow_loss: more than half of the sequences may be left out.

    Raises:
        DataError: streams have the same name, a key occurs twice, or too many sequences are missing somewhere.
    """

    def __init__(
        self,
        parts: Sequence[Deserializer],
        *,
        lengths_from: int | None = None,
        check_data: bool = True,
        allow_loss: bool = False,
    ):
        self.parts = list(parts)
        self.streams: Sequence[StreamInformation] = [s for part in parts for s in part.streams]
        names = [s.name for s in self.streams]
        double = next((n for n in names if names.count(n) > 1), None)
        if double is not None:
            raise DataError(
                f"Two streams with the same name '{double}' have been found. Please rename the duplicate.",
                hint="give the stream another name in one of the deserializers, with alias for its name in the file",
            )
        numbers = [_find(parts[0].table, part, i) for i, part in enumerate(parts)]
        kept = np.flatnonzero(np.all([f >= 0 for f in numbers], axis=0))
        if not check_data:
            _require_all(parts, numbers)
        if len(kept) == 0:
            error = DataError(
                "Could not reconcile data between different deserializers. Keys of logical sequences do not match.",
                hint="sequences are joined by the number at the start of the line (or, without one, by line number)",
            )
            raise unless_cut(error)
        _tell_loss(parts, numbers, len(kept), allow_loss)
        self.numbers = [f[kept] for f in numbers]
        """Per part: its sequence numbers by those of the bundle, int64[N]."""
        chunks = np.searchsorted(parts[0].table.first, kept, side="right") - 1
        used, counts = np.unique(chunks, return_counts=True)
        first = starts_of(counts)
        chosen = range(len(self.parts)) if lengths_from is None else [lengths_from]
        lengths = np.max([_lengths(self.parts[i].table, self.numbers[i]) for i in chosen], axis=0)
        lengths = lengths[:1] if (lengths == lengths[0]).all() else lengths
        self.table = SequenceTable(first, lengths.astype(np.int32), parts[0].table.key(kept), parts[0].table.corpus)
        self.chunk_bytes = parts[0].chunk_bytes[used] * sum(1 for _ in parts)

    @property
    def whole_chunks(self) -> bool:
        """True if a single sequence takes as long to load as its chunk: the chunks are those of the first part."""
        return isinstance(self.parts[0], LoadsWholeChunks) and self.parts[0].whole_chunks

    def load_chunk(self, chunk: int) -> Chunk:
        """Return a chunk of the first deserializer with the matching sequences of the others."""
        return self.load_sequences(self.table.of_chunk(chunk))

    def load_sequences(self, sequences: np.ndarray) -> Chunk:
        """Return the same sequences from every part."""
        pairs = zip(self.parts, self.numbers, strict=True)
        return _together([part.load_sequences(numbers[sequences]) for part, numbers in pairs])


class SideBySide:
    """A deserializer whose sequences carry the streams of all its parts, which have the same sequences.

    Args:
        parts: what is joined; the first one's table counts.
    """

    def __init__(self, parts: Sequence[Deserializer]) -> None:
        self.parts = list(parts)
        self.streams: Sequence[StreamInformation] = [s for part in parts for s in part.streams]
        self.table = parts[0].table
        self.numbers = [np.arange(self.table.num_sequences)] * len(self.parts)
        """Per part: its sequence numbers, which are those of all."""
        self.chunk_bytes = np.sum([part.chunk_bytes for part in parts], axis=0)
        first = parts[0]
        self.whole_chunks = isinstance(first, LoadsWholeChunks) and first.whole_chunks
        self.defines_mb_size = any(isinstance(member, DefinesLength) and member.defines_mb_size for member in parts)

    @property
    def files(self) -> list[str]:
        """The files of the first part."""
        return list(self.parts[0].files) if isinstance(self.parts[0], ReadsFiles) else []

    def load_chunk(self, chunk: int) -> Chunk:
        """Return a chunk of every part."""
        return self.load_sequences(self.table.of_chunk(chunk))

    def load_sequences(self, sequences: np.ndarray) -> Chunk:
        """Return the same sequences from every part."""
        return _together([part.load_sequences(sequences) for part in self.parts])


def _together(chunks: Sequence[Chunk]) -> Chunk:
    """Return one chunk with the streams of several, which have the same sequences."""
    streams = {name: data for chunk in chunks for name, data in chunk.streams.items()}
    invalid, damaged = _any([chunk.invalid for chunk in chunks]), _any([chunk.damaged for chunk in chunks])
    return Chunk(streams, sum(chunk.nbytes for chunk in chunks), invalid, damaged)


def _any(flags: Sequence[np.ndarray | None]) -> np.ndarray | None:
    """Join the flags of parts by `or`, bool[n]; None if no part has flags."""
    flagged = [member for member in flags if member is not None]
    return np.any(flagged, axis=0) if flagged else None


def _require_all(parts: Sequence[Deserializer], numbers: Sequence[np.ndarray]) -> None:
    for number, sequences in enumerate(numbers):
        missing = np.flatnonzero(sequences < 0)
        if len(missing):
            error = DataError(
                f"Sequence {parts[0].table.names(missing[:1])[0]} of the first deserializer is missing in deserializer "
                f"{number + 1} ({len(missing)} sequences are missing there), and checkData=false says that none is.",
                hint="mend the data, or leave checkData out: then such sequences are left out",
            )
            raise unless_cut(error)


def _tell_loss(parts: Sequence[Deserializer], numbers: Sequence[np.ndarray], kept: int, allowed: bool) -> None:
    """Warn of sequences that some parts lack; raise an error if more than half are missing, unless that is allowed."""
    count = parts[0].table.num_sequences
    for number, (part, sequences) in enumerate(zip(parts, numbers, strict=True), 1):
        missing = np.flatnonzero(sequences < 0)
        if not len(missing):
            continue
        some = ", ".join(str(key) for key in parts[0].table.names(missing[:_MAX_KEYS_SHOWN]))
        where = ", ".join(part.files) if isinstance(part, ReadsFiles) else f"deserializer {number}"
        log.warning(
            "WARNING: %d of %d sequences of the first deserializer are left out of every sweep: %s has no data for "
            "them, the first: %s.",
            len(missing),
            count,
            where,
            some,
            extra=ABOUT_JOINED,
        )
    if 2 * kept < count and not allowed:
        error = DataError(
            f"Only {kept} of {count} sequences of the first deserializer have data in all deserializers.",
            hint="do the keys of the files mean the same sequences? If so, allowDataLoss=true reads those there are",
        )
        raise unless_cut(error)


def _read_from(part: Deserializer) -> str:
    """Return the files of a deserializer, as they follow its number in a message."""
    files = ", ".join(part.files) if isinstance(part, ReadsFiles) else ""
    return f" ({files})" if files else ""


def _lengths(table: SequenceTable, sequences: np.ndarray) -> np.ndarray:
    return np.full(len(sequences), table.lengths[0]) if len(table.lengths) == 1 else table.lengths[sequences]


def _find(primary: SequenceTable, part: Deserializer, number: int) -> np.ndarray:
    """Sequences of a deserializer with the keys of `primary`, int64[N]; -1 where there is none."""
    count, table = primary.num_sequences, part.table
    if number == 0:
        return np.arange(count)
    mine = primary.key(np.arange(count))
    theirs = table.key(np.arange(table.num_sequences))
    order = np.argsort(theirs, kind="stable")
    ordered = theirs[order]
    repeated = np.flatnonzero(ordered[1:] == ordered[:-1])
    if len(repeated):
        raise DataError(
            f"Sequence id {table.names(order[repeated[:1]])[0]} occurs more than once in deserializer {number + 1}"
            f"{_read_from(part)}, so sequences cannot be joined by it.",
            hint="the lines of a sequence must follow one another",
        )
    places = np.minimum(np.searchsorted(ordered, mine), len(ordered) - 1)
    return np.where(ordered[places] == mine, order[places], -1)
