"""Conversion sources: any reader, and the text formats."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cntkpy.cntk_config.base.diagnostics import ConfigError
from cntkpy.readers.common.packed import open_data
from cntkpy.readers.contracts import KnowsSize, ReadsFiles
from cntkpy.readers.data_api.factories import to_section
from cntkpy.readers.errors import DataError

from .batches import VALUES, Batch, Part, Stream, batches_of, one_hot

BATCH = 4096
"""Samples of a batch, or sequences of an archive's, at most."""


@dataclass
class Input:
    """Data to be converted.

    Attributes:
        streams, batches: what it is, and the pieces.
        samples: how many there are, if that is known.
        labels: names of classes, by stream.
        precision: of the values.
        files: where the data are, as far as that is known.
        names: by stream, names of classes that were found in the data and are kept next to the output.
    """

    streams: Sequence[Stream]
    batches: Iterator[Batch]
    samples: int | None = None
    labels: Mapping[str, Mapping[int, str]] = field(default_factory=dict[str, Mapping[int, str]])
    precision: str = "float"
    files: Sequence[str] = ()
    names: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])


def batch_size(streams: Sequence[Stream]) -> int:
    """Samples of a batch."""
    return max(1, min(BATCH, VALUES // max(1, sum(s.dim for s in streams if s.form == "dense"))))


def from_reader(reader: Any, precision: str = "float") -> Input:
    """Return the data of a reader as an input of a conversion, in the order of the reader."""
    streams = [Stream(s.name, s.dim, "sparse" if s.sparse else "dense") for s in reader.streams]
    labels = {s.name: reader.get_label_mapping(s.name) for s in reader.streams}
    samples = (reader.samples_per_sweep or None) if isinstance(reader, KnowsSize) else None
    return Input(
        streams,
        batches_of(reader, batch_size(streams)),
        samples,
        {n: m for n, m in labels.items() if m},
        precision,
        reader.files if isinstance(reader, ReadsFiles) else (),
    )


def single(paths: Sequence[str], kind: str) -> str:
    """Return the only path of a format of one file."""
    if len(paths) > 1:
        raise ConfigError("TooManyFiles", f"{kind} is one file, but there are {len(paths)}: {' '.join(paths)}")
    return paths[0]


def from_ctf(paths: Sequence[str], streams: Sequence[Stream], precision: str = "float") -> Input:
    """Return a file in CNTK text format; without streams, those that are found in it."""
    from cntkpy.readers.registry import create_reader

    path = single(paths, "text format")
    streams = streams or find_streams(path)
    forms = {s.name: _form_of_classes(path, s.name) if s.form == "class" else s.form for s in streams}
    inputs = {s.name: {"dim": s.dim, "format": forms[s.name]} for s in streams}
    section = to_section({"file": path, "input": inputs, "randomize": False, "traceLevel": 0})
    source = from_reader(create_reader(section, precision), precision)
    return Input(streams, source.batches, source.samples, precision=precision)


def from_uci(paths: Sequence[str], streams: Sequence[Stream], precision: str = "float") -> Input:
    """Columns of numbers between blanks: the streams stand side by side, in order."""
    from cntkpy.readers.registry import create_reader

    path = single(paths, "text of columns")
    if not streams:
        raise ConfigError(
            "NoStreams",
            "text of columns does not say which columns are what",
            hint="name the streams from left to right: --stream labels:10:class --stream features:784",
        )
    if any(s.form == "sparse" for s in streams):
        raise ConfigError("BadStream", "text of columns has no sparse streams", hint="read them as dense")
    widths = [1 if s.form == "class" else s.dim for s in streams]
    config = {"readerType": "UCIFastReader", "file": path, "randomize": "none", "columns": {"dim": sum(widths)}}
    source = from_reader(create_reader(to_section(config), precision), precision)
    return Input(streams, _split(source.batches, streams, widths), source.samples, precision=precision)


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
    """Return the form of a stream, dense or sparse, by its first sample that has values."""
    try:
        with open_data(path) as file:
            for line in file:
                for sample in line.split(b"|")[1:]:
                    key, *values = sample.split()[:2] or [b""]
                    if key == name.encode() and values:
                        return "sparse" if b":" in values[0] else "dense"
    except OSError:
        pass
    return "sparse"


def find_streams(path: str) -> list[Stream]:
    """Return the streams of a text file, found by reading it: names, dimensions, dense or sparse."""
    dims: dict[str, int] = {}
    sparse: set[str] = set()
    try:
        with open_data(path) as file:
            for number, line in enumerate(file, 1):
                for sample in line.split(b"|")[1:]:
                    name, _, values = sample.partition(b" ")
                    key = name.strip().decode("latin-1")
                    if key.startswith("#") or not key:
                        continue
                    fields = values.split()
                    if b":" in values:
                        sparse.add(key)
                        indices = [f.partition(b":")[0] for f in fields]
                        if bad := next((index for index in indices if not index.isdigit() or len(index) > 9), None):
                            raise DataError(
                                f"{path}, line {number}: {bad[:40]!r} is not the index of a value.",
                                path=path,
                                line=number,
                                hint="name the streams with --stream NAME:DIM:FORM",
                            )
                        size = 1 + max(map(int, indices), default=0)
                    else:
                        size = len(fields)
                    dims[key] = max(dims.get(key, 1), size)
    except OSError as error:
        raise DataError(f"The input file ({path}) cannot be read: {error.strerror or error}", path=path) from None
    except DataError:
        raise
    except ValueError:
        raise DataError(
            f"The streams of {path} cannot be found: it is malformed.", path=path, hint="name them with --stream"
        ) from None
    if not dims:
        raise DataError(
            f"{path} has no streams: is it CNTK text format?", path=path, hint="name its format with --from"
        )
    return [Stream(name, dim, "sparse" if name in sparse else "dense") for name, dim in dims.items()]
