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
    known = [np.dtype(one.dtype) for one in args if getattr(one, "dtype", None) is not None]
    known += [np.dtype(one) for one in args if isinstance(one, type) and issubclass(one, np.floating)]
    floats = [one for one in known if one.kind == "f"]
    return max(floats, key=lambda one: one.itemsize).type if floats else np.float32 if known else None


def get_python_function_arguments(f: Callable[..., Any]) -> tuple[list[str], dict[str, Any]]:
    """The names of the parameters that a Python function takes, and their annotations."""
    parameters = inspect.signature(f).parameters.values()
    named = [one for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    required = [one for one in named if one.default is one.empty]
    return [one.name for one in required], {
        one.name: one.annotation for one in required if one.annotation is not one.empty
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
    found = dict(zip(params, args, strict=False))
    for name, value in kwargs.items():
        if name not in params_dict:
            raise TypeError(f"the function has no parameter '{name}': {', '.join(params_dict)}")
        if params_dict[name] in found:
            raise TypeError(f"the argument '{name}' is given twice")
        found[params_dict[name]] = value
    return found


__all__ = ["Record", "_as_tuple", "get_data_type", "get_python_function_arguments", "map_function_arguments"]

__getattr__ = no_attribute("cntk.internal.utils", __all__)
