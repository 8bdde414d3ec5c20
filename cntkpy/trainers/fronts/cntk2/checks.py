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


def is_number(given: Any) -> bool:
    """Whether it is a finite number, of Python or of numpy."""
    kinds = int | float | np.integer | np.floating
    return isinstance(given, kinds) and not isinstance(given, bool) and math.isfinite(given)


def is_whole(given: Any) -> bool:
    """Whether it is a whole number."""
    return is_number(given) and int(given) == given


def check_range(name: str, argument: str, given: Any, least: float, below: float = math.inf) -> None:
    """An argument that is a number from `least` on, and smaller than `below`."""
    if not is_number(given) or not least <= given < below:
        until = "on" if below == math.inf else f"to {below:g} (exclusive)"
        raise ArgumentError(f"{name}: {argument} is a number from {least:g} {until}, not {given!r}")


def check_count(name: str, given: Any) -> None:
    """A number of things, or None for no limit."""
    if given is not None and (not is_whole(given) or given < 0):
        raise ArgumentError(f"{name} is a whole number from 0 on, not {given!r}", "None: until the data end")


def check_flag(name: str, argument: str, given: Any) -> None:
    """An argument that is True or False."""
    if not isinstance(given, bool | np.bool_) and given not in (0, 1):
        raise ArgumentError(f"{name}: {argument} is True or False, not {given!r}")


def check_type(what: str, given: Any, kind: type[Any], hint: str) -> None:
    """An argument that is of some type."""
    if not isinstance(given, kind):
        raise ArgumentError(f"{what} is a {kind.__name__}, not {shorten(repr(given))}", hint)


def check_filename(given: Any) -> None:
    """The name of a model file."""
    if not is_path(given):
        raise ArgumentError(f"the name of a model file is a text or a path, not {given!r}")


def check_json(external_state: Any) -> None:
    """What a program keeps in a checkpoint can be read again."""
    try:
        json.dumps(external_state)
    except (TypeError, ValueError) as error:
        hint = "numbers, texts, lists and dictionaries of them; float(n), n.item() and array.tolist() make such"
        raise ArgumentError(f"external_state is stored as JSON: {error}", hint) from None


def check_callback(given: Any) -> None:
    """The callback of a cross validation takes four arguments."""
    hint = "def callback(index, metric, samples, minibatches): return True"
    if not callable(given):
        raise ArgumentError(f"a callback is a function, not {given!r}", hint)
    try:
        inspect.signature(given).bind(0, 0.0, 0, 0)
    except TypeError as error:
        raise ArgumentError(f"the callback of a cross validation takes four arguments: {error}", hint) from None
    except ValueError:
        pass  # a function of C, whose arguments are not known
