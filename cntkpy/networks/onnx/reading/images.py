"""Convolution, pooling, batch normalisation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from cntkpy.networks.graph.node import Node
from cntkpy.networks.onnx.reading.axes import enumerable, padded, part, stacked
from cntkpy.networks.onnx.reading.building import Use
from cntkpy.networks.onnx.reading.elementwise import Rule
from cntkpy.networks.onnx.reading.reductions import reduced
from cntkpy.networks.onnx.reading.values import Array, Data, Unusable, Value


class Windows(NamedTuple):
    """How windows slide along the axes of an image, in the order of memory, channels left out.

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
        """The options of a node, axes in its order, channels last."""
        return {
            "kernelShape": (*self.kernel[::-1], channels),
            "stride": (*self.stride[::-1], channel_stride),
            "autoPadding": (False,) * (len(self.kernel) + 1),
            "lowerPad": (*self.before[::-1], 0),
            "upperPad": (*self.after[::-1], 0),
            **({"dilation": (*self.dilation[::-1], 1)} if any(one > 1 for one in self.dilation) else {}),
        }


def _image(use: Use) -> Data:
    """The first operand: (batch, channels, ...)."""
    x = use.data()
    if len(x.dims) < 2 or x.axes[-len(x.dims) :] != x.dims or len(x.words) != 1:
        raise Unusable(f"an image has the axes batch, channels and others, not {list(x.axes)}")
    return x


def _windows(use: Use, x: Data, kernel: list[int]) -> tuple[Data, Windows]:
    """The windows, and the image without the elements that no window reaches."""
    spatial = list(x.dims[1:])
    if len(kernel) != len(spatial):
        raise Unusable(f"a kernel of {len(kernel)} axes for an image of {len(spatial)}")
    stride, dilation = use.sizes("strides", [1] * len(kernel)), use.sizes("dilations", [1] * len(kernel))
    reach = [(k - 1) * by + 1 for k, by in zip(kernel, dilation, strict=True)]
    before, after = _pads(use, spatial, reach, stride)
    for axis, (n, k, s) in enumerate(zip(spatial, reach, stride, strict=True)):
        rest = (n + before[axis] + after[axis] - k) % s
        drop = max(0, rest - after[axis])
        after[axis] = max(0, after[axis] - rest)
        if drop:
            x = part(use, x, len(x.axes) - len(spatial) + axis, 0, n - drop)
    return x, Windows(kernel, stride, before, after, dilation)


def _pads(use: Use, sizes: list[int], kernel: list[int], stride: list[int]) -> tuple[list[int], list[int]]:
    how = use.get("auto_pad", "NOTSET")
    if how in ("NOTSET", "VALID"):
        pads = use.sizes("pads") if how == "NOTSET" else []
        pads = pads or [0] * (2 * len(kernel))
        if any(one < 0 for one in pads):
            raise Unusable("negative paddings are not supported")
        return pads[: len(kernel)], pads[len(kernel) :]
    total = [max(0, (-(-n // s) - 1) * s + k - n) for n, k, s in zip(sizes, kernel, stride, strict=True)]
    less, more = [one // 2 for one in total], [one - one // 2 for one in total]
    return (less, more) if how == "SAME_UPPER" else (more, less)


def _with_bias(use: Use, found: Data) -> list[Value]:
    if not use.has(2):
        return [found]
    bias = use.array(2)
    rank = len(found.dims)
    node = use.build.node("Plus", found.node, use.build.parameter(bias, (bias.value.size, *(1,) * (rank - 1))))
    return [use.build.data(node, found.axes)]


def convolution(use: Use) -> list[Value]:
    """A convolution, of groups of channels, too."""
    x, weights, groups = _image(use), use.array(1), use.integer("group", 1)
    maps, channels, *kernel = weights.value.shape
    if channels * groups != x.dims[0]:
        raise Unusable(f"kernels of {channels} channels in {groups} groups for an image of {x.dims[0]}")
    x, windows = _windows(use, x, kernel)
    options = windows.lists(channels, channels * groups)
    if groups > 1:
        options["groups"] = groups
    node = use.build.node("Convolution", use.build.parameter(weights), x.node, mapCount=maps, **options)
    dims = tuple(reversed(node.shape or ()))
    return _with_bias(use, use.build.data(node, (*x.words, *dims)))


def transposed(use: Use) -> list[Value]:
    """A transposed convolution, one for each group of channels."""
    x, weights, groups = _image(use), use.array(1), use.integer("group", 1)
    channels, count, *kernel = weights.value.shape
    if channels != x.dims[0] or channels % groups:
        raise Unusable(f"kernels of {channels} channels in {groups} groups for an image of {x.dims[0]}")
    sizes, windows = _larger(use, x, kernel)
    axis, own = len(x.axes) - len(kernel) - 1, channels // groups
    parts: list[Node] = []
    for group in range(groups):
        kernels = weights.value[group * own : (group + 1) * own]
        name = f"{weights.name}.{group + 1}" if groups > 1 and weights.name else weights.name
        image = part(use, x, axis, group * own, (group + 1) * own)
        options = windows.lists(count, count)
        options["outputShape"] = (*sizes[::-1], count)
        parameter = use.build.parameter(Array(kernels, name))
        parts.append(use.build.node("Convolution", parameter, image.node, mapCount=own, transpose=True, **options))
    node = parts[0] if groups == 1 else stacked(use, parts, x.sample_axis(axis))
    return _with_bias(use, use.build.data(node, (*x.words, *reversed(node.shape or ()))))


def _larger(use: Use, x: Data, kernel: list[int]) -> tuple[list[int], Windows]:
    """The sizes of the result of a transposed convolution, and how windows slide along it."""
    rank = len(kernel)
    stride, dilation = use.sizes("strides", [1] * rank), use.sizes("dilations", [1] * rank)
    more, how = use.sizes("output_padding", [0] * rank), use.get("auto_pad", "NOTSET")
    reach = [(k - 1) * by + 1 for k, by in zip(kernel, dilation, strict=True)]
    whole = [(n - 1) * s + k + m for n, s, k, m in zip(x.dims[1:], stride, reach, more, strict=True)]
    wanted = use.sizes("output_shape")[-rank:]
    if not wanted and how.startswith("SAME"):
        wanted = [n * s for n, s in zip(x.dims[1:], stride, strict=True)]
    if not wanted:
        pads = use.sizes("pads", [0] * (2 * rank)) if how == "NOTSET" else [0] * (2 * rank)
        before, after = pads[:rank], pads[rank:]
        sizes = [one - b - a for one, b, a in zip(whole, before, after, strict=True)]
        return sizes, Windows(kernel, stride, before, after, dilation)
    total = [max(0, one - size) for one, size in zip(whole, wanted, strict=True)]
    less, most = [one // 2 for one in total], [one - one // 2 for one in total]
    before, after = (less, most) if how == "SAME_UPPER" else (most, less)
    return wanted, Windows(kernel, stride, before, after, dilation)


def pooling(kind: str) -> Rule:
    """Pooling; padded cells do not count."""

    def rule(use: Use) -> list[Value]:
        x = _image(use)
        kernel = use.sizes("kernel_shape")
        if len(use.operator.outputs) > 1:
            raise Unusable("the places of the largest elements are not supported")
        before = _ceiled(use, x, kernel)
        x, windows = before if before is not None else _windows(use, x, kernel)
        if any(one != 1 for one in windows.dilation):
            return [_apart(use, x, windows, kind, before is not None)]
        options = windows.lists(1)
        if kind == "average" and use.get("count_include_pad", 0) and any((*windows.before, *windows.after)):
            if before is not None:
                raise Unusable("count_include_pad = 1 with ceil_mode = 1 is not supported")
            options["includePad"] = True
        node = use.build.node("Pooling", x.node, kind=kind, **options)
        return [use.build.data(node, (*x.words, *reversed(node.shape or ())))]

    return rule


def _apart(use: Use, x: Data, windows: Windows, kind: str, ceiled: bool) -> Data:
    """Pooling of windows with gaps: convolutions with kernels of a single 1 take the elements of each window."""
    build, channels, kernel = use.build, x.dims[0], windows.kernel
    counts = _counts(x.dims[1:], windows)
    outside = 0.0 if kind == "average" else float(np.finfo(build.network.dtype).min)
    for axis, (before, after) in enumerate(zip(windows.before, windows.after, strict=True), len(x.axes) - len(kernel)):
        x = padded(use, x, axis, before, after, outside) if before or after else x
    count = math.prod(kernel)
    ones = np.tile(np.eye(count).reshape(count, 1, *kernel), (channels, *(1,) * (len(kernel) + 1)))
    none = [0] * len(kernel)
    options = windows._replace(before=none, after=none).lists(1, channels)
    options["groups"] = channels
    node = build.node("Convolution", build.parameter(Array(ones)), x.node, mapCount=channels * count, **options)
    sizes = tuple(reversed(node.shape or ()))[1:]
    each = build.data(node, (*x.words, channels, count, *sizes))
    found = reduced(use, each, [len(x.words) + 1], "Max" if kind == "max" else "Sum")
    result = build.data(found.node, (*x.words, channels, *sizes))
    if kind == "max":
        return result
    if use.get("count_include_pad", 0):
        if ceiled:
            raise Unusable("count_include_pad = 1 with ceil_mode = 1 is not supported")
        counts = np.full_like(counts, count)
    return Data(build.node("ElementTimes", result.node, build.parameter(Array(1 / counts))), result.axes)


def _counts(sizes: Sequence[int], windows: Windows) -> np.ndarray:
    """How many elements of each window are in the image."""
    found: np.ndarray = np.ones((), np.float64)
    for axis, n in enumerate(sizes):
        kernel, step, gap = windows.kernel[axis], windows.stride[axis], windows.dilation[axis]
        enumerable((n + abs(windows.before[axis]) + abs(windows.after[axis])) * kernel)
        end = n + windows.after[axis] - (kernel - 1) * gap
        inside = [sum(0 <= at + gap * k < n for k in range(kernel)) for at in range(-windows.before[axis], end, step)]
        found = np.multiply.outer(found, np.array(inside))
    return found


def _ceiled(use: Use, x: Data, kernel: list[int]) -> tuple[Data, Windows] | None:
    """With ceil_mode, the windows that reach beyond the image: that is padding behind it."""
    if not use.get("ceil_mode", 0):
        return None
    stride, dilation = use.sizes("strides", [1] * len(kernel)), use.sizes("dilations", [1] * len(kernel))
    reach = [(k - 1) * by + 1 for k, by in zip(kernel, dilation, strict=True)]
    before, after = _pads(use, list(x.dims[1:]), reach, stride)
    for axis, (n, k, s) in enumerate(zip(x.dims[1:], reach, stride, strict=True)):
        count = -(-(n + before[axis] + after[axis] - k) // s) + 1
        if (count - 1) * s >= n + before[axis]:  # the last window would begin in the padding behind
            count -= 1
        after[axis] = max(0, (count - 1) * s + k - n - before[axis])
    return x, Windows(kernel, stride, before, after, dilation)


def everywhere(kind: str) -> Rule:
    """Pooling over whole channels."""

    def rule(use: Use) -> list[Value]:
        x = _image(use)
        kernel = list(x.dims[1:])
        zeros, ones = [0] * len(kernel), [1] * len(kernel)
        options = Windows(kernel, kernel, zeros, zeros, ones).lists(1)
        node = use.build.node("Pooling", x.node, kind=kind, **options)
        return [use.build.data(node, (*x.words, x.dims[0], *(1,) * len(kernel)))]

    return rule


def normalisation(use: Use) -> list[Value]:
    """Batch normalisation with running statistics, of channels."""
    use.refuse("spatial", 1)
    if use.get("training_mode", 0):
        raise Unusable("training_mode = 1 is not supported: export the model for inference")
    x, build = use.data(), use.build
    if not x.dims or len(x.words) != 1:
        raise Unusable(f"it needs the axes batch and channels, not {list(x.axes)}")
    given = [build.parameter(use.array(index), (use.array(index).value.size,)) for index in range(1, 5)]
    if any(one.shape != (x.dims[0],) for one in given):
        raise Unusable(f"its statistics are not those of {x.dims[0]} channels")
    for one in given[2:]:
        build.freeze(one)
    node = build.node(
        "BatchNormalization",
        x.node,
        *given,
        spatial=len(x.dims) > 1,
        epsilon=float(np.float32(use.get("epsilon", 1e-5))),
        normalizationTimeConstant=TIME_CONSTANT,
    )
    node.samples = 1  # the statistics are those of a training
    return use.same(node)


TIME_CONSTANT = 5000.0
"""Of the running statistics when the model is trained on, in samples: what CNTK's layers take."""


def by_sample(use: Use) -> list[Value]:
    """Each channel of each sample less its mean, divided by its deviation; then scaled and shifted."""
    x, build = _image(use), use.build
    axes = list(range(len(x.words) + 1, len(x.axes)))
    if not axes:
        raise Unusable("channels of one element")
    less = build.node("Minus", x.node, reduced(use, x, axes, "Mean").node)
    squares = Data(build.node("ElementTimes", less, less), x.axes)
    variance = build.node("Plus", reduced(use, squares, axes, "Mean").node, build.number(use.get("epsilon", 1e-5)))
    found = build.node("ElementTimes", less, build.node("Reciprocal", build.node("Sqrt", variance)))
    for index, kind in ((1, "ElementTimes"), (2, "Plus")):
        vector = use.array(index)
        found = build.node(kind, found, build.parameter(vector, (vector.value.size, *(1,) * len(axes))))
    return use.same(found)


def local_response(use: Use) -> list[Value]:
    """Each element divided by a power of the sum of squares of channels around it."""
    x, build = _image(use), use.build
    size, alpha, beta, bias = use.get("size"), use.get("alpha", 1e-4), use.get("beta", 0.75), use.get("bias", 1.0)
    channels, squares = x.dims[0], build.node("ElementTimes", x.node, x.node)
    rest = math.prod(x.dims[1:])
    before, after = (size - 1) // 2, size - 1 - (size - 1) // 2
    band = np.array([[float(-before <= j - i <= after) for i in range(channels)] for j in range(channels)])
    flat = build.node("NewReshape", squares, dims=(rest, channels))
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
    "GlobalMaxPool": everywhere("max"),
    "GlobalAveragePool": everywhere("average"),
    "BatchNormalization": normalisation,
    "InstanceNormalization": by_sample,
    "LRN": local_response,
}
