"""Arguments of programs: each wrong one is an error that says what was expected."""

# What programs give is of any type.
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import inspect
import json
import math
from typing import Any

import numpy as np

from cntkpy.cntk_config.base.diagnostics import shorten
from cntkpy.networks.builders.python.functions.checks import is_path
from cntkpy.readers.errors import ArgumentError


def is_number(value: Any) -> bool:
    """Return whether it is a finite number, of Python or of numpy."""
    kinds = int | float | np.integer | np.floating
    return isinstance(value, kinds) and not isinstance(value, bool) and math.isfinite(value)


def is_whole(value: Any) -> bool:
    """Return whether it is a whole number."""
    return is_number(value) and int(value) == value


def check_range(name: str, argument: str, value: Any, least: float, below: float = math.inf) -> None:
    """An argument that is a number from `least` on, and smaller than `below`."""
    if not is_number(value) or not least <= value < below:
        until = "on" if below == math.inf else f"to {below:g} (exclusive)"
        raise ArgumentError(f"{name}: {argument} is a number from {least:g} {until}, not {value!r}")


def check_count(name: str, value: Any) -> None:
    """A number of things, or None for no limit."""
    if value is not None and (not is_whole(value) or value < 0):
        raise ArgumentError(f"{name} is a whole number from 0 on, not {value!r}", "None: until the data end")


def check_flag(name: str, argument: str, value: object) -> None:
    """An argument that is True or False."""
    if not isinstance(value, bool | np.bool_) and value not in (0, 1):
        raise ArgumentError(f"{name}: {argument} is True or False, not {value!r}")


def check_type(name: str, value: object, kind: type[Any], hint: str) -> None:
    """An argument that is of some type."""
    if not isinstance(value, kind):
        raise ArgumentError(f"{name} is a {kind.__name__}, not {shorten(repr(value))}", hint)


def check_filename(value: object) -> None:
    """The name of a model file."""
    if not is_path(value):
        raise ArgumentError(f"the name of a model file is a text or a path, not {value!r}")


def check_json(external_state: object) -> None:
    """Check that the values that a program keeps in a checkpoint can be read again."""
    try:
        json.dumps(external_state)
    except (TypeError, ValueError) as error:
        hint = "numbers, texts, lists and dictionaries of them; float(n), n.item() and array.tolist() make such"
        raise ArgumentError(f"external_state is stored as JSON: {error}", hint) from None


def check_callback(value: object) -> None:
    """The callback of a cross validation takes four arguments."""
    hint = "def callback(index, metric, samples, minibatches): return True"
    if not callable(value):
        raise ArgumentError(f"a callback is a function, not {value!r}", hint)
    try:
        inspect.signature(value).bind(0, 0.0, 0, 0)
    except TypeError as error:
        raise ArgumentError(f"the callback of a cross validation takes four arguments: {error}", hint) from None
    except ValueError:
        pass  # a function of C, whose arguments are not known
