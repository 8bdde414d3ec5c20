"""CNTK's binary format (CBF), its deserializer and its reader: chunks of sequences with a directory at the end.

Everything is little-endian. The file begins with MAGIC (u64) and VERSION (u32), then come the chunks, then the header:
MAGIC, number of chunks and of streams (u32), for each stream kind (u8: 0 dense, 1 sparse), name (u32 length, bytes),
element type (u8: 0 float32, 1 float64) and dimension (u32), for each chunk its place (i64), sequences and samples
(u32). The last eight bytes are the place of the header. A chunk has the nominal length of every sequence (u32), then
stream by stream the sequences: dense u32 n, n*dim values; sparse u32 n, i32 nnz, values, i32 indices, i32 counts[n].
"""

from __future__ import annotations

import logging
import struct
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cntkpy.cntk_config.base.files import open_input
from cntkpy.cntk_config.parameters import ConfigParameters
from cntkpy.readers.common.beginnings import current
from cntkpy.readers.common.chunk import Chunk, StreamData
from cntkpy.readers.common.sequences import SequenceTable, starts_of
from cntkpy.readers.common.threads import threads_for
from cntkpy.readers.errors import DataError
from cntkpy.readers.formats.binary.format import CLOSED
from cntkpy.readers.formats.cbf.parameters import CBFParameters, CBFReaderParameters
from cntkpy.readers.parameters import check_precision
from cntkpy.readers.streams import DTYPES, StreamInformation

if TYPE_CHECKING:
    from cntkpy.readers.reader import Reader
    from cntkpy.readers.registry import Setting

log = logging.getLogger("cntkpy.readers")
MAGIC, VERSION = 0x636E746B5F62696E, 1
OF_BINARY_WRITER = struct.pack("<H", CLOSED)
"""Magic bytes of files from BinaryWriter, and from `convert` by default where OUTPUT ends in .bin."""
TYPES = (np.dtype("<f4"), np.dtype("<f8"))


class Record(NamedTuple):
    """One sequence of one stream; counts and indices only if it is sparse."""

    values: np.ndarray
    counts: np.ndarray | None = None
    indices: np.ndarray | None = None


class CBFDeserializer:
    """A file in CNTK binary format. names: new names of streams by those in the file."""

    defines_mb_size = False

    def __init__(self, path: str, dtype: np.dtype | type = np.float32, names: Mapping[str, str] | None = None):
        self.path, self.dtype = path, np.dtype(dtype)
        try:
            with open_input(path) as file:
                self._size = file.seek(0, 2)
            self._read_header(names or {})
        except OSError as error:
            raise DataError(
                f"The input file ({path}) cannot be read: {error.strerror or error}", path=path, hint="check 'file'"
            ) from None
        except DataError:
            raise
        except (struct.error, ValueError, UnicodeDecodeError):
            raise self._damaged("its header is cut short") from None

    @property
    def files(self) -> list[str]:
        """The file that is read."""
        return [self.path]

    def _damaged(self, problem: str, hint: str | None = None) -> DataError:
        return DataError(f"{self.path} is not a file in CNTK binary format: {problem}.", path=self.path, hint=hint)

    def _bytes(self, begin: int, end: int) -> bytes:
        with open_input(self.path) as file:
            file.seek(begin)
            return file.read(end - begin)

    def _read_header(self, names: Mapping[str, str]) -> None:
        if self._bytes(0, 12) != struct.pack("<QI", MAGIC, VERSION):
            of_writer = self._bytes(0, 2) == OF_BINARY_WRITER
            reason = "it is one of BinaryWriter" if of_writer else "it does not begin as one of version 1 does"
            advice = "read it with readerType=BinaryReader, or " if of_writer else ""
            raise self._damaged(reason, f"{advice}write one: cntkpy convert INPUT {self.path} --to cbf")
        (self._end,) = struct.unpack("<q", self._bytes(self._size - 8, self._size))
        if not 12 <= self._end < self._size:
            raise self._damaged("the place of its header is missing at the end")
        header = self._bytes(self._end, self._size - 8)
        magic, chunks, count = struct.unpack_from("<QII", header)
        if magic != MAGIC:
            raise self._damaged("its header is damaged")
        position = 16
        known: list[str] = []
        self.streams: list[StreamInformation] = []
        for _ in range(count):
            kind, size = struct.unpack_from("<BI", header, position)
            name = header[position + 5 : position + 5 + size].decode("utf-8")
            element, dim = struct.unpack_from("<BI", header, position + 5 + size)
            position += size + 10
            if kind > 1 or element > 1 or not 0 < dim < 2**31:
                raise self._damaged(f"the stream '{name}' is neither dense nor sparse, or has no values")
            if TYPES[element] != self.dtype:
                raise DataError(
                    f"{self.path}: the stream '{name}' has elements of {TYPES[element].name}, not {self.dtype.name}",
                    path=self.path,
                    hint=f"read it with precision={'double' if element else 'float'}",
                )
            known.append(name)
            self.streams.append(StreamInformation(names.get(name, name), (dim,), kind == 1, self.dtype))
        for name, new in names.items():
            if name not in known and new not in known:
                text = f"'{name}'" if name == new else f"'{name}', which was to be called '{new}'"
                log.warning("%s has no stream %s; there are: %s", self.path, text, ", ".join(known))
        self._read_directory(np.frombuffer(header, "<i8,<u4,<u4", chunks, position))

    def _read_directory(self, chunks: np.ndarray) -> None:
        places, counts = chunks["f0"], chunks["f1"].astype(np.int64)
        self._places = np.append(places, self._end)
        if not len(chunks) or not self.streams or (np.diff(self._places) < 4 * counts).any() or places[0] < 12:
            raise self._damaged("its directory of chunks is damaged")
        if (limits := current()) is not None and (count := int((np.cumsum(counts) < limits.records).sum()) + 1) < len(
            counts
        ):
            limits.cut[self.path] = None
            places, counts, self._places = places[:count], counts[:count], self._places[: count + 1]
        first = starts_of(counts)
        lengths = [np.frombuffer(self._bytes(p, p + 4 * n), "<u4") for p, n in zip(places, counts, strict=True)]
        every = np.concatenate(lengths)
        if not len(every) or not 0 < int(every.min()) <= int(every.max()) < 2**31:
            raise self._damaged("a sequence has no samples, or far too many")
        self.table = SequenceTable(first, every.astype(np.int32))
        self.chunk_bytes = np.diff(self._places)

    def load_chunk(self, chunk: int) -> Chunk:
        """Return all sequences of a chunk in order."""
        return self._assemble(self._records(chunk))

    def load_sequences(self, sequences: np.ndarray) -> Chunk:
        """Return these sequences, in the given order."""
        chunks = np.searchsorted(self.table.first, sequences, side="right") - 1
        result: list[list[Record]] = [[Record(np.empty(0))] * len(sequences) for _ in self.streams]
        for chunk in np.unique(chunks).tolist():
            records = self._records(chunk)
            for i in np.flatnonzero(chunks == chunk).tolist():
                for mine, theirs in zip(result, records, strict=True):
                    mine[i] = theirs[int(sequences[i] - self.table.first[chunk])]
        return self._assemble(result)

    def _records(self, chunk: int) -> list[list[Record]]:
        """Return the sequences of a chunk, stream by stream."""
        begin, end = self._places[chunk : chunk + 2].tolist()
        data, count = self._bytes(begin, end), int(np.diff(self.table.first)[chunk])
        position = 4 * count
        result: list[list[Record]] = []
        try:
            for stream in self.streams:
                records: list[Record] = []
                for _ in range(count):
                    record, position = self._record(data, position, stream)
                    records.append(record)
                result.append(records)
        except DataError:
            raise
        except (struct.error, ValueError):
            raise self._damaged(f"chunk {chunk} (at byte {begin}) is cut short") from None
        return result

    def _record(self, data: bytes, offset: int, stream: StreamInformation) -> tuple[Record, int]:
        size, little = self.dtype.itemsize, self.dtype.newbyteorder("<")
        if not stream.sparse:
            (n,) = struct.unpack_from("<I", data, offset)
            values = np.frombuffer(data, little, n * stream.dim, offset + 4)
            return Record(values), offset + 4 + n * stream.dim * size
        n, nnz = struct.unpack_from("<Ii", data, offset)
        if nnz < 0:  # NumPy would take all the rest
            raise ValueError("the number of values is negative")
        values = np.frombuffer(data, little, nnz, offset + 8)
        offset += 8 + nnz * size
        indices, counts = np.frombuffer(data, "<i4", nnz, offset), np.frombuffer(data, "<i4", n, offset + 4 * nnz)
        if (
            counts.sum() != nnz
            or counts.min(initial=0) < 0
            or (nnz and not 0 <= indices.min() <= indices.max() < stream.dim)
        ):
            raise ValueError("the indices are wrong")
        return Record(values, counts, indices), offset + 4 * (nnz + n)

    def _assemble(self, by_stream: Sequence[Sequence[Record]]) -> Chunk:
        return Chunk({s.name: self._stream(s, records) for s, records in zip(self.streams, by_stream, strict=True)})

    def _stream(self, s: StreamInformation, records: Sequence[Record]) -> StreamData:
        values = np.concatenate([record.values for record in records]).astype(self.dtype, copy=False)
        if not s.sparse:
            bounds = starts_of([len(record.values) // s.dim for record in records])
            return StreamData(s.dim, values, np.arange(int(bounds[-1])) * s.dim, bounds)
        counts = np.concatenate([record.counts for record in records if record.counts is not None]).astype(np.int32)
        indices = np.concatenate([record.indices for record in records if record.indices is not None])
        bounds = starts_of([len(record.counts) for record in records if record.counts is not None])
        starts = np.cumsum(counts, dtype=np.int64) - counts
        return StreamData(s.dim, values, starts, bounds, counts, indices.astype(np.int32))


def create_binary_reader(section: ConfigParameters, precision: str) -> Reader:
    """CNTKBinaryReader."""
    from cntkpy.readers.pipeline.source import Source, SourceOptions
    from cntkpy.readers.reader import Reader

    p = CBFReaderParameters(section)
    deserializer = CBFDeserializer(str(p.file), DTYPES[check_precision(section, precision)], p.names())
    options = SourceOptions(
        frame_mode=p.frame_mode,
        keep_in_memory=p.keep_in_memory,
        prefetch=p.prefetch,
        threads=threads_for(p.threads),
    )
    return Reader(Source(deserializer, p.timeline(deserializer), options))


def create_deserializer(section: ConfigParameters, setting: Setting) -> CBFDeserializer:
    """CNTKBinaryFormatDeserializer."""
    if not setting.primary:
        raise section.error(
            "type",
            "a file in CNTK binary format has no sequence ids, so it can only come first",
            "put it in front of the other deserializers",
        )
    p = CBFParameters(section)
    return CBFDeserializer(str(p.file), DTYPES[setting.precision], p.names())
