"""Convolution, pooling and other functions of images as tensor code."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from cntkpy.networks.graph.node import Node
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
from cntkpy.networks.nodes.inputs.kinds import is_chw
from cntkpy.networks.nodes.source_support.use import Rule, Use
from cntkpy.networks.nodes.source_support.values import ATOM, Dims, NotExpressible, Value

MOST_AXES = 3
"""Axes that windows can slide over in the functions of PyTorch."""


def per_sample(use: Use, value: Value, dims: Dims, code: Callable[[str], str]) -> Value:
    """Return what a function of images (N, ...) gives for a value, with any leading axes.

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
    return use.value(f"{code(f'{name}.flatten(0, 1)')}.unflatten(0, {name}.shape[:2])", dims)


def tuple_text(sizes: Dims) -> str:
    """Return sizes as an argument: one number where they are equal."""
    return str(sizes[0]) if len(set(sizes)) == 1 else str(tuple(sizes))


def symmetric(geometry: Geometry) -> Dims | None:
    """Return the padding of both sides that gives these windows; None: both sides need another one."""
    for axis, (leading, _) in enumerate(geometry.padding):
        reached = geometry.inputs[axis] + 2 * leading - geometry.reach[axis]
        if leading < 0 or reached // geometry.stride[axis] + 1 != geometry.outputs[axis]:
            return None
    return tuple(leading for leading, _ in geometry.padding)


def pads(geometry: Geometry) -> str:
    """Return the padding as torch.nn.functional.pad takes it: the last axis first."""
    return str(tuple(size for pair in reversed(geometry.padding) for size in pair))


def padded_text(text: str, geometry: Geometry, value: str = "") -> str:
    """Return a text with explicit padding, where there is any."""
    if not any(leading or after for leading, after in geometry.padding):
        return text
    return f"F.pad({text}, {pads(geometry)}{', value=' + value if value else ''})"


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
        text = conv_call(f"F.conv{rank}d", images, weights, inner, plan.groups)
        return text if spans else f"{text}.flatten(1, 2)"

    return use.finished(per_sample(use, x, dims, code))


def conv_call(name: str, images: str, weights: str, geometry: Geometry, groups: int = 1) -> str:
    """Return a call of a convolution of PyTorch."""
    arguments = [padded_text(images, geometry) if symmetric(geometry) is None else images, weights]
    arguments += [f"{key}={text}" for key, text in conv_options(geometry, groups)]
    return f"{name}({', '.join(arguments)})"


def conv_options(geometry: Geometry, groups: int = 1) -> list[tuple[str, str]]:
    """Return the options of a convolution that are not the default."""
    both = symmetric(geometry)
    result: list[tuple[str, str]] = []
    if any(step != 1 for step in geometry.stride):
        result.append(("stride", tuple_text(geometry.stride)))
    if both is not None and any(both):
        result.append(("padding", tuple_text(both)))
    if any(distance != 1 for distance in geometry.dilation):
        result.append(("dilation", tuple_text(geometry.dilation)))
    if groups > 1:
        result.append(("groups", str(groups)))
    return result


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
            use, x, dims, lambda text: conv_call("F.conv2d", f"{text}{kept}", weights, geometry.reversed())
        )
    # the flat order of an image of this layout is channel, height, width
    width, height = geometry.inputs
    kernel = use.reshaped(use.values[0], (channels, wide, high, maps))
    image = use.reshaped(x, (width, height, channels))

    def code(text: str) -> str:
        turned = f"{text}.permute(0, 3, 1, 2)"
        return f"{conv_call('F.conv2d', turned, f'{kernel.atom}.permute(3, 0, 1, 2)', geometry)}.permute(0, 2, 3, 1)"

    columns, rows = geometry.outputs
    return use.reshaped(per_sample(use, image, (columns, rows, maps), code), dims)


def _transposed(use: Use, x: Value, dims: Dims, plan: Plan, weights: str) -> Value:
    """Each element of the input adds its kernel to the result; what lies in the padding is left out."""
    geometry = plan.geometry.reversed()
    spans = spans_channels(geometry)
    inner = geometry.without_first() if spans else geometry
    rank = len(inner.kernel)
    if not spans:
        x = use.reshaped(x, (plan.maps, x.dims[0] // plan.maps, *x.dims[1:]))
    options = f", stride={tuple_text(inner.stride)}" if any(step != 1 for step in inner.stride) else ""
    if any(distance != 1 for distance in inner.dilation):
        options += f", dilation={tuple_text(inner.dilation)}"
    cut: list[tuple[int, int]] = []
    for axis in range(rank):
        full = (inner.outputs[axis] - 1) * inner.stride[axis] + inner.reach[axis]
        leading = inner.padding[axis][0]
        cut.append((-leading, leading + inner.inputs[axis] - full))
    crop = replace(inner, padding=tuple(cut))

    def code(text: str) -> str:
        result = padded_text(f"F.conv_transpose{rank}d({text}, {weights}{options})", crop)
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
        result = padded_text(text, geometry)
        for axis in range(rank):
            result += f".unfold({axis + 1}, {geometry.reach[axis]}, {geometry.stride[axis]})"
        if any(distance != 1 for distance in geometry.dilation):
            result += "[..., " + ", ".join(f"::{distance}" for distance in geometry.dilation) + "]"
        equation = f"n{letters}{inside},m{positions}{inside}->nm{letters}"
        return f'torch.einsum("{equation}", {result}, {weights.text}).flatten(1, 2)'

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
        text = _windows(use, which, images, inner, rank, included)
        return text if channels else f"{text}.squeeze(1)"

    pooled = per_sample(use, x, geometry.outputs, code)
    return use.finished(pooled)


def _windows(use: Use, which: str, images: str, geometry: Geometry, rank: int, included: bool) -> str:
    """A call of a pooling of PyTorch."""
    kernel, stride, both = geometry.kernel, geometry.stride, symmetric(geometry)
    arguments = tuple_text(kernel) + (
        f", {tuple_text(stride)}" if stride != kernel and max(geometry.outputs) > 1 else ""
    )
    plain = both is not None and not any(both)
    fits = both is not None and all(pad <= size // 2 for pad, size in zip(both, kernel, strict=True))
    name = f"F.{'max' if which == 'max' else 'avg'}_pool{rank}d"
    if plain:
        return f"{name}({images}, {arguments})"
    if which == "max":
        if fits and both is not None:
            return f"{name}({images}, {arguments}, padding={tuple_text(both)})"
        return f"{name}({padded_text(images, geometry, '-torch.inf')}, {arguments})"
    if included:
        return f"{name}({padded_text(images, geometry)}, {arguments})"
    if fits and both is not None:
        return f"{name}({images}, {arguments}, padding={tuple_text(both)}, count_include_pad=False)"
    ones = padded_text("torch.ones_like(images)", geometry)
    text = use.body.assign(images, "images")
    total = f"{name}({padded_text(text, geometry)}, {arguments})"
    return f"({total} / {name}({ones.replace('images', text)}, {arguments}))"


def _unpooling(use: Use) -> Value:
    """Each value at the place of the first maximum of its window."""
    windows = pooling_geometry(use.node)
    assert windows is not None
    geometry = windows[1].reversed()
    channels = (geometry.kernel[0], geometry.stride[0], geometry.padding[0]) == (1, 1, (0, 0))
    inner = geometry.without_first() if channels else geometry
    if not channels or len(inner.kernel) > MOST_AXES or any(min(pair) < 0 for pair in inner.padding):
        raise NotExpressible("windows over channels have no inverse in PyTorch")
    rank = len(inner.kernel)
    x = use.reshaped(use.values[0], geometry.outputs)
    pooled = use.values[1]
    cut = "".join(f", :{size}" for size in inner.inputs) if pooled.dims != geometry.inputs else ""
    if use.lead != 1:
        raise NotExpressible("it puts values back in images of sequences")
    image = f"{pooled.atom}[:, :{cut}]" if cut else pooled.text
    options = tuple_text(inner.kernel) + (f", {tuple_text(inner.stride)}" if inner.stride != inner.kernel else "")
    image = padded_text(image, inner, "-torch.inf")
    whole = tuple(size + sum(pair) for size, pair in zip(inner.inputs, inner.padding, strict=True))
    places = use.body.assign(f"F.max_pool{rank}d({image}, {options}, return_indices=True)[1]", "places")
    text = f"{use.helper('unpool')}({x.text}, {places}, {whole})"
    if whole != inner.inputs:
        kept = zip(inner.inputs, inner.padding, strict=True)
        spans = ", ".join(f"{leading or ''}:{leading + size}" for size, (leading, _) in kept)
        text += f"[..., {spans}]"
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


RULES: dict[str, Rule] = {
    "Convolution": _convolution,
    "MaxPooling": _pooling,
    "AveragePooling": _pooling,
    "Pooling": _pooling,
    "MaxUnpooling": _unpooling,
    "Crop": _crop,
    "ROIPooling": _regions,
}

__all__ = ["RULES", "conv_options", "kernel_dims", "padded_text", "plain_convolution", "symmetric", "tuple_text"]
