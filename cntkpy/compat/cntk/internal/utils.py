"""cntk.internal.utils: helpers that libraries on top of CNTK 2 import."""

# What programs give is of any type.
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false, reportUnknownMemberType=false

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from cntkpy.readers import Record

from ..missing import no_attribute


def _as_tuple(x: Any) -> tuple[Any, ...]:
    """A tuple of a tuple or list; of anything else a tuple of that."""
    return tuple(x) if isinstance(x, list | tuple) else (x,)


def get_data_type(*args: Any) -> Any:
    """NumPy's element type that arguments have together: the widest one; None where none of them has one."""
    known = [np.dtype(argument.dtype) for argument in args if getattr(argument, "dtype", None) is not None]
    known += [
        np.dtype(argument) for argument in args if isinstance(argument, type) and issubclass(argument, np.floating)
    ]
    floats = [argument for argument in known if argument.kind == "f"]
    return max(floats, key=lambda argument: argument.itemsize).type if floats else np.float32 if known else None


def get_python_function_arguments(f: Callable[..., Any]) -> tuple[list[str], dict[str, Any]]:
    """The names of the parameters that a Python function takes, and their annotations."""
    parameters = inspect.signature(f).parameters.values()
    named = [
        parameter
        for parameter in parameters
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    ]
    required = [parameter for parameter in named if parameter.default is parameter.empty]
    return [parameter.name for parameter in required], {
        parameter.name: parameter.annotation for parameter in required if parameter.annotation is not parameter.empty
    }


def map_function_arguments(params: Any, params_dict: Mapping[str, Any], *args: Any, **kwargs: Any) -> dict[Any, Any]:
    """By parameter, the argument of a call.

    Args:
        params: the parameters in their order.
        params_dict: the parameters by name.
        args: the arguments by position.
        kwargs: those by name.

    Raises:
        TypeError: there are too many, or a name is not one of a parameter.
    """
    if len(args) > len(params):
        raise TypeError(f"the function takes {len(params)} arguments, {len(args)} were given")
    mapping = dict(zip(params, args, strict=False))
    for name, value in kwargs.items():
        if name not in params_dict:
            raise TypeError(f"the function has no parameter '{name}': {', '.join(params_dict)}")
        if params_dict[name] in mapping:
            raise TypeError(f"the argument '{name}' is given twice")
        mapping[params_dict[name]] = value
    return mapping


__all__ = ["Record", "_as_tuple", "get_data_type", "get_python_function_arguments", "map_function_arguments"]

__getattr__ = no_attribute("cntk.internal.utils", __all__)
