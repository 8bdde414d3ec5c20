"""Layers without windows or states: Dense, Embedding, Dropout and others."""

# What programs give is of any type.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from cntkpy.cntk_config.base.diagnostics import CallError, UserError
from cntkpy.networks.builders.python.functions.checks import check_flag, check_number
from cntkpy.networks.builders.python.functions.defaults import DEFAULT, chosen
from cntkpy.networks.builders.python.functions.function import Function, as_node, known_shape
from cntkpy.networks.builders.python.functions.leaves import Initializer, Shape, dims
from cntkpy.networks.builders.python.layer_kinds.base import Layer, Sequential, identity, makes_blocks
from cntkpy.networks.builders.python.layer_kinds.library import (
    LibraryLayer,
    activation_function,
    bias_start,
    weights_start,
    with_activation,
)
from cntkpy.networks.builders.python.operations import operators


@makes_blocks
def Dense(
    shape: Shape,
    activation: Callable[[Function], Function] | None = DEFAULT,
    init: Initializer | ArrayLike | None = DEFAULT,
    input_rank: int | None = None,
    map_rank: int | None = None,
    bias: bool = DEFAULT,
    init_bias: Initializer | ArrayLike = DEFAULT,
    name: str = "",
) -> Layer:
    """Elements that are weighted sums of all inputs, with an activation function.

    Args:
        shape: of the result.
        activation: a function of the sums.
        init: how the weights start; glorot_uniform.
        input_rank: how many axes are summed over.
        map_rank: how many axes are not; neither: all are summed over.
        bias: whether something is added.
        init_bias: how that starts.
        name: names the result.
    """
    if input_rank is not None and map_rank is not None:
        message = "Dense takes either input_rank or map_rank: each says which axes are summed over"
        raise CallError("WrongArguments", message)
    if not dims(shape):  # one sum, as a number
        single = Dense(1, None, init, input_rank, map_rank, bias, init_bias)
        activate = chosen("Dense", "activation", activation, None)
        return with_activation(
            Sequential([single, lambda x: operators.reshape(x, known_shape(x)[:-1])]), activate, name
        )
    layer = LibraryLayer(
        "LinearLayer",
        list(dims(shape)),
        label="Dense",
        init=weights_start(chosen("Dense", "init", init, None), len(dims(shape))),
        inputRank=input_rank,
        mapRank=map_rank,
        bias=check_flag("bias", chosen("Dense", "bias", bias, True)),
        initBias=bias_start(chosen("Dense", "init_bias", init_bias, 0.0)),
    )
    layer.least_rank = max(input_rank or 0, map_rank or 0)
    return with_activation(layer, chosen("Dense", "activation", activation, None), name)


@makes_blocks
def Embedding(
    shape: Shape | None = None,
    init: Initializer | ArrayLike | None = DEFAULT,
    weights: Function | ArrayLike | None = None,
    name: str = "",
) -> Layer:
    """Return a vector of this many elements for each of the classes of a one-hot input.

    Args:
        shape: of the vectors.
        init: how they start; glorot_uniform.
        weights: an array (classes, elements) that is not trained, instead.
        name: names the result.

    Raises:
        UserError: neither is given, or weights of vectors of another shape.
    """
    if weights is not None:
        if init is not DEFAULT and init is not None:
            message = "Embedding: weights are not trained, so that init has no effect"
            raise CallError("WrongArguments", message, hint="Embedding(shape, init=array) is trained from there on")
        table = as_node(weights)
        if shape is not None and dims(table.shape[1:]) != dims(shape):
            message = f"Embedding: weights {table.shape} have vectors of the shape {table.shape[1:]}, not {shape}"
            raise UserError("BadShape", message, hint="weights say the shape: leave it out")
        table.root.name = table.root.name or "E"
        return Layer(lambda x: operators.times(x, table), name)
    if shape is None and isinstance(init, np.ndarray | list):
        shape = np.shape(init)[-1]
    if shape is None:
        raise UserError("MissingParameter", "Embedding needs the shape of its vectors, or weights")
    start = weights_start(chosen("Embedding", "init", init, None))
    return LibraryLayer("EmbeddingLayer", list(dims(shape)), label="Embedding", init=start, name=name)


@makes_blocks
def Dropout(
    dropout_rate: float | None = None, keep_prob: float | None = None, seed: int | None = None, name: str = ""
) -> Layer:
    """In training some elements are set to zero at random.

    Args:
        dropout_rate: how many.
        keep_prob: how many are not, instead.
        seed: layers of the same seed have the same masks; see `operators.dropout`.
        name: names the result.
    """
    if (dropout_rate is None) == (keep_prob is None):
        raise CallError("WrongArguments", "Dropout takes either dropout_rate or keep_prob")
    rate = operators.check_rate(dropout_rate if dropout_rate is not None else 1 - check_number("keep_prob", keep_prob))
    return Layer(lambda x: operators.dropout(x, rate, seed), name)


@makes_blocks
def Activation(activation: Callable[[Function], Function] | None = DEFAULT, name: str = "") -> Layer:
    """Return an activation function as a layer."""
    return Layer(activation_function(chosen("Activation", "activation", activation, identity)) or identity, name)


def Label(name: str) -> Layer:
    """Return the input under a name."""
    return Layer(operators.alias, name)
