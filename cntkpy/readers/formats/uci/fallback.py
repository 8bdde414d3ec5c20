"""Pure-Python fallbacks of the kernels for UCI text: the offsets of records, and their values.

Results and errors are those of the kernels. Well-formed records take a fast path, all others are parsed field by field.
"""

from __future__ import annotations

import re
from array import array
from dataclasses import dataclass

import numpy as np

from cntkpy.readers.common.labels import LabelMap
from cntkpy.readers.formats.uci.columns import Columns
from cntkpy.readers.kernels.text_codes import MISSING, MORE, STRAY_TEXT, TEXT_IN_FEATURES, UNKNOWN_LABEL

_NUMBER = re.compile(rb"[+-]?(\d+(?:\.\d*)?|\.\d+)([eE][+-]?\d+)?")
_SIMPLE = b"0123456789.- "
_FIELD = re.compile(rb"[^ \t\r]+")


@dataclass(frozen=True)
class Trouble:
    """A field that cannot be used: the error code, where it begins and ends in the text, its number, its record.

    MISSING: begin and end of the line, and how many fields it has; MORE: the text has more records than it should.
    """

    code: int
    begin: int = 0
    end: int = 0
    column: int = 0
    record: int = 0


def find_records(text: bytes, position: int, translation: bytes | None) -> tuple[np.ndarray, np.ndarray]:
    """Offset and line (from 0) of every record of a file, which begins `position` bytes before the text."""
    offsets: list[int] = []
    numbers: list[int] = []
    lines = text.split(b"\n")
    seen = lines if translation is None else text.translate(translation).split(b"\n")
    for number, (line, looked) in enumerate(zip(lines, seen, strict=True)):
        if looked.strip(b" \t\r"):
            offsets.append(position)
            numbers.append(number)
        position += len(line) + 1
    return np.array(offsets, np.int64), np.array(numbers, np.int64)


def parse(
    text: bytes,
    columns: Columns,
    translation: bytes | None,
    labels: LabelMap,
    may_add: bool,
    dtype: np.dtype,
    records: int,
) -> tuple[np.ndarray, np.ndarray] | Trouble | None:
    """Features (flat), and labels: ids, targets (flat) or nothing, of some records.

    None: not with such columns, or a number is infinite, which the kernels report with its place.
    """
    c = columns
    left, right = c.first_label, c.first_label + c.label_dim
    overlap = c.kind != "none" and left < c.first_feature + c.dim and c.first_feature < right
    if overlap or (c.kind == "category" and c.label_dim != 1):
        return None
    read = _Records(c, translation, labels, may_add)
    number = position = 0
    lines = text.split(b"\n")
    seen = lines if translation is None else text.translate(translation).split(b"\n")
    for line, looked in zip(lines, seen, strict=True):
        if looked.strip(b" \t\r"):
            if number == records:
                return Trouble(MORE)
            if (
                not read.quickly(line, looked)
                and (trouble := read.by_field(line, looked, position, number)) is not None
            ):
                return trouble
            number += 1
        position += len(line) + 1
    if number < records:
        return Trouble(MORE)
    features = _as(read.features, dtype)
    labels_read = np.array(read.ids, np.int32) if c.kind == "category" else _as(read.targets, dtype)
    return None if np.isinf(features).any() or np.isinf(labels_read).any() else (features, labels_read)


class _Records:
    """Reads records one after another."""

    def __init__(self, columns: Columns, translation: bytes | None, labels: LabelMap, may_add: bool):
        self.features, self.targets, self.ids = array("d"), array("d"), array("i")
        self._columns, self._translation, self._labels, self._may_add = columns, translation, labels, may_add
        c = columns
        self._labels_end = c.first_label + c.label_dim if c.kind != "none" else 0
        self._needed = max(c.first_feature + c.dim, self._labels_end)

    def quickly(self, line: bytes, looked: bytes) -> bool:
        """Read a record; False, and nothing is read, if something in it is odd. looked: with blanks as separators."""
        c, fields = self._columns, looked.split()
        if len(fields) < self._needed or b"\v" in looked or b"\f" in looked:
            return False
        position, number = c.first_feature, 0
        if c.kind == "category":
            label = fields.pop(c.first_label) if self._translation is None else _field(line, looked, c, fields)
            number = self._id(label)
            if number < 0:
                return False
            position -= c.first_label < position
        elif c.kind == "none":
            fields, position = fields[position : self._needed], 0
        # float() knows more numbers than there are here: inf, 1_0.
        if b" ".join(fields).translate(None, _SIMPLE) and not all(map(_NUMBER.fullmatch, fields)):
            return False
        try:
            numbers = list(map(float, fields))
        except ValueError:
            return False
        self.features.extend(numbers[position : position + c.dim])
        if c.kind == "category":
            self.ids.append(number)
        elif c.kind == "regression":
            self.targets.extend(numbers[c.first_label : self._labels_end])
        return True

    def _id(self, label: bytes) -> int:
        """Return the id of a label, which may be a new one; -1 if it has none."""
        number = self._labels.ids.get(label, -1)
        return self._labels.add(label) if number < 0 and self._may_add else number

    def by_field(self, line: bytes, looked: bytes, position: int, record: int) -> Trouble | None:
        """Read a record that begins at byte `position`, or say what is wrong with its first bad field."""
        c, column = self._columns, -1
        for column, match in enumerate(_FIELD.finditer(looked)):
            begin, end = match.span()
            is_label = c.kind != "none" and c.first_label <= column < self._labels_end
            is_feature = c.first_feature <= column < c.first_feature + c.dim
            code = None
            if is_label and c.kind == "category":
                number = self._id(line[begin:end])
                code = UNKNOWN_LABEL if number < 0 else None
                self.ids.append(number)
            elif _NUMBER.fullmatch(match[0]):
                if is_feature or is_label:
                    (self.features if is_feature else self.targets).append(float(match[0]))
            elif is_feature or c.kind != "none":
                code = TEXT_IN_FEATURES if is_feature else STRAY_TEXT
            if code is not None:
                return Trouble(code, position + begin, position + end, column, record)
        if column + 1 < self._needed:
            return Trouble(MISSING, position, position + len(line), column + 1, record)
        return None


def _as(numbers: array[float], dtype: np.dtype) -> np.ndarray:
    """Numbers of a type; those it cannot hold become infinite, as in the kernels."""
    with np.errstate(over="ignore"):
        return np.array(numbers, np.float64).astype(dtype)


def _field(line: bytes, looked: bytes, columns: Columns, fields: list[bytes]) -> bytes:
    """Take the label out of the fields of a line: as it is in the file."""
    match = list(_FIELD.finditer(looked))[columns.first_label]
    del fields[columns.first_label]
    return line[match.start() : match.end()]
