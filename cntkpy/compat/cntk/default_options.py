"""cntk.default_options: defaults of layers, and options of the whole process."""

from __future__ import annotations

from typing import Any

from cntkpy.networks.builders.python.functions.defaults import (
    default_options,
    default_options_for,
    default_override_or,
    get_default_override,
    is_default_override,
)
from cntkpy.readers.errors import ArgumentError

from .missing import no_attribute

_global: dict[str, Any] = {}

ALIGN_AXIS = "align_axis"
"""CNTK's option whose value 1 lets axis numbers count dynamic axes as well."""


def set_global_option(key: str, value: Any) -> None:
    """Keep a value for the whole process.

    Args:
        key: its name; a program may choose names of its own.
        value: the value.

    Raises:
        ArgumentError: it would let axis numbers count dynamic axes ("align_axis").
    """
    if key == ALIGN_AXIS and value:
        hint = "count the axes of a sample: 0 is its first one, Axis.default_batch_axis() the minibatch"
        message = f"set_global_option('{key}', {value!r}): numbers of axes count those of samples only"
        raise ArgumentError(message, hint=hint)
    _global[key] = value


def get_global_option(key: str, default_value: Any) -> Any:
    """The value of `set_global_option`; where there is none, `default_value`."""
    return _global.get(key, default_value)


__all__ = [
    "default_options",
    "default_options_for",
    "default_override_or",
    "get_default_override",
    "get_global_option",
    "is_default_override",
    "set_global_option",
]

__getattr__ = no_attribute("cntk.default_options", __all__)
