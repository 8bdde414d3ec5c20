"""Pooling; part of the convolution family (docs/specification/networks.md B.8).

Specified in docs/specification/networks.md#b8-convolution-and-pooling.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from cntkpy.cntk_config.base.lazy_modules import np
from cntkpy.networks.arrays.images import images_of, is_image, plain, value_of
from cntkpy.networks.arrays.lazy import Array, Gradients, Residuals, custom_gradient, jax, jnp
from cntkpy.networks.graph import shapes
from cntkpy.networks.graph.shapes import Shape, ShapeProblem
from cntkpy.networks.nodes import rules
from cntkpy.networks.nodes.declare import (
    BOOLEAN,
    BOOLEANS,
    INTEGER,
    INTEGERS,
    TEXT,
    Argument,
    Forward,
    Option,
    RecordForm,
    one_signature,
)
from cntkpy.networks.nodes.images.geometry import (
    SHARED_PADDING,
    Geometry,
    Placing,
    placing,
    several,
    transposed,
    windows,
)
from cntkpy.networks.nodes.inputs.kinds import IMAGE_LAYOUTS, is_chw

if TYPE_CHECKING:
    from cntkpy.networks.arrays.images import ChannelsLast
    from cntkpy.networks.graph.network import Node
    from cntkpy.networks.nodes.call import Call


# ---- window functions on arrays (N, *geometry.inputs), axes already in array order


def _plain_windows(geometry: Geometry) -> bool:
    """Windows side by side that fill the array: no overlap, no padding."""
    fits = all(n == k * count for n, k, count in zip(geometry.inputs, geometry.kernel, geometry.outputs, strict=True))
    return fits and geometry.kernel == geometry.stride and not any(a or b for a, b in geometry.padding)


def _cells(x: Array, geometry: Geometry) -> list[Array]:
    """For plain windows: one array (N, *outputs) per cell of the window, last axis fastest."""
    offsets = itertools.product(*(range(k) for k in geometry.kernel))
    return [
        x[(slice(None), *(slice(o, None, k) for o, k in zip(offset, geometry.kernel, strict=True)))]
        for offset in offsets
    ]


def _max_plain(geometry: Geometry) -> Callable[[Array], Array]:
    """Maximum over plain windows; the gradient goes to the first maximal cell."""

    def forward(x: Array) -> tuple[Array, Residuals]:
        out = functools.reduce(jnp.maximum, _cells(x, geometry))
        return out, (x, out)

    def backward(residuals: Residuals, g: Array) -> Gradients:
        x, out = residuals
        free = jnp.ones(out.shape, bool)
        parts: list[Array] = []
        for cell in _cells(x, geometry):
            chosen = free & (cell == out)
            free = free & ~chosen
            parts.append(jnp.where(chosen, g, jnp.zeros_like(g)))
        rank = len(geometry.kernel)
        stacked = jnp.stack(parts).reshape(*geometry.kernel, *out.shape)
        order = [rank]
        for axis in range(rank):
            order += [rank + 1 + axis, axis]
        return (stacked.transpose(order).reshape(x.shape),)

    return custom_gradient(forward, backward)


def _cropped(x: Array, geometry: Geometry) -> tuple[Array, Geometry]:
    """Without the elements that no window reaches, so that no padding is negative."""
    kept = [
        slice(max(-leading, 0), n + min(after, 0))
        for n, (leading, after) in zip(geometry.inputs, geometry.padding, strict=True)
    ]
    padding = tuple((max(leading, 0), max(after, 0)) for leading, after in geometry.padding)
    sizes = tuple(part.stop - part.start for part in kept)
    return x[(slice(None), *kept)], replace(geometry, inputs=sizes, padding=padding)


def _max_windows(x: Array, geometry: Geometry) -> Array:
    x, geometry = _cropped(x, geometry)
    if _plain_windows(geometry):
        return _max_plain(geometry)(x)
    return jax.lax.reduce_window(
        x,
        x.dtype.type(-np.inf),
        jax.lax.max,
        (1, *geometry.kernel),
        (1, *geometry.stride),
        ((0, 0), *geometry.padding),
    )


def _average_windows(x: Array, geometry: Geometry, with_padding: bool = False) -> Array:
    """Means of windows: of their cells inside the array, or of all of them, where zeros lie outside."""
    x, geometry = _cropped(x, geometry)
    if _plain_windows(geometry):
        cells = _cells(x, geometry)
        return sum(cells[1:], cells[0]) / len(cells)
    total = jax.lax.reduce_window(
        x,
        x.dtype.type(0),
        jax.lax.add,
        (1, *geometry.kernel),
        (1, *geometry.stride),
        ((0, 0), *geometry.padding),
    )
    return total / jnp.asarray(math.prod(geometry.kernel) if with_padding else _valid_cells(geometry), x.dtype)


def _valid_cells(geometry: Geometry) -> np.ndarray:
    """Number of cells of each window that lie inside the array."""
    count: Any = np.ones(())
    for n, k, s, (leading, _), windows_ in zip(
        geometry.inputs, geometry.kernel, geometry.stride, geometry.padding, geometry.outputs, strict=True
    ):
        first = np.arange(windows_) * s - leading
        inside = np.minimum(first + k, n) - np.maximum(first, 0)
        count = np.multiply.outer(count, inside)
    return count


# ---- nodes


def _geometry(node: Node, x: Shape) -> Geometry:
    """Windows over the sample axes of x."""
    options = node.options
    if "windowWidth" in options:  # MaxPooling, AveragePooling
        if len(x) != 3:
            raise ShapeProblem("the input must be an image of three axes")
        chw = is_chw(options["imageLayout"])
        kernel = (int(options["windowWidth"]), int(options["windowHeight"]))
        stride = (int(options["strideWidth"]), int(options["strideHeight"]))
        if chw:
            return windows(x, _unpadded((*kernel, 1), (*stride, 1)))
        # the flat order of a legacy image is channel, height, width
        sizes = (x[0], x[2], x[1])
        return windows(sizes, _unpadded((1, *kernel[::-1]), (1, *stride[::-1])))
    ones = (1,) * len(x)
    result = windows(x, placing(options, len(x), ones, ones))
    if any(max(pads) >= k for k, pads in zip(result.kernel, result.padding, strict=True)):
        raise ShapeProblem("a window would lie wholly in the padding")
    return result


def _unpadded(kernel: Shape, stride: Shape) -> Placing:
    rank = len(kernel)
    return Placing(kernel, stride, (False,) * rank, (0,) * rank, (0,) * rank, (1,) * rank)


def _prepare(options: dict[str, object]) -> None:
    for key in ("kernelShape", "stride", "autoPadding", "lowerPad", "upperPad"):
        if key in options:
            value = options[key]
            options[key] = several(value)
    if "kernelShape" in options and not is_chw(options["imageLayout"]):
        raise ShapeProblem("this pooling needs imageLayout=CHW")


def _shape(node: Node) -> Shape | None:
    """Per axis the number of windows; channels stay."""
    x = node.input(0).shape
    if x is None or 0 in x:
        return None
    outputs = _geometry(node, x).outputs
    if "windowWidth" in node.options and not is_chw(node.options["imageLayout"]):
        return (outputs[0], outputs[2], outputs[1])
    return outputs


def _pool(kind: str | None) -> Forward:
    def forward(call: Call, x: Array | ChannelsLast) -> Array | ChannelsLast:
        node = call.node
        geometry = _geometry(node, node.input(0).shape).reversed()
        which = kind or str(node.options["kind"]).lower()
        counted = bool(node.options.get("includePad", False))
        function = _max_windows if which == "max" else functools.partial(_average_windows, with_padding=counted)
        # Of equal elements the first in the order of the axes gets the gradient, so channels in a window stay first.
        in_order = which == "max" and geometry.kernel[0] > 1
        if is_image(x) and not in_order and is_chw(node.options["imageLayout"]):
            images = images_of(x, geometry.inputs)
            return value_of(function(images, geometry.first_last()), x, node.has_layout)
        x = plain(x)
        lead = x.shape[:2] if node.has_layout else ()
        return function(x.reshape(-1, *geometry.inputs), geometry).reshape(*lead, *reversed(node.shape))

    return forward


def _unpool_geometry(node: Node, x: Shape) -> Geometry:
    """Windows of the pooling that is undone; its input is the result."""
    ones = (1,) * len(x)
    return transposed(x, placing(node.options, len(x), ones, ones))


def _unpool_shape(node: Node) -> Shape | None:
    """Return the shape that pooling with these windows would turn into the shape of x."""
    rules.carrying_data(*node.connected)
    x, pooled = node.input(0).shape, node.input(1).shape
    if x is None or pooled is None:
        return None
    if node.options.get("wholePicture"):
        if 0 in x or 0 in pooled:
            return None
        made = _geometry(node, pooled).outputs
        if shapes.trimmed(made) != shapes.trimmed(x):
            message = f"pooling of the second operand {shapes.text(pooled)} gives {shapes.text(made)}, the first is "
            raise ShapeProblem(
                message + shapes.text(x), "unpooling has the windows, strides and padding of the pooling"
            )
        return pooled
    result = _unpool_geometry(node, x).inputs
    if len(pooled) != len(result) or any(p < r for p, r in zip(pooled, result, strict=True)):
        raise ShapeProblem("the second operand must be the operand of the pooling that is undone")
    return result


def _unpool(call: Call, x: Array, pooled: Array) -> Array:
    """Return each value at the place of the maximum of its window, zeros elsewhere."""
    if call.options.get("wholePicture"):
        geometry = _geometry(call.node, call.node.input(1).shape).reversed()
    else:
        geometry = _unpool_geometry(call.node, call.node.input(0).shape).reversed()
    source = jax.lax.stop_gradient(pooled)[(..., *(slice(0, n) for n in geometry.inputs))]
    source = source.reshape(-1, *geometry.inputs)
    _, spread = jax.vjp(functools.partial(_max_windows, geometry=geometry), source)
    (out,) = spread(x.reshape(-1, *geometry.outputs))
    return out.reshape(*x.shape[:2], *geometry.inputs)


def geometry_of(node: Node) -> tuple[Node, Geometry, bool] | None:
    """Of a pooling: its image, the windows, and whether they slide over the result instead (MaxUnpooling)."""
    image = node.connected[0] if node.connected else None
    if image is None or image.shape is None:
        return None
    if node.operation == "MaxUnpooling" and node.options.get("wholePicture"):
        return image, _geometry(node, node.input(1).shape or ()), True
    if node.operation == "MaxUnpooling":
        return image, _unpool_geometry(node, image.shape), True
    if node.operation in ("Pooling", "MaxPooling", "AveragePooling"):
        return image, _geometry(node, image.shape), False
    return None


_X = Argument("x")
_FIVE = tuple(Argument(n, INTEGER) for n in ("windowWidth", "windowHeight", "strideWidth", "strideHeight"))
_LEGACY = (Option("imageLayout", TEXT, "HWC", "order of the axes", IMAGE_LAYOUTS),)
_LEGACY_RECORD = RecordForm(names={"strideWidth": "horizontalSubsample", "strideHeight": "verticalSubsample"})
_OPTIONS = (
    Option("stride", INTEGERS, (1,), "step per axis"),
    Option("autoPadding", BOOLEANS, (True,), "padding so that windows are centred on the elements, per axis"),
    Option("lowerPad", INTEGERS, (0,), "padding before, per axis, where not automatic"),
    Option("upperPad", INTEGERS, (0,), "padding after, per axis, where not automatic"),
    Option("imageLayout", TEXT, "CHW", "must be CHW", IMAGE_LAYOUTS),
)
_KERNEL = Argument("kernelShape", INTEGERS)


_kind = functools.partial(one_signature, prepare=_prepare)


KINDS = [
    _kind(
        "MaxPooling",
        (_X, *_FIVE),
        "Largest element of each window.",
        "max",
        _shape,
        _pool("max"),
        images=True,
        options=_LEGACY,
        record=_LEGACY_RECORD,
        example="h = MaxPooling(picture, 2, 2, 2, 2, imageLayout=CHW)",
    ),
    _kind(
        "AveragePooling",
        (_X, *_FIVE),
        "Mean of each window.",
        "mean",
        _shape,
        _pool("average"),
        images=True,
        options=_LEGACY,
        record=_LEGACY_RECORD,
        example="h = AveragePooling(picture, 2, 2, 2, 2, imageLayout=CHW)",
    ),
    _kind(
        "Pooling",
        (_X, Argument("kind", TEXT, choices=("max", "average")), _KERNEL),
        "Largest element or mean of each window, on any number of axes; padded cells do not count, unless includePad "
        "says that a mean does.",
        "max or mean",
        _shape,
        _pool(None),
        images=True,
        options=(
            *_OPTIONS,
            SHARED_PADDING,
            Option("ceilOutDim", BOOLEAN, False, "where padding is not automatic, a last window partly behind the end"),
            Option("includePad", BOOLEAN, False, "a mean is the sum by the size of the window, also in the padding"),
        ),
        record=RecordForm(
            names={"kind": "poolKind", "kernelShape": "kernelDims"},
            optional=("ceilOutDim", "includePad"),
            without=("sharedPadding",),
        ),
        example="h = Pooling(picture, max, {2, 2}, stride={2, 2})",
    ),
    _kind(
        "MaxUnpooling",
        (_X, Argument("pooled"), _KERNEL),
        "Values put back where the maxima of the pooled operand were, zeros elsewhere.",
        "the gradient of Pooling",
        _unpool_shape,
        _unpool,
        options=(
            *_OPTIONS,
            SHARED_PADDING,
            Option("wholePicture", BOOLEAN, False, "the result has the shape of the pooled operand, as in CNTK 2"),
        ),
        record=RecordForm(names={"kernelShape": "kernelDims"}, without=("sharedPadding", "wholePicture")),
        example=(
            "small = Pooling(picture, max, {2, 2}, stride={2, 2})\n"
            "h = MaxUnpooling(small, picture, {2, 2}, stride={2, 2})"
        ),
    ),
]
