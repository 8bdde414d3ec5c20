"""Defaults that a program sets for layers and leaves: `default_options`."""

# What programs give is of any type.
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import contextmanager
from typing import Any

import numpy as np

from cntk_config.base.diagnostics import UserError, suggestion

DEFAULT: Any = object()
"""Stands for the argument of `default_options`, or for the layer's own."""

_defaults: list[dict[str, Any]] = [{}]

OPTIONS = (
    "activation", "bias", "disable_regularization", "dtype", "enable_self_stabilization", "epsilon", "go_backwards",
    "init", "init_bias", "initial_state", "map_rank", "normalization_time_constant", "pad", "use_cntk_engine",
    "use_peepholes",
)  # fmt: skip
"""What `default_options` takes."""

SINGLE, DOUBLE = np.dtype(np.float32), np.dtype(np.float64)


@contextmanager
def default_options(**options: Any) -> Generator[None]:
    """Other defaults for the layers and leaves made inside of a `with` statement: init, activation, dtype, pad, ..."""
    for key, value in options.items():
        name = key.rpartition(".")[2]
        if name not in OPTIONS:
            hint = suggestion(name, OPTIONS) or f"there are: {', '.join(OPTIONS)}"
            raise UserError("UnknownArgument", f"layers have no default '{name}'", hint=hint)
        if name == "dtype":
            checked_dtype(value)
    _defaults.append({**_defaults[-1], **options})
    try:
        yield
    finally:
        _defaults.pop()


@contextmanager
def default_options_for(layers: Any, **options: Any) -> Generator[None]:
    """Other defaults for some layers: a function of this module, or several."""
    several: Iterable[Any] = layers if isinstance(layers, list | tuple) else [layers]
    with default_options(**{f"{one.__name__}.{key}": value for one in several for key, value in options.items()}):
        yield


def chosen(layer: str, name: str, given: Any, own: Any) -> Any:
    """An argument as given, else of `default_options`, else the layer's own."""
    if given is not DEFAULT:
        return given
    options = _defaults[-1]
    return options.get(f"{layer}.{name}", options.get(name, own))


def checked_dtype(given: Any) -> np.dtype[Any]:
    """Single or double precision.

    Raises:
        UserError: it is something else.
    """
    try:
        found = np.dtype(np.float32 if isinstance(given, str) and given == "float" else given)
    except TypeError:
        found = np.dtype(object)
    if given is None or found not in (SINGLE, DOUBLE):
        hint = "networks compute in single or in double precision" if found == np.float16 else ""
        raise UserError("WrongArguments", f"a dtype is numpy.float32 or numpy.float64, not {given!r}", hint=hint)
    return found


def chosen_dtype(leaf: str, given: Any) -> np.dtype[Any] | None:
    """The precision of a leaf or of a layer's parameters as given, else of `default_options`; None: neither says."""
    wanted = chosen(leaf, "dtype", DEFAULT if given is None else given, None)
    return None if wanted is None else checked_dtype(wanted)
