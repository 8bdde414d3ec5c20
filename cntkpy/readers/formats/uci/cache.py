"""The binary cache of UCIFastReader: the records of the text file in their order, in the files of BinaryWriter."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator
from typing import Any

import numpy as np

from cntkpy.cntk_config.base.diagnostics import ConfigError
from cntkpy.cntk_config.base.files import exists, is_file
from cntkpy.readers.common.index_cache import describe
from cntkpy.readers.common.labels import load_labels
from cntkpy.readers.errors import DataError
from cntkpy.readers.formats.binary import format as f
from cntkpy.readers.formats.binary.file import BinaryFile, StoredSection
from cntkpy.readers.formats.binary.reader import BinaryRecords, check_sessions, open_files
from cntkpy.readers.formats.binary.stamp import check, may_be_replaced, stamp
from cntkpy.readers.formats.binary.writer import BinaryWriter, Plan, plan_files

from .parameters import CACHE_WRITERS
from .settings import UCISettings

log = logging.getLogger("cntkpy.readers")


class Stale(Exception):
    """The cache cannot be used; says why."""


class Cache:
    """The cache that a reader section describes.

    What the cache was made from is in the stamps of its files (`binary/stamp.py`): a hash of the text file's size,
    times and some of its blocks, of the fields that are read, and of the label mapping. It is used only if they say so
    and the checksums are right.
    """

    def __init__(self, settings: UCISettings, paths: list[str]):
        self.settings, self.paths = settings, paths

    @classmethod
    def of(cls, settings: UCISettings) -> Cache | None:
        """Return the cache of a section, None if it has none or none that could be read again."""
        kind = settings.reader.writer_type
        if kind is None:
            return None
        cache = cls(settings, [])
        try:
            if kind.lower() not in CACHE_WRITERS:
                raise Stale(f"a writer of type '{kind}' cannot be read again")
            plan = cache._plan(1, {0: ""})
            cache._check(plan)
            cache.paths = [path for path, _ in plan.files]
            for path in cache.paths:
                if is_file(path) and not may_be_replaced(path):
                    raise Stale(f"{path} is there and is no binary file; it is left as it is (wfile names the cache)")
        except (ConfigError, DataError, Stale) as problem:
            log.warning("There is no cache of %s: %s", settings.path, problem)
            return None
        return cache

    @property
    def exists(self) -> bool:
        """True if all files are there."""
        return all(map(is_file, self.paths))

    def _plan(self, records: int, labels: dict[int, str]) -> Plan:
        return plan_files(self.settings.config, self.settings.dtype, records, labels)

    def _check(self, plan: Plan) -> None:
        """Are the sections there that reading again needs?"""
        c = self.settings.columns
        kinds = {section.header.name.lower(): section.header for section in plan.sections()}
        wanted = {c.features: ("Data", f.DATA)}
        if c.kind != "none":
            wanted[c.labels] = ("Labels", f.LABELS)
        for name, (word, kind) in wanted.items():
            if name.lower() not in kinds or kinds[name.lower()].kind != kind:
                raise Stale(f"the section '{name}' lacks sectionType={word}")
            width = c.dim if kind == f.DATA else c.label_dim
            if kinds[name.lower()].per_record != width:
                raise Stale(f"the section '{name}' has another dim")

    def _fingerprint(self) -> bytes:
        """Return a digest of all settings that the cache depends on, 16 bytes."""
        s = self.settings
        digest = hashlib.blake2b(repr((s.columns, s.dtype.str, s.classes)).encode(), digest_size=16)
        digest.update(repr(sorted(describe(s.path).items())).encode())
        if s.columns.kind == "category":
            digest.update(b"\n".join(s.label_map().ids))
        return digest.digest()

    def write(self, text: Any, labels: dict[int, str]) -> None:
        """Write the files from the text, a chunk at a time."""
        s, c = self.settings, self.settings.columns
        try:
            plan = self._plan(text.table.num_sequences, labels)
            session = self._fingerprint()
            for _, root in plan.files:
                root.header.session = int.from_bytes(session[:2], "little")
            writer = BinaryWriter(plan)
        except (ConfigError, DataError) as problem:
            raise Stale(str(problem)) from None
        try:
            ones = _one_hot_sections(plan, c.labels)
            for chunk in range(text.table.num_chunks):
                for data in _pieces(text.load_chunk(chunk), c.features, c.labels, s.dtype, ones):
                    _save(writer, data)
            for section in plan.sections():
                if section.header.kind == f.MAPPING:
                    writer.save_mapping(section.header.name, labels)
            _close(writer)
            for path, _ in plan.files:
                stamp(path, session)
        except BaseException:
            writer.abandon()
            raise
        if s.reader.trace_level > 0:
            log.info("Wrote the cache %s of %s", ", ".join(self.paths), s.path)

    def read(self) -> tuple[BinaryRecords, dict[int, str]]:
        """Return the records and the label map, after checking that they are those of the text file.

        Raises:
            Stale, DataError: they are not. The files are closed then: Windows replaces none that is open.
        """
        files, sections, count = open_files(self.paths)
        try:
            return self._checked(files, sections, count)
        except BaseException:
            for file in files:
                file.close()
            raise

    def _checked(
        self, files: list[BinaryFile], sections: dict[str, StoredSection], count: int
    ) -> tuple[BinaryRecords, dict[int, str]]:
        s, c = self.settings, self.settings.columns
        check_sessions(files)
        session = self._fingerprint() if exists(s.path) else None
        for file in files:
            if wrong := check(file, session):
                raise Stale(wrong)
        features = _section(sections, c.features, f.DATA, c.dim)
        if features.header.element_type() != s.dtype:
            raise Stale(f"it has elements of {features.header.element_size} bytes, not {s.dtype.itemsize}")
        streams, mapping = {c.features: features}, {}
        ids: dict[str, tuple[StoredSection, int]] = {}
        if c.kind != "none":
            labels = _section(sections, c.labels, f.LABELS, c.label_dim)
            if c.kind == "regression":
                if labels.header.element_type() != s.dtype:
                    raise Stale("its labels are of another type")
                streams[c.labels] = labels
            else:
                if labels.header.label_kind != f.CATEGORY_IDS or labels.header.data_type != f.INTEGER:
                    raise Stale("its labels are no categories")
                has_file = exists(s.mapping_path)
                mapping = load_labels(s.mapping_path).mapping() if has_file else _mapping(labels)
                ids[c.labels] = (labels, max(s.classes, len(mapping)))
        return BinaryRecords(s.dtype, streams, count, ids=ids), mapping


def _mapping(labels: StoredSection) -> dict[int, str]:
    label_section = next((section for section in labels.inside if section.header.kind == f.MAPPING), None)
    return label_section.strings() if label_section is not None else {}


def _section(sections: dict[str, StoredSection], name: str, kind: int, width: int) -> StoredSection:
    section = sections.get(name.lower())
    if section is None or section.header.kind != kind:
        raise Stale(f"it has no section '{name}' of the right type")
    if section.header.per_record != width:
        raise Stale(f"its section '{name}' has dim={section.header.per_record}, not {width}")
    return section


def _one_hot_sections(plan: Plan, labels: str) -> dict[str, int]:
    """Return the sections of one-hot labels and their width."""
    counts = {
        section.header.name: section.header.per_record
        for section in plan.sections()
        if section.header.kind == f.CATEGORY
    }
    return counts if labels else {}


def _pieces(
    chunk: Any, features: str, labels: str, dtype: np.dtype, ones: dict[str, int]
) -> Iterator[dict[str, np.ndarray]]:
    """Yield the records of a chunk, some at a time, as the writer wants them."""
    data = chunk.streams[features]
    rows = data.values.reshape(-1, data.dim)
    ids = targets = None
    if labels:
        stream = chunk.streams[labels]
        if stream.indices is not None:
            ids = stream.indices
        else:
            targets = stream.values.reshape(-1, stream.dim)
    step = max(1, (4 << 20) // max(ones.values(), default=1) // dtype.itemsize)
    for begin in range(0, len(rows), step):
        part = slice(begin, begin + step)
        piece = {features: rows[part]}
        if ids is not None:
            piece[labels] = ids[part].reshape(-1, 1)
            for name, width in ones.items():
                if int(ids[part].max()) >= width:
                    raise Stale(f"the section '{name}' has dim={width}, but there are more labels")
                piece[name] = np.zeros((len(ids[part]), width), dtype)
                piece[name][np.arange(len(ids[part])), ids[part]] = 1
        elif targets is not None:
            piece[labels] = targets[part]
        yield piece


def _save(writer: BinaryWriter, data: dict[str, np.ndarray]) -> None:
    try:
        writer.save(data)
    except DataError as problem:
        raise Stale(str(problem)) from None


def _close(writer: BinaryWriter) -> None:
    try:
        writer.close()
    except DataError as problem:
        raise Stale(str(problem)) from None
