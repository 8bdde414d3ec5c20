"""Convolution, pooling and other functions of images as tensor code."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from cntkpy.networks.graph.node import Node
from cntkpy.networks.nodes.images import source_jax, source_torch
from cntkpy.networks.nodes.images.convolution import (
    Plan,
    geometry_2d,
    is_two_d,
    missed_channels,
    spans_channels,
)
from cntkpy.networks.nodes.images.cropping import crop_offsets
from cntkpy.networks.nodes.images.geometry import Geometry
from cntkpy.networks.nodes.images.pooling import geometry_of as pooling_geometry
from cntkpy.networks.nodes.images.source_sizes import options
from cntkpy.networks.nodes.inputs.kinds import is_chw
from cntkpy.networks.nodes.source_support.dialect import Dialect, Spellings
from cntkpy.networks.nodes.source_support.use import Rule, Use
from cntkpy.networks.nodes.source_support.values import ATOM, Dims, NotExpressible, Value

MOST_AXES = 3
"""Axes that windows can slide over in the functions of PyTorch."""


def per_sample(use: Use, value: Value, dims: Dims, code: Callable[[str], str]) -> Value:
    """Apply a function of images (N, ...) to a value with any leading axes.

    Args:
        use: the node.
        value: the images.
        dims: the sizes of the result after N.
        code: makes the text of the result of that of the images.
    """
    if value.lead == 1:
        return use.value(code(value.text), dims)
    if value.lead == 0:
        return use.value(f"{code(f'{value.atom}[None]')}[0]", dims)
    name = use.body.bound(value).text
    return use.value(use.say("as_sequences", code(use.say("as_images", name)), name, ", ".join(map(str, dims))), dims)


# ---- convolution


def plain_convolution(node: Node) -> Geometry | None:
    """Return the windows of a convolution that torch.nn.Conv computes; None: it is another one."""
    x = node.input(1).shape or ()
    if is_two_d(node.options):
        if not is_chw(node.options["imageLayout"]) or (node.options["channelPadding"] and missed_channels(node)):
            return None
        return geometry_2d(node, x)[0].reversed()
    plan = Plan(node, x)
    geometry = plan.geometry.reversed()
    if plan.transpose or plan.local or not spans_channels(geometry) or len(geometry.kernel) - 1 > MOST_AXES:
        return None
    return geometry.without_first()


def kernel_dims(node: Node) -> Dims:
    """Return the sizes of the kernels of a convolution (maps, channels of a group, ...)."""
    x = node.input(1).shape or ()
    if is_two_d(node.options):
        geometry, channels = geometry_2d(node, x)
        return (int(node.options["maps"]), channels, *reversed(geometry.kernel))
    plan = Plan(node, x)
    return (plan.kernels, *reversed(plan.kernel))


def _convolution(use: Use) -> Value:
    node, x_node = use.node, use.node.input(1)
    x = use.reshaped(use.values[1], tuple(reversed(x_node.shape or (1,))))
    dims = tuple(reversed(node.shape or ()))
    if is_two_d(node.options):
        return use.finished(_two_d(use, x, dims))
    plan = Plan(node, x_node.shape or ())
    geometry = plan.geometry.reversed()
    kernel = use.reshaped(use.values[0], (plan.kernels, *reversed(plan.kernel)))
    if plan.local:
        return use.finished(_local(use, x, dims, plan))
    spans = spans_channels(geometry)
    inner = geometry.without_first() if spans else geometry
    rank = len(inner.kernel)
    if rank > MOST_AXES:
        raise NotExpressible(f"windows slide over {rank} axes; {MOST_AXES} are possible")
    weights = kernel.text if spans else f"{kernel.atom}[:, None]"
    if plan.transpose:
        return use.finished(_transposed(use, x, dims, plan, weights))

    def code(images: str) -> str:
        images = images if spans else f"{Value(images, 1, (), ATOM).atom}[:, None]"
        text = use.say("convolution", images, weights, inner, plan.groups)
        return text if spans else use.say("joined", text, dims)

    return use.finished(per_sample(use, x, dims, code))


def _two_d(use: Use, x: Value, dims: Dims) -> Value:
    node = use.node
    geometry, channels = geometry_2d(node, node.input(1).shape or ())
    (wide, high), maps = geometry.kernel, int(node.options["maps"])
    if is_chw(node.options["imageLayout"]):
        kernel = use.reshaped(use.values[0], (maps, channels, high, wide))
        missed = missed_channels(node) if node.options["channelPadding"] else 0
        weights = f"{kernel.atom}[:, {missed}:]" if missed else kernel.text
        kept = f"[:, :{channels - missed}]" if missed else ""
        return per_sample(
            use, x, dims, lambda text: use.say("convolution", f"{text}{kept}", weights, geometry.reversed(), 1)
        )
    # the flat order of an image of this layout is channel, height, width
    width, height = geometry.inputs
    kernel = use.reshaped(use.values[0], (channels, wide, high, maps))
    image = use.reshaped(x, (width, height, channels))

    def code(text: str) -> str:
        weights = use.say("permuted", kernel, "3, 0, 1, 2")
        result = use.say("convolution", use.say("permuted", text, "0, 3, 1, 2"), weights, geometry, 1)
        return use.say("permuted", result, "0, 2, 3, 1")

    columns, rows = geometry.outputs
    return use.reshaped(per_sample(use, image, (columns, rows, maps), code), dims)


def _transposed(use: Use, x: Value, dims: Dims, plan: Plan, weights: str) -> Value:
    """Return each element of the input adds its kernel to the result; what lies in the padding is left out."""
    geometry = plan.geometry.reversed()
    spans = spans_channels(geometry)
    inner = geometry.without_first() if spans else geometry
    rank = len(inner.kernel)
    if not spans:
        x = use.reshaped(x, (plan.maps, x.dims[0] // plan.maps, *x.dims[1:]))
    cut: list[tuple[int, int]] = []
    for axis in range(rank):
        full = (inner.outputs[axis] - 1) * inner.stride[axis] + inner.reach[axis]
        leading = inner.padding[axis][0]
        cut.append((-leading, leading + inner.inputs[axis] - full))
    crop = replace(inner, padding=tuple(cut))

    def code(text: str) -> str:
        result = use.say("transposed_convolution", text, weights, crop)
        return result if spans else f"{result}.squeeze(1)"

    return per_sample(use, x, dims, code)


def _local(use: Use, x: Value, dims: Dims, plan: Plan) -> Value:
    """Kernels of their own for each position: windows, then a sum over the elements of each of them."""
    geometry = plan.geometry.reversed()
    rank = len(geometry.kernel)
    shared = tuple(reversed(plan.sharing))
    entry = tuple(1 if share else count for count, share in zip(geometry.outputs, shared, strict=True))
    kernel = use.reshaped(use.values[0], (plan.maps, *entry, *geometry.kernel))
    letters = "abcdef"[:rank]
    inside = "uvwxyz"[:rank]
    positions = "".join(letter for letter, count in zip(letters, entry, strict=True) if count > 1)
    kept = tuple(count for count in entry if count > 1)
    weights = use.reshaped(kernel, (plan.maps, *kept, *geometry.kernel))

    def code(text: str) -> str:
        equation = f'"n{letters}{inside},m{positions}{inside}->nm{letters}"'
        product = use.say("einsum", equation, use.say("windows", text, geometry), weights)
        return use.say("joined", product, dims)

    return per_sample(use, x, dims, code)


# ---- pooling


def _pooling(use: Use) -> Value:
    node = use.node
    which = {"MaxPooling": "max", "AveragePooling": "average"}.get(
        node.operation, str(node.options.get("kind")).lower()
    )
    windows = pooling_geometry(node)
    assert windows is not None
    geometry = windows[1].reversed()
    x = use.reshaped(use.values[0], geometry.inputs)
    count = len(geometry.kernel)
    channels = count > 1 and (geometry.kernel[0], geometry.stride[0], geometry.padding[0]) == (1, 1, (0, 0))
    inner = geometry.without_first() if channels else geometry
    rank = len(inner.kernel)
    if rank > MOST_AXES:
        raise NotExpressible(f"windows slide over {rank} axes; {MOST_AXES} are possible")
    included = bool(node.options.get("includePad", False))

    def code(images: str) -> str:
        images = images if channels else f"{images}[:, None]"
        text = use.say("pooling", which, images, inner, included)
        return text if channels else f"{text}.squeeze(1)"

    pooled = per_sample(use, x, geometry.outputs, code)
    return use.finished(pooled)


def _unpooling(use: Use) -> Value:
    """Return each value at the place of the first maximum of its window."""
    windows = pooling_geometry(use.node)
    assert windows is not None
    geometry = windows[1].reversed()
    channels = (geometry.kernel[0], geometry.stride[0], geometry.padding[0]) == (1, 1, (0, 0))
    inner = geometry.without_first() if channels else geometry
    if not channels or len(inner.kernel) > MOST_AXES or any(min(pair) < 0 for pair in inner.padding):
        raise NotExpressible("windows over channels have no inverse")
    x = use.reshaped(use.values[0], geometry.outputs)
    pooled = use.values[1]
    cut = "".join(f", :{size}" for size in inner.inputs) if pooled.dims != geometry.inputs else ""
    if use.lead != 1:
        raise NotExpressible("it puts values back in images of sequences")
    image = f"{pooled.atom}[:, :{cut}]" if cut else pooled.text
    text = use.say("unpooling", x, image, inner)
    return use.finished(use.value(text, (geometry.inputs[0], *inner.inputs)))


def _crop(use: Use) -> Value:
    left, top = crop_offsets(use.node)
    width, height = (use.node.shape or (1, 1))[:2]
    value = use.full()
    text = f"{value.atom}[..., {top}:{top + height}, {left}:{left + width}]"
    return use.finished(use.value(text, tuple(reversed(use.node.shape or ()))))


def _regions(use: Use) -> Value:
    if use.lead != 1 or any(value.lead != 1 for value in use.values):
        raise NotExpressible("regions and images of sequences, or the same for all samples, are not written")
    image = use.reshaped(use.values[0], tuple(reversed(use.node.input(0).shape or ())))
    count = math.prod(use.values[1].dims) // 4
    regions = use.reshaped(use.values[1], (count, 4))
    grid = tuple(int(size) for size in use.options["outputShape"])
    scale = float(use.options.get("spatialScale", 0.0))
    average = str(use.options.get("kind", "max")).lower() == "average"
    options = (f", scale={scale}" if scale else "") + (", average=True" if average else "")
    text = f"{use.helper('pool_regions')}({image.text}, {regions.text}, {grid}{options})"
    return use.finished(use.value(text, tuple(reversed(use.node.shape or ()))))


def options_of(dialect: Dialect, geometry: Geometry, groups: int) -> list[tuple[str, str]]:
    """Return the options of a convolution that is a layer."""
    return source_jax.all_options(geometry, groups) if dialect.static else options(geometry, groups)


def _unpadded(use: Use, images: str, geometry: Geometry) -> str:
    return images


SPELLINGS: Spellings = {
    "padded_for_layer": (source_torch.padded_for_layer, _unpadded),
    "as_images": ("{0}.flatten(0, 1)", "{0}.reshape(-1, *{0}.shape[2:])"),
    "as_sequences": ("{0}.unflatten(0, {1}.shape[:2])", "{0}.reshape(*{1}.shape[:2], {2})"),
    "joined": ("{0}.flatten(1, 2)", source_jax.joined),
    "permuted": ("{0.atom}.permute({1})", "{0.atom}.transpose({1})"),
    "einsum": ("torch.einsum({0}, {1}, {2})", "jnp.einsum({0}, {1}, {2})"),
    "convolution": (source_torch.convolution, source_jax.convolution),
    "transposed_convolution": (source_torch.transposed_convolution, source_jax.transposed_convolution),
    "windows": (source_torch.windows, source_jax.windows),
    "pooling": (source_torch.pooling, source_jax.pooling),
    "unpooling": (source_torch.unpooling, source_jax.unpooling),
}

RULES: dict[str, Rule] = {
    "Convolution": _convolution,
    "MaxPooling": _pooling,
    "AveragePooling": _pooling,
    "Pooling": _pooling,
    "MaxUnpooling": _unpooling,
    "Crop": _crop,
    "ROIPooling": _regions,
}

__all__ = ["RULES", "SPELLINGS", "kernel_dims", "per_sample", "plain_convolution"]
