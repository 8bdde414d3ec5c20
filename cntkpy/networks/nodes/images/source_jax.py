"""Calls of functions of images in JAX."""

from __future__ import annotations

from cntkpy.networks.nodes.images.geometry import Geometry
from cntkpy.networks.nodes.images.source_sizes import needs_stride, options, symmetric, tuple_text
from cntkpy.networks.nodes.source_support.use import Use
from cntkpy.networks.nodes.source_support.values import Dims, Value


def joined(use: Use, images: str, dims: Dims) -> str:
    """Return images (batch, ...) with other axes of as many elements."""
    return f"{images}.reshape(-1, {', '.join(map(str, dims))})"


def padding(geometry: Geometry) -> str:
    """Return the padding of each axis: one number where all are equal."""
    both = symmetric(geometry)
    return str(geometry.padding) if both is None else tuple_text(both)


def all_options(geometry: Geometry, groups: int = 1) -> list[tuple[str, str]]:
    """Return the options of a convolution that are not the default; both ends of an axis may differ."""
    result = options(geometry, groups)
    if symmetric(geometry) is None:
        result.append(("padding", padding(geometry)))
    return result


def convolution(use: Use, images: str, weights: str, geometry: Geometry, groups: int) -> str:
    """Return a call of a convolution."""
    chosen = "".join(f", {key}={text}" for key, text in all_options(geometry, groups))
    return f'{use.helper("conv")}({{"weight": {weights}}}, {images}{chosen})'


def transposed_convolution(use: Use, images: str, weights: str, geometry: Geometry) -> str:
    """Return a call of a transposed convolution, and the padding of its result."""
    arguments = [images, weights]
    if any(step != 1 for step in geometry.stride):
        arguments.append(f"stride={tuple_text(geometry.stride)}")
    if any(any(pair) for pair in geometry.padding):
        arguments.append(f"padding={geometry.padding}")
    if any(distance != 1 for distance in geometry.dilation):
        arguments.append(f"dilation={tuple_text(geometry.dilation)}")
    return f"{use.helper('convolve_transposed')}({', '.join(arguments)})"


def windows(use: Use, images: str, geometry: Geometry) -> str:
    """Return all windows: (batch, places..., elements of a window...)."""
    if any(any(pair) for pair in geometry.padding):
        images = f"jnp.pad({images}, ((0, 0), *{geometry.padding}))"
    arguments = [images, str(geometry.kernel), str(geometry.stride)]
    if any(distance != 1 for distance in geometry.dilation):
        arguments.append(str(geometry.dilation))
    return f"{use.helper('windows')}({', '.join(arguments)})"


def pooling(use: Use, which: str, images: str, geometry: Geometry, included: bool) -> str:
    """Return a call of a pooling."""
    name = "max_pool" if which == "max" else "mean_pool"
    counted = which != "max" and included
    counting = ", count_padding=True" if counted and padding(geometry) != "0" else ""
    return f"{use.helper(name)}({images}, {_window(geometry)}{counting})"


def _window(geometry: Geometry) -> str:
    """Return the arguments of a pooling."""
    text = str(geometry.kernel)
    if needs_stride(geometry):
        text += f", {tuple_text(geometry.stride)}"
    return text + ("" if padding(geometry) == "0" else f", padding={padding(geometry)}")


def unpooling(use: Use, x: Value, images: str, geometry: Geometry) -> str:
    """Return values at the places of the first maxima of windows of images."""
    return f"{use.helper('unpool')}({x.text}, {images}, {_window(geometry)})"


HELPERS: dict[str, str] = {
    "sizes": '''\
def sizes(value: int | tuple[int, ...], rank: int) -> tuple[int, ...]:
    """Return a size for each axis."""
    return (value,) * rank if isinstance(value, int) else tuple(value)''',
    "pads": '''\
def pads(padding: int | tuple[int | tuple[int, int], ...], rank: int) -> list[tuple[int, int]]:
    """Return the padding of both ends of each axis."""
    each = (padding,) * rank if isinstance(padding, int) else padding
    return [(size, size) if isinstance(size, int) else size for size in each]''',
    "conv": '''\
def conv(
    params: Params,
    x: Array,
    stride: int | tuple[int, ...] = 1,
    padding: int | tuple[int | tuple[int, int], ...] = 0,
    dilation: int | tuple[int, ...] = 1,
    groups: int = 1,
) -> Array:
    """Return the convolution of images (batch, channels, ...) with weight, plus bias."""
    rank = x.ndim - 2
    y = jax.lax.conv_general_dilated(
        x,
        params["weight"],
        sizes(stride, rank),
        pads(padding, rank),
        rhs_dilation=sizes(dilation, rank),
        feature_group_count=groups,
    )
    return y + params["bias"].reshape(-1, *[1] * rank) if "bias" in params else y''',
    "convolve_transposed": '''\
def convolve_transposed(
    x: Array,
    weight: Array,
    stride: int | tuple[int, ...] = 1,
    padding: tuple[tuple[int, int], ...] | None = None,
    dilation: int | tuple[int, ...] = 1,
) -> Array:
    """Return the sum of the kernels (channels, maps, ...) at each place, times the images' values.

    Padding is added to the result, or taken from it where it is negative.
    """
    rank = x.ndim - 2
    reach = [d * (k - 1) for d, k in zip(sizes(dilation, rank), weight.shape[2:], strict=True)]
    padding = padding or ((0, 0),) * rank
    return jax.lax.conv_general_dilated(
        x,
        jnp.flip(weight.swapaxes(0, 1), range(2, rank + 2)),
        (1,) * rank,
        [(r + first, r + last) for r, (first, last) in zip(reach, padding, strict=True)],
        lhs_dilation=sizes(stride, rank),
        rhs_dilation=sizes(dilation, rank),
    )''',
    "windows": '''\
def windows(
    x: Array,
    kernel: tuple[int, ...],
    stride: tuple[int, ...],
    dilation: tuple[int, ...] | None = None,
) -> Array:
    """Return all windows of x (batch, ...): (batch, places..., elements of a window...)."""
    dilation = dilation or (1,) * len(kernel)
    for axis, (size, step, distance) in enumerate(zip(kernel, stride, dilation, strict=True), 1):
        count = (x.shape[axis] - distance * (size - 1) - 1) // step + 1
        index = step * jnp.arange(count)[:, None] + distance * jnp.arange(size)
        x = jnp.moveaxis(jnp.take(x, index, axis=axis), axis + 1, -1)
    return x''',
    "max_pool": '''\
def max_pool(
    x: Array,
    window: tuple[int, ...],
    stride: int | tuple[int, ...] | None = None,
    padding: int | tuple[int | tuple[int, int], ...] = 0,
) -> Array:
    """Return the largest elements of the windows of images (batch, channels, ...)."""
    rank = len(window)
    steps = window if stride is None else sizes(stride, rank)
    ends = [(0, 0), (0, 0), *pads(padding, rank)]
    return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 1, *window), (1, 1, *steps), ends)''',
    "mean_pool": '''\
def mean_pool(
    x: Array,
    window: tuple[int, ...],
    stride: int | tuple[int, ...] | None = None,
    padding: int | tuple[int | tuple[int, int], ...] = 0,
    count_padding: bool = False,
) -> Array:
    """Return the means of the windows of images (batch, channels, ...)."""
    rank = len(window)
    steps = window if stride is None else sizes(stride, rank)
    ends = [(0, 0), (0, 0), *pads(padding, rank)]

    def total(x: Array) -> Array:
        return jax.lax.reduce_window(x, 0.0, jax.lax.add, (1, 1, *window), (1, 1, *steps), ends)

    if count_padding:
        return total(x) / math.prod(window)
    return total(x) / total(jnp.ones_like(x))''',
    "unpool": '''\
def unpool(
    x: Array,
    images: Array,
    window: tuple[int, ...],
    stride: int | tuple[int, ...] | None = None,
    padding: int | tuple[int | tuple[int, int], ...] = 0,
) -> Array:
    """Return values at the places of the first maxima of the windows of images, zeros elsewhere."""
    _, back = jax.vjp(lambda image: max_pool(image, window, stride, padding), images)
    return back(x)[0]''',
    "pool_regions": '''\
def pool_regions(
    images: Array,
    regions: Array,
    grid: tuple[int, int],
    scale: float = 0.0,
    average: bool = False,
) -> Array:
    """Return the largest elements, or the means, of the cells of a grid over regions of images.

    A region is x, y, width and height relative to the image, or with `scale` two corners in pixels.
    """
    height, width = images.shape[-2:]
    regions = jax.lax.stop_gradient(regions)

    def cells_of(axis: int, count: int, size: int) -> Array:
        begin, end = (
            jnp.floor(jnp.abs(v * (scale or size)) + 0.5) * jnp.sign(v)
            for v in (regions[..., axis], regions[..., axis + 2])
        )
        extent = jnp.maximum(end - begin + 1 if scale else end, 1)[..., None]
        cell, place = jnp.arange(count), jnp.arange(size)
        low = jnp.maximum(begin[..., None] + jnp.floor(cell * extent / count), 0)
        high = jnp.minimum(begin[..., None] + jnp.ceil((cell + 1) * extent / count), size)
        return (place >= low[..., None]) & (place < high[..., None])

    columns, rows = cells_of(0, grid[0], width), cells_of(1, grid[1], height)
    cells = rows[:, :, :, None, :, None] & columns[:, :, None, :, None, :]
    cells = cells.reshape(*cells.shape[:2], 1, *cells.shape[2:4], height * width)
    seen = images.reshape(len(images), 1, -1, 1, 1, height * width)
    if average:
        return (seen * cells).sum(-1) / jnp.maximum(cells.sum(-1), 1)
    highest = jnp.where(cells, seen, -jnp.inf).max(-1)
    return jnp.where(cells.any(-1), highest, 0.0)''',
}
"""Functions that JAX lacks."""
