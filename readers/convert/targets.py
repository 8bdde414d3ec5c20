"""Files written piece by piece: CNTK text format, columns of numbers, numpy archives."""

from __future__ import annotations

import io
import shutil
import tempfile
import zipfile
from collections.abc import Sequence
from itertools import pairwise
from typing import IO, Any, Protocol

import numpy as np

from cntk_config.diagnostics import UserError

from .batches import Batch, Stream, as_dense, class_numbers


class Target(Protocol):
    """A file that is being written."""

    def write(self, batch: Batch) -> None:
        """Add some sequences."""
        ...

    def finish(self) -> None:
        """Write what remains."""
        ...


def numbers(values: np.ndarray) -> list[str]:
    """Numbers as text, in as few digits as read back the same."""
    if not np.isfinite(values).all():
        raise UserError("inf and nan cannot be written as text", hint="write an .npz archive", kind="NotFinite")
    if values.dtype.kind in "iu" or ((values == np.floor(values)) & (np.abs(values) < 1e15)).all():
        return list(map(str, values.astype(np.int64).tolist()))
    texts = map(repr, values.tolist()) if values.dtype == np.float64 else values.astype("U24").tolist()
    return [text.removesuffix(".0") for text in texts]


class CTFTarget:
    """CNTK text format. Every line has an id; text ids become running numbers."""

    def __init__(self, file: IO[bytes], streams: Sequence[Stream]):
        self._file, self._streams, self._count = file, streams, 0

    def write(self, batch: Batch) -> None:
        """Add some sequences."""
        texts = [(s.name, self._samples(batch.parts[s.name].rows)) for s in self._streams]
        bounds = [np.concatenate([[0], np.cumsum(batch.parts[s.name].lengths)]).tolist() for s in self._streams]
        lines = []
        for i in range(len(batch.parts[self._streams[0].name].lengths)):
            key = batch.keys[i] if len(batch.keys) and not isinstance(batch.keys[i], str) else self._count
            self._count += 1
            for step in range(max(b[i + 1] - b[i] for b in bounds)):
                line = str(key)
                for (name, samples), b in zip(texts, bounds, strict=True):
                    if b[i] + step < b[i + 1]:
                        line += f" |{name} {samples[b[i] + step]}"
                lines.append(line)
        if lines:
            self._file.write(("\n".join(lines) + "\n").encode("latin-1"))

    @staticmethod
    def _samples(rows: Any) -> list[str]:
        if isinstance(rows, np.ndarray):
            texts, dim = numbers(rows.reshape(-1)), rows.shape[1]
            return [" ".join(texts[at : at + dim]) for at in range(0, len(texts), dim)]
        pairs = [f"{i}:{v}" for i, v in zip(rows.indices.tolist(), numbers(rows.data), strict=True)]
        return [" ".join(pairs[a:b]) for a, b in pairwise(rows.indptr.tolist())]

    def finish(self) -> None:
        """Nothing remains."""


class UCITarget:
    """A line of numbers per sample: the streams side by side; classes are one number, sparse streams written out."""

    def __init__(self, file: IO[bytes], streams: Sequence[Stream]):
        self._file, self._streams = file, streams

    def write(self, batch: Batch) -> None:
        """Add some sequences, sample by sample."""
        parts = [batch.parts[s.name] for s in self._streams]
        if any(not np.array_equal(part.lengths, parts[0].lengths) for part in parts):
            raise UserError(
                "streams of different lengths cannot stand side by side in columns", kind="DifferentLengths",
                hint="write CNTK text format or an .npz archive",
            )  # fmt: skip
        columns = []
        for s, part in zip(self._streams, parts, strict=True):
            values = class_numbers(part.rows, s.name)[:, None] if s.form == "class" else as_dense(part.rows)
            texts, dim = numbers(values.reshape(-1)), values.shape[1]
            columns.append([" ".join(texts[at : at + dim]) for at in range(0, len(texts), dim)])
        lines = [" ".join(row) for row in zip(*columns, strict=True)]
        if lines:
            self._file.write(("\n".join(lines) + "\n").encode("ascii"))

    def finish(self) -> None:
        """Nothing remains."""


class _Growing:
    """A one- or two-dimensional array that grows in a temporary file."""

    def __init__(self, width: tuple[int, ...] = ()):
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the array
        self._width, self._count, self._dtype = width, 0, np.dtype(np.float32)

    def append(self, rows: np.ndarray) -> None:
        self._dtype = rows.dtype
        self._count += len(rows)
        self._file.write(np.ascontiguousarray(rows).data)

    def store(self, archive: zipfile.ZipFile, name: str) -> None:
        header = io.BytesIO()
        about = {"descr": self._dtype.str, "fortran_order": False, "shape": (self._count, *self._width)}
        np.lib.format.write_array_header_1_0(header, about)
        self._file.seek(0)
        with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
            member.write(header.getvalue())
            shutil.copyfileobj(self._file, member, 1 << 20)
        self._file.close()


class NpzTarget:
    """A numpy archive: `name` (samples, dim), or `name.data`, `.indices`, `.indptr`, `.shape` of sparse rows, or
    int64 `name` (samples,) of classes; `name.lengths` int64 if a sequence is longer than one sample; `keys`."""

    def __init__(self, file: IO[bytes], streams: Sequence[Stream]):
        self._file, self._streams = file, streams
        self._arrays: dict[str, _Growing] = {"keys": _Growing()}
        self._samples = dict.fromkeys((s.name for s in streams), 0)
        self._longer = {s.name: False for s in streams}
        self._entries = dict(self._samples)
        self._count = 0

    def _add(self, name: str, rows: np.ndarray, width: tuple[int, ...] = ()) -> None:
        self._arrays.setdefault(name, _Growing(width)).append(rows)

    def write(self, batch: Batch) -> None:
        """Add some sequences."""
        n = len(batch.parts[self._streams[0].name].lengths)
        numbered = len(batch.keys) and not isinstance(batch.keys[0], str)
        keys = batch.keys if numbered else range(self._count, self._count + n)
        self._add("keys", np.array(list(keys), np.uint64))
        self._count += n
        for s in self._streams:
            part = batch.parts[s.name]
            self._add(f"{s.name}.lengths", part.lengths.astype(np.int64))
            self._longer[s.name] |= bool((part.lengths != 1).any())
            if s.form == "class":
                self._add(s.name, class_numbers(part.rows, s.name).astype(np.int64))
            elif isinstance(part.rows, np.ndarray):
                self._add(s.name, part.rows, (part.rows.shape[1],))
            else:
                if f"{s.name}.indptr" not in self._arrays:
                    self._add(f"{s.name}.indptr", np.zeros(1, np.int64))
                self._add(f"{s.name}.data", part.rows.data)
                self._add(f"{s.name}.indices", part.rows.indices.astype(np.int32))
                self._add(f"{s.name}.indptr", part.rows.indptr[1:].astype(np.int64) + self._entries[s.name])
                self._entries[s.name] += len(part.rows.data)
            self._samples[s.name] += part.rows.shape[0]

    def finish(self) -> None:
        """Put the arrays into the archive."""
        for s in self._streams:
            if f"{s.name}.indptr" in self._arrays:
                self._add(f"{s.name}.shape", np.array([self._samples[s.name], s.dim], np.int64))
            if not self._longer[s.name]:
                self._arrays.pop(f"{s.name}.lengths", None)
        with zipfile.ZipFile(self._file, "w") as archive:
            for name, array in self._arrays.items():
                array.store(archive, name)


TARGETS: dict[str, Any] = {"ctf": CTFTarget, "uci": UCITarget, "npz": NpzTarget}
