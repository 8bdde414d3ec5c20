"""Pooling over regions of interest of an image."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from networks.arrays.lazy import jax, jnp
from networks.graph.shapes import Shape, ShapeProblem
from networks.nodes.declare import INTEGERS, Argument, NodeKind

if TYPE_CHECKING:
    from networks.graph.network import Node

Array = Any


def _shape(node: Node) -> Shape | None:
    """Width and height of the grid, the channels of the image, the number of regions."""
    image, regions = node.input(0).shape, node.input(1).shape
    if image is None or regions is None or 0 in image or 0 in regions:
        return None
    grid = tuple(int(size) for size in node.options["outputShape"])
    if len(grid) != 2 or min(grid) < 1:
        raise ShapeProblem("the grid has a width and a height, both at least 1")
    if len(image) != 3:
        raise ShapeProblem("the image must have three axes: width, height and channels")
    if regions[0] != 4 or len(regions) > 2:
        raise ShapeProblem("each region has four numbers: x, y, width and height, relative to the image")
    return (*grid, image[2], regions[1] if len(regions) == 2 else 1)


def _rounded(x: Array) -> Array:
    """The nearest whole number, halves away from 0, as in C."""
    return jnp.sign(x) * jnp.floor(jnp.abs(x) + 0.5)


def _windows(start: Array, length: Array, count: int, size: int) -> Array:
    """Which of `size` elements belong to each of `count` cells of a region: `(..., count, size)`."""
    begin = _rounded(start * size)[..., None]
    extent = jnp.maximum(1, _rounded(length * size))[..., None]
    cell = jnp.arange(count)
    first = jnp.maximum(0, begin + jnp.floor(cell * extent / count))
    last = jnp.minimum(size, begin + jnp.ceil((cell + 1) * extent / count))
    position = jnp.arange(size)
    return (position >= first[..., None]) & (position < last[..., None])


def _pool(call: Any, image: Array, regions: Array) -> Array:
    """Largest elements over width, then over height; arrays are (T, S, C, H, W) and (T, S, R, 4)."""
    width, height = call.node.shape[:2]
    regions = jax.lax.stop_gradient(regions).reshape(*regions.shape[:2], -1, 4)
    lowest = jnp.asarray(-jnp.inf, image.dtype)
    columns = _windows(regions[..., 0], regions[..., 2], width, image.shape[-1])
    rows = _windows(regions[..., 1], regions[..., 3], height, image.shape[-2])
    image = image[:, :, None]
    across = [
        jnp.max(jnp.where(columns[..., i, :][:, :, :, None, None, :], image, lowest), axis=-1) for i in range(width)
    ]
    wide = jnp.stack(across, axis=-1)  # (T, S, R, C, H, w)
    down = [jnp.max(jnp.where(rows[..., j, :][:, :, :, None, :, None], wide, lowest), axis=-2) for j in range(height)]
    found = jnp.stack(down, axis=-2)  # (T, S, R, C, h, w)
    return jnp.where(found == lowest, jnp.zeros_like(found), found)


KINDS = [
    NodeKind(
        "ROIPooling",
        ((Argument("image"), Argument("rois"), Argument("outputShape", INTEGERS)),),
        "The largest elements in each cell of a grid over each region of interest of an image; a region is x, y, width "
        "and height relative to the image.",
        "max over columns X + floor(i RW / w) to X + ceil((i + 1) RW / w), rows alike; 0 for an empty cell",
        _shape,
        _pool,
        family="Convolution and pooling",
        source="docs/specification/brainscript-library.md",
        example="h = ROIPooling(picture, Input(4, 10), {2, 2})",
    ),
]
