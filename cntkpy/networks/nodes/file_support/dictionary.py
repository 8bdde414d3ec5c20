"""CNTK's dictionaries (the later format, docs/specification/model-files.md 4): messages to plain values.

A value becomes a `bool`, `int`, `float`, `str`, a shape (`tuple`), an `AxisValue`, a `list`, a `Table` or an `Array`;
`None` if it is empty.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import numpy as np

from cntkpy.networks.graph import shapes
from cntkpy.networks.graph.shapes import Shape
from cntkpy.networks.nodes.file_support.records import BadFile, NotSupported
from cntkpy.networks.nodes.file_support.wire import Field, Span, fields, reals, varints

DEEPEST = 64
"""Dictionaries and lists may be nested so deep."""

MAX_RANK = 64

INFERRED, UNKNOWN, FREE = 2**64 - 1, 2**64 - 2, 2**64 - 3
"""Dimensions with a meaning of their own."""

_FLOAT, _DOUBLE, _HALF = 1, 2, 4
_ELEMENTS = {_FLOAT: "float", _DOUBLE: "double", _HALF: "half", 5: "int8", 6: "int16"}

T = TypeVar("T")


@dataclass(frozen=True)
class AxisValue:
    """An axis: static (`index`), or dynamic with a name."""

    index: int
    name: str
    ordered: bool


@dataclass(frozen=True, eq=False)
class Array:
    """A dense array: `values` with the first axis of `shape` fastest; `double` as stored."""

    shape: Shape
    values: np.ndarray
    double: bool


@dataclass(frozen=True)
class Table:
    """A dictionary, and where it begins in the file."""

    entries: Mapping[str, object]
    at: int

    def __contains__(self, key: str) -> bool:
        return key in self.entries

    def get(self, key: str, kind: type[T], default: T) -> T:
        """Return a value that may be missing, of a certain type."""
        value = self.entries.get(key)
        return default if value is None else self._checked(key, kind, value)

    def _checked(self, key: str, kind: type[T], value: object) -> T:
        if kind is float and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise BadFile(f"'{key}' is {_word(value)}, not {_NAMES[kind]}", self.at)
        return cast("T", value)

    def need(self, key: str, kind: type[T], owner: str) -> T:
        """Return a required value; `owner` names the dictionary in the message."""
        if self.entries.get(key) is None:
            raise BadFile(f"{owner} has no '{key}'", self.at)
        return self._checked(key, kind, self.entries[key])


_NAMES: dict[type, str] = {
    bool: "a bool",
    int: "a whole number",
    float: "a number",
    str: "a text",
    tuple: "a shape",
    list: "a list",
    Table: "a dictionary",
    AxisValue: "an axis",
    Array: "an array",
}


def _word(value: object) -> str:
    return _NAMES.get(cast("type[Any]", type(value)), "something else")


def parse_dictionary(content: bytes) -> Table:
    """Return the outermost dictionary of a file.

    Raises:
        BadFile: damaged, with the offset.
        NotSupported: an array of a kind that models do not have.
    """
    return _table(Span(content, 0, len(content)), 0)


def _deeper(span: Span, depth: int) -> int:
    if depth >= DEEPEST:
        raise BadFile(f"dictionaries are nested more than {DEEPEST} deep", span.start)
    return depth + 1


def _table(span: Span, depth: int) -> Table:
    depth = _deeper(span, depth)
    entries: dict[str, Any] = {}
    for field in fields(span):
        if field.number != 2:
            continue
        key, value = "", None
        for part in fields(field.message()):
            if part.number == 1:
                key = part.text()
            elif part.number == 2:
                value = _value(part.message(), depth)
        entries[key] = value
    return Table(entries, span.start)


def _value(span: Span, depth: int) -> object:
    kind = 0
    result: dict[int, Field] = {}
    for field in fields(span):
        if field.number == 2:
            kind = field.varint()
        else:
            result[field.number] = field
    if kind == 0:
        return None
    if kind not in _READERS:
        raise BadFile(f"a value has the unknown type {kind}", span.start)
    number, default, read = _READERS[kind]
    if number not in result:
        return default()
    return read(result[number], depth)


def _list(span: Span, depth: int) -> list[object]:
    depth = _deeper(span, depth)
    return [_value(field.message(), depth) for field in fields(span) if field.number == 1]


def _shape(span: Span) -> Shape:
    dims = tuple(varints([field for field in fields(span) if field.number == 1]))
    if len(dims) > MAX_RANK:
        raise BadFile(f"a shape of {len(dims)} axes", span.start)
    return dims


def _axis(span: Span) -> AxisValue:
    index, name, ordered = 0, "", False
    for field in fields(span):
        if field.number == 1:
            index = field.integer()
        elif field.number == 2:
            name = field.text()
        elif field.number == 3:
            ordered = bool(field.varint())
    return AxisValue(index, name, ordered)


def _array(span: Span) -> Array:
    element, storage, shape = 0, 0, ()
    runs: list[Field] = []
    for field in fields(span):
        if field.number == 1:
            element = field.varint()
        elif field.number == 2:
            storage = field.varint()
        elif field.number == 3:
            shape = _shape(field.message())
        elif field.number in (4, 5):
            runs += [part for part in fields(field.message()) if part.number == 1]
    if storage:
        raise NotSupported(f"the array at byte {span.start} is sparse")
    if element not in (_FLOAT, _DOUBLE, _HALF):
        raise NotSupported(f"the array at byte {span.start} has elements of type {_ELEMENTS.get(element, element)}")
    dtype = np.dtype("<f8" if element == _DOUBLE else "<f4")
    values = reals(runs, dtype) if runs else np.zeros(0, dtype)
    if values.size != shapes.size(shape):
        raise BadFile(f"{values.size} values do not fit the shape {shapes.text(shape or (1,))}", span.start)
    return Array(shape, values, element == _DOUBLE)


_READERS: dict[int, tuple[int, Callable[[], Any], Callable[[Field, int], Any]]] = {
    1: (3, bool, lambda field, depth: bool(field.varint())),
    2: (4, int, lambda field, depth: field.integer()),
    3: (5, int, lambda field, depth: field.varint()),
    4: (6, float, lambda field, depth: field.real()),
    5: (7, float, lambda field, depth: field.real()),
    6: (8, str, lambda field, depth: field.text()),
    7: (9, tuple, lambda field, depth: _shape(field.message())),
    8: (10, lambda: AxisValue(0, "", False), lambda field, depth: _axis(field.message())),
    9: (11, list, lambda field, depth: _list(field.message(), depth)),
    10: (12, lambda: Table({}, 0), lambda field, depth: _table(field.message(), depth)),
    11: (13, lambda: None, lambda field, depth: _array(field.message())),
}
"""By type of a value: the field that holds it, its default, how it is read."""
