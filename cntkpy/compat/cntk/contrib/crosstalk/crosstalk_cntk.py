"""The half of an exchange for networks of this package."""

# Programs watch functions and layers.
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from cntkpy.cntk_config.base.diagnostics import CallError, UserError, shorten

from .exchange import Crosstalk
from .forms import (
    PARAMETER,
    VALUE,
    Conv2DArgs,
    Conv2DAttr,
    EmbedAttr,
    RnnAttr,
    directions_of,
    embed_args,
    rnn_args,
    table_of,
)


class CNTKCrosstalk(Crosstalk):
    """Watches parameters, functions and layers of this package.

    - A parameter or constant: its value, of the same shape in both programs.
    - A function: what it gives of the data of `set_data`.
    - Of `Conv2DAttr`, `EmbedAttr`, `RnnAttr`: a function whose nearest parameters W and b, E, or W, H and b are those
      of the layer; of a bidirectional one a pair of functions, forwards and backwards.
    """

    def __init__(self) -> None:
        super().__init__()
        self._data: Mapping[Any, Any] = {}
        self.register_funcs(PARAMETER, _set_parameter, lambda var, attr: np.asarray(var.value))
        self.register_funcs(VALUE, None, lambda var, attr: self._evaluated(var))
        self.register_funcs(Conv2DAttr, _set_convolution, _convolution)
        self.register_funcs(EmbedAttr, _set_embedding, lambda var, attr: embed_args(np.asarray(var.E.value), attr))
        self.register_funcs(RnnAttr, _set_recurrence, _recurrence)

    def reset(self) -> None:
        """Forget what is watched and compared, and the data."""
        super().reset()
        self._data = {}

    def set_data(self, data: Mapping[Any, Any]) -> None:
        """Say what functions are computed of: data by input."""
        self._data = dict(data)

    def type_of(self, var: Any) -> Any:
        """A parameter or a constant has a value of its own, other functions are computed."""
        return PARAMETER if getattr(var, "is_parameter", False) or getattr(var, "is_constant", False) else VALUE

    def _evaluated(self, var: Any) -> Any:
        missing = [argument for argument in var.arguments if argument not in self._data]
        if missing:
            message = f"crosstalk: there are no data for the input {missing[0]!r}"
            raise UserError("MissingStream", message, hint="set_data({x: array})")
        return var.eval({argument: self._data[argument] for argument in var.arguments})


def _set_parameter(var: Any, value: Any, attr: Any) -> None:
    del attr
    _give(var, np.asarray(value))


def _give(parameter: Any, array: Any) -> None:
    """Let a parameter have a value of its own shape.

    Raises:
        UserError: it has another one.
    """
    target = parameter.shape
    if -1 not in target and target != array.shape:
        raise UserError("BadShape", f"crosstalk: a value of shape {array.shape} for {parameter!r} of shape {target}")
    parameter.value = array


def _convolution(var: Any, attr: Conv2DAttr) -> Conv2DArgs:
    filters = np.asarray(var.W.value)
    return Conv2DArgs(filters, np.asarray(var.b.value).reshape(-1) if attr.has_bias else np.zeros(0, filters.dtype))


def _set_convolution(var: Any, value: Conv2DArgs, attr: Conv2DAttr) -> None:
    _give(var.W, np.asarray(value[0]))
    if attr.has_bias:
        _give(var.b, np.asarray(value[1]).reshape(var.b.shape))


def _set_embedding(var: Any, value: Any, attr: EmbedAttr) -> None:
    _give(var.E, table_of(value, attr, np.asarray(var.E.value)))


def _layers(var: Any, attr: RnnAttr) -> list[Any]:
    """The recurrences of a layer, forwards and backwards."""
    if not attr.bidirectional:
        return [var]
    if not isinstance(var, tuple | list) or len(var) != 2:
        message = f"crosstalk: a bidirectional layer is a pair of functions, not {shorten(repr(var))}"
        raise CallError("WrongArguments", message, hint="watch((forwards, backwards), name, attr=RnnAttr(True))")
    return list(var)


def _recurrence(var: Any, attr: RnnAttr) -> Any:
    parts = [tuple(np.asarray(getattr(layer, name).value) for name in "WHb") for layer in _layers(var, attr)]
    return rnn_args(parts, attr)  # pyright: ignore[reportArgumentType]


def _set_recurrence(var: Any, value: Any, attr: RnnAttr) -> None:
    for layer, parts in zip(_layers(var, attr), directions_of(value, attr), strict=True):
        for name, array in zip("WHb", parts, strict=True):
            _give(getattr(layer, name), array)


instance = CNTKCrosstalk()
"""That of this program."""

__all__ = ["CNTKCrosstalk", "instance"]
