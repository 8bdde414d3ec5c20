"""Fields of columns of structs as columns of their own: `place.city` is the field `city` of the column `place`."""

from __future__ import annotations

from typing import Any

from .library import arrow, compute
from .plain import plain_array, storage, storage_type

_MOST_NAMES = 100
"""Names in a message."""


def top_of(schema: Any, name: str) -> str:
    """Return the column that a name is in: itself, or the column of structs before a dot.

    Args:
        schema: of the table.
        name: of a column, or of a field of one.
    """
    return name if name in schema.names else _steps(schema, name)[0]


def nested_field(schema: Any, name: str) -> Any:
    """Return the field of a name with dots; None if there is none. It may be null where a struct around it may be."""
    top, *steps = _steps(schema, name)
    if not steps or schema.names.count(top) != 1:
        return None
    field = schema.field(top)
    for step in steps:
        kind = storage_type(field.type)
        if not arrow().types.is_struct(kind) or kind.get_field_index(step) < 0:
            return None
        field = kind.field(step)
    return arrow().field(name, field.type, True, field.metadata)


def nested_names(schema: Any, column: str) -> list[str]:
    """Return the names of the fields of a column that are no structs themselves; none if it has none."""
    names: list[str] = []
    ahead = [(column, schema.field(column).type)]
    while ahead and len(names) < _MOST_NAMES:
        name, kind = ahead.pop(0)
        kind = storage_type(kind)
        if arrow().types.is_struct(kind):
            ahead = [(f"{name}.{field.name}", field.type) for field in kind] + ahead
        elif name != column:
            names.append(name)
    return names


def nested_array(array: Any, schema: Any, name: str) -> Any:
    """Return the values of a name out of an array of its column, of a plain type.

    They are null where a struct around them is.
    """
    for step in [] if name in schema.names else _steps(schema, name)[1:]:
        array = compute().struct_field(storage(array), [step])
    return plain_array(array)


def _steps(schema: Any, name: str) -> list[str]:
    """Return a column, and fields one within the other; the column is the longest one that the name begins with."""
    parts = name.split(".")
    for count in range(len(parts) - 1, 0, -1):
        if (top := ".".join(parts[:count])) in schema.names:
            return [top, *parts[count:]]
    return [name]
