"""Defaults that a program sets for layers and leaves: `default_options`."""

# What programs give is of any type.
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false, reportUnknownMemberType=false

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from cntkpy.cntk_config.base.diagnostics import CallError, suggestion

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

DEFAULT: Any = object()
"""Stands for the argument of `default_options`, or for the layer's own."""

_defaults: list[dict[str, Any]] = [{}]

PROCESS_OPTIONS: dict[str, Any] = {}
"""The options of the whole process, see `set_global_option` of `cntk.default_options`."""

OPTIONS = (
    "activation", "axis_offset", "bias", "disable_regularization", "dtype", "enable_self_stabilization", "epsilon",
    "go_backwards",
    "init", "init_bias", "initial_state", "map_rank", "normalization_time_constant", "pad", "use_cntk_engine",
    "use_peepholes",
)  # fmt: skip
"""Names of the options of `default_options`."""

HALF, SINGLE, DOUBLE = np.dtype(np.float16), np.dtype(np.float32), np.dtype(np.float64)


class default_override_or:  # CNTK's name, which programs call like a function
    """The default of an argument of a program's own layer: what `default_options` says, else this value.

    Args:
        value: the value.
    """

    def __init__(self, value: object) -> None:
        self.value = value


def is_default_override(value: object) -> bool:
    """Return whether an argument was not given: it is a `default_override_or`."""
    return isinstance(value, default_override_or)


def get_default_override(function_or_class: Callable[..., object] | None, **kwargs: object) -> Any:
    """Return an argument of a program's own layer as given; where it is a `default_override_or`, the default of now.

    Args:
        function_or_class: the layer: the function or class whose argument it is; None: only defaults for all layers
            count.
        kwargs: the argument, one: `get_default_override(MyLayer, activation=activation)`.

    Raises:
        UserError: there is not one argument.
    """
    if len(kwargs) != 1:
        message = f"get_default_override takes one argument of a layer by its name, not {len(kwargs)}"
        raise CallError("WrongArguments", message, hint="get_default_override(MyLayer, activation=activation)")
    ((name, value),) = kwargs.items()
    layer = "" if function_or_class is None else function_or_class.__name__
    return chosen(layer, name, value, None)


@contextmanager
def default_options(**kwargs: object) -> Generator[None]:
    """Set defaults of the layers and leaves made inside of a `with` statement: init, activation, dtype, pad, ...

    Other names are those of a program's own layers, which call `get_default_override`.

    Warns:
        UserWarning: a name is nearly that of a default of layers, so that it is probably misspelt.
    """
    for name, value in kwargs.items():
        if name not in OPTIONS and (hint := suggestion(name, OPTIONS)):
            message = f"layers have no default '{name}' ({hint}); only layers of the program use it"
            warnings.warn(message, UserWarning, stacklevel=3)
        _check(name, value)
    yield from _with(kwargs)


@contextmanager
def default_options_for(
    functions: Callable[..., object] | Sequence[Callable[..., object]], **kwargs: object
) -> Generator[None]:
    """Other defaults for some layers: functions of `layers`, or of a program that calls `get_default_override`.

    Raises:
        UserError: a layer has no argument of that name.
    """
    several: list[Any] = list(functions) if isinstance(functions, list | tuple) else [functions]
    for constructor in several:
        arguments = inspect.signature(constructor).parameters.items()
        known = {*OPTIONS, *(name for name, argument in arguments if is_default_override(argument.default))}
        for name, value in kwargs.items():
            if name not in known:
                message, hint = f"{constructor.__name__} has no default '{name}'", suggestion(name, sorted(known))
                raise CallError("UnknownArgument", message, hint=hint or f"there are: {', '.join(sorted(known))}")
            _check(name, value)
    yield from _with(
        {f"{constructor.__name__}.{key}": value for constructor in several for key, value in kwargs.items()}
    )


def _check(name: str, value: Any) -> None:
    if name == "dtype":
        checked_dtype(value)


def _with(options: dict[str, object]) -> Generator[None]:
    """These defaults until the generator ends."""
    _defaults.append({**_defaults[-1], **options})
    try:
        yield
    finally:
        _defaults.pop()


def chosen(layer: str, name: str, value: object, fallback: object) -> Any:
    """Return an argument as given, else of `default_options`, else the layer's own."""
    if isinstance(value, default_override_or):
        value, fallback = DEFAULT, value.value
    if value is not DEFAULT:
        return value
    options = _defaults[-1]
    return options.get(f"{layer}.{name}", options.get(name, fallback))


def checked_dtype(dtype: DTypeLike | None) -> np.dtype[np.generic]:
    """Half, single or double precision.

    Raises:
        UserError: it is something else.
    """
    try:
        checked = np.dtype(np.float32 if isinstance(dtype, str) and dtype == "float" else dtype)
    except TypeError:
        checked = np.dtype(object)
    if dtype is None or checked not in (HALF, SINGLE, DOUBLE):
        message = f"a dtype is numpy.float16, numpy.float32 or numpy.float64, not {dtype!r}"
        raise CallError("WrongArguments", message)
    return checked


def kept_dtype(dtype: DTypeLike | None) -> np.dtype[np.generic]:
    """Return the type in which parameters of a precision are kept: those of half precision in single."""
    return SINGLE if dtype == HALF else np.dtype(dtype)


def chosen_dtype(leaf: str, dtype: DTypeLike | None) -> np.dtype[np.generic] | None:
    """Return the precision of a leaf or of a layer's parameters as given, else of `default_options`; None: neither
    says.
    """
    wanted = chosen(leaf, "dtype", DEFAULT if dtype is None else dtype, None)
    return None if wanted is None else checked_dtype(wanted)
