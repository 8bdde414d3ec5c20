"""Pooling over regions of interest of an image.

Regions of CNTK before version 2.1 are relative to the image; later ones are in pixels of the original picture, as in
Fast R-CNN (R. Girshick, ICCV 2015): corners are scaled and rounded, and the second one lies inside.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from networks.arrays.lazy import jax, jnp
from networks.graph.shapes import Shape, ShapeProblem
from networks.nodes.declare import INTEGERS, REAL, TEXT, Argument, NodeKind, Option

if TYPE_CHECKING:
    from networks.graph.network import Node

Array = Any


def _shape(node: Node) -> Shape | None:
    """Width and height of the grid, the channels of the image, the number of regions."""
    image, regions = node.input(0).shape, node.input(1).shape
    if not 0 <= _scale(node) < float("inf"):
        raise ShapeProblem("spatialScale must be larger than 0, or 0 where regions are relative to the image")
    if image is None or regions is None or 0 in image or 0 in regions:
        return None
    grid = tuple(int(size) for size in node.options["outputShape"])
    if len(grid) != 2 or min(grid) < 1:
        raise ShapeProblem("the grid has a width and a height, both at least 1")
    if len(image) != 3:
        raise ShapeProblem("the image must have three axes: width, height and channels")
    if regions[0] != 4 or len(regions) > 2:
        what = "x1, y1, x2 and y2, in pixels" if _scale(node) else "x, y, width and height, relative to the image"
        raise ShapeProblem(f"each region has four numbers: {what}")
    return (*grid, image[2], regions[1] if len(regions) == 2 else 1)


def _scale(node: Node) -> float:
    """From pixels of the original picture to those of the image; 0: regions are relative to the image."""
    return float(node.options.get("spatialScale", 0.0))


def _rounded(x: Array) -> Array:
    """The nearest whole number, halves away from 0, as in C."""
    return jnp.sign(x) * jnp.floor(jnp.abs(x) + 0.5)


def _windows(begin: Array, extent: Array, count: int, size: int) -> Array:
    """Which of `size` elements belong to each of `count` cells of a region of whole numbers: `(..., count, size)`."""
    begin, extent = begin[..., None], jnp.maximum(1, extent)[..., None]
    cell = jnp.arange(count)
    first = jnp.maximum(0, begin + jnp.floor(cell * extent / count))
    last = jnp.minimum(size, begin + jnp.ceil((cell + 1) * extent / count))
    position = jnp.arange(size)
    return (position >= first[..., None]) & (position < last[..., None])


def _cells(node: Node, regions: Array, axis: int, size: int) -> Array:
    """The elements of each cell along x (axis 0) or y (axis 1)."""
    scale, first, second = _scale(node), regions[..., axis], regions[..., axis + 2]
    if scale:
        begin, end = _rounded(first * scale), _rounded(second * scale)
        return _windows(begin, end - begin + 1, node.options["outputShape"][axis], size)
    return _windows(_rounded(first * size), _rounded(second * size), node.options["outputShape"][axis], size)


def _pool(call: Any, image: Array, regions: Array) -> Array:
    """Arrays are (T, S, C, H, W) and (T, S, R, 4); the result is (T, S, R, C, h, w)."""
    regions = jax.lax.stop_gradient(regions).reshape(*regions.shape[:2], -1, 4)
    columns = _cells(call.node, regions, 0, image.shape[-1])
    rows = _cells(call.node, regions, 1, image.shape[-2])
    average = str(call.node.options.get("kind", "max")).lower() == "average"
    return (_mean if average else _largest)(image, columns, rows)


def _largest(image: Array, columns: Array, rows: Array) -> Array:
    """Largest elements over width, then over height; 0 of an empty cell."""
    lowest = jnp.asarray(-jnp.inf, image.dtype)
    image = image[:, :, None]
    across = [
        jnp.max(jnp.where(columns[..., i, :][:, :, :, None, None, :], image, lowest), axis=-1)
        for i in range(columns.shape[-2])
    ]
    wide = jnp.stack(across, axis=-1)  # (T, S, R, C, H, w)
    down = [
        jnp.max(jnp.where(rows[..., j, :][:, :, :, None, :, None], wide, lowest), axis=-2)
        for j in range(rows.shape[-2])
    ]
    found = jnp.stack(down, axis=-2)  # (T, S, R, C, h, w)
    return jnp.where(found == lowest, jnp.zeros_like(found), found)


def _mean(image: Array, columns: Array, rows: Array) -> Array:
    """The sum of each cell by the number of its elements; 0 of an empty cell."""
    across, down = columns.astype(image.dtype), rows.astype(image.dtype)
    wide = jnp.einsum("tschx,tsrix->tsrchi", image, across, precision="highest")
    total = jnp.einsum("tsrchi,tsrjh->tsrcji", wide, down, precision="highest")
    count = jnp.sum(down, axis=-1)[..., :, None] * jnp.sum(across, axis=-1)[..., None, :]
    return total / jnp.maximum(count, 1)[:, :, :, None]


KINDS = [
    NodeKind(
        "ROIPooling",
        ((Argument("image"), Argument("rois"), Argument("outputShape", INTEGERS)),),
        "The largest elements, or the means, in each cell of a grid over each region of interest of an image; a region "
        "is x, y, width and height relative to the image, or with spatialScale the corners x1, y1, x2 and y2 in pixels "
        "of the original picture.",
        "max over columns X + floor(i RW / w) to X + ceil((i + 1) RW / w), rows alike; 0 for an empty cell",
        _shape,
        _pool,
        options=(
            Option("kind", TEXT, "max", "what a cell gives", ("max", "average")),
            Option(
                "spatialScale",
                REAL,
                0.0,
                "width of the image by that of the original picture: X is round(x1 scale), RW round(x2 scale) - X + 1; "
                "0: regions are relative to the image",
            ),
        ),
        family="Convolution and pooling",
        source="docs/specification/brainscript-library.md",
        example="h = ROIPooling(picture, Input(4, 10), {2, 2})",
    ),
]
