"""Operators on pictures (channels, height, width), made of others."""

# What programs give is of any type.
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cntkpy.cntk_config.base.diagnostics import CallError, UserError
from cntkpy.networks.builders.python.functions.checks import as_array, check_number, check_whole
from cntkpy.networks.builders.python.functions.deferring import needs_shapes
from cntkpy.networks.builders.python.functions.described import described
from cntkpy.networks.builders.python.functions.function import Function, as_node, checked, operator
from cntkpy.networks.builders.python.operations.composed import pow
from cntkpy.networks.builders.python.operations.operators import (
    Operand,
    alias,
    element_divide,
    element_times,
    minus,
    plus,
    reshape,
    slice,
    splice,
    sqrt,
    square,
    transpose,
)
from cntkpy.networks.builders.python.operations.reductions import reduce_mean

CONSTANT_PAD, REFLECT_PAD, SYMMETRIC_PAD = 0, 1, 2
"""Modes of `pad`."""


def _named(function: Function, name: str) -> Function:
    return alias(function, name) if name else function


@described(
    "Pad",
    lambda of: {
        "paddingHead": [head for head, _ in of["pattern"]],
        "paddingFoot": [foot for _, foot in of["pattern"]],
        "paddingMode": of["mode"],
        "paddingConstantValue": of["constant_value"],
    },
)
@needs_shapes
def pad(
    x: Operand,
    pattern: Sequence[tuple[int, int]] | np.ndarray,
    mode: int = CONSTANT_PAD,
    constant_value: float = 0.0,
    name: str = "",
) -> Function:
    """More elements in front of and after each axis.

    Args:
        x: the operand.
        pattern: for each axis, how many in front and how many after.
        mode: what they are: CONSTANT_PAD a number; REFLECT_PAD the elements next to the edge mirrored, without the one
            at the edge; SYMMETRIC_PAD with it.
        constant_value: the number.
        name: names the result.
    """
    result = as_node(x)
    if isinstance(pattern, np.ndarray):
        pattern = pattern.tolist()
    pairs: Any = pattern
    for pair in pairs if isinstance(pairs, list | tuple) else [pairs]:
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            raise CallError(
                "WrongArguments", f"pad: a pattern is made of pairs, not of {pair!r}", hint="[(1, 1), (0, 2)]"
            )
        for count in pair:
            check_whole("a number of elements to pad", count, 0)
    if len(pattern) != len(result.shape):
        raise UserError("BadShape", f"pad: a pattern of {len(pattern)} pairs for {len(result.shape)} axes")
    if mode not in (CONSTANT_PAD, REFLECT_PAD, SYMMETRIC_PAD):
        raise UserError("BadChoice", f"a mode of pad is CONSTANT_PAD, REFLECT_PAD or SYMMETRIC_PAD, not {mode}")
    for axis, (front, after) in enumerate(pattern):
        result = _padded(result, axis, front, after, mode, constant_value)
    return _named(result, name)


def _padded(x: Function, axis: int, leading: int, after: int, mode: int, value: float) -> Function:
    size = x.shape[axis]
    if mode == CONSTANT_PAD:

        def filled(count: int) -> list[Function]:
            shape = [*x.shape[:axis], count, *x.shape[axis + 1 :]]
            return [as_node(np.full(shape, value, np.float32))] if count else []

        parts = [*filled(leading), x, *filled(after)]
    else:
        edge = 1 if mode == REFLECT_PAD else 0
        if max(leading, after) > size - edge:
            raise UserError("BadShape", f"pad: {max(leading, after)} elements cannot be mirrored of {size}")
        slices = [slice(x, axis, index, index + 1) for index in range(size)]
        front = slices[edge : leading + edge][::-1]
        behind = slices[size - after - edge : size - edge][::-1]
        parts = [*front, x, *behind]
    return splice(*parts, axis=axis) if len(parts) > 1 else x


def crop_manual(node_input: Operand, node_referent: Operand, offset_x: int, offset_y: int, name: str = "") -> Function:
    """Return the window of `node_input` with the height and width of `node_referent`.

    Args:
        node_input: pictures (channels, height, width).
        node_referent: pictures of which only the size counts.
        offset_x: columns in front of the window.
        offset_y: rows above it.
        name: names the result.
    """
    columns, rows = check_whole("crop_manual: offset_x", offset_x, 0), check_whole("crop_manual: offset_y", offset_y, 0)
    return checked(operator("_Crop", as_node(node_input), as_node(node_referent), columns, rows, label=name))


def crop_automatic(node_input: Operand, node_referent: Operand, name: str = "") -> Function:
    """Return the window of `node_input` that belongs to `node_referent`: both depend on the same image."""
    return operator("_CropAutomatic", as_node(node_input), as_node(node_referent), label=name)


def crop_automatic_with_ancestors(
    node_input: Operand, node_referent: Operand, ancestor_input: Operand, ancestor_referent: Operand, name: str = ""
) -> Function:
    """As `crop_automatic`, where the two depend on two images that lie on each other."""
    operands = map(as_node, (node_input, node_referent, ancestor_input, ancestor_referent))
    return operator("_CropWithAncestors", *operands, label=name)


@described("DepthToSpace", lambda of: {"blockSize": of["block_size"]})
@needs_shapes
def depth_to_space(operand: Operand, block_size: int, name: str = "") -> Function:
    """Channels become blocks of rows and columns: (n n c, h, w) gives (c, n h, n w)."""
    x = as_node(operand)
    n = check_whole("block_size", block_size, 1)
    channels, height, width = _picture("depth_to_space", x)
    if channels % (n * n):
        raise UserError("BadShape", f"depth_to_space: {channels} channels are no multiple of {n} * {n}")
    apart = transpose(reshape(x, (n, n, channels // n**2, height, width)), (2, 3, 0, 4, 1))
    return reshape(apart, (channels // n**2, n * height, n * width), name=name)


@described("SpaceToDepth", lambda of: {"blockSize": of["block_size"]})
@needs_shapes
def space_to_depth(operand: Operand, block_size: int, name: str = "") -> Function:
    """Blocks of rows and columns become channels: (c, n h, n w) gives (n n c, h, w)."""
    x = as_node(operand)
    n = check_whole("block_size", block_size, 1)
    channels, height, width = _picture("space_to_depth", x)
    if height % n or width % n:
        raise UserError("BadShape", f"space_to_depth: {height} rows and {width} columns are not multiples of {n}")
    apart = transpose(reshape(x, (channels, height // n, n, width // n, n)), (2, 4, 0, 1, 3))
    return reshape(apart, (n * n * channels, height // n, width // n), name=name)


def _channels(call: str, x: Function) -> int:
    """Return the number of channels.

    Raises:
        UserError: it is a number.
    """
    if not x.shape:
        raise UserError("BadShape", f"{call}: a number has no channels; the operand's first axis is that of channels")
    return x.shape[0]


def _picture(call: str, x: Function) -> tuple[int, int, int]:
    if len(x.shape) != 3:
        raise UserError("BadShape", f"{call} takes pictures (channels, height, width), not {x.shape}")
    return x.shape[0], x.shape[1], x.shape[2]


@described(
    "MeanVarianceNormalization",
    lambda of: {
        "epsilon": of["epsilon"],
        "useStatsAcrossChannels": of["use_stats_across_channels"],
        "doVarianceScaling": of["do_variance_scaling"],
    },
)
@needs_shapes
def mean_variance_normalization(
    operand: Operand,
    epsilon: float = 0.00001,
    use_stats_across_channels: bool = False,
    do_variance_scaling: bool = True,
    name: str = "",
) -> Function:
    """Return each channel of each picture brought to mean 0 and deviation 1, or all channels of a picture together."""
    x = as_node(operand)
    check_number("mean_variance_normalization: epsilon", epsilon, 0.0)
    _channels("mean_variance_normalization", x)
    axes = None if use_stats_across_channels else list(range(1, len(x.shape)))
    centred = minus(x, reduce_mean(x, axes))
    if not do_variance_scaling:
        return _named(centred, name)
    deviation = plus(sqrt(reduce_mean(square(centred), axes)), float(epsilon))
    return element_divide(centred, deviation, name=name)


@described(
    "LocalResponseNormalization",
    lambda of: {"depthRadius": of["depth_radius"], "bias": of["bias"], "alpha": of["alpha"], "beta": of["beta"]},
)
@needs_shapes
def local_response_normalization(
    operand: Operand, depth_radius: int, bias: float, alpha: float, beta: float, name: str = ""
) -> Function:
    """X / (bias + alpha / n * sum of squares of the n = 2 `depth_radius` + 1 nearest channels)^beta."""
    x = as_node(operand)
    check_whole("depth_radius", depth_radius, 0)
    channels = _channels("local_response_normalization", x)
    wider = pad(square(x), [(depth_radius, depth_radius)] + [(0, 0)] * (len(x.shape) - 1))
    total = reduce(plus, [slice(wider, 0, channel, channel + channels) for channel in range(2 * depth_radius + 1)])
    return element_divide(
        x, pow(plus(element_times(alpha / (2 * depth_radius + 1), total), float(bias)), float(beta)), name=name
    )


@described("ImageScaler", lambda of: {"Scaler": of["scalar"], "Biases": of["biases"]})
@needs_shapes
def image_scaler(x: Operand, scalar: float, biases: ArrayLike, name: str = "") -> Function:
    """Scalar * x, and a bias added for each channel."""
    picture = as_node(x)
    _channels("image_scaler", picture)
    bias = as_array("image_scaler: biases", biases, np.float64)
    if bias.shape != picture.shape[:1]:
        message = f"image_scaler: biases of shape {bias.shape} for an image of shape {picture.shape}"
        raise UserError("BadShape", message, hint="biases is a list with a number for each channel")
    shift = bias.reshape(-1, *[1] * (len(picture.shape) - 1))
    return plus(element_times(picture, float(scalar)), shift, name=name)


__all__ = [
    "CONSTANT_PAD", "REFLECT_PAD", "SYMMETRIC_PAD", "crop_automatic", "crop_automatic_with_ancestors", "crop_manual",
    "depth_to_space", "image_scaler", "local_response_normalization", "mean_variance_normalization", "pad",
    "space_to_depth",
]  # fmt: skip
