"""BinaryWriter: a section of the configuration as a tree of sections in one or several files."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cntkpy.cntk_config.base.diagnostics import suggestion
from cntkpy.cntk_config.parameters import ConfigParameters
from cntkpy.readers.errors import DataError
from cntkpy.readers.parameters import check_precision
from cntkpy.readers.streams import DTYPES

from . import format as f
from .parameters import SECTION_TYPES, BinaryWriterParameters, written
from .write import BinaryFileWriter, unknown_statistic

log = logging.getLogger("cntkpy.readers")


@dataclass
class Plan:
    """Plan of a writer section: its files (path, root section), the first being that of the outermost section."""

    files: list[tuple[str, f.Section]] = field(default_factory=list["tuple[str, f.Section]"])

    def sections(self) -> Iterator[f.Section]:
        """Yield all sections to be written."""
        for _, root in self.files:
            yield from root.walk()[1:]


class _Planner:
    def __init__(self, dtype: np.dtype, records: int | None, mapping: dict[int, str] | None, session: int | None):
        self._size, self._records, self._mapping = dtype.itemsize, records, mapping
        self._session = int(time.time() * 1000) & 0xFFFF if session is None else session
        self.plan = Plan()
        self._names: set[str] = set()

    def level(self, config: ConfigParameters, above: list[f.Section], records: int) -> None:
        """A section of the configuration: the section it writes, then those inside it."""
        p = BinaryWriterParameters(config)
        own_wrecords = p.wrecords
        records = own_wrecords if own_wrecords else records
        if self._records is not None and not _is(p, f.MAPPING):
            records = self._records
        if p.wfile is not None:
            if not records:
                raise p.error("wrecords", "the number of records is missing", "add wrecords=...", "MissingParameter")
            header = f.Header(f.FILE, magic=f.CLOSED, session=self._session, elements=self._records or records)
            above = [f.Section(header)]
            self.plan.files.append((str(p.wfile), above[0]))
        if p.section_type is not None:
            above = [*above, self._section(p, config, above, records)]
        for _, inside in sorted(written(config), key=lambda item: item[0].lower()):
            self.level(inside, above, records)

    def _section(
        self, p: BinaryWriterParameters, config: ConfigParameters, above: list[f.Section], records: int
    ) -> f.Section:
        kind, name = section_kind(p), config.path.rpartition(":")[2]
        self._check_place(p, name, above)
        self._names.add(name.lower())
        h = f.Header(kind, name, per_record=p.dim, data_type=f.FLOAT, element_size=p.element_size or self._size)
        section = f.Section(h)
        if kind == f.LABELS:
            self._labels(p, h)
        elif kind == f.MAPPING:
            records = self._label_mapping(p, h, records)
        elif kind == f.STATISTICS:
            section.compute = _statistics(p, h, name)
            if above[-1].header.kind not in f.RECORDS:
                message = f"the statistics '{name}' stand in no section of numbers of their file"
                raise p.error("sectionType", message, "move them into the section that they are of, without a wfile")
            records = len(section.compute)
        if not records:
            raise p.error("wrecords", "the number of records is missing", "add wrecords=...", "MissingParameter")
        _check_sizes(p, h)
        h.elements = records * h.per_record
        above[-1].inside.append(section)
        return section

    def _check_place(self, p: BinaryWriterParameters, name: str, above: list[f.Section]) -> None:
        """A section has a name of its own and room in the one around it."""
        if not above:
            raise p.error("sectionType", f"section '{name}' has no file to go to", "add wfile=...", "MissingParameter")
        if name.lower() in self._names:
            raise p.error("sectionType", f"there are two sections named '{name}'")
        if len(above[-1].inside) == f.MAX_CHILDREN:
            raise p.error("sectionType", f"a section has room for {f.MAX_CHILDREN} sections, '{name}' is one more")

    def _label_mapping(self, p: BinaryWriterParameters, h: f.Header, records: int) -> int:
        """Fill in the header of the names of classes; how many there are."""
        h.data_type, h.flags, h.per_record = f.STRINGS, f.AUXILIARY | f.VARIABLE, 1
        h.element_size = p.element_size or 0
        if self._mapping is not None:
            records = len(self._mapping)
            need = sum(len(label.encode()) + 1 for label in self._mapping.values())
            h.element_size = max(h.element_size, -(-need // max(records, 1)))
        elif not p.element_size:
            message = "the average size of a label is missing"
            raise p.error("elementSize", message, "add elementSize=...", "MissingParameter")
        return records

    def _labels(self, p: BinaryWriterParameters, h: f.Header) -> None:
        if p.label_type in (None, "none"):
            raise p.error("labelType", "the type of labels is missing", "add labelType=category", "MissingParameter")
        label_dim = p.label_dim
        if label_dim is None and self._mapping is not None:
            label_dim = len(self._mapping)
        if label_dim is None:
            raise p.error("labelDim", "the number of classes is missing", "add labelDim=...", "MissingParameter")
        kinds = {"category": f.CATEGORY_IDS, "regression": f.REGRESSION}
        h.label_kind, h.label_dim = kinds[p.label_type], label_dim & 0xFFFF
        if h.label_kind == f.CATEGORY_IDS:
            if h.per_record != 1:
                raise p.error("dim", "a section of category labels has dim=1")
            h.data_type, h.element_size = f.INTEGER, 4
        elif h.element_type() is None:
            raise p.error("elementSize", "numbers have 4 or 8 bytes")


def _statistics(p: BinaryWriterParameters, h: f.Header, name: str) -> list[str]:
    """Fill in the header of statistics; their names."""
    if p.compute is None:
        raise p.error("compute", "no statistics are named", "add compute=mean:variance", "MissingParameter")
    names = [str(name) for name in p.compute]
    for message in filter(None, map(unknown_statistic, names)):
        log.warning("Section '%s': %s", name, message)
    h.data_type, h.flags, h.element_size, h.per_record = f.STRUCT, f.AUXILIARY, f.STATISTIC.size, 1
    return names


def _check_sizes(p: BinaryWriterParameters, h: f.Header) -> None:
    """Check that the sizes fit into the header of a file."""
    if h.kind in (f.DATA, f.CATEGORY) and h.element_type() is None:
        raise p.error("elementSize", "numbers have 4 or 8 bytes")
    if not 0 < h.per_record < 65536:
        raise p.error("dim", "a record has 1 to 65535 elements in a binary file")
    if not 0 < h.element_size < 65536:
        raise p.error("elementSize", "an element has 1 to 65535 bytes")


def _is(p: BinaryWriterParameters, kind: int) -> bool:
    return p.section_type is not None and section_kind(p) == kind


def section_kind(p: BinaryWriterParameters) -> int:
    """Return the kind of section that `sectionType` names."""
    word = str(p.section_type)
    if word.lower() not in f.NAMES:
        hint = suggestion(word, SECTION_TYPES) or f"allowed: {', '.join(SECTION_TYPES)}"
        raise p.error("sectionType", f"'{word}' is not a type of section", hint)
    return f.NAMES[word.lower()]


def plan_files(
    section: ConfigParameters,
    dtype: np.dtype,
    records: int | None = None,
    mapping: dict[int, str] | None = None,
    session: int | None = None,
) -> Plan:
    """Return the files that a writer section asks for.

    Args:
        section: the section of the writer.
        dtype: type of numbers whose section does not say it.
        records: the true number of records, whatever wrecords says.
        mapping: the true names of classes, whatever elementSize says.
        session: id of the files, which are read together if they have the same one; None: of the time.
    """
    planner = _Planner(dtype, records, mapping, session)
    planner.level(section, [], records or 0)
    if not planner.plan.files:
        raise BinaryWriterParameters(section).error("wfile", "no file is given", "add wfile=...", "MissingParameter")
    return planner.plan


class BinaryWriter:
    """Writes the sections of a plan. All files appear when `close` is called and every record has been written."""

    def __init__(self, plan: Plan):
        self.plan = plan
        self._files: list[BinaryFileWriter] = []
        try:
            for path, root in plan.files:
                self._files.append(BinaryFileWriter(path, root))
        except BaseException:
            self.abandon()
            raise

    def sections(self) -> dict[str, str]:
        """Names of the sections and their types."""
        names = {kind: name for name, kind in f.NAMES.items()}
        return {section.header.name: names[section.header.kind] for section in self.plan.sections()}

    def save(self, data: Mapping[str, Any]) -> bool:
        """Write the next records; returns whether any section wants more. Data without a section are an error."""
        known = {name: section.header.name for file in self._files for name, section in file.sections.items()}
        for name in data:
            if name.lower() not in known:
                raise DataError(
                    f"The binary files have no section '{name}'.",
                    hint=suggestion(name, known.values()) or f"add {name}=[sectionType=Data ; dim=...] to the writer",
                )
        for file in self._files:
            file.save(data)
        return any(file.missing for file in self._files)

    def save_mapping(self, section: str, labels: Mapping[int, str]) -> None:
        """Write the labels of a section of type LabelMapping."""
        file = next((file for file in self._files if section.lower() in file.sections), None)
        if file is None or file.sections[section.lower()].header.kind != f.MAPPING:
            raise DataError(f"There is no section of type LabelMapping named '{section}'.")
        file.save_mapping(section, labels)

    def close(self) -> None:
        """Finish the files. With fewer records than wrecords says, they are shorter, with a warning.

        Sections that have different numbers of records are an error, and then there are no files.
        """
        counts = set[int]().union(*(file.complete for file in self._files))
        if len(counts) == 1 and (records := counts.pop()):
            for file in self._files:
                if file.missing:
                    log.warning(
                        "%s has %d records; wrecords had room for %d.", file.path, records, file.root.header.records
                    )
                    file.shorten(records)
        for file in self._files:
            for name, count in file.missing.items():
                records = file.sections[name.lower()].header.records
                self.abandon()
                raise DataError(
                    f"Section '{name}' of {file.path} got {count} of {records} records; nothing was written.",
                    path=file.path,
                    hint="wrecords is the number of records to be written",
                )
        for file in self._files:
            file.finish()

    def abandon(self) -> None:
        """Leave no files after."""
        for file in self._files:
            file.abandon()
        self._files = []


def create_binary_writer(section: ConfigParameters, precision: str) -> BinaryWriter:
    """BinaryWriter."""
    return BinaryWriter(plan_files(section, np.dtype(DTYPES[check_precision(section, precision)])))
