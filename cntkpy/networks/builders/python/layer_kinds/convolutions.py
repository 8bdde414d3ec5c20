"""Filters slid over images."""

# What programs give is of any type.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.networks.builders.python.functions.checks import check_flag, check_whole
from cntkpy.networks.builders.python.functions.defaults import DEFAULT, chosen
from cntkpy.networks.builders.python.functions.function import Function, known_shape
from cntkpy.networks.builders.python.functions.leaves import Initializer, Shape, dims
from cntkpy.networks.builders.python.functions.variables import layer_parameter
from cntkpy.networks.builders.python.layer_kinds.base import Layer, Sequential, makes_blocks
from cntkpy.networks.builders.python.layer_kinds.library import (
    WINDOW_HINT,
    LibraryLayer,
    bias_start,
    least_sizes,
    weights_start,
    with_activation,
)
from cntkpy.networks.builders.python.operations import operators, reshaping
from cntkpy.networks.builders.python.operations.windows import Sliding, per_axis, steps_in_windows


@makes_blocks
def Convolution(
    filter_shape: Shape, num_filters: int | None = None, sequential: bool = False,
    activation: Callable[[Function], Function] | None = DEFAULT, init: Initializer | ArrayLike | None = DEFAULT,
    pad: bool | Sequence[bool] = DEFAULT, strides: Shape = 1, sharing: bool = True, bias: bool = DEFAULT,
    init_bias: Initializer | ArrayLike = DEFAULT, reduction_rank: int = 1, transpose_weight: bool = False,
    dilation: Shape = 1, groups: int = 1, input_num_filters: int | None = None, max_temp_mem_size_in_samples: int = 0,
    op_name: str = "Convolution", name: str = "",
) -> Layer:  # fmt: skip
    """Filters slid over images (channels, height, width), or over any number of axes after the channels.

    Args:
        filter_shape: (height, width) of a filter.
        num_filters: the channels of the result.
        sequential: the first axis of filters lies along the sequence: (steps, height, width).
        activation: a function of the sums.
        init: how the filters start; glorot_uniform.
        pad: whether images are padded so that the result has their size.
        strides: how far filters move.
        sharing: must be True.
        bias: whether something is added for each filter.
        init_bias: how that starts.
        reduction_rank: 0: the input has no axis of channels.
        transpose_weight: must be False.
        dilation: the distance between neighbours in a filter.
        groups: each group of filters sees one group of channels.
        input_num_filters: accepted; the channels of the input are known when the layer is applied.
        max_temp_mem_size_in_samples: accepted; changes nothing.
        op_name: accepted; changes nothing.
        name: names the result.
    """
    del input_num_filters, max_temp_mem_size_in_samples, op_name
    if not sharing or transpose_weight or reduction_rank not in (0, 1):
        message = "Convolution: sharing is True, transpose_weight is False and reduction_rank is 0 or 1"
        raise UserError("NotSupported", message)
    sizes = tuple(reversed(dims(filter_shape)))
    padding = chosen("Convolution", "pad", pad, False)
    how = Sliding("Convolution", strides, padding, dilation, check_whole("groups", groups, 1), "pad")
    if _filters(num_filters) % groups:
        message = f"Convolution: {_filters(num_filters)} filters do not divide into {groups} groups"
        raise UserError("BadValue", message, hint="the number of filters is a multiple of groups")
    windows = how.along_steps(len(sizes), sizes[0]) if sequential else None
    options = (how.after_steps(len(sizes)) if sequential else how).options((0, *sizes))
    biased = check_flag("bias", chosen("Convolution", "bias", bias, True))
    start = bias_start(chosen("Convolution", "init_bias", init_bias, 0.0))
    layer = LibraryLayer(
        "ConvolutionalLayer",
        _filters(num_filters),
        list(options["kernelShape"]),
        label="Convolution",
        init=_filter_start(init, num_filters, sizes, reduction_rank),
        bias=biased and windows is None,
        initBias=start,
    )
    layer.options = options
    layer.least_rank, layer.rank_hint = len(sizes), WINDOW_HINT
    if windows is None:
        layer.least_sizes = least_sizes(sizes, padding, dilation)
    steps: list[Any] = [layer]
    if windows is not None:  # the bias has no axis of steps
        steps = [partial(steps_in_windows, "Convolution", how=windows, axis=reduction_rank), *steps]
        steps.append(lambda x: reshaping.squeeze(x, 1))
        if reduction_rank == 1:  # CNTK takes vectors as ones of one channel
            steps.insert(0, lambda x: x if len(x.shape) >= len(sizes) else reshaping.expand_dims(x, 0))
        if biased:
            shift = layer_parameter((_filters(num_filters), *(1,) * (len(sizes) - 1)), start, name="b")
            steps.append(lambda x: operators.plus(x, shift))
    if reduction_rank == 0:
        steps.insert(steps.index(layer), lambda x: reshaping.expand_dims(x, 0))
    if _has_no_axis(num_filters):  # one filter, and no axis for it
        steps.append(lambda x: reshaping.squeeze(x, 0))
    made = Sequential(steps) if len(steps) > 1 else layer
    return with_activation(made, chosen("Convolution", "activation", activation, None), name)


def SequentialConvolution(
    filter_shape: Shape, num_filters: int | None = None, activation: Callable[[Function], Function] | None = DEFAULT,
    init: Initializer | ArrayLike | None = DEFAULT, pad: bool | Sequence[bool] = DEFAULT, strides: Shape = 1,
    sharing: bool = True, bias: bool = DEFAULT, init_bias: Initializer | ArrayLike = DEFAULT, reduction_rank: int = 1,
    transpose_weight: bool = False, dilation: Shape = 1, groups: int = 1, input_num_filters: int | None = None,
    max_temp_mem_size_in_samples: int = 0, op_name: str = "Convolution", name: str = "",
) -> Layer:  # fmt: skip
    """`Convolution` along sequences: the first axis of filters is that of steps."""
    del input_num_filters, max_temp_mem_size_in_samples, op_name
    return Convolution(
        filter_shape, num_filters, True, activation, init, pad, strides, sharing, bias, init_bias, reduction_rank,
        transpose_weight, dilation, groups, name=name,
    )  # fmt: skip


def _of_axes(axes: int) -> Callable[..., Layer]:
    """`Convolution` with filters of this number of axes; a number as their shape has this number for each axis."""

    def make(
        filter_shape: Shape, num_filters: int | None = None,
        activation: Callable[[Function], Function] | None = DEFAULT, init: Initializer | ArrayLike | None = DEFAULT,
        pad: bool | Sequence[bool] = DEFAULT, strides: Shape = 1, bias: bool = DEFAULT,
        init_bias: Initializer | ArrayLike = DEFAULT, reduction_rank: int = 1, dilation: Shape = 1, groups: int = 1,
        input_num_filters: int | None = None, name: str = "",
    ) -> Layer:  # fmt: skip
        options = {"activation": activation, "init": init, "pad": pad, "bias": bias, "init_bias": init_bias}
        chosen_options = {key: chosen(label, key, option, DEFAULT) for key, option in options.items()}
        sizes = _filter(label, filter_shape, axes)
        return Convolution(
            sizes, num_filters, strides=strides, reduction_rank=reduction_rank, dilation=dilation, groups=groups,
            input_num_filters=input_num_filters, name=name, **chosen_options,
        )  # fmt: skip

    label = make.__name__ = make.__qualname__ = f"Convolution{axes}D"
    make.__doc__ = f"`Convolution` with filters of {axes} axes; a number is their size on each axis."
    return make


Convolution1D, Convolution2D, Convolution3D = map(_of_axes, (1, 2, 3))


@makes_blocks
def ConvolutionTranspose(
    filter_shape: Shape,
    num_filters: int | None = None,
    activation: Callable[[Function], Function] | None = DEFAULT,
    init: Initializer | ArrayLike | None = DEFAULT,
    pad: bool | Sequence[bool] = DEFAULT,
    strides: Shape = 1,
    sharing: bool = True,
    bias: bool = DEFAULT,
    init_bias: Initializer | ArrayLike = DEFAULT,
    output_shape: Shape | None = None,
    reduction_rank: int = 1,
    dilation: Shape = 1,
    max_temp_mem_size_in_samples: int = 0,
    name: str = "",
) -> Layer:
    """Return the reverse of `Convolution`: images (channels, height, width) made larger by the strides.

    Args:
        filter_shape: (height, width) of a filter.
        num_filters: the channels of the result.
        activation: a function of the sums.
        init: how the filters start; glorot_uniform.
        pad: the result has (n - 1) * stride + 1 rows then, else (n - 1) * stride + filter.
        strides: how far filters move.
        sharing: must be True.
        bias: whether something is added for each filter.
        init_bias: how that starts.
        output_shape: (height, width) of the result, where several sizes of it are made that of the input by
            `Convolution`.
        reduction_rank: 0: the input has no axis of channels.
        dilation: the distance between neighbours in a filter.
        max_temp_mem_size_in_samples: accepted; changes nothing.
        name: names the result.
    """
    del max_temp_mem_size_in_samples
    if not sharing or reduction_rank not in (0, 1):
        raise UserError("NotSupported", "ConvolutionTranspose: sharing is True and reduction_rank is 0 or 1")
    sizes = tuple(reversed(dims(filter_shape)))
    padding = chosen("ConvolutionTranspose", "pad", pad, False)
    how = Sliding("ConvolutionTranspose", strides, padding, dilation, padding_name="pad")
    weights: dict[str, Any] = {
        "init": weights_start(chosen("ConvolutionTranspose", "init", init, None)),
        "bias": check_flag("bias", chosen("ConvolutionTranspose", "bias", bias, True)),
        "initBias": bias_start(chosen("ConvolutionTranspose", "init_bias", init_bias, 0.0)),
    }
    options = how.options((_filters(num_filters), *sizes))
    if output_shape is not None:
        sized = per_axis("ConvolutionTranspose: output_shape", output_shape, len(sizes), 0)
        options["outputShape"] = tuple(reversed(sized))
    made: list[LibraryLayer] = []

    def apply(x: Function) -> Function:
        x = reshaping.expand_dims(x, 0) if reduction_rank == 0 else x
        if not made:  # the weights have the channels of the input
            shapes = _filters(num_filters), list(dims(filter_shape)), known_shape(x)[0]
            made.append(LibraryLayer("ConvolutionTransposeLayer", *shapes, label="ConvolutionTranspose", **weights))
            made[0].options = options
        result = made[0](x)
        return reshaping.squeeze(result, 0) if _has_no_axis(num_filters) else result

    return with_activation(Layer(apply), chosen("ConvolutionTranspose", "activation", activation, None), name)


def _transpose_of_axes(axes: int) -> Callable[..., Layer]:
    """`ConvolutionTranspose` with filters of this number of axes; see `_of_axes`."""

    def make(
        filter_shape: Shape, num_filters: int | None = None,
        activation: Callable[[Function], Function] | None = DEFAULT, init: Initializer | ArrayLike | None = DEFAULT,
        pad: bool | Sequence[bool] = DEFAULT, strides: Shape = 1, bias: bool = DEFAULT,
        init_bias: Initializer | ArrayLike = DEFAULT, output_shape: Shape | None = None, reduction_rank: int = 1,
        dilation: Shape = 1, name: str = "",
    ) -> Layer:  # fmt: skip
        options = {"activation": activation, "init": init, "pad": pad, "bias": bias, "init_bias": init_bias}
        chosen_options = {key: chosen(label, key, option, DEFAULT) for key, option in options.items()}
        return ConvolutionTranspose(
            _filter(label, filter_shape, axes), num_filters, strides=strides, output_shape=output_shape,
            reduction_rank=reduction_rank, dilation=dilation, name=name, **chosen_options,
        )  # fmt: skip

    label = make.__name__ = make.__qualname__ = f"ConvolutionTranspose{axes}D"
    make.__doc__ = f"`ConvolutionTranspose` with filters of {axes} axes; a number is their size on each axis."
    return make


ConvolutionTranspose1D, ConvolutionTranspose2D, ConvolutionTranspose3D = map(_transpose_of_axes, (1, 2, 3))


def _filter(label: str, shape: Shape, axes: int) -> Shape:
    """Return the shape of a filter with this number of axes; a number is its size on each of them."""
    sizes = (shape,) * axes if isinstance(shape, int) else shape
    if len(dims(sizes)) != axes:
        message = f"{label}: a filter has {axes} axes, not the shape {shape}"
        raise UserError("BadShape", message, hint=f"{label[:-2]} takes filters with any number of axes")
    return sizes


def _filters(count: object) -> int:
    """Return the number of filters from a number or a tuple of one number; 1 if there is none."""
    if isinstance(count, list | tuple) and len(count) == 1:
        count = count[0]
    return 1 if _has_no_axis(count) else check_whole("num_filters", count, 1)


def _has_no_axis(num_filters: object) -> bool:
    """Return whether there is one filter without an axis: None or (). A number of NumPy is not compared to ()."""
    return num_filters is None or (isinstance(num_filters, tuple) and not num_filters)


def _filter_start(
    init: Initializer | ArrayLike | None, count: object, sizes: tuple[int, ...], reduction_rank: int
) -> Initializer | np.ndarray:
    """Return the start of filters (count, channels, sizes); add the axes of 1 that an array may omit."""
    start = weights_start(chosen("Convolution", "init", init, None))
    rank = len(sizes)
    if not isinstance(start, np.ndarray) or not rank <= start.ndim < rank + 2:
        return start
    if reduction_rank == 0:
        start = np.expand_dims(start, start.ndim - rank)
    return start[None] if _has_no_axis(count) and start.ndim == rank + 1 else start
