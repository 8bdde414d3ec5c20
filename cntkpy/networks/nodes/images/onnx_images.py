"""Convolution, pooling, batch normalisation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from cntkpy.networks.graph.node import Node
from cntkpy.networks.nodes.onnx_support.building import Rule, Use
from cntkpy.networks.nodes.onnx_support.values import Array, Data, Unusable, Value
from cntkpy.networks.nodes.shape.onnx_axes import LONGEST, enumerable, padded, part, permuted, stacked
from cntkpy.networks.nodes.shape.onnx_reductions import reduced


class Windows(NamedTuple):
    """Windows that slide along the axes of an image, in the order of memory, channels left out.

    Attributes:
        kernel, stride: per axis.
        before, after: elements of padding per axis.
        dilation: the distance between neighbours in a window, per axis.
    """

    kernel: list[int]
    stride: list[int]
    before: list[int]
    after: list[int]
    dilation: list[int]

    def lists(self, channels: int, channel_stride: int = 1) -> dict[str, Any]:
        """Return the options of a node, axes in its order, channels last."""
        return {
            "kernelShape": (*self.kernel[::-1], channels),
            "stride": (*self.stride[::-1], channel_stride),
            "autoPadding": (False,) * (len(self.kernel) + 1),
            "lowerPad": (*self.before[::-1], 0),
            "upperPad": (*self.after[::-1], 0),
            **({"dilation": (*self.dilation[::-1], 1)} if any(step > 1 for step in self.dilation) else {}),
        }


def _image(use: Use) -> Data:
    """Return the first operand: (batch, channels, ...)."""
    x = use.data()
    if len(x.dims) < 2 or x.axes[-len(x.dims) :] != x.dims or len(x.words) != 1:
        raise Unusable(f"an image has the axes batch, channels and others, not {list(x.axes)}")
    return x


def _windows(use: Use, x: Data, kernel: list[int], fill: float) -> tuple[Data, Windows]:
    """Return the windows, and the image without the elements that no window reaches.

    Args:
        use: the operator.
        x: the image.
        kernel: the sizes of windows.
        fill: the value of padding. An image that is smaller than a window gets its padding here.
    """
    spatial = list(x.dims[1:])
    stride, dilation, reach = _steps(use, spatial, kernel)
    leading, after = _pads(use, spatial, reach, stride)
    for axis, (n, k, s) in enumerate(zip(spatial, reach, stride, strict=True)):
        place = len(x.axes) - len(spatial) + axis
        if n + leading[axis] + after[axis] < k:
            raise Unusable(f"a window of {k} elements for an axis of {n + leading[axis] + after[axis]}")
        if k > n:
            x = padded(use, x, place, leading[axis], after[axis], fill)
            n += leading[axis] + after[axis]
            leading[axis] = after[axis] = 0
        if not leading[axis] and not after[axis]:  # windows that would reach beyond the image are left out
            continue
        remainder = (n + leading[axis] + after[axis] - k) % s
        drop = max(0, remainder - after[axis])
        after[axis] = max(0, after[axis] - remainder)
        if drop:
            x = part(use, x, place, 0, n - drop)
    return x, Windows(kernel, stride, leading, after, dilation)


def _steps(use: Use, spatial: Sequence[int], kernel: Sequence[int]) -> tuple[list[int], list[int], list[int]]:
    """Strides, dilations, and from how many elements of an axis a window takes some.

    Raises:
        Unusable: they are not one for each axis of the image, or less than 1.
    """
    if len(kernel) != len(spatial):
        raise Unusable(f"a kernel of {len(kernel)} axes for an image of {len(spatial)}")
    if any(size < 1 for size in kernel):
        raise Unusable(f"a kernel of {list(kernel)} elements")
    stride, dilation = use.counts("strides", [1] * len(kernel)), use.counts("dilations", [1] * len(kernel))
    if not len(stride) == len(dilation) == len(kernel):
        raise Unusable("strides and dilations need one number for each axis")
    return stride, dilation, [(k - 1) * by + 1 for k, by in zip(kernel, dilation, strict=True)]


def _pads(use: Use, sizes: Sequence[int], kernel: list[int], stride: list[int]) -> tuple[list[int], list[int]]:
    how = use.get("auto_pad", "NOTSET")
    if how in ("NOTSET", "VALID"):
        pads = use.sizes("pads") if how == "NOTSET" else []
        pads = pads or [0] * (2 * len(kernel))
        if any(pad < 0 for pad in pads):
            raise Unusable("negative paddings are not supported")
        if len(pads) != 2 * len(kernel):
            raise Unusable(f"{len(pads)} paddings for {len(kernel)} axes")
        return pads[: len(kernel)], pads[len(kernel) :]
    if how not in ("SAME_UPPER", "SAME_LOWER"):
        raise Unusable(f"auto_pad = {how} is not supported")
    total = [max(0, (-(-n // s) - 1) * s + k - n) for n, k, s in zip(sizes, kernel, stride, strict=True)]
    less, larger = [count // 2 for count in total], [count - count // 2 for count in total]
    return (less, larger) if how == "SAME_UPPER" else (larger, less)


def _with_bias(use: Use, convolved: Data) -> list[Value]:
    if not use.has(2):
        return [convolved]
    bias = use.array(2)
    rank = len(convolved.dims)
    node = use.build.node("Plus", convolved.node, use.build.parameter(bias, (bias.value.size, *(1,) * (rank - 1))))
    return [use.build.data(node, convolved.axes)]


def convolution(use: Use) -> list[Value]:
    """Return a convolution, of groups of channels, too."""
    x, weights, groups = _image(use), use.array(1), use.integer("group", 1)
    maps, channels, *kernel = weights.value.shape
    if use.sizes("kernel_shape", kernel) != kernel:
        raise Unusable(f"kernel_shape = {use.sizes('kernel_shape')} for kernels of {kernel}")
    if groups < 1 or maps % groups or channels * groups != x.dims[0]:
        raise Unusable(f"kernels of {channels} channels in {groups} groups for an image of {x.dims[0]}")
    x, windows = _windows(use, x, kernel, 0.0)
    options = windows.lists(channels, channels * groups)
    if groups > 1:
        options["groups"] = groups
    node = use.build.node("Convolution", use.build.parameter(weights), x.node, mapCount=maps, **options)
    dims = tuple(reversed(node.shape or ()))
    return _with_bias(use, use.build.data(node, (*x.words, *dims)))


def transposed(use: Use) -> list[Value]:
    """Return a transposed convolution, one for each group of channels."""
    x, weights, groups = _image(use), use.array(1), use.integer("group", 1)
    channels, count, *kernel = weights.value.shape
    if use.sizes("kernel_shape", kernel) != kernel:
        raise Unusable(f"kernel_shape = {use.sizes('kernel_shape')} for kernels of {kernel}")
    if groups < 1 or channels != x.dims[0] or channels % groups:
        raise Unusable(f"kernels of {channels} channels in {groups} groups for an image of {x.dims[0]}")
    sizes, windows = _larger(use, x, kernel)
    axis, group_channels = len(x.axes) - len(kernel) - 1, channels // groups
    parts: list[Node] = []
    for group in range(groups):
        kernels = weights.value[group * group_channels : (group + 1) * group_channels]
        name = f"{weights.name}.{group + 1}" if groups > 1 and weights.name else weights.name
        image = part(use, x, axis, group * group_channels, (group + 1) * group_channels)
        options = windows.lists(count, count)
        options["outputShape"] = (*sizes[::-1], count)
        parameter = use.build.parameter(Array(kernels, name))
        parts.append(
            use.build.node("Convolution", parameter, image.node, mapCount=group_channels, transpose=True, **options)
        )
    node = parts[0] if groups == 1 else stacked(use, parts, x.sample_axis(axis))
    return _with_bias(use, use.build.data(node, (*x.words, *reversed(node.shape or ()))))


def _larger(use: Use, x: Data, kernel: list[int]) -> tuple[list[int], Windows]:
    """Return the sizes of the result of a transposed convolution, and how windows slide along it."""
    rank = len(kernel)
    stride, dilation, reach = _steps(use, x.dims[1:], kernel)
    output_padding, how = use.sizes("output_padding", [0] * rank), use.get("auto_pad", "NOTSET")
    if min((*output_padding, *use.sizes("pads"), *use.sizes("output_shape")), default=0) < 0:
        raise Unusable("negative paddings and sizes are not supported")
    whole = [(n - 1) * s + k + m for n, s, k, m in zip(x.dims[1:], stride, reach, output_padding, strict=True)]
    wanted = use.sizes("output_shape")[-rank:]
    if not wanted and how.startswith("SAME"):
        wanted = [n * s for n, s in zip(x.dims[1:], stride, strict=True)]
    if not wanted:
        pads = use.sizes("pads", [0] * (2 * rank)) if how == "NOTSET" else [0] * (2 * rank)
        leading, after = pads[:rank], pads[rank:]
        sizes = [size - b - a for size, b, a in zip(whole, leading, after, strict=True)]
        return sizes, Windows(kernel, stride, leading, after, dilation)
    total = [max(0, extent - size) for extent, size in zip(whole, wanted, strict=True)]
    less, most = [count // 2 for count in total], [count - count // 2 for count in total]
    leading, after = (less, most) if how == "SAME_UPPER" else (most, less)
    return wanted, Windows(kernel, stride, leading, after, dilation)


def pooling(kind: str) -> Rule:
    """Pooling; padded cells do not count unless the model says so."""

    def rule(use: Use) -> list[Value]:
        x = _image(use)
        kernel = use.counts("kernel_shape")
        if len([name for name in use.operator.outputs if name]) > 1:
            raise Unusable("the places of the largest elements are not supported")
        stride, _, reach = _steps(use, x.dims[1:], kernel)
        asked = _pads(use, x.dims[1:], reach, stride)
        counting = [*zip(*asked, strict=True)] if use.get("count_include_pad", 0) else [(0, 0)] * len(kernel)
        ceiled = _ceiled(use, x, kernel)
        small = any(k > n for k, n in zip(reach, x.dims[1:], strict=True))
        if any(size != 1 for size in use.sizes("dilations")):
            x, windows = (x, ceiled) if ceiled is not None else _windows_of(use, x, kernel)
            return [_apart(use, x, windows, kind, counting)]
        if kind == "average" and (small or (ceiled is not None and use.get("count_include_pad", 0))):
            windows = ceiled if ceiled is not None else _windows_of(use, x, kernel)[1]
            return [_averaged(use, x, windows, counting)]
        outside = 0.0 if kind == "average" else float(np.finfo(use.build.network.dtype).min)
        if ceiled is None:
            x, windows = _windows(use, x, kernel, outside)
        else:
            x, windows = (_around(use, x, ceiled, outside), _bare(ceiled)) if small else (x, ceiled)
        options = windows.lists(1)
        if kind == "average" and use.get("count_include_pad", 0) and any((*windows.before, *windows.after)):
            options["includePad"] = True
        node = use.build.node("Pooling", x.node, kind=kind, **options)
        return [use.build.data(node, (*x.words, *reversed(node.shape or ())))]

    return rule


def _windows_of(use: Use, x: Data, kernel: list[int]) -> tuple[Data, Windows]:
    """Return the windows, and the image without the elements that no window reaches; an image may be smaller than a
    window.
    """
    stride, dilation, reach = _steps(use, x.dims[1:], kernel)
    leading, after = _pads(use, x.dims[1:], reach, stride)
    for axis, (n, k, s) in enumerate(zip(x.dims[1:], reach, stride, strict=True)):
        if n + leading[axis] + after[axis] < k:
            raise Unusable(f"a window of {k} elements for an axis of {n + leading[axis] + after[axis]}")
        remainder = (n + leading[axis] + after[axis] - k) % s
        if (drop := max(0, remainder - after[axis])) > 0:
            x = part(use, x, len(x.axes) - len(kernel) + axis, 0, n - drop)
        after[axis] = max(0, after[axis] - remainder)
    return x, Windows(kernel, stride, leading, after, dilation)


def _around(use: Use, x: Data, windows: Windows, value: float) -> Data:
    """Return an image with the padding of windows."""
    first = len(x.axes) - len(windows.kernel)
    for axis, (leading, after) in enumerate(zip(windows.before, windows.after, strict=True), first):
        x = padded(use, x, axis, leading, after, value) if leading or after else x
    return x


def _bare(windows: Windows) -> Windows:
    """Return the same windows for an image that has its padding."""
    none = [0] * len(windows.kernel)
    return windows._replace(before=none, after=none)


def _averaged(use: Use, x: Data, windows: Windows, counting: Sequence[tuple[int, int]]) -> Data:
    """Return the mean of each window over the cells that count.

    Args:
        use: the operator.
        x: the image.
        windows: how they slide; behind the image as far as the last one reaches.
        counting: how many cells before and behind the image count, per axis.
    """
    build, counts = use.build, _counts(use, x.dims[1:], windows, counting)
    image = _around(use, x, windows, 0.0)
    node = build.node("Pooling", image.node, kind="average", **_bare(windows).lists(1))
    mean = build.data(node, (*x.words, *reversed(node.shape or ())))
    factors = build.parameter(Array(math.prod(windows.kernel) / counts))
    return Data(build.node("ElementTimes", mean.node, factors), mean.axes)


def _apart(use: Use, x: Data, windows: Windows, kind: str, counting: Sequence[tuple[int, int]]) -> Data:
    """Pooling of windows with gaps: convolutions with kernels of a single 1 take the elements of each window."""
    build, channels, kernel = use.build, x.dims[0], windows.kernel
    counts = _counts(use, x.dims[1:], windows, counting)
    outside = 0.0 if kind == "average" else float(np.finfo(build.network.dtype).min)
    x = _around(use, x, windows, outside)
    count = math.prod(kernel)
    build.take(count, count, channels)
    ones = np.tile(np.eye(count).reshape(count, 1, *kernel), (channels, *(1,) * (len(kernel) + 1)))
    options = _bare(windows).lists(1, channels)
    options["groups"] = channels
    node = build.node("Convolution", build.parameter(Array(ones)), x.node, mapCount=channels * count, **options)
    sizes = tuple(reversed(node.shape or ()))[1:]
    each = build.data(node, (*x.words, channels, count, *sizes))
    pooled = reduced(use, each, [len(x.words) + 1], "Max" if kind == "max" else "Sum")
    result = build.data(pooled.node, (*x.words, channels, *sizes))
    if kind == "max":
        return result
    return Data(build.node("ElementTimes", result.node, build.parameter(Array(1 / counts))), result.axes)


def _counts(use: Use, sizes: Sequence[int], windows: Windows, counting: Sequence[tuple[int, int]]) -> np.ndarray:
    """Count the elements of each window: those of the image, and some before and behind it."""
    cells: np.ndarray = np.ones((), np.float64)
    for axis, n in enumerate(sizes):
        kernel, step, gap = windows.kernel[axis], windows.stride[axis], windows.dilation[axis]
        leading, behind = counting[axis]
        enumerable((n + windows.before[axis] + windows.after[axis]) * kernel)
        end = n + windows.after[axis] - (kernel - 1) * gap
        places = range(-windows.before[axis], end, step)
        inside = [sum(-leading <= place + gap * k < n + behind for k in range(kernel)) for place in places]
        use.build.take(cells.size, len(inside))
        cells = np.multiply.outer(cells, np.array(inside))
    return cells


def _ceiled(use: Use, x: Data, kernel: list[int]) -> Windows | None:
    """With ceil_mode, the windows that reach beyond the image: that is padding behind it."""
    if not use.get("ceil_mode", 0):
        return None
    stride, dilation, reach = _steps(use, x.dims[1:], kernel)
    leading, after = _pads(use, x.dims[1:], reach, stride)
    for axis, (n, k, s) in enumerate(zip(x.dims[1:], reach, stride, strict=True)):
        count = -(-(n + leading[axis] + after[axis] - k) // s) + 1
        if (count - 1) * s >= n + leading[axis]:  # the last window would begin in the padding behind
            count -= 1
        if count < 1:
            raise Unusable(f"a window of {k} elements for an axis of {n + leading[axis] + after[axis]}")
        after[axis] = max(0, (count - 1) * s + k - n - leading[axis])
    return Windows(kernel, stride, leading, after, dilation)


def everywhere(how: str) -> Rule:
    """Pooling over whole channels."""

    def rule(use: Use) -> list[Value]:
        x = _image(use)
        return [reduced(use, x, range(len(x.words) + 1, len(x.axes)), how)]

    return rule


def normalisation(use: Use) -> list[Value]:
    """Batch normalisation with running statistics, of channels."""
    use.refuse("spatial", 1)
    if use.get("training_mode", 0):
        raise Unusable("training_mode = 1 is not supported: export the model for inference")
    x, build = use.data(), use.build
    if not x.dims or len(x.words) != 1:
        raise Unusable(f"it needs the axes batch and channels, not {list(x.axes)}")
    statistics = [build.parameter(use.array(index), (use.array(index).value.size,)) for index in range(1, 5)]
    if any(parameter.shape != (x.dims[0],) for parameter in statistics):
        raise Unusable(f"its statistics are not those of {x.dims[0]} channels")
    for parameter in statistics[2:]:
        build.freeze(parameter)
    node = build.node(
        "BatchNormalization",
        x.node,
        *statistics,
        spatial=len(x.dims) > 1,
        epsilon=float(np.float32(use.get("epsilon", 1e-5))),
        normalizationTimeConstant=TIME_CONSTANT,
    )
    node.samples = 1  # the statistics are those of a training
    return use.same(node)


TIME_CONSTANT = 5000.0
"""Of the running statistics when the model is trained on, in samples: what CNTK's layers take."""


def by_sample(use: Use) -> list[Value]:
    """Return each channel of each sample less its mean, divided by its deviation; then scaled and shifted."""
    x, build = _image(use), use.build
    axes = list(range(len(x.words) + 1, len(x.axes)))
    if not axes:
        raise Unusable("channels of one element")
    less = build.node("Minus", x.node, reduced(use, x, axes, "Mean").node)
    squares = Data(build.node("ElementTimes", less, less), x.axes)
    variance = build.node("Plus", reduced(use, squares, axes, "Mean").node, build.number(use.get("epsilon", 1e-5)))
    normalised = build.node("ElementTimes", less, build.node("Reciprocal", build.node("Sqrt", variance)))
    for index, kind in ((1, "ElementTimes"), (2, "Plus")):
        vector = use.array(index)
        normalised = build.node(kind, normalised, build.parameter(vector, (vector.value.size, *(1,) * len(axes))))
    return use.same(normalised)


def by_group(use: Use) -> list[Value]:
    """GroupNormalization: each group of channels of each sample less its mean, divided by its deviation."""
    x, build, groups = _image(use), use.build, use.integer("num_groups", 0)
    channels = x.dims[0]
    if groups < 1 or channels % groups:
        raise Unusable(f"num_groups = {groups} of {channels} channels")
    each = build.data(x.node, (*x.words, groups, math.prod(x.dims) // groups))
    axes = [len(x.words) + 1]
    less = build.node("Minus", each.node, reduced(use, each, axes, "Mean").node)
    squares = Data(build.node("ElementTimes", less, less), each.axes)
    variance = build.node("Plus", reduced(use, squares, axes, "Mean").node, build.number(use.get("epsilon", 1e-5)))
    divided = build.node("ElementTimes", less, build.node("Reciprocal", build.node("Sqrt", variance)))
    normalised = build.data(divided, x.axes).node
    for index, kind in ((1, "ElementTimes"), (2, "Plus")):
        vector = use.array(index)
        if vector.value.size == groups != channels:  # before version 21, one for each group
            vector = Array(np.repeat(vector.value, channels // groups))
        if vector.value.size != channels:
            raise Unusable(f"{vector.value.size} factors for {channels} channels")
        normalised = build.node(kind, normalised, build.parameter(vector, (channels, *(1,) * (len(x.dims) - 1))))
    return use.same(normalised)


def blocks_to_space(use: Use) -> list[Value]:
    """DepthToSpace: channels become blocks of elements."""
    x, size, mode = _image(use), use.integer("blocksize", 0), use.get("mode", "DCR")
    channels, *sizes = x.dims
    if len(sizes) != 2 or not 1 <= size <= channels or channels % (size * size) or mode not in ("DCR", "CRD"):
        raise Unusable(f"blocks of {size} x {size}, mode {mode}, of {channels} channels")
    count, lead = channels // (size * size), len(x.words)
    inner = (size, size, count) if mode == "DCR" else (count, size, size)
    order = (2, 3, 0, 4, 1) if mode == "DCR" else (0, 3, 1, 4, 2)
    each = use.build.data(x.node, (*x.words, *inner, *sizes))
    turned = permuted(use, each, [*range(lead), *(lead + axis for axis in order)])
    return [use.build.data(turned.node, (*x.words, count, sizes[0] * size, sizes[1] * size))]


def space_to_blocks(use: Use) -> list[Value]:
    """SpaceToDepth: blocks of elements become channels."""
    x, size, mode = _image(use), use.integer("blocksize", 0), use.get("mode", "DCR")
    channels, *sizes = x.dims
    if len(sizes) != 2 or not 1 <= size <= min(sizes) or sizes[0] % size or sizes[1] % size:
        raise Unusable(f"blocks of {size} x {size} of an image of {sizes}")
    if mode not in ("DCR", "CRD"):
        raise Unusable(f"mode {mode}")
    order = (2, 4, 0, 1, 3) if mode == "DCR" else (0, 2, 4, 1, 3)
    height, width, lead = sizes[0] // size, sizes[1] // size, len(x.words)
    each = use.build.data(x.node, (*x.words, channels, height, size, width, size))
    turned = permuted(use, each, [*range(lead), *(lead + axis for axis in order)])
    return [use.build.data(turned.node, (*x.words, channels * size * size, height, width))]


def local_response(use: Use) -> list[Value]:
    """Return each element divided by a power of the sum of squares of channels around it."""
    x, build = _image(use), use.build
    size, alpha, beta, bias = use.get("size"), use.get("alpha", 1e-4), use.get("beta", 0.75), use.get("bias", 1.0)
    if not 1 <= size <= LONGEST:
        raise Unusable(f"size = {size} is not supported")
    use.build.take(x.dims[0], x.dims[0])
    channels, squares = x.dims[0], build.node("ElementTimes", x.node, x.node)
    pixels = math.prod(x.dims[1:])
    leading, after = (size - 1) // 2, size - 1 - (size - 1) // 2
    band = np.array([[float(-leading <= j - i <= after) for i in range(channels)] for j in range(channels)])
    flat = build.node("NewReshape", squares, dims=(pixels, channels))
    turned = build.node("TransposeDimensions", flat, axis1=1, axis2=2)
    sums = build.node("Times", build.parameter(Array(band)), turned)
    back = build.node("TransposeDimensions", sums, axis1=1, axis2=2)
    around = build.node("NewReshape", back, dims=tuple(x.dims[::-1]))
    base = build.node("Plus", build.number(bias), build.node("ElementTimes", build.number(alpha / size), around))
    factor = build.node("ElementPower", base, build.number(-beta))
    return use.same(build.node("ElementTimes", x.node, factor))


RULES: dict[str, Rule] = {
    "Conv": convolution,
    "ConvTranspose": transposed,
    "MaxPool": pooling("max"),
    "AveragePool": pooling("average"),
    "GlobalMaxPool": everywhere("Max"),
    "GlobalAveragePool": everywhere("Mean"),
    "BatchNormalization": normalisation,
    "InstanceNormalization": by_sample,
    "LRN": local_response,
    "GroupNormalization": by_group,
    "DepthToSpace": blocks_to_space,
    "SpaceToDepth": space_to_blocks,
}
