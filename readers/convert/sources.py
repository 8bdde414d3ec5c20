"""Files read piece by piece: CNTK text format, columns of numbers, numpy archives."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from cntk_config.diagnostics import UserError

from ..data_api.factories import to_section
from ..errors import DataError
from .batches import Batch, Part, Stream, batches_of, one_hot

BATCH = 4096


@dataclass
class Input:
    """Data to be converted: the streams, the pieces, and how many samples there are if that is known."""

    streams: Sequence[Stream]
    batches: Iterator[Batch]
    samples: int | None = None


def from_reader(reader: Any) -> Input:
    """What a reader gives, in its order."""
    streams = [Stream(s.name, s.dim, "sparse" if s.sparse else "dense") for s in reader.streams]
    return Input(streams, batches_of(reader, BATCH), getattr(reader, "samples_per_sweep", None) or None)


def from_ctf(path: str, streams: Sequence[Stream], precision: str = "float") -> Input:
    """A file in CNTK text format; without streams, those that are found in it."""
    from ..reader import create_reader

    streams = streams or find_streams(path)
    forms = {s.name: _form_of_classes(path, s.name) if s.form == "class" else s.form for s in streams}
    inputs = {s.name: {"dim": s.dim, "format": forms[s.name]} for s in streams}
    section = to_section({"file": path, "input": inputs, "randomize": False, "traceLevel": 0})
    found = from_reader(create_reader(section, precision))
    return Input(streams, found.batches, found.samples)


def from_uci(path: str, streams: Sequence[Stream], precision: str = "float") -> Input:
    """Columns of numbers between blanks: the streams stand side by side, in order."""
    from ..reader import create_reader

    if not streams:
        raise UserError(
            "text of columns does not say which columns are what", kind="NoStreams",
            hint="name the streams from left to right: --stream labels:10:class --stream features:784",
        )  # fmt: skip
    if any(s.form == "sparse" for s in streams):
        raise UserError("text of columns has no sparse streams", hint="read them as dense", kind="BadStream")
    widths = [1 if s.form == "class" else s.dim for s in streams]
    config = {"readerType": "UCIFastReader", "file": path, "randomize": "none", "columns": {"dim": sum(widths)}}
    found = from_reader(create_reader(to_section(config), precision))
    return Input(streams, _split(found.batches, streams, widths), found.samples)


def _split(batches: Iterator[Batch], streams: Sequence[Stream], widths: Sequence[int]) -> Iterator[Batch]:
    line = 0
    for batch in batches:
        (part,) = batch.parts.values()
        columns = np.split(part.rows, np.cumsum(widths)[:-1], axis=1)
        parts = {
            s.name: Part(one_hot(rows[:, 0], s) if s.form == "class" else np.ascontiguousarray(rows), part.lengths)
            for s, rows in zip(streams, columns, strict=True)
        }
        yield Batch(range(line, line + len(part.lengths)), parts)
        line += len(part.lengths)


def _form_of_classes(path: str, name: str) -> str:
    """How the vectors of a stream are written, by its first sample that has values."""
    try:
        with Path(path).open("rb") as file:
            for line in file:
                for sample in line.split(b"|")[1:]:
                    key, *values = sample.split()[:2] or [b""]
                    if key == name.encode() and values:
                        return "sparse" if b":" in values[0] else "dense"
    except OSError:
        pass
    return "sparse"


def find_streams(path: str) -> list[Stream]:
    """The streams of a text file, found by reading it: names, dimensions, dense or sparse."""
    dims: dict[str, int] = {}
    sparse: set[str] = set()
    try:
        with Path(path).open("rb") as file:
            for line in file:
                for sample in line.split(b"|")[1:]:
                    name, _, values = sample.partition(b" ")
                    key = name.strip().decode("latin-1")
                    if key.startswith("#") or not key:
                        continue
                    fields = values.split()
                    if b":" in values:
                        sparse.add(key)
                        size = 1 + max((int(f.partition(b":")[0]) for f in fields), default=0)
                    else:
                        size = len(fields)
                    dims[key] = max(dims.get(key, 1), size)
    except OSError as error:
        raise DataError(f"The input file ({path}) cannot be read: {error.strerror or error}", path=path) from None
    except ValueError:
        raise DataError(
            f"The streams of {path} cannot be found: it is malformed.", path=path, hint="name them with --stream"
        ) from None
    if not dims:
        raise DataError(
            f"{path} has no streams: is it CNTK text format?", path=path, hint="name its format with --from"
        )
    return [Stream(name, dim, "sparse" if name in sparse else "dense") for name, dim in dims.items()]


class _Member:
    """An array of an .npz archive, read from front to back."""

    def __init__(self, archive: zipfile.ZipFile, name: str):
        self.name = name
        self._file: IO[bytes] = archive.open(f"{name}.npy")
        version = np.lib.format.read_magic(self._file)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        self.shape, fortran, self.dtype = read(self._file)
        if self.dtype.hasobject or (fortran and len(self.shape) > 1):
            raise UserError(f"array '{name}' is not of plain numbers in C order", kind="BadArchive")
        self.row = int(np.prod(self.shape[1:], dtype=np.int64))

    def read(self, count: int) -> np.ndarray:
        """The next `count` rows."""
        size = count * self.row * self.dtype.itemsize
        data = self._file.read(size)
        if len(data) != size:
            raise UserError(f"array '{self.name}' is shorter than its shape says", kind="BadArchive")
        return np.frombuffer(data, self.dtype).reshape(count, *self.shape[1:])


def from_npz(path: str, streams: Sequence[Stream]) -> Input:
    """An archive as `targets.NpzTarget` writes it: for each stream `name`, or `name.data`, `.indices`, `.indptr`,
    `.shape` of sparse rows; `name.lengths` if sequences are longer than one sample; `keys`. One-dimensional arrays
    are classes if they are named as such, else streams of dimension 1."""
    try:
        archive = zipfile.ZipFile(path)
        members = {name.removesuffix(".npy") for name in archive.namelist()}
        chosen = {s.name: s for s in streams}
        found = [
            _open(archive, name, chosen.get(name)) for name in _streams_of(members) if not chosen or name in chosen
        ]
    except (OSError, zipfile.BadZipFile, KeyError, ValueError) as error:
        raise UserError(f"{path} cannot be read as a numpy archive: {error}", kind="BadArchive") from error
    missing = set(chosen) - {one.stream.name for one in found}
    if missing or not found:
        raise UserError(f"{path} has no stream {', '.join(sorted(missing))}", kind="BadArchive")
    counts = {one.sequences for one in found}
    if len(counts) > 1:
        raise UserError(f"the streams of {path} have different numbers of sequences: {counts}", kind="BadArchive")
    keys = _Member(archive, "keys") if "keys" in members else None
    return Input([one.stream for one in found], _archived(found, keys), max(one.samples for one in found))


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
        if wanted is not None and wanted.form == "class" and not self.sparse:
            form, dim = "class", wanted.dim
        self.stream, self.samples = Stream(name, int(dim), form), int(samples)
        self.sequences = self.samples if self.lengths is None else self.lengths.shape[0]

    def read(self, sequences: int) -> Part:
        """The next sequences."""
        lengths = (
            np.ones(sequences, np.int64) if self.lengths is None else self.lengths.read(sequences).astype(np.int64)
        )
        count = int(lengths.sum())
        if not self.sparse:
            rows = self.data.read(count).reshape(count, -1)
            if self.stream.form == "class":
                return Part(one_hot(rows[:, 0], self.stream), lengths)
            return Part(rows if rows.dtype.kind == "f" else rows.astype(np.float32), lengths)
        import scipy.sparse

        ends = np.concatenate([[self._last], self.indptr.read(count)]).astype(np.int64)
        entries = int(ends[-1] - ends[0])
        self._last = int(ends[-1])
        parts = self.data.read(entries), self.indices.read(entries).astype(np.int32), ends - ends[0]
        return Part(scipy.sparse.csr_matrix(parts, shape=(count, self.stream.dim)), lengths)


def _archived(found: Sequence[_open], keys: _Member | None) -> Iterator[Batch]:
    done, count = 0, found[0].sequences
    while done < count:
        n = min(BATCH, count - done)
        names = keys.read(n).tolist() if keys is not None else range(done, done + n)
        yield Batch(names, {one.stream.name: one.read(n) for one in found})
        done += n
