"""Windows slid over the axes of samples, and along sequences: convolution and pooling.

Automatic padding is that of CNTK 2: what the steps leave over is shared between both ends of an axis.
"""

# What programs give is of any type.
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from cntkpy.cntk_config.base.diagnostics import UserError, shorten
from cntkpy.networks.builders.python.functions.checks import check_flag, check_number, check_whole, is_whole
from cntkpy.networks.builders.python.functions.deferring import needs_shapes
from cntkpy.networks.builders.python.functions.function import Function, as_node, checked, in_written_order, operator
from cntkpy.networks.builders.python.functions.leaves import Shape, dims
from cntkpy.networks.builders.python.functions.mixins.structure import POOLING_TYPES
from cntkpy.networks.builders.python.functions.recipes import OpenShape
from cntkpy.networks.builders.python.operations.operators import Operand, alias
from cntkpy.networks.builders.python.operations.reshaping import expand_dims, squeeze
from cntkpy.networks.builders.python.operations.windows import Sliding, per_axis, steps_in_windows

MAX_POOLING, AVG_POOLING = 0, 1
"""Kinds of `pooling`."""

MAX_UNPOOLING = MAX_POOLING
"""The kind of `unpooling`."""


def convolution(
    convolution_map: Operand,
    operand: Operand,
    strides: Shape = (1,),
    sharing: bool | Sequence[bool] = (True,),
    auto_padding: bool | Sequence[bool] = (True,),
    sequential: bool = False,
    dilation: Shape = (1,),
    reduction_rank: int = 1,
    groups: int = 1,
    max_temp_mem_size_in_samples: int = 0,
    name: str = "",
) -> Function:
    """Filters slid over the axes of samples: sums of products, without bias. The filters are not mirrored.

    An argument for each axis is one value for all axes, a value for each axis that filters slide along, or one for the
    channels before these.

    Args:
        convolution_map: filters (count, channels / groups, height, width); where `reduction_rank` is 0, (count, height,
            width), or one filter (height, width). With as many axes as samples have, it is one filter that slides
            along all of them, the channels as well.
        operand: samples (channels, height, width).
        strides: how far filters move.
        sharing: must be True.
        auto_padding: whether the result has a place for each step of an axis (zeros lie outside), or one for each
            place where a filter lies inside. One value does not concern the channels.
        sequential: the first axis that filters slide along is that of sequences; samples are (channels, height) for
            filters (count, channels, steps, height). The result is a shorter sequence on a time axis of its own,
            unless it has as many steps.
        dilation: the distance between neighbours in a filter.
        reduction_rank: 0: samples have no axis of channels.
        groups: each group of filters sees one group of channels.
        max_temp_mem_size_in_samples: accepted; changes nothing.
        name: names the result.

    Returns:
        Samples (count, height, width); of a filter with as many axes as samples have, (channels, height, width).

    Raises:
        UserError: arguments do not fit to each other or to the operands.
    """
    del max_temp_mem_size_in_samples
    _check("convolution", sharing, reduction_rank)
    check_flag("convolution: sequential", sequential)
    check_whole("convolution: groups", groups, 1)
    kernels, x = as_node(convolution_map), as_node(operand)
    how = Sliding("convolution", strides, auto_padding, dilation, int(groups))
    if sequential or reduction_rank == 0:
        return _of_any_rank(kernels, x, how, bool(sequential), int(reduction_rank), name)
    rank = _rank(x)
    if rank is None:
        return in_written_order(_of_known_rank(lambda: kernels, x, how, name=name), kernels, x)
    return _of_known_rank(lambda: kernels, x, how, name=name)


@needs_shapes
def _of_known_rank(held: Callable[[], Function], x: Function, how: Sliding, name: str) -> Function:
    """Return a convolution of samples with channels; the shape of the filters may follow from it, and waits for
    nothing.
    """
    kernels = held()
    channels = kernels.shape[1] if len(kernels.shape) == len(x.shape) + 1 and x.shape else -1
    if channels > 0 and x.shape[0] % how.groups == 0 and channels != x.shape[0] // how.groups:
        of_groups = f" in {how.groups} groups" if how.groups > 1 else ""
        message = (
            f"{how.call}: filters {kernels.shape} have {channels} channels, samples {x.shape} {x.shape[0]}{of_groups}"
        )
        raise UserError("BadShape", message, hint=f"filters ({kernels.shape[0]}, {x.shape[0] // how.groups}, sizes)")
    if len(x.shape) != len(kernels.shape):
        return _slid(kernels, x, kernels.shape, how, name)
    over_all = _slid(kernels, expand_dims(x, 0), (1, 1, *kernels.shape), how, "")  # channels are an axis as the others
    return squeeze(over_all, [0], name)


@needs_shapes
def _of_any_rank(
    kernels: Function, x: Function, how: Sliding, sequential: bool, reduction_rank: int, name: str
) -> Function:
    """Return a convolution of samples without channels, or along sequences."""
    shape, along = kernels.shape, len(x.shape) - reduction_rank + sequential
    split = max(len(shape) - along, 0)
    head, spatial = shape[:split], shape[split:]
    if reduction_rank == 0 and len(head) < 2:
        head = (*head, 1)
    head = (1, *head) if len(head) == 1 else head
    if along < 1 or len(spatial) != along or len(head) != 2 or (reduction_rank == 0 and head[1] != 1):
        channels = "" if reduction_rank == 0 else "channels, "
        message = f"{how.call}: filters of the shape {shape} for samples of the shape {x.shape}"
        raise UserError("BadShape", message, hint=f"filters have (count, {channels}sizes of the {along} axes)")
    if sequential:
        x = steps_in_windows(how.call, x, how.along_steps(along, spatial[0]), reduction_rank)
        how = how.after_steps(along)
    if reduction_rank == 0:
        x = expand_dims(x, 0)
    convolved = _slid(kernels, x, (*head, *spatial), how, "")
    return squeeze(convolved, [1], name) if sequential else alias(convolved, name) if name else convolved


def _slid(kernels: Function, x: Function, shape: Sequence[int], how: Sliding, name: str) -> Function:
    """Return a convolution node; `shape`: (count, channels of a group, sizes) of the filters."""
    count, *kernel = shape
    options = how.options(kernel)
    node = operator("Convolution", kernels, x, list(options["kernelShape"]), label=name, mapDims=count)
    node.root.options.update(options)
    return checked(node)


def _rank(x: Function) -> int | None:
    """Return the number of axes of samples, if it is known."""
    try:
        return len(x.shape)
    except OpenShape:
        return None


def _check(call: str, sharing: object, reduction_rank: object) -> None:
    """Arguments that have one meaning only."""
    if not all(sharing if isinstance(sharing, list | tuple) else [sharing]):
        hint = "Convolution(..., sharing=false) of BrainScript has filters of their own for each place"
        raise UserError("NotSupported", f"{call}: filters are the same at all places, sharing is True", hint=hint)
    if check_whole(f"{call}: reduction_rank", reduction_rank, 0) > 1:
        raise UserError("BadValue", f"{call}: reduction_rank is 0 or 1, not {reduction_rank}")


def convolution_transpose(
    convolution_map: Operand,
    operand: Operand,
    strides: Shape = (1,),
    sharing: bool | Sequence[bool] = (True,),
    auto_padding: bool | Sequence[bool] = (True,),
    output_shape: Shape | None = None,
    dilation: Shape = (1,),
    reduction_rank: int = 1,
    max_temp_mem_size_in_samples: int = 0,
    name: str = "",
) -> Function:
    """Return the reverse of `convolution`: each element is spread over a window of the result; windows are added.

    Args:
        convolution_map: filters (channels of the operand, channels of the result, height, width); where
            `reduction_rank` is 0, or the operand has one channel, also (channels of the result, height, width).
        operand: samples (channels, height, width).
        strides: how far apart neighbours are spread; see `convolution`.
        sharing: must be True.
        auto_padding: whether the result has (n - 1) stride + 1 elements on an axis, else (n - 1) stride + filter.
        output_shape: the shape of the result, or (height, width) of it, where several sizes are made that of the
            operand by `convolution`.
        dilation: the distance between neighbours in a filter.
        reduction_rank: 0: samples have no axis of channels.
        max_temp_mem_size_in_samples: accepted; changes nothing.
        name: names the result.

    Raises:
        UserError: arguments do not fit to each other or to the operands.
    """
    del max_temp_mem_size_in_samples
    _check("convolution_transpose", sharing, reduction_rank)
    kernels, x = as_node(convolution_map), as_node(operand)
    how = Sliding("convolution_transpose", strides, auto_padding, dilation)
    if reduction_rank == 0 or _rank(x) == len(kernels.shape):
        return _spread_one(kernels, x, how, reduction_rank, output_shape, name)
    return _spread(kernels, x, kernels.shape, how, output_shape, name)


@needs_shapes
def _spread_one(
    kernels: Function, x: Function, how: Sliding, reduction_rank: int, output_shape: Shape | None, name: str
) -> Function:
    """Of samples without an axis of channels, or by filters without one."""
    if reduction_rank == 0:
        x = expand_dims(x, 0)
    shape = kernels.shape if len(kernels.shape) == len(x.shape) + 1 else (1, *kernels.shape)
    if x.shape[0] != shape[0]:
        message = f"convolution_transpose: filters of the shape {kernels.shape} for samples of the shape {x.shape}"
        raise UserError("BadShape", message, hint="filters have (channels, channels of the result, sizes)")
    return _spread(kernels, x, shape, how, output_shape, name)


def _spread(
    kernels: Function, x: Function, shape: Sequence[int], how: Sliding, output_shape: Shape | None, name: str
) -> Function:
    """Return a node of a transposed convolution; `shape`: (channels, channels of the result, sizes) of the filters."""
    count, *kernel = shape
    options = how.options(kernel)
    made = list(options["kernelShape"])
    node = operator("Convolution", kernels, x, made, label=name, mapDims=count, transpose=True)
    if output_shape is not None:
        sizes = per_axis(f"{how.call}: output_shape", output_shape, len(kernel) - 1, 0)
        options["outputShape"] = tuple(reversed(sizes))
    node.root.options.update(options)
    return checked(node)


def _windows(values: object, subject: str, flags: bool = False) -> tuple[int, ...]:
    """Return one value for all axes of windows or one for each, as BrainScript's nodes take them."""
    several = list(values) if isinstance(values, list | tuple | np.ndarray) else [values]
    checked = [check_flag(subject, value) if flags else check_whole(subject, value, 1) for value in several]
    return tuple(reversed(checked))


def pooling(
    operand: Operand,
    pooling_type: int,
    pooling_window_shape: Sequence[int],
    strides: Shape = (1,),
    auto_padding: bool | Sequence[bool] = (False,),
    ceil_out_dim: bool = False,
    include_pad: bool = False,
    name: str = "",
) -> Function:
    """Return the largest element or the mean of each window (height, width).

    Args:
        operand: samples (channels, height, width).
        pooling_type: MAX_POOLING or AVG_POOLING.
        pooling_window_shape: the size of windows on the last axes.
        strides: the distance between neighbouring windows: one value, or one for each of these axes.
        auto_padding: whether there is a window for each step of an axis; else all lie inside.
        ceil_out_dim: without padding, a last window may lie partly behind the end.
        include_pad: a mean is the sum by the size of the window, also of one that lies partly outside.
        name: names the result.

    Raises:
        UserError: an argument is not what is expected, or a window would lie wholly outside.
    """
    options = {
        "sharedPadding": True,
        "ceilOutDim": check_flag("pooling: ceil_out_dim", ceil_out_dim),
        "includePad": check_flag("pooling: include_pad", include_pad),
    }
    node = operator(
        "Pooling",
        as_node(operand),
        _kind("pooling", pooling_type),
        list(dims(pooling_window_shape)),
        label=name,
        stride=list(_windows(strides, "pooling: strides")),
        autoPadding=list(_windows(auto_padding, "pooling: auto_padding", flags=True)),
    )
    node.root.options.update(options)
    return checked(node)


def _kind(call: str, pooling_type: int) -> str:
    """Return the option of a node for a type of pooling."""
    if not is_whole(pooling_type) or pooling_type not in (MAX_POOLING, AVG_POOLING):
        raise UserError(
            "BadChoice", f"{call}: pooling_type is MAX_POOLING or AVG_POOLING, not {shorten(repr(pooling_type))}"
        )
    return POOLING_TYPES[pooling_type]


def unpooling(
    operand: Operand,
    pooling_input: Operand,
    unpooling_type: int,
    unpooling_window_shape: Sequence[int],
    strides: Shape = (1,),
    auto_padding: bool | Sequence[bool] = (False,),
    name: str = "",
) -> Function:
    """Return each element of `operand` where the largest one of its window was in `pooling_input`, zeros elsewhere.

    The result has the shape of `pooling_input`.
    """
    if unpooling_type != MAX_UNPOOLING:
        raise UserError("NotSupported", "unpooling reverses MAX_POOLING only", hint="its kind is MAX_UNPOOLING")
    node = operator(
        "MaxUnpooling",
        as_node(operand),
        as_node(pooling_input),
        list(dims(unpooling_window_shape)),
        label=name,
        stride=list(_windows(strides, "unpooling: strides")),
        autoPadding=list(_windows(auto_padding, "unpooling: auto_padding", flags=True)),
    )
    node.root.options.update(sharedPadding=True, wholePicture=True)
    return checked(node)


def roipooling(
    operand: Operand,
    rois: Operand,
    pooling_type: int,
    roi_output_shape: Sequence[int],
    spatial_scale: float,
    name: str = "",
) -> Function:
    """Return the largest element or the mean of each cell of a grid over each region of a picture, as in Fast R-CNN.

    A region begins at round(x1 scale) and ends with round(x2 scale); cell i of w has its columns from
    floor(i width / w) to ceil((i + 1) width / w). A cell outside the picture gives 0. Regions have no gradient.

    Args:
        operand: pictures (channels, height, width).
        rois: (regions, 4): the corners x1, y1, x2, y2 of each region in pixels of the input picture.
        pooling_type: MAX_POOLING or AVG_POOLING.
        roi_output_shape: (height, width) of the grid.
        spatial_scale: the size of the operand by that of the input picture: 1 / 16 after four poolings by steps of 2.
        name: names the result.

    Returns:
        (regions, channels, height, width).

    Raises:
        UserError: an argument is not what is expected.
    """
    kind = _kind("roipooling", pooling_type)
    scale = check_number("roipooling: spatial_scale", spatial_scale, 0.0)
    if scale == 0:
        message = "roipooling: spatial_scale is larger than 0: the size of the operand by that of the input picture"
        raise UserError("BadValue", message, hint="1 / 16 after four poolings by steps of 2")
    node = operator("ROIPooling", as_node(operand), as_node(rois), list(dims(roi_output_shape)), label=name)
    node.root.options.update(kind=kind, spatialScale=scale)
    return node


__all__ = [
    "AVG_POOLING", "MAX_POOLING", "MAX_UNPOOLING", "convolution", "convolution_transpose", "pooling", "roipooling",
    "unpooling",
]  # fmt: skip
