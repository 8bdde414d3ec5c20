"""Writing binary files: the places of all sections are known at the start, the end is a single step."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import IO, Any

import numpy as np

from cntkpy.cntk_config.base.diagnostics import nearest
from cntkpy.cntk_config.base.writing import atomic_write, shown
from cntkpy.readers.errors import DataError

from . import format as f

STATISTICS = ("sum", "count", "mean", "variance", "stddev", "max", "min", "range", "rootmeansquare")

WRITE_BYTES = 4 << 20
"""Bytes that are moved at once."""


class Statistics:
    """Sums over all values of a section, of all records and dimensions together."""

    def __init__(self) -> None:
        self.count, self.sum, self.squares = 0, 0.0, 0.0
        self.mean, self.moment = 0.0, 0.0
        self.max, self.min = -math.inf, math.inf

    def add(self, values: np.ndarray) -> None:
        """Take in values."""
        if not values.size:
            return
        values = values.astype(np.float64, copy=False)
        total, mean = float(values.sum()), float(values.mean())
        moment = float(np.square(values - mean).sum())
        both = self.count + values.size
        self.moment += moment + (mean - self.mean) ** 2 * self.count * values.size / both
        self.mean += (mean - self.mean) * values.size / both
        self.count, self.sum = both, self.sum + total
        self.squares += float(np.square(values).sum())
        self.max, self.min = max(self.max, float(values.max())), min(self.min, float(values.min()))

    def value(self, name: str) -> float:
        """Return the number of this name (any case); 0 for an unknown one, and for all of no values."""
        if not self.count:
            return 0.0
        variance = self.moment / (self.count - 1) if self.count > 1 else 0.0
        return {
            "sum": self.sum,
            "count": float(self.count),
            "mean": self.mean,
            "variance": variance,
            "stddev": math.sqrt(variance),
            "max": self.max,
            "min": self.min,
            "range": self.max - self.min,
            "rootmeansquare": math.sqrt(self.squares / self.count),
        }.get(name.lower(), 0.0)


class BinaryFileWriter:
    """One file being written. `root` describes all sections; the file appears under its name when `finish` is called.

    Args:
        path: the file.
        root: the section of kind FILE whose sections inside are to be written; gets its places and sizes here.
    """

    def __init__(self, path: str, root: f.Section):
        self.path, self.root = path, root
        self.length = f.place(root)
        self.sections = {section.header.name.lower(): section for section in root.walk()[1:]}
        self.written = dict.fromkeys(self.sections, 0)
        self._statistics = {
            name: Statistics()
            for name, section in self.sections.items()
            if any(child.header.kind == f.STATISTICS for child in section.inside)
        }
        self._stack = contextlib.ExitStack()
        try:
            self._file: IO[Any] = self._stack.enter_context(atomic_write(path, "w+b"))
            self._file.truncate(self.length)
            for section in root.walk():
                header = section.header
                self._put(section.offset, (self._unfinished() if header is root.header else header).pack())
        except OSError as error:
            self.abandon()
            raise self._error(error) from None

    def _unfinished(self) -> f.Header:
        return replace(self.root.header, magic=f.UNFINISHED)

    def _error(self, error: OSError) -> DataError:
        return DataError(f"The file {shown(self.path)} cannot be written: {error.strerror or error}", path=self.path)

    def _put(self, offset: int, data: Any) -> None:
        self._file.seek(offset)
        self._file.write(data)

    def save(self, data: Mapping[str, Any]) -> None:
        """Append records to the sections of these names; names that are not sections are passed over.

        Values are (records, elements per record); ids of categories are unsigned 32-bit numbers.
        """
        for name, values in data.items():
            section = self.sections.get(name.lower())
            if section is None or section.header.is_auxiliary:
                continue
            h, key = section.header, name.lower()
            rows = np.ascontiguousarray(values).reshape(len(values), -1)
            if rows.shape[1] != (h.per_record or 1):
                raise DataError(
                    f"Data of {rows.shape[1]} values cannot be written to section '{h.name}' with dim={h.per_record}.",
                    path=self.path,
                )
            done = self.written[key]
            if done + len(rows) > h.records:
                raise DataError(
                    f"Section '{h.name}' of {self.path} has room for {h.records} records, there are more.",
                    path=self.path,
                    hint="wrecords is the number of records to be written",
                )
            dtype = h.element_type()
            assert dtype is not None
            try:
                self._put(section.offset + f.HEADER + done * rows.shape[1] * h.element_size, rows.astype(dtype).data)
            except OSError as error:
                raise self._error(error) from None
            self.written[key] = done + len(rows)
            if key in self._statistics:
                self._statistics[key].add(rows)

    def save_mapping(self, name: str, labels: Mapping[int, str]) -> None:
        """Write the labels with ids 0, 1, 2, ... to a section of type LabelMapping."""
        section = self.sections[name.lower()]
        h = section.header
        if len(labels) != h.records or set(labels) != set(range(len(labels))):
            raise DataError(
                f"Section '{h.name}' of {self.path} is for {h.records} labels, there are {len(labels)}.",
                path=self.path,
                hint="wrecords in the section of the label mapping is the number of labels",
            )
        data = b"".join(labels[i].encode() + b"\0" for i in range(len(labels)))
        if len(data) > h.data_bytes:
            raise DataError(
                f"The labels take {len(data)} bytes, section '{h.name}' of {self.path} has room for {h.data_bytes}.",
                path=self.path,
                hint="elementSize in the section of the label mapping is the average length plus one",
            )
        try:
            self._put(section.offset + f.HEADER, data)
        except OSError as error:
            raise self._error(error) from None
        self.written[name.lower()] = h.records

    @property
    def missing(self) -> dict[str, int]:
        """Sections with records that are not complete, and how many records they have."""
        return {
            section.header.name: self.written[name]
            for name, section in self.sections.items()
            if not section.header.is_auxiliary and self.written[name] < section.header.records
        }

    @property
    def complete(self) -> set[int]:
        """The numbers of records that the sections with records have; one number if all have the same."""
        return {self.written[name] for name, section in self.sections.items() if not section.header.is_auxiliary}

    def shorten(self, records: int) -> None:
        """Make it a file of fewer records, which all sections have: they move together, and their headers say so."""
        sections = self.root.walk()
        previous_offsets = [section.offset for section in sections]
        for section in sections:
            section.header.children = []
            if not section.header.is_auxiliary:
                section.header.elements = records * (section.header.per_record or 1)
        self.root.header.size_all = f.HEADER
        self.length, end = f.place(self.root), f.HEADER
        try:
            self._put(0, self._unfinished().pack())
            for section, old in zip(sections[1:], previous_offsets[1:], strict=True):
                h, begin = section.header, section.offset + f.HEADER
                self._put(end, bytes(section.offset - end))
                self._move(old + f.HEADER, begin, h.data_bytes)
                self._put(section.offset, h.pack())
                end = begin + h.data_bytes
            self._file.truncate(self.length)
        except OSError as error:
            self.abandon()
            raise self._error(error) from None

    def _move(self, source: int, target: int, size: int) -> None:
        """Move bytes to where they are or to an earlier place, from the first to the last."""
        for index in range(0, size if target < source else 0, WRITE_BYTES):
            self._file.seek(source + index)
            self._put(target + index, self._file.read(min(WRITE_BYTES, size - index)))

    def finish(self) -> None:
        """Write statistics, mark the file as complete, and let it appear."""
        for section in self.root.walk():
            for child in section.inside:
                if child.header.kind == f.STATISTICS:
                    statistic = self._statistics.get(section.header.name.lower(), Statistics())
                    rows = [f.STATISTIC.pack(name.encode()[:23], statistic.value(name)) for name in child.compute]
                    self._put(child.offset + f.HEADER, b"".join(rows))
        try:
            self._put(0, self.root.header.pack())
            self._stack.close()
        except OSError as error:
            raise self._error(error) from None

    def abandon(self) -> None:
        """Leave no file after."""
        with contextlib.suppress(_Abandoned):
            self._stack.__exit__(_Abandoned, _Abandoned(), None)


class _Abandoned(BaseException):
    pass


def unknown_statistic(name: str) -> str | None:
    """Return a warning about an unknown statistic; None if the statistic is known."""
    if name.lower() in STATISTICS:
        return None
    meant = nearest(name.lower(), STATISTICS)
    return f"unknown statistic '{name}', 0 is written" + (f"; did you mean '{meant}'?" if meant else "")
