"""CNTK's binary files (BinaryReader, BinaryWriter): a section for every stream, a record for every sample."""

from __future__ import annotations

import json
import zlib
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.readers.data_api.factories import to_section
from cntkpy.readers.formats.binary import format as f
from cntkpy.readers.formats.binary.file import BinaryFile
from cntkpy.readers.formats.binary.writer import BinaryWriter, plan_files
from cntkpy.readers.minibatch import as_dense
from cntkpy.readers.streams import DTYPES

from .batches import Batch, Stream, class_numbers, dense_pieces
from .sources import Input, from_reader
from .targets import Target, sequence_lengths


def from_binary(paths: Sequence[str], streams: Sequence[Stream], precision: str = "float") -> Input:
    """Files that belong together, with the element type that their sections have.

    Category labels are classes; the section with their vectors is a stream only if it is asked for.
    """
    from cntkpy.readers.registry import create_reader

    files = [BinaryFile(path) for path in paths]
    sections = [section for file in files for section in file.sections.values()]
    sizes = {s.header.element_size for s in sections if s.header.kind in (f.DATA, f.CATEGORY)}
    for file in files:
        file.close()
    precision = "double" if sizes == {8} else "float"
    config = {"readerType": "BinaryReader", "file": ",".join(paths)}
    reader: Any = create_reader(to_section(config), precision)
    source = from_reader(reader, precision)
    classes = {s.name for s in sections if s.header.kind == f.LABELS and s.header.label_kind == f.CATEGORY_IDS}
    wanted = {s.name for s in streams}
    again = {
        section.name
        for s in sections
        for section in s.inside
        if s.name in classes and section.header.kind == f.CATEGORY
    }
    source.streams = [
        Stream(s.name, s.dim, "class" if s.name in classes else s.form)
        for s in source.streams
        if s.name in wanted or s.name not in again
    ]
    source.labels = {name: labels for name in classes if (labels := _labels(reader, name))}
    return source


def _labels(reader: Any, name: str) -> dict[int, str]:
    inside = reader.sections[name.lower()].inside
    return reader.get_label_mapping(name) if any(section.header.kind == f.MAPPING for section in inside) else {}


class BinaryTarget:
    """Dense streams are sections of type Data, classes of type Labels with their vectors and, if known, their names."""

    def __init__(self, writer: BinaryWriter, streams: Sequence[Stream]):
        self._writer, self._streams = writer, streams

    def write(self, batch: Batch) -> None:
        """Add some sequences, sample by sample."""
        sequence_lengths(batch, self._streams, "a binary file")
        for piece in dense_pieces(batch, self._streams):
            self._write(piece)

    def _write(self, batch: Batch) -> None:
        data: dict[str, np.ndarray] = {}
        for s in self._streams:
            rows = as_dense(batch.parts[s.name].rows)
            if s.form == "class":
                data[s.name] = class_numbers(rows, s.name).astype(np.uint32)
                data[_vectors(s)] = rows
            else:
                data[s.name] = rows
        self._writer.save(data)


def _vectors(s: Stream) -> str:
    return f"{s.name}Vectors"


def _names(s: Stream) -> str:
    return f"{s.name}Names"


def _section(s: Stream, labels: Mapping[int, str]) -> dict[str, Any]:
    if s.form != "class":
        return {"sectionType": "Data", "dim": s.dim}
    section: dict[str, Any] = {"sectionType": "Labels", "labelType": "category", "labelDim": s.dim, "dim": 1}
    section[_vectors(s)] = {"sectionType": "CategoryLabels", "dim": s.dim}
    if labels:
        longest = max(len(label.encode()) for label in labels.values())
        section[_names(s)] = {"sectionType": "LabelMapping", "wrecords": len(labels), "elementSize": longest + 1}
    return section


def _session_of(files: Sequence[str]) -> int | None:
    """Return the id of a writing session, 16 bits: files made of the same data belong together, whatever streams they
    have.
    """
    if not files:
        return None
    result = [(str(path.resolve()), path.stat().st_size, path.stat().st_mtime_ns) for path in map(Path, sorted(files))]
    return zlib.crc32(json.dumps(result).encode()) & 0xFFFF


@contextmanager
def to_binary(path: str, streams: Sequence[Stream], source: Input) -> Generator[Target]:
    """A binary file."""
    if source.samples is None:
        raise UserError(
            "NoLength",
            "a binary file begins with the number of its records, which this reader does not know",
            hint="convert to an .npz archive first, and that to a binary file",
        )
    config: dict[str, Any] = {"wfile": path, "wrecords": source.samples}
    config |= {s.name: _section(s, source.labels.get(s.name, {})) for s in streams}
    plan = plan_files(to_section(config), np.dtype(DTYPES[source.precision]), session=_session_of(source.files))
    writer = BinaryWriter(plan)
    try:
        yield BinaryTarget(writer, streams)
        for s in streams:
            if s.form == "class" and s.name in source.labels:
                writer.save_mapping(_names(s), source.labels[s.name])
        writer.close()
    except BaseException:
        writer.abandon()
        raise
