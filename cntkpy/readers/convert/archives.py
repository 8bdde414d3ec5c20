"""Numpy archives (.npz), read and written piece by piece."""

from __future__ import annotations

import io
import math
import shutil
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any

import numpy as np

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.cntk_config.base.files import open_input
from cntkpy.cntk_config.base.writing import atomic_write
from cntkpy.readers.common.sparse import is_dense

from .batches import Batch, Part, Stream, class_numbers, one_hot
from .sources import Input, batch_size, single
from .targets import Target

_BROKEN = (OSError, EOFError, ValueError, KeyError, RuntimeError, struct.error, zipfile.BadZipFile, zlib.error)
"""Exceptions that reading a damaged archive may raise."""
_MOST = 1 << 60


class _Member:
    """An array of an .npz archive, read from front to back."""

    def __init__(self, archive: zipfile.ZipFile, name: str, kinds: str = "fiub"):
        self.name = name
        try:
            self._file: IO[bytes] = archive.open(f"{name}.npy")
            version = np.lib.format.read_magic(self._file)
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            self.shape, fortran, self.dtype = read(self._file)
        except _BROKEN as error:
            raise UserError("BadArchive", f"array '{name}' cannot be read: {error}") from None
        if any(n < 0 for n in self.shape) or math.prod((*self.shape, self.dtype.itemsize)) > _MOST:
            raise UserError("BadArchive", f"array '{name}' claims the shape {self.shape}")
        if self.dtype.kind not in kinds or not self.shape:
            reason = f"of {self.dtype}" if self.shape else "a single number"
            raise UserError("BadArchive", f"array '{name}' is {reason}, not an array of numbers with a row per sample")
        if fortran and len(self.shape) > 1:
            raise UserError(
                "BadArchive",
                f"array '{name}' is in Fortran order, so it cannot be read row by row",
                hint="save it as numpy.ascontiguousarray(...)",
            )
        self.row = int(np.prod(self.shape[1:], dtype=np.int64))

    def read(self, count: int) -> np.ndarray:
        """Return the next `count` rows."""
        size = count * self.row * self.dtype.itemsize
        try:
            data = self._file.read(size)
        except _BROKEN as error:
            raise UserError("BadArchive", f"array '{self.name}' cannot be read: {error}") from None
        if len(data) != size:
            raise UserError("BadArchive", f"array '{self.name}' is shorter than its shape says")
        return np.frombuffer(data, self.dtype).reshape(count, *self.shape[1:])


def from_npz(paths: Sequence[str], streams: Sequence[Stream], precision: str = "float") -> Input:
    """Return an archive as `NpzTarget` writes it: for each stream `name`, or `name.data`, `.indices`, `.indptr`,
    `.shape` of sparse rows; `name.lengths` if sequences are longer than one sample; `keys`. One-dimensional arrays
    are classes if `name.classes` or the caller says how many there are, else streams of dimension 1."""
    path = single(paths, "a numpy archive")
    try:
        open_input(path).close()  # a pipe or a device is refused
        archive = zipfile.ZipFile(path)
        members = {name.removesuffix(".npy") for name in archive.namelist()}
        chosen = {s.name: s for s in streams}
        archives = [
            _open(archive, name, chosen.get(name)) for name in _streams_of(members) if not chosen or name in chosen
        ]
    except _BROKEN as error:
        raise UserError("BadArchive", f"{path} cannot be read as a numpy archive: {error}") from error
    missing = set(chosen) - {archive_stream.stream.name for archive_stream in archives}
    if missing or not archives:
        raise UserError("BadArchive", f"{path} has no stream {', '.join(sorted(missing))}")
    counts = {item.sequences for item in archives}
    if len(counts) > 1:
        raise UserError("BadArchive", f"the streams of {path} have different numbers of sequences: {counts}")
    keys = _Member(archive, "keys", "uiU") if "keys" in members else None
    if keys is not None and keys.shape != (archives[0].sequences,):
        raise UserError("BadArchive", f"{path} has keys of shape {keys.shape} for {archives[0].sequences} sequences")
    double = any(item.data.dtype == np.float64 for item in archives)
    samples = max(item.samples for item in archives)
    streams = [item.stream for item in archives]
    return Input(streams, _archived(archives, keys), samples, precision="double" if double else "float")


def _streams_of(members: set[str]) -> list[str]:
    return sorted(
        {name.removesuffix(".data") for name in members if name.endswith(".data")}
        | {name for name in members if "." not in name and name != "keys"}
    )


class _open:
    """One stream of an archive."""

    def __init__(self, archive: zipfile.ZipFile, name: str, wanted: Stream | None):
        self.sparse = f"{name}.data.npy" in archive.namelist()
        self.lengths = _Member(archive, f"{name}.lengths") if f"{name}.lengths.npy" in archive.namelist() else None
        if self.sparse:
            self.data, self.indices, self.indptr = (
                _Member(archive, f"{name}.{part}") for part in ("data", "indices", "indptr")
            )
            samples, dim = _Member(archive, f"{name}.shape").read(2).tolist()
            self.indptr.read(1)
            self._last = 0
        else:
            self.data = _Member(archive, name)
            samples, dim = self.data.shape[0], self.data.row
        form = "sparse" if self.sparse else "dense"
        if wanted is not None and wanted.form == "class" and not self.sparse and dim == 1:  # else a row has a single 1
            form, dim = "class", wanted.dim
        elif wanted is None and f"{name}.classes.npy" in archive.namelist():
            form, dim = "class", int(_Member(archive, f"{name}.classes", "iu").read(1).flat[0])
            if not 0 < dim < 2**31:
                raise UserError("BadArchive", f"array '{name}.classes' says that there are {dim} classes")
        self.stream, self.samples = Stream(name, int(dim), form), int(samples)
        self.done = 0
        """Samples that were read so far."""
        self.sequences = self.samples if self.lengths is None else self.lengths.shape[0]

    def read(self, sequences: int) -> Part:
        """Return the next sequences."""
        lengths = (
            np.ones(sequences, np.int64) if self.lengths is None else self.lengths.read(sequences).astype(np.int64)
        )
        if (lengths < 0).any():
            raise UserError("BadArchive", f"a length of '{self.stream.name}' is negative")
        count = int(lengths.sum())
        self.done += count
        if not self.sparse:
            rows = self.data.read(count).reshape(count, -1)
            if self.stream.form == "class":
                return Part(one_hot(rows[:, 0], self.stream), lengths)
            return Part(rows if rows.dtype.kind == "f" else rows.astype(np.float32), lengths)
        import scipy.sparse  # pyright: ignore[reportMissingTypeStubs]

        ends = np.concatenate([[self._last], self.indptr.read(count)]).astype(np.int64)
        entries = int(ends[-1] - ends[0])
        self._last = int(ends[-1])
        parts = self.data.read(entries), self.indices.read(entries).astype(np.int32), ends - ends[0]
        return Part(scipy.sparse.csr_matrix(parts, shape=(count, self.stream.dim)), lengths)


def _archived(result: Sequence[_open], keys: _Member | None) -> Iterator[Batch]:
    done, count, size = 0, result[0].sequences, batch_size([item.stream for item in result])
    while done < count:
        n = min(size, count - done)
        names = _checked(keys.read(n)) if keys is not None else range(done, done + n)
        yield Batch(names, {item.stream.name: item.read(n) for item in result})
        done += n
    for item in result:
        if item.done != item.samples:
            raise UserError(
                "BadArchive",
                f"the lengths of '{item.stream.name}' make {item.done} samples, but there are {item.samples}",
            )


def _checked(keys: np.ndarray) -> list[Any]:
    if keys.dtype.kind == "i" and (keys < 0).any():
        raise UserError("BadArchive", f"{keys[keys < 0][0]} is not a key: keys are texts, or numbers from 0 on")
    return keys.tolist()


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


class _Names:
    """A one-dimensional array of texts that grows in a temporary file."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the array
        self._count = self._longest = 0

    def append(self, names: Sequence[str]) -> None:
        self._count += len(names)
        self._longest = max(self._longest, *map(len, names)) if names else self._longest
        self._file.writelines(name.encode("utf-8", "surrogatepass") + b"\n" for name in names)

    def store(self, archive: zipfile.ZipFile, name: str) -> None:
        header, dtype = io.BytesIO(), np.dtype(f"U{max(1, self._longest)}")
        about = {"descr": dtype.str, "fortran_order": False, "shape": (self._count,)}
        np.lib.format.write_array_header_1_0(header, about)
        self._file.seek(0)
        with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
            member.write(header.getvalue())
            for line in self._file:
                member.write(np.array([line[:-1].decode("utf-8", "surrogatepass")], dtype).tobytes())
        self._file.close()


class NpzTarget:
    """A numpy archive: `name` (samples, dim), or `name.data`, `.indices`, `.indptr`, `.shape` of sparse rows, or
    int64 `name` (samples,) of classes and their number `name.classes` (1,); `name.lengths` int64 if a sequence is
    longer than one sample; `keys`, numbers or texts."""

    def __init__(self, file: IO[bytes], streams: Sequence[Stream]):
        self._file, self._streams = file, streams
        self._arrays: dict[str, _Growing] = {}
        self._names = _Names()
        self._samples = dict.fromkeys((s.name for s in streams), 0)
        self._longer = {s.name: False for s in streams}
        self._entries = dict(self._samples)
        self._count = 0

    def _add(self, name: str, rows: np.ndarray, width: tuple[int, ...] = ()) -> None:
        self._arrays.setdefault(name, _Growing(width)).append(rows)

    def write(self, batch: Batch) -> None:
        """Add some sequences."""
        n = len(batch.parts[self._streams[0].name].lengths)
        if len(batch.keys) and isinstance(batch.keys[0], str):
            self._names.append([str(key) for key in batch.keys])
        else:
            keys = batch.keys if len(batch.keys) else range(self._count, self._count + n)
            self._add("keys", np.array(list(keys), np.uint64))
        self._count += n
        for s in self._streams:
            part = batch.parts[s.name]
            self._add(f"{s.name}.lengths", part.lengths.astype(np.int64))
            self._longer[s.name] |= bool((part.lengths != 1).any())
            if s.form == "class":
                self._add(s.name, class_numbers(part.rows, s.name).astype(np.int64))
            elif is_dense(part.rows):
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
            if s.form == "class":
                self._add(f"{s.name}.classes", np.array([s.dim], np.int64))
            if not self._longer[s.name]:
                self._arrays.pop(f"{s.name}.lengths", None)
        with zipfile.ZipFile(self._file, "w") as archive:
            for name, array in self._arrays.items():
                array.store(archive, name)
            if "keys" not in self._arrays:
                self._names.store(archive, "keys")


@contextmanager
def to_npz(path: str, streams: Sequence[Stream], source: Input) -> Generator[Target]:
    """An archive."""
    with atomic_write(path) as file:
        target = NpzTarget(file, streams)
        yield target
        target.finish()
