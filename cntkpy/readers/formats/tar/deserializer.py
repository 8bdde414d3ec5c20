"""Members of tar shards as streams: a sample is a sequence; a run of samples of one shard is a chunk."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence

import numpy as np

from cntkpy.cntk_config.base.diagnostics import printable
from cntkpy.readers.common.chunk import Chunk, StreamData, dense_stream
from cntkpy.readers.common.chunk_cache import bytes_of
from cntkpy.readers.common.corpus import Corpus
from cntkpy.readers.common.labels import load_labels
from cntkpy.readers.common.notices import ABOUT_DATA
from cntkpy.readers.common.sequences import SequenceTable, starts_of
from cntkpy.readers.errors import DataError
from cntkpy.readers.formats.image.decode import PictureError
from cntkpy.readers.streams import StreamInformation

from .shards import Shards
from .values import Malformed, MemberStream, samples_of

log = logging.getLogger("cntkpy.readers")
ENTRY_BYTES, SAMPLE_BYTES = 8, 24
"""Bytes of a class with its index, and of the place of a sample."""


def keys_of(shards: Shards, corpus: Corpus, *, primary: bool) -> np.ndarray:
    """Return the keys of samples, uint64[N]: the names of members without their endings.

    Where keys are numbers (000123), but these are not, or two of them are the same number (007 and 7), keys are texts
    from now on.

    Raises:
        DataError: another deserializer came first, whose keys are numbers.
    """
    if len(set(shards.keys)) < len(shards.keys):
        key = next(key for key, count in Counter(shards.keys).items() if count > 1)
        text = "%s: two samples are called '%s'; both are read."
        log.warning(text, shards.files[0], printable(key), extra=ABOUT_DATA)
    if corpus.numeric and primary and not all(key.isascii() and key.isdigit() for key in shards.keys):
        corpus.numeric = False
    try:
        return corpus.numbers(shards.keys)
    except DataError as error:
        if not primary:
            raise DataError(
                f"{shards.files[0]}: {error.message}; keys are the names of samples.",
                path=shards.files[0],
                hint="add useNumericSequenceKeys=false to the reader if keys are texts",
            ) from None
        log.warning("%s: %s, so keys are taken as texts.", shards.files[0], error.message)
        corpus.numeric = False
        return corpus.numbers(shards.keys)


class TarValues:
    """The streams of numbers of shards. Loading is safe from several threads.

    Args:
        shards: where the members lie.
        columns: for each stream its number among the streams of the shards.
        streams: what the members are.
        table: the samples; its lengths are those of `lengths_of`.
        dtype: of the values.

    Raises:
        DataError: of the methods, a member is malformed.
    """

    def __init__(
        self,
        shards: Shards,
        columns: Sequence[int],
        streams: Sequence[MemberStream],
        table: SequenceTable,
        dtype: np.dtype | type = np.float32,
    ) -> None:
        self.dtype = np.dtype(dtype)
        self.shards, self._columns, self._streams, self.table = shards, list(columns), list(streams), table
        self.streams = [StreamInformation(s.name, (s.dim,), s.sparse, self.dtype) for s in streams]
        self.whole_chunks = shards.packed
        self.defines_mb_size = any(s.defines_mb_size for s in streams)
        width = sum(ENTRY_BYTES if s.sparse else s.dim * self.dtype.itemsize for s in streams)
        self.chunk_bytes = np.diff(table.chunk_starts) * (width + SAMPLE_BYTES * len(streams))

    @property
    def files(self) -> list[str]:
        """The archives."""
        return self.shards.files

    def load_chunk(self, chunk: int) -> Chunk:
        """Return all samples of a chunk."""
        return self.load_sequences(self.table.of_chunk(chunk))

    def load_sequences(self, sequences: np.ndarray) -> Chunk:
        """Return these samples, in the given order."""
        numbers = sequences.tolist()
        streams: dict[str, StreamData] = {}
        for column, stream in zip(self._columns, self._streams, strict=True):
            members = [read_member(self.shards, number, column, stream, self.dtype) for number in numbers]
            streams[stream.name] = _stream_data(members, stream, self.dtype)
        chunk = Chunk(streams)
        chunk.nbytes = bytes_of(chunk)
        return chunk

    def close(self) -> None:
        """Close the archives."""
        self.shards.close()


class TarPictures:
    """The pictures of shards as a listing of `Pictures`."""

    def __init__(self, shards: Shards, column: int, keys: np.ndarray) -> None:
        self._shards, self._column = shards, column
        self.keys: np.ndarray | None = keys
        self.classes: np.ndarray | None = None
        self.path = shards.files[0]

    def __len__(self) -> int:
        return len(self._shards.keys)

    @property
    def files(self) -> list[str]:
        """The archives."""
        return self._shards.files

    def name(self, record: int) -> str:
        """Return the name of the member."""
        return self._shards.name(record, self._column)

    def place(self, record: int) -> str:
        """Return the archive and the byte in it."""
        return f"{self._shards.path(record)}, byte {self._shards.offset[record, self._column]}"

    def source(self, record: int) -> tuple[str, int | None]:
        """Return the archive; a member has no line."""
        return self._shards.path(record), None

    def encoded(self, record: int) -> bytes:
        """Return the bytes of a picture."""
        size = int(self._shards.size[record, self._column])
        try:
            return self._shards.member(record, self._column)
        except DataError as error:
            raise PictureError(f"its {size} bytes cannot be read: {error.message}", hint=error.hint) from None

    def close(self) -> None:
        """Close the archives."""
        self._shards.close()


def read_member(shards: Shards, sample: int, column: int, stream: MemberStream, dtype: np.dtype) -> np.ndarray:
    """Return the samples of a member, see `samples_of`; an error names the archive, the member and its byte."""
    data = shards.member(sample, column)
    several = stream.endings
    ending = several[0] if len(several) == 1 else shards.name(sample, column).rpartition("/")[2].partition(".")[2]
    try:
        return samples_of(data, stream, ending.lower(), dtype)
    except Malformed as error:
        raise shards.error(sample, column, str(error), error.hint) from None


def lengths_of(shards: Shards, columns: Sequence[int], streams: Sequence[MemberStream], dtype: np.dtype) -> np.ndarray:
    """Return the lengths of sequences, int32 as in SequenceTable. Members are read where they can have several
    samples.
    """
    defining = [(c, s) for c, s in zip(columns, streams, strict=True) if s.defines_mb_size]
    varying = [(c, s) for c, s in defining or zip(columns, streams, strict=True) if not s.one_sample]
    if not varying:
        return np.ones(1, np.int32)
    longest = np.ones(len(shards.keys), np.int32)
    for column, stream in varying:
        for sample in range(len(longest)):
            longest[sample] = max(longest[sample], len(read_member(shards, sample, column, stream, dtype)))
    return longest[:1] if (longest == longest[0]).all() else longest


def number_classes(stream: MemberStream) -> None:
    """Give the classes of a stream the numbers of the lines of their file."""
    if stream.listed is None:
        return
    names = load_labels(stream.listed).mapping()
    if len(names) > stream.dim:
        message = f"{stream.listed} lists {len(names)} classes, but the dimension of {stream.name} is {stream.dim}."
        raise DataError(message, path=stream.listed, hint=f"write dim = {len(names)}")
    stream.classes.update({name: number for number, name in names.items()})


def _stream_data(arrays: Sequence[np.ndarray], stream: MemberStream, dtype: np.dtype) -> StreamData:
    bounds = starts_of([len(array) for array in arrays])
    if not stream.sparse:
        rows = np.concatenate(arrays) if arrays else np.empty((0, stream.dim), dtype)
        return dense_stream(rows, bounds)
    indices = np.concatenate(arrays) if arrays else np.empty(0, np.int32)
    n = len(indices)
    return StreamData(stream.dim, np.ones(n, dtype), np.arange(n), bounds, np.ones(n, np.int32), indices)
