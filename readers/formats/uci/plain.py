"""Reading little UCI text without Numba: where its records lie, and records without anything odd in them.

What both functions give is what the kernels give. Text of which something is to be told is left to the kernels:
`parse` says that it cannot.
"""

from __future__ import annotations

import re
from array import array

import numpy as np

from readers.common.labels import LabelMap

from .columns import Columns

_NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_SIMPLE = b"0123456789.- "
_FIELD = re.compile(rb"[^ \t\r]+")


def find_records(text: bytes, at: int, translation: bytes | None) -> tuple[np.ndarray, np.ndarray]:
    """Offset and line (from 0) of every record of a file, which begins `at` bytes before the text."""
    offsets: list[int] = []
    numbers: list[int] = []
    lines = text.split(b"\n")
    seen = lines if translation is None else text.translate(translation).split(b"\n")
    for number, (line, looked) in enumerate(zip(lines, seen, strict=True)):
        if looked.strip(b" \t\r"):
            offsets.append(at)
            numbers.append(number)
        at += len(line) + 1
    return np.array(offsets, np.int64), np.array(numbers, np.int64)


def parse(
    text: bytes, columns: Columns, translation: bytes | None, labels: LabelMap, may_add: bool, dtype: np.dtype,
    records: int,
) -> tuple[np.ndarray, np.ndarray] | None:  # fmt: skip
    """Features (flat), and labels: ids, targets (flat) or nothing, of so many records; None: something is odd."""
    c = columns
    first, left, right = c.first_feature, c.first_label, c.first_label + c.label_dim
    needed = max(first + c.dim, right if c.kind != "none" else 0)
    overlap = c.kind != "none" and left < first + c.dim and first < right
    if overlap or (c.kind == "category" and c.label_dim != 1) or b"\v" in text or b"\f" in text:
        return None
    features, targets, ids = array("d"), array("d"), array("i")
    lines = text.split(b"\n")
    seen = lines if translation is None else text.translate(translation).split(b"\n")
    for line, looked in zip(lines, seen, strict=True):
        fields = looked.split()
        if not fields:
            continue
        if len(fields) < needed:
            return None
        at = first
        if c.kind == "category":
            label = fields.pop(left) if translation is None else _field(line, looked, left, fields)
            number = labels.ids.get(label, -1)
            if number < 0 and not may_add:
                return None
            ids.append(labels.add(label) if number < 0 else number)
            at -= left < first
        elif c.kind == "none":
            fields, at = fields[first:needed], 0
        # float() knows more numbers than there are here: inf, 1_0.
        if b" ".join(fields).translate(None, _SIMPLE) and not all(map(_NUMBER.fullmatch, fields)):
            return None
        try:
            numbers = list(map(float, fields))
        except ValueError:
            return None
        features.extend(numbers[at : at + c.dim])
        if c.kind == "regression":
            targets.extend(numbers[left:right])
    if len(features) != records * c.dim:
        return None
    found = np.array(ids, np.int32) if c.kind == "category" else _as(targets, dtype)
    return _as(features, dtype), found


def _as(numbers: array[float], dtype: np.dtype) -> np.ndarray:
    """Numbers of a type; those it cannot hold become infinite, as in the kernels."""
    with np.errstate(over="ignore"):
        return np.array(numbers, np.float64).astype(dtype)


def _field(line: bytes, looked: bytes, number: int, fields: list[bytes]) -> bytes:
    """Take a field out of those of a line: as it stands in the file."""
    found = list(_FIELD.finditer(looked))[number]
    del fields[number]
    return line[found.start() : found.end()]
