"""`isinstance` for values of any type, in words that a type checker knows the elements of: they too are of any type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeGuard


def is_several(value: Any) -> TypeGuard[list[Any] | tuple[Any, ...]]:
    """Return whether it is a list or a tuple."""
    return isinstance(value, list | tuple)


def is_list(value: Any) -> TypeGuard[list[Any]]:
    """Return whether it is a list."""
    return isinstance(value, list)


def is_tuple(value: Any) -> TypeGuard[tuple[Any, ...]]:
    """Return whether it is a tuple."""
    return isinstance(value, tuple)


def is_mapping(value: Any) -> TypeGuard[Mapping[Any, Any]]:
    """Return whether it is a mapping, as a dict is."""
    return isinstance(value, Mapping)


def is_dict(value: Any) -> TypeGuard[dict[Any, Any]]:
    """Return whether it is a dict."""
    return isinstance(value, dict)
