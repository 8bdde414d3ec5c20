"""Calls of functions of images in PyTorch."""

from __future__ import annotations

from cntkpy.networks.nodes.images.geometry import Geometry
from cntkpy.networks.nodes.images.source_sizes import needs_stride, options, symmetric, tuple_text
from cntkpy.networks.nodes.source_support.use import Use
from cntkpy.networks.nodes.source_support.values import Value


def pads(geometry: Geometry) -> str:
    """Return the padding as torch.nn.functional.pad takes it: the last axis first."""
    return str(tuple(size for pair in reversed(geometry.padding) for size in pair))


def padded(text: str, geometry: Geometry, value: str = "") -> str:
    """Return a text with explicit padding, where there is any."""
    if not any(leading or after for leading, after in geometry.padding):
        return text
    return f"F.pad({text}, {pads(geometry)}{', value=' + value if value else ''})"


def padded_for_layer(use: Use, text: str, geometry: Geometry) -> str:
    """Return images with the padding that a layer cannot have."""
    return padded(text, geometry) if symmetric(geometry) is None else text


def convolution(use: Use, images: str, weights: str, geometry: Geometry, groups: int) -> str:
    """Return a call of a convolution."""
    arguments = [padded(images, geometry) if symmetric(geometry) is None else images, weights]
    arguments += [f"{key}={text}" for key, text in options(geometry, groups)]
    return f"F.conv{len(geometry.kernel)}d({', '.join(arguments)})"


def transposed_convolution(use: Use, images: str, weights: str, geometry: Geometry) -> str:
    """Return a call of a transposed convolution, and the padding of its result."""
    text = f", stride={tuple_text(geometry.stride)}" if any(step != 1 for step in geometry.stride) else ""
    if any(distance != 1 for distance in geometry.dilation):
        text += f", dilation={tuple_text(geometry.dilation)}"
    return padded(f"F.conv_transpose{len(geometry.kernel)}d({images}, {weights}{text})", geometry)


def windows(use: Use, images: str, geometry: Geometry) -> str:
    """Return all windows: (batch, places..., elements of a window...)."""
    text = padded(images, geometry)
    for axis, (reach, step) in enumerate(zip(geometry.reach, geometry.stride, strict=True)):
        text += f".unfold({axis + 1}, {reach}, {step})"
    if any(distance != 1 for distance in geometry.dilation):
        text += "[..., " + ", ".join(f"::{distance}" for distance in geometry.dilation) + "]"
    return text


def pooling(use: Use, which: str, images: str, geometry: Geometry, included: bool) -> str:
    """Return a call of a pooling of PyTorch."""
    rank = len(geometry.kernel)
    kernel, stride, both = geometry.kernel, geometry.stride, symmetric(geometry)
    arguments = tuple_text(kernel) + (f", {tuple_text(stride)}" if needs_stride(geometry) else "")
    plain = both is not None and not any(both)
    fits = both is not None and all(pad <= size // 2 for pad, size in zip(both, kernel, strict=True))
    name = f"F.{'max' if which == 'max' else 'avg'}_pool{rank}d"
    if plain:
        return f"{name}({images}, {arguments})"
    if which == "max":
        if fits and both is not None:
            return f"{name}({images}, {arguments}, padding={tuple_text(both)})"
        return f"{name}({padded(images, geometry, '-torch.inf')}, {arguments})"
    if included:
        return f"{name}({padded(images, geometry)}, {arguments})"
    if fits and both is not None:
        return f"{name}({images}, {arguments}, padding={tuple_text(both)}, count_include_pad=False)"
    ones = padded("torch.ones_like(images)", geometry)
    text = use.body.assign(images, "images")
    total = f"{name}({padded(text, geometry)}, {arguments})"
    return f"({total} / {name}({ones.replace('images', text)}, {arguments}))"


def unpooling(use: Use, x: Value, images: str, geometry: Geometry) -> str:
    """Return values at the places of the first maxima of windows of images."""
    stride = f", {tuple_text(geometry.stride)}" if geometry.stride != geometry.kernel else ""
    arguments = f"{padded(images, geometry, '-torch.inf')}, {tuple_text(geometry.kernel)}{stride}"
    places = use.body.assign(f"F.max_pool{len(geometry.kernel)}d({arguments}, return_indices=True)[1]", "places")
    whole = tuple(size + sum(pair) for size, pair in zip(geometry.inputs, geometry.padding, strict=True))
    text = f"{use.helper('unpool')}({x.text}, {places}, {whole})"
    if whole != geometry.inputs:
        kept = zip(geometry.inputs, geometry.padding, strict=True)
        text += "[..., " + ", ".join(f"{leading or ''}:{leading + size}" for size, (leading, _) in kept) + "]"
    return text


HELPERS: dict[str, str] = {
    "unpool": '''\
def unpool(x: Tensor, places: Tensor, size: tuple[int, ...]) -> Tensor:
    """Return values put back at the places of maxima, and zeros elsewhere."""
    zeros = x.new_zeros(*x.shape[:2], math.prod(size))
    return zeros.scatter_add(2, places.flatten(2), x.flatten(2)).unflatten(2, size)''',
    "pool_regions": '''\
def pool_regions(
    images: Tensor,
    regions: Tensor,
    grid: tuple[int, int],
    scale: float = 0.0,
    average: bool = False,
) -> Tensor:
    """Return the largest elements, or the means, of the cells of a grid over regions of images.

    A region is x, y, width and height relative to the image, or with `scale` two corners in pixels.
    """
    height, width = images.shape[-2:]

    def windows(axis: int, count: int, size: int) -> Tensor:
        first, second = regions[..., axis].detach(), regions[..., axis + 2].detach()
        factor = scale or size
        begin, end = ((v * factor).abs().add(0.5).floor() * v.sign() for v in (first, second))
        extent = (end - begin + 1 if scale else end).clamp(min=1)[..., None]
        cell = torch.arange(count, device=images.device)
        place = torch.arange(size, device=images.device)
        low = (begin[..., None] + (cell * extent / count).floor()).clamp(min=0)
        high = (begin[..., None] + ((cell + 1) * extent / count).ceil()).clamp(max=size)
        return (place >= low[..., None]) & (place < high[..., None])

    columns, rows = windows(0, grid[0], width), windows(1, grid[1], height)
    cells = rows[:, :, :, None, :, None] & columns[:, :, None, :, None, :]
    cells = cells[:, :, None].flatten(-2)
    seen = images[:, None, :, None, None].flatten(-2)
    filled = cells.any(-1)
    if average:
        return (seen * cells).sum(-1) / cells.sum(-1).clamp(min=1)
    largest = torch.where(cells, seen, -torch.inf).max(-1).values
    return torch.where(filled, largest, 0.0)''',
}
"""Functions that PyTorch lacks."""
