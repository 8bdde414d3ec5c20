"""Watched variables, and the form of values of layers in files, the same for all toolkits."""

# Variables are of any toolkit.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cntkpy.cntk_config.base.diagnostics import CallError, UserError, shorten

Array = NDArray[Any]

PARAMETER = "parameter"
"""The type of what has a value of its own, which can be assigned."""
VALUE = "value"
"""The type of what is computed."""


class VarInfo(NamedTuple):
    """A watched variable.

    **Fields:**

    - `var`: the variable, of the toolkit.
    - `type`: how it is read and written: `PARAMETER`, `VALUE`, or the class of `attr`.
    - `attr`: what else is known of it.
    """

    var: Any
    type: Any
    attr: Any


class FuncInfo(NamedTuple):
    """The functions that write and read values of a type.

    **Fields:**

    - `setter`: a function of the variable, the value and `attr`; None: nothing can be assigned.
    - `getter`: a function of the variable and `attr` that gives the value.
    """

    setter: Callable[[Any, Any, Any], None] | None
    getter: Callable[[Any, Any], Any] | None


class Conv2DAttr(NamedTuple):
    """A layer of a two-dimensional convolution, and whether it adds a bias."""

    has_bias: bool = True


class Conv2DArgs(NamedTuple):
    """Filters of the shape (filters, channels, rows, columns), and biases (filters,)."""

    W: Array
    b: Array


class EmbedAttr(NamedTuple):
    """A table of a vector for each token.

    **Fields:**

    - `dict`: the row of each token, if the toolkits count tokens in other orders; None: rows belong to rows.
    - `input_dim`: how many rows there are; None: it is not checked.
    """

    dict: Mapping[str, int] | None = None
    input_dim: int | None = None


class EmbedArgs(NamedTuple):
    """The vectors, a row each, and the tokens that they belong to, without a dictionary none."""

    E: Array
    tokens: Array


class RnnAttr(NamedTuple):
    """A recurrent layer.

    **Fields:**

    - `bidirectional`: there is a second one, which goes backwards.
    - `op_type`: must be 'lstm'.
    - `input_dim`, `hidden_dim`: of the input and of the state; None: they are not checked.
    - `forget_bias`: what the toolkit adds to the bias of the gate of forgetting.
    """

    bidirectional: bool = False
    op_type: str = "lstm"
    input_dim: int | None = None
    hidden_dim: int | None = None
    forget_bias: float = 0.0


class RnnArgs(NamedTuple):
    """Of each direction W (inputs, 4 n), H (n, 4 n) and b (4 n,), for the gates input, new value, forgetting, output.

    Those of a direction that there is not have no elements.
    """

    fw_W: Array
    fw_H: Array
    fw_b: Array
    bw_W: Array
    bw_H: Array
    bw_b: Array


FORMS: tuple[Any, ...] = (Conv2DArgs, EmbedArgs, RnnArgs)
"""Values of several arrays: those of layers."""


def rnn_args(directions: list[tuple[Array, Array, Array]], attr: RnnAttr) -> RnnArgs:
    """The form of a recurrent layer, of (W, H, b) of each direction as its toolkit has them.

    Raises:
        UserError: it is not what `attr` says.
    """
    if attr.op_type != "lstm":
        hint = "watch the parameters of other units one by one"
        raise UserError("NotSupported", f"crosstalk: op_type is 'lstm', not {shorten(repr(attr.op_type))}", hint=hint)
    if len(directions) != 1 + attr.bidirectional:
        raise CallError(
            "WrongArguments", f"crosstalk: bidirectional={attr.bidirectional}, {len(directions)} directions"
        )
    arrays: list[Array] = []
    for w, h, b in directions:
        n = h.shape[0]
        for subject, wanted, size in (("input_dim", attr.input_dim, w.shape[0]), ("hidden_dim", attr.hidden_dim, n)):
            if wanted not in (None, size):
                raise UserError("BadShape", f"crosstalk: {subject} is {wanted}, the layer has {size}")
        arrays += [w, h, with_forget_bias(b, attr.forget_bias)]
    nothing = np.zeros(0, arrays[0].dtype)
    return RnnArgs(*arrays, *[nothing] * (6 - len(arrays)))


def with_forget_bias(b: Array, bias: float) -> Array:
    """Biases of gates with a number added to those of forgetting."""
    n = len(b) // 4
    return b + np.repeat(np.array([0, 0, bias, 0], b.dtype), n)


def directions_of(value: RnnArgs, attr: RnnAttr) -> list[tuple[Array, Array, Array]]:
    """(W, H, b) of each direction as a toolkit with `forget_bias` has them."""
    parts = [value[:3], value[3:]][: 1 + attr.bidirectional]
    return [(w, h, with_forget_bias(b, -attr.forget_bias)) for w, h, b in parts]


def embed_args(table: Array, attr: EmbedAttr) -> EmbedArgs:
    """The form of a table of embeddings."""
    if attr.input_dim not in (None, len(table)):
        raise UserError("BadShape", f"crosstalk: input_dim is {attr.input_dim}, the table has {len(table)} rows")
    if attr.dict is None:
        return EmbedArgs(table, np.zeros(0, "U1"))
    tokens = list(attr.dict)
    return EmbedArgs(table[[attr.dict[token] for token in tokens]], np.array(tokens))


def table_of(value: EmbedArgs, attr: EmbedAttr, now: Array) -> Array:
    """The rows of a table, in its toolkit's order.

    Args:
        value: what was read.
        attr: the toolkit's.
        now: the table as it is; rows of tokens that were not read stay.

    Raises:
        UserError: one side has a dictionary and the other has none, or a token is in one only.
    """
    if (attr.dict is None) != (not len(value.tokens)):
        hint = "give EmbedAttr (dict=...) in both programs, or in none"
        raise CallError(
            "WrongArguments", "crosstalk: one side names the rows of a table, the other does not", hint=hint
        )
    if attr.dict is None:
        return value.E
    names = [str(token) for token in value.tokens]
    if set(names) != set(attr.dict):
        second = sorted(set(names) ^ set(attr.dict))[0]
        raise UserError("DataMismatch", f"crosstalk: the token '{second}' is in one of the two dictionaries only")
    table = np.array(now)
    table[[attr.dict[name] for name in names]] = value.E
    return table
