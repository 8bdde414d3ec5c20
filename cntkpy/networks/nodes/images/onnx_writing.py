"""Rules for convolution and pooling.

ONNX has one leading axis, then channels, then the axes along which windows slide. Paddings are written out: none of
ONNX's automatic ones is that of CNTK.
"""

from __future__ import annotations

import itertools

import numpy as np

from cntkpy.networks.graph import shapes
from cntkpy.networks.graph.node import Node
from cntkpy.networks.nodes.images.convolution import Plan, geometry_2d, is_two_d, missed_channels, spans_channels
from cntkpy.networks.nodes.images.cropping import crop_offsets
from cntkpy.networks.nodes.images.geometry import Geometry
from cntkpy.networks.nodes.images.pooling import geometry_of as pooling_geometry
from cntkpy.networks.nodes.inputs.kinds import is_chw
from cntkpy.networks.nodes.onnx_support.graph import Dims, NotExpressible
from cntkpy.networks.nodes.onnx_support.use import Rule, Use

MOST_AXES = 3
"""Most axes along which onnxruntime slides windows."""


MOST_CELLS = 256
"""Of a kernel that is another one at every position: one multiplication is written for each cell."""


def joined(use: Use, index: int, dims: Dims) -> str:
    """Return an operand with one leading axis, and `dims` after it."""
    name, lead, dims_, _ = use.operands[index]
    if lead == 1 and dims_ == dims:
        return name
    return use.emit.op("Reshape", name, use.emit.integers([-1 if lead != 1 else 0, *dims]))


def parted(use: Use, name: str, dims: Dims, index: int) -> str:
    """Return a result with one leading axis and `dims` after it, with the leading axes of operand `index`."""
    source = use.operands[index]
    if source.lead == 1:
        return use.shaped(name, dims)
    emit = use.emit
    leading = emit.leading(source.name, source.lead) if source.lead else emit.integers(())
    return emit.op("Reshape", name, emit.op("Concat", leading, emit.integers(use.dims), axis=0))


def _fitting(use: Use, name: str, geometry: Geometry, first: int) -> tuple[str, list[int]]:
    """Cut off what a negative padding leaves out.

    Args:
        use: the node.
        name: of the image, whose axes from `first` on are those of the geometry.
        geometry: the windows.
        first: the first of their axes.

    Returns:
        The image, and the paddings as ONNX has them: all before, then all after.
    """
    befores: list[int] = []
    afters: list[int] = []
    for axis, (n, s, (leading, after)) in enumerate(
        zip(geometry.inputs, geometry.stride, geometry.padding, strict=True)
    ):
        drop = 0 if -s < after and leading >= 0 else max(-after, 0)
        if leading < 0 or drop:
            name = use.emit.slice(name, first + axis, max(-leading, 0), n - drop)
        befores.append(max(leading, 0))
        afters.append(max(after, 0))
    return name, [*befores, *afters]


def _few(axes: int) -> None:
    if axes > MOST_AXES:
        raise NotExpressible(f"its windows slide along {axes} axes; ONNX runtimes have at most {MOST_AXES}")


def _slide(use: Use, name: str, weights: str, geometry: Geometry, groups: int = 1) -> str:
    """Return a convolution of images (N, C, ...) with kernels (M, C, ...), C those of a group."""
    _few(len(geometry.kernel))
    name, pads = _fitting(use, name, geometry, 2)
    sizes = {"kernel_shape": list(geometry.kernel), "strides": list(geometry.stride)}
    return use.emit.op("Conv", name, weights, **sizes, pads=pads, dilations=list(geometry.dilation), group=groups)


def _convolution_2d(use: Use) -> str:
    node = use.node
    geometry, channels = geometry_2d(node, node.input(1).shape or ())
    (kw, kh), (width, height), maps = geometry.kernel, geometry.inputs, int(use.options["maps"])
    if is_chw(use.options["imageLayout"]):
        image = joined(use, 1, (channels, height, width))
        missed = missed_channels(node) if use.options["channelPadding"] else 0
        weights = use.weights(0, (maps, channels, kh, kw))
        if missed:
            weights = use.emit.slice(weights, 1, missed)
            image = use.emit.slice(image, 1, 0, channels - missed)
        out = _slide(use, image, weights, geometry.reversed())
        return parted(use, out, (maps, *reversed(geometry.outputs)), 1)
    image = use.emit.op("Transpose", joined(use, 1, (width, height, channels)), perm=[0, 3, 1, 2])
    out = _slide(use, image, use.weights(0, (channels, kw, kh, maps), (3, 0, 1, 2)), geometry)
    return parted(use, use.emit.op("Transpose", out, perm=[0, 2, 3, 1]), (*geometry.outputs, maps), 1)


def convolution(use: Use) -> str:
    """Return a convolution in any of its forms."""
    if is_two_d(use.options):
        return _convolution_2d(use)
    plan = Plan(use.node, use.node.input(1).shape or ())
    geometry = plan.geometry.reversed()
    if plan.transpose:
        return _transposed(use, plan, geometry)
    image = joined(use, 1, geometry.inputs)
    if plan.local:
        return _local(use, plan, geometry)
    if spans_channels(geometry):
        weights = use.weights(0, (plan.maps, *reversed(plan.kernel)))
        geometry = geometry.without_first()
        out = _slide(use, image, weights, geometry, plan.groups)
    else:
        weights = use.weights(0, (plan.maps, 1, *geometry.kernel))
        out = _slide(use, use.emit.unsqueeze(image, 1), weights, geometry)
    return parted(use, out, (plan.maps, *geometry.outputs), 1)


def _transposed(use: Use, plan: Plan, geometry: Geometry) -> str:
    if plan.local:
        raise NotExpressible("it is a transposed convolution with a kernel of its own for every position")
    if spans_channels(geometry):
        sliding, inside = geometry.without_first(), (plan.maps, *geometry.outputs[1:])
        weights = use.weights(0, (plan.maps, *geometry.kernel))
    else:
        sliding, inside = geometry, (plan.maps, *geometry.outputs)
        weights = use.weights(0, (plan.maps, 1, *geometry.kernel))
    _few(len(sliding.kernel))
    befores = [leading for leading, _ in sliding.padding]
    afters = [after for _, after in sliding.padding]
    out = use.emit.op(
        "ConvTranspose",
        joined(use, 1, inside),
        weights,
        kernel_shape=list(sliding.kernel),
        strides=list(sliding.stride),
        pads=[max(pad, 0) for pad in (*befores, *afters)],
        output_padding=[max(-after, 0) for after in afters],
        dilations=list(sliding.dilation),
    )
    if min(befores) < 0:
        cropped = [0, 0, *(max(-leading, 0) for leading in befores), *(0,) * (2 + len(befores))]
        out = use.emit.op("Pad", out, use.emit.integers(cropped))
    sizes = geometry.inputs if spans_channels(geometry) else (1, *geometry.inputs)
    return parted(use, out, sizes, 1)


def _local(use: Use, plan: Plan, geometry: Geometry) -> str:
    """Kernels that differ from position to position: for each cell of a kernel, a part of the image times weights."""
    emit, kernel = use.emit, use.constants.get(0)
    cells = shapes.size(geometry.kernel)
    if kernel is None or cells > MOST_CELLS:
        why = f"{cells} cells; at most {MOST_CELLS} can be written out" if kernel is not None else "computed weights"
        raise NotExpressible(f"it has a kernel of its own for every position (sharing=false), with {why}")
    positions = [1 if share else n for n, share in zip(geometry.outputs, reversed(plan.sharing), strict=True)]
    weights = kernel.reshape(plan.maps, *positions, *geometry.kernel)
    image, pads = _fitting(use, joined(use, 1, geometry.inputs), geometry, 1)
    if any(pads):
        rank = len(geometry.kernel)
        image = emit.op("Pad", image, emit.integers([0, *pads[:rank], 0, *pads[rank:]]))
    image = emit.unsqueeze(image, 1)
    axes = range(2, 2 + len(geometry.kernel))
    parts: list[str] = []
    for cell in itertools.product(*(range(k) for k in geometry.kernel)):
        begins = [place * by for place, by in zip(cell, geometry.dilation, strict=True)]
        ends = [begin + (n - 1) * s + 1 for begin, n, s in zip(begins, geometry.outputs, geometry.stride, strict=True)]
        lists = [emit.integers(values) for values in (begins, ends, axes, geometry.stride)]
        at_cell = emit.constant(weights[(..., *cell)])
        parts.append(emit.op("Mul", emit.op("Slice", image, *lists), at_cell))
    out = emit.op("Sum", *parts)
    return parted(use, out, (plan.maps, *geometry.outputs), 1)


def _windows_of(node: Node) -> tuple[Geometry, bool]:
    """Return the windows, axes as in memory, and whether they have one element of the first axis, where they do not
    slide.
    """
    pooled_geometry = pooling_geometry(node)
    assert pooled_geometry is not None
    geometry = pooled_geometry[1].reversed()
    first = (geometry.kernel[0], geometry.stride[0], geometry.padding[0])
    return geometry, len(geometry.kernel) > 1 and first == (1, 1, (0, 0))


def _pool(use: Use, index: int, geometry: Geometry, plain: bool) -> tuple[str, dict[str, object]]:
    """Return the image (N, C, ...) of operand `index`, and the attributes of ONNX's pooling."""
    image = joined(use, index, geometry.inputs)
    if plain:
        geometry = geometry.without_first()
    else:
        image = use.emit.unsqueeze(image, 1)
    _few(len(geometry.kernel))
    image, pads = _fitting(use, image, geometry, 2)
    return image, {"kernel_shape": list(geometry.kernel), "strides": list(geometry.stride), "pads": pads}


def pooling(use: Use) -> str:
    """Return the largest element or the mean of windows; padded cells count with `includePad` only."""
    kind = {"MaxPooling": "max", "AveragePooling": "average"}.get(use.node.operation) or str(use.options["kind"])
    geometry, plain = _windows_of(use.node)
    if plain and geometry.kernel[1:] == geometry.inputs[1:] and not any(map(any, geometry.padding)):
        kind = "GlobalMaxPool" if kind.lower() == "max" else "GlobalAveragePool"
        return parted(use, use.emit.op(kind, joined(use, 0, geometry.inputs)), geometry.outputs, 0)
    image, attributes = _pool(use, 0, geometry, plain)
    if kind.lower() == "max":
        out = use.emit.op("MaxPool", image, **attributes)
    else:
        padded = int(bool(use.options.get("includePad", False)))
        out = use.emit.op("AveragePool", image, count_include_pad=padded, **attributes)
    return parted(use, out, geometry.outputs if plain else (1, *geometry.outputs), 0)


def unpooling(use: Use) -> str:
    """Values at the places of the largest elements of another image, whose windows do not overlap."""
    geometry, plain = _windows_of(use.node)
    if any(s < k for s, k in zip(geometry.stride, geometry.kernel, strict=True)):
        raise NotExpressible("its windows overlap, so that values may meet in one place")
    if any(leading or after > 0 for leading, after in geometry.padding):
        raise NotExpressible("its windows are padded")
    emit, pooled = use.emit, use.operands[1]
    name = pooled.name
    for axis, (n, wanted) in enumerate(zip(pooled.dims, geometry.inputs, strict=True)):
        name = name if n == wanted else emit.slice(name, pooled.lead + axis, 0, wanted)
    source = pooled._replace(name=name, dims=geometry.inputs)
    image, attributes = _pool(Use(use.node, [use.operands[0], source], emit, use.lead, {}), 1, geometry, plain)
    values = joined(use, 0, geometry.outputs)
    places = emit.several("MaxPool", [image], 2, **attributes)[1]
    flat = emit.integers([-1])
    places, values = emit.op("Reshape", places, flat), emit.op("Reshape", values, flat)
    shape = emit.op("Shape", image)
    zeros = emit.op("ConstantOfShape", emit.reduce("Prod", shape, [0]), value=np.zeros(1, emit.dtype))
    out = emit.op("Reshape", emit.op("ScatterElements", zeros, places, values, axis=0), shape)
    return parted(use, out, geometry.inputs if plain else (1, *geometry.inputs), 0)


def _region_windows(use: Use, numbers: tuple[str, str], count: int, size: int) -> str:
    """Which of `size` elements belong to each of `count` cells of regions: booleans (..., count, size)."""
    emit, (first, second) = use.emit, numbers
    scale = float(use.options.get("spatialScale", 0.0))

    def rounded(value: str) -> str:
        """Return the nearest whole number; halves of numbers of any sign away from 0."""
        value = emit.op("Mul", value, emit.real(scale or size))
        whole = emit.op("Floor", emit.op("Add", emit.op("Abs", value), emit.real(0.5)))
        return emit.op("Mul", emit.op("Sign", value), whole)

    begin, extent = rounded(first), rounded(second)
    if scale:  # the second number is the last element, not how many there are
        extent = emit.op("Add", emit.op("Sub", extent, begin), emit.real(1))
    begin, extent = emit.unsqueeze(begin, -1), emit.unsqueeze(emit.op("Max", extent, emit.real(1)), -1)
    cells = np.arange(count, dtype=emit.dtype)

    def part(index: np.ndarray, rounding: str) -> str:
        share = emit.op("Div", emit.op("Mul", extent, emit.constant(index)), emit.real(count))
        return emit.op("Add", begin, emit.op(rounding, share))

    start = emit.op("Max", part(cells, "Floor"), emit.real(0))
    end = emit.op("Min", part(cells + 1, "Ceil"), emit.real(size))
    position = emit.constant(np.arange(size, dtype=emit.dtype))
    after = emit.op("GreaterOrEqual", position, emit.unsqueeze(start, -1))
    return emit.op("And", after, emit.op("Less", position, emit.unsqueeze(end, -1)))


def regions(use: Use) -> str:
    """Return the largest elements or the means, over width, then over height, in each cell of a grid over each
    region.
    """
    emit, (image, rois), lead = use.emit, use.operands, use.lead
    width, height = (use.node.shape or (1, 1))[:2]
    count, mean = shapes.size(rois.dims) // 4, str(use.options.get("kind", "max")).lower() == "average"
    corners = emit.reshape(rois.name, rois.lead, (count, 4))
    x, y, w, h = (emit.squeeze(emit.slice(corners, -1, k, k + 1), -1) for k in range(4))
    columns = _region_windows(use, (x, w), width, image.dims[2])
    rows = _region_windows(use, (y, h), height, image.dims[1])
    empty, kind = emit.real(0.0 if mean else float("-inf")), "Sum" if mean else "Max"
    # images (..., region, channel, height, cell of width, width), masks (..., region, 1, 1, cell of width, width)
    pixels = emit.unsqueeze(image.name, -5, -2)
    across = emit.reduce(kind, emit.op("Where", emit.unsqueeze(columns, -4, -3), pixels, empty), [-1], keep=False)
    # images (..., channel, cell of height, cell of width, height), masks (..., 1, cell of height, 1, height)
    turned = emit.op("Transpose", across, perm=[*range(lead + 2), lead + 3, lead + 2])
    seen = emit.op("Where", emit.unsqueeze(rows, -4, -2), emit.unsqueeze(turned, -3), empty)
    pooled = emit.reduce(kind, seen, [-1], keep=False)
    if mean:
        wide, high = (emit.reduce("Sum", emit.cast(mask), [-1], keep=False) for mask in (columns, rows))
        cells = emit.op("Mul", emit.unsqueeze(high, -1), emit.unsqueeze(wide, -2))
        pooled = emit.op("Div", pooled, emit.unsqueeze(emit.op("Max", cells, emit.real(1)), -3))
    else:
        pooled = emit.op("Where", emit.op("Equal", pooled, empty), emit.real(0), pooled)
    return use.shaped(pooled, (count, image.dims[0], height, width))


def crop(use: Use) -> str:
    """Return a window of an image."""
    left, top_ = crop_offsets(use.node)
    width, height = (use.node.shape or (1, 1))[:2]
    return use.emit.slice(use.emit.slice(use.names[0], -1, left, left + width), -2, top_, top_ + height)


RULES: dict[str, Rule] = {
    "Convolution": convolution,
    "MaxPooling": pooling,
    "AveragePooling": pooling,
    "Pooling": pooling,
    "MaxUnpooling": unpooling,
    "ROIPooling": regions,
    "Crop": crop,
}
