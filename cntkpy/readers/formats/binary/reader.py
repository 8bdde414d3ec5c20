"""BinaryReader: the records of CNTK's binary files in their own order, read a window at a time."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

import numpy as np

from cntkpy.cntk_config.parameters import ConfigParameters
from cntkpy.readers.common.chunk import Chunk, StreamData
from cntkpy.readers.common.sequences import SequenceTable
from cntkpy.readers.errors import DataError
from cntkpy.readers.parameters import check_precision
from cntkpy.readers.pipeline.records import RecordOrder
from cntkpy.readers.pipeline.source import Source, SourceOptions
from cntkpy.readers.reader import Reader
from cntkpy.readers.streams import DTYPES, StreamInformation

from . import format as f
from .file import BinaryFile, StoredSection
from .parameters import BinaryReaderParameters

log = logging.getLogger("cntkpy.readers")
WINDOW = 16 << 20


class BinaryRecords:
    """Sections of binary files as a deserializer. streams: name of a stream -> the section with its values.

    ids: sections that hold category ids, to be given as one-hot vectors: name -> (section, classes).
    """

    def __init__(
        self,
        dtype: np.dtype | type,
        streams: dict[str, StoredSection],
        count: int,
        window: int = 0,
        ids: dict[str, tuple[StoredSection, int]] | None = None,
    ):
        self.dtype = np.dtype(dtype)
        self._sections, self._ids = streams, ids or {}
        self.streams: Sequence[StreamInformation] = [
            *(StreamInformation(n, (s.header.per_record or 1,), False, self.dtype) for n, s in streams.items()),
            *(StreamInformation(n, (classes,), False, self.dtype) for n, (_, classes) in self._ids.items()),
        ]
        for section in [*streams.values(), *(s for s, _ in self._ids.values())]:
            if section.header.records != count:
                raise section.error(f"has {section.header.records} records, but its file has {count}")
        stored = [*streams.values(), *(s for s, _ in self._ids.values())]
        width = sum((s.header.per_record or 1) * s.header.element_size for s in stored) + 16 * len(stored)
        window = window or max(1, WINDOW // width)
        first = np.append(np.arange(0, count, window, dtype=np.int64), count)
        self.table = SequenceTable(first, np.ones(1, np.int32))
        self.chunk_bytes = np.diff(first) * width

    @property
    def files(self) -> list[str]:
        """The files that are read."""
        sections = [*self._sections.values(), *(section for section, _ in self._ids.values())]
        return list(dict.fromkeys(section.file.path for section in sections))

    def load_chunk(self, chunk: int) -> Chunk:
        """Return a window of the files."""
        first, end = int(self.table.first[chunk]), int(self.table.first[chunk + 1])
        return self._chunk(np.arange(end - first), lambda section: section.rows(first, end - first))

    def load_sequences(self, sequences: np.ndarray) -> Chunk:
        """Just these records."""
        return self._chunk(np.arange(len(sequences)), lambda section: _pick(section, sequences))

    def _chunk(self, row: np.ndarray, rows: Callable[[StoredSection], np.ndarray]) -> Chunk:
        bounds = np.arange(len(row) + 1)
        streams: dict[str, StreamData] = {}
        for name, section in self._sections.items():
            values = rows(section)
            streams[name] = StreamData(values.shape[1], values.reshape(-1), row * values.shape[1], bounds)
        for name, (section, classes) in self._ids.items():
            ids = rows(section).reshape(-1).astype(np.int64)  # a copy: what is checked is what is used
            if len(ids) and int(ids.max()) >= classes:
                raise section.error(f"has the label {int(ids.max())}, but there are only {classes} classes")
            ones = np.ones(len(ids), self.dtype)
            counts = np.ones(len(ids), np.int32)
            streams[name] = StreamData(classes, ones, row, bounds, counts, ids.astype(np.int32))
        return Chunk(streams)


def _pick(section: StoredSection, records: np.ndarray) -> np.ndarray:
    """Single records, each read by itself; neighbours in one go."""
    h = section.header
    dtype = h.element_type()
    if dtype is None:
        raise section.error("does not hold numbers")
    width = h.per_record or 1
    out = np.empty((len(records), width), dtype)
    raw = out.view(np.uint8).reshape(len(records), -1)
    breaks = np.flatnonzero(np.diff(records) != 1) + 1
    for begin, end in zip([0, *breaks.tolist()], [*breaks.tolist(), len(records)], strict=True):
        section.file.read(raw[begin:end].reshape(-1), section.begin + int(records[begin]) * raw.shape[1])
    return out


def open_files(paths: Sequence[str]) -> tuple[list[BinaryFile], dict[str, StoredSection], int]:
    """Return the files, all their sections by name, and how many records they have.

    Raises:
        DataError: they do not belong together, or one of them is not readable; none stays open.
    """
    files: list[BinaryFile] = []
    try:
        files.extend(map(BinaryFile, paths))
        return files, *_sections(files)
    except BaseException:
        for file in files:
            file.close()
        raise


def _sections(files: list[BinaryFile]) -> tuple[dict[str, StoredSection], int]:
    sections: dict[str, StoredSection] = {}
    for file in files:
        if file.records != files[0].records:
            raise DataError(
                f"{file.path} has {file.records} records, but {files[0].path} has {files[0].records}.",
                path=file.path,
                hint="files that are read together must have been written together",
            )
        for name, section in file.sections.items():
            if name in sections:
                raise section.error(f"is in {sections[name].file.path} as well")
            sections[name] = section
    if files[0].records == 0:
        raise DataError(f"{files[0].path} has no records.", path=files[0].path)
    return sections, files[0].records


def streams_of(sections: dict[str, StoredSection], dtype: np.dtype) -> dict[str, StoredSection]:
    """Return the sections that can be read as numbers of this type, by the name of their stream."""
    stored_sections: dict[str, StoredSection] = {}
    for section in sections.values():
        h, source = section.header, section
        if h.is_auxiliary or h.kind not in f.RECORDS:
            continue
        if h.kind == f.LABELS and h.data_type != f.FLOAT:
            if h.label_kind != f.CATEGORY_IDS:
                raise section.error("has labels that are neither numbers nor categories")
            inside = [inner for inner in section.inside if inner.header.kind == f.CATEGORY]
            if not inside:
                raise section.error(
                    "has the ids of categories, but no section of type CategoryLabels inside",
                    "write the file with category=[dim=... ; sectionType=CategoryLabels] in the section of the labels",
                )
            source = inside[0]
        if source.header.element_type() != dtype:
            size = source.header.element_size
            other_type = {4: "float", 8: "double"}.get(size)
            raise source.error(
                f"has elements of {size} bytes, but precision={'float' if dtype.itemsize == 4 else 'double'}",
                f"read it with precision={other_type}" if other_type else None,
            )
        stored_sections[section.name] = source
    return stored_sections


class BinaryReader(Reader):
    """Reader that also knows the label mappings of sections."""

    def __init__(self, source: Source, sections: dict[str, StoredSection]):
        super().__init__(source)
        self.sections = sections

    def get_label_mapping(self, name: str) -> dict[int, str]:
        """Labels of a section of type LabelMapping, or of a stream that has one inside; {} of any other stream."""
        section = self._section(name)
        if section.header.kind in f.RECORDS:
            inside = next((inner for inner in section.inside if inner.header.kind == f.MAPPING), None)
            return inside.strings() if inside else {}
        return section.strings()

    def _section(self, name: str) -> StoredSection:
        if name.lower() not in self.sections:
            known = ", ".join(section.name for section in self.sections.values())
            raise DataError(f"There is no section '{name}' in the binary files.", hint=f"there are: {known}")
        return self.sections[name.lower()]

    def close(self) -> None:
        """Let go of the files."""
        super().close()
        for file in {id(s.file): s.file for s in self.sections.values()}.values():
            file.close()


def create_binary_reader(section: ConfigParameters, precision: str) -> Reader:
    """BinaryReader."""
    p = BinaryReaderParameters(section)
    paths = list(map(str, p.file))
    if not paths:
        raise p.error("file", "no file is given")
    dtype = np.dtype(DTYPES[check_precision(section, precision)])
    files, sections, count = open_files(paths)
    if not p.different_sessions:
        check_sessions(files)
    if p.trace_level > 0:
        _describe(files)
    streams = streams_of(sections, dtype)
    if not streams:
        raise DataError(f"There is no section with records in {', '.join(paths)}.", path=paths[0])
    records = BinaryRecords(dtype, streams, count, p.window)
    order = RecordOrder(records.table, full=p.minibatch_mode == "full")
    return BinaryReader(Source(records, order, SourceOptions(frame_mode=True, prefetch=p.prefetch)), sections)


def check_sessions(files: Sequence[BinaryFile]) -> None:
    """An error about files that different runs have written: their records need not belong together."""
    first = files[0]
    for file in files:
        ours, theirs = file.root.header.session, first.root.header.session
        if ours != theirs:
            raise DataError(
                f"{file.path} and {first.path} were not written together: their session ids are {ours} and {theirs}.",
                path=file.path,
                hint="write features and labels in one run; if record i of each belongs to record i of the others all "
                "the same, add allowDifferentSessions=true to the reader",
            )


def _describe(files: Sequence[BinaryFile]) -> None:
    for file in files:
        log.info("Binary file %s: %d records", file.path, file.records)
        for section in file.sections.values():
            h = section.header
            log.info("  %s (%s): %d records of %d", h.name, f.SUFFIXES.get(h.kind, "?"), h.records, h.per_record)
            if h.kind == f.STATISTICS:
                for name, value in section.statistics().items():
                    log.info("    %s = %g", name, value)
