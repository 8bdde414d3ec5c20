"""CNTK binary format (CBF): written chunk by chunk, the directory at the end."""

from __future__ import annotations

import struct
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import IO, Any

import numpy as np

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.cntk_config.base.writing import atomic_write
from cntkpy.readers.common.sequences import starts_of
from cntkpy.readers.data_api.factories import to_section
from cntkpy.readers.formats.cbf.deserializer import MAGIC, TYPES, VERSION, CBFDeserializer
from cntkpy.readers.streams import DTYPES

from .batches import Batch, Stream, class_numbers, one_hot
from .sources import Input, from_reader, single
from .targets import Target

CHUNK = 32 << 20
"""Bytes of a chunk, about."""


def from_cbf(paths: Sequence[str], streams: Sequence[Stream], precision: str = "float") -> Input:
    """Return a file in CNTK binary format, with the element type that it has."""
    from cntkpy.readers.registry import create_reader

    path = single(paths, "CNTK binary format")
    try:
        CBFDeserializer(path, DTYPES[precision])
    except UserError as error:
        if "precision=" not in str(error.hint):
            raise
        precision = "double" if precision == "float" else "float"
    parts = [{"type": "CNTKBinaryFormatDeserializer", "file": path}]
    return from_reader(create_reader(to_section({"randomize": False, "deserializers": parts}), precision), precision)


class CBFTarget:
    """Sequences in chunks of about 32 MB; keys become running numbers."""

    def __init__(self, file: IO[bytes], streams: Sequence[Stream], precision: str):
        self._file, self._streams, self._type = file, streams, TYPES[precision == "double"]
        self._lengths: list[np.ndarray] = []
        self._data: list[list[bytes]] = [[] for _ in streams]
        self._size = 0
        self._chunks: list[tuple[int, int, int]] = []
        file.write(struct.pack("<QI", MAGIC, VERSION))

    def write(self, batch: Batch) -> None:
        """Add some sequences."""
        lengths = np.max([batch.parts[s.name].lengths for s in self._streams], axis=0)
        self._lengths.append(lengths)
        for s, data in zip(self._streams, self._data, strict=True):
            rows = batch.parts[s.name].rows
            if s.form == "class" and isinstance(rows, np.ndarray):
                rows = one_hot(class_numbers(rows, s.name), s)
            ends = starts_of(batch.parts[s.name].lengths).tolist()
            for begin, end in pairwise(ends):
                data.append(self._record(rows[begin:end], end - begin))
                self._size += len(data[-1])
        if self._size >= CHUNK:
            self._flush()

    def _record(self, rows: Any, count: int) -> bytes:
        if isinstance(rows, np.ndarray):
            return struct.pack("<I", count) + rows.astype(self._type).tobytes()
        parts = (rows.data.astype(self._type), rows.indices.astype("<i4"), np.diff(rows.indptr).astype("<i4"))
        return struct.pack("<Ii", count, len(rows.data)) + b"".join(part.tobytes() for part in parts)

    def _flush(self) -> None:
        if not self._lengths:
            return
        lengths = np.concatenate(self._lengths)
        self._chunks.append((self._file.tell(), len(lengths), int(lengths.sum())))
        self._file.write(lengths.astype("<u4").tobytes())
        for data in self._data:
            self._file.writelines(data)
            data.clear()
        self._lengths, self._size = [], 0

    def finish(self) -> None:
        """Write the directory."""
        self._flush()
        position = self._file.tell()
        self._file.write(struct.pack("<QII", MAGIC, len(self._chunks), len(self._streams)))
        for s in self._streams:
            name = s.name.encode("utf-8")
            self._file.write(struct.pack("<BI", s.form != "dense", len(name)) + name)
            self._file.write(struct.pack("<BI", TYPES.index(self._type), s.dim))
        for chunk in self._chunks:
            self._file.write(struct.pack("<qII", *chunk))
        self._file.write(struct.pack("<q", position))


@contextmanager
def to_cbf(path: str, streams: Sequence[Stream], source: Input) -> Generator[Target]:
    """A file in CNTK binary format."""
    with atomic_write(path) as file:
        target = CBFTarget(file, streams, source.precision)
        yield target
        target.finish()
