"""The half of an exchange for PyTorch, which is imported when a value is assigned."""

# PyTorch is not needed otherwise: its objects have no types here.
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false, reportUnknownMemberType=false
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from cntkpy.cntk_config.base.diagnostics import CallError, UserError

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

GATES = (0, 2, 1, 3)
"""PyTorch has the gates input, forgetting, new value, output: the middle two are exchanged."""


class PyTorchCrosstalk(Crosstalk):
    """Watches tensors and layers of PyTorch.

    - A tensor: its value. What is assigned is copied into it, so that a view may be watched: the weight of
      `torch.nn.Linear` as `layer.weight.t()` has the shape of W of a `Dense` layer.
    - Of `Conv2DAttr`, `EmbedAttr`, `RnnAttr`: a `torch.nn.Conv2d`, `Embedding`, `LSTM` of one layer.
    """

    def __init__(self) -> None:
        super().__init__()
        self.register_funcs(PARAMETER, lambda var, value, attr: _copy(var, value), lambda var, attr: _array(var))
        self.register_funcs(VALUE, None, lambda var, attr: _array(var))
        self.register_funcs(Conv2DAttr, _set_convolution, _convolution)
        self.register_funcs(EmbedAttr, _set_embedding, lambda var, attr: embed_args(_array(var.weight), attr))
        self.register_funcs(RnnAttr, _set_recurrence, _recurrence)

    def type_of(self, var: Any) -> Any:
        """A leaf that has a gradient, and a view of one, is a parameter; other tensors are computed."""
        base = var if getattr(var, "_base", None) is None else var._base
        return PARAMETER if getattr(base, "is_leaf", False) and getattr(base, "requires_grad", False) else VALUE


def _array(tensor: Any) -> Any:
    return np.array(tensor.detach().cpu().numpy())


def _copy(tensor: Any, value: Any) -> None:
    """Copy an array into a tensor of the same shape.

    Raises:
        UserError: it has another one.
    """
    torch: Any = importlib.import_module("torch")
    array = np.array(value)
    if tuple(tensor.shape) != array.shape:
        raise UserError("BadShape", f"crosstalk: a value of shape {array.shape} for a tensor of {tuple(tensor.shape)}")
    with torch.no_grad():
        tensor.detach().copy_(torch.from_numpy(array))


def _convolution(var: Any, attr: Conv2DAttr) -> Conv2DArgs:
    filters = _array(var.weight)
    return Conv2DArgs(filters, _array(var.bias) if attr.has_bias else np.zeros(0, filters.dtype))


def _set_convolution(var: Any, value: Any, attr: Conv2DAttr) -> None:
    _copy(var.weight, value[0])
    if attr.has_bias:
        _copy(var.bias, value[1])


def _set_embedding(var: Any, value: Any, attr: EmbedAttr) -> None:
    _copy(var.weight, table_of(value, attr, _array(var.weight)))


def _suffixes(attr: RnnAttr) -> list[str]:
    return ["_l0", "_l0_reverse"][: 1 + attr.bidirectional]


def _gates_exchanged(array: Any) -> Any:
    """An array whose first axis has the four gates, in the order of the other toolkit."""
    return np.concatenate([np.split(array, 4)[gate] for gate in GATES])


def _recurrence(var: Any, attr: RnnAttr) -> Any:
    if getattr(var, "num_layers", 1) != 1 or getattr(var, "bidirectional", attr.bidirectional) != attr.bidirectional:
        hint = "watch an LSTM of one layer, with RnnAttr(bidirectional=...) as it is"
        raise CallError(
            "WrongArguments", f"crosstalk: {var} is not one layer of an LSTM as its RnnAttr says", hint=hint
        )
    parts: list[tuple[Any, Any, Any]] = []
    for suffix in _suffixes(attr):
        w, h = (_gates_exchanged(_array(getattr(var, f"weight_{kind}{suffix}"))) for kind in ("ih", "hh"))
        biases = [_array(getattr(var, f"bias_{kind}{suffix}")) for kind in ("ih", "hh")] if var.bias else []
        parts.append((w.T, h.T, _gates_exchanged(sum(biases, np.zeros(len(w), w.dtype)))))
    return rnn_args(parts, attr)


def _set_recurrence(var: Any, value: Any, attr: RnnAttr) -> None:
    if not var.bias:
        raise UserError("NotSupported", f"crosstalk: {var} has no biases", hint="torch.nn.LSTM(..., bias=True)")
    for suffix, (w, h, b) in zip(_suffixes(attr), directions_of(value, attr), strict=True):
        _copy(getattr(var, f"weight_ih{suffix}"), _gates_exchanged(w.T))
        _copy(getattr(var, f"weight_hh{suffix}"), _gates_exchanged(h.T))
        _copy(getattr(var, f"bias_ih{suffix}"), _gates_exchanged(b))
        _copy(getattr(var, f"bias_hh{suffix}"), np.zeros_like(b))


instance = PyTorchCrosstalk()
"""That of this program."""

__all__ = ["PyTorchCrosstalk", "instance"]
