"""cntk.default_options: defaults of layers, and options of the whole process."""

from __future__ import annotations

from typing import Any

from cntkpy.networks.builders.python.functions.defaults import (
    PROCESS_OPTIONS,
    default_options,
    default_options_for,
    default_override_or,
    get_default_override,
    is_default_override,
)

from .missing import no_attribute


def set_global_option(key: str, value: Any) -> None:
    """Keep a value for the whole process.

    Args:
        key: its name; a program may choose names of its own. With 1 for CNTK's "align_axis" an index of what has a
            batch has a key for it first, `x[:, 1]`; numbers of axes count those of samples, as ever.
        value: the value.
    """
    PROCESS_OPTIONS[key] = value


def get_global_option(key: str, default_value: Any) -> Any:
    """Return the value of `set_global_option`; where there is none, `default_value`."""
    return PROCESS_OPTIONS.get(key, default_value)


__all__ = [
    "default_options", "default_options_for", "default_override_or", "get_default_override", "get_global_option",
    "is_default_override", "set_global_option",
]  # fmt: skip

__getattr__ = no_attribute("cntk.default_options", __all__)
