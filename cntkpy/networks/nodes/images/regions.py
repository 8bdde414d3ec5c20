"""Pooling over regions of interest of an image.

Regions of CNTK before version 2.1 are relative to the image; later ones are in pixels of the input picture, as in
Fast R-CNN (R. Girshick, ICCV 2015): corners are scaled and rounded, and the second one lies inside.

Specified in docs/specification/brainscript-library.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from cntkpy.networks.arrays.lazy import Array, Gradients, Residuals, custom_gradient, jax, jnp
from cntkpy.networks.graph.shapes import Shape, ShapeProblem
from cntkpy.networks.nodes.declare import INTEGERS, REAL, TEXT, Argument, NodeKind, Option, RecordForm

if TYPE_CHECKING:
    from cntkpy.networks.graph.network import Node
    from cntkpy.networks.nodes.call import Call


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
        fields = "x1, y1, x2 and y2, in pixels" if _scale(node) else "x, y, width and height, relative to the image"
        raise ShapeProblem(f"each region has four numbers: {fields}")
    return (*grid, image[2], regions[1] if len(regions) == 2 else 1)


def _scale(node: Node) -> float:
    """From pixels of the input picture to those of the image; 0: regions are relative to the image."""
    return float(node.options.get("spatialScale", 0.0))


def _rounded(x: Array) -> Array:
    """Return the nearest whole number, halves away from 0, as in C."""
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
    """Return the elements of each cell along x (axis 0) or y (axis 1)."""
    scale, first, second = _scale(node), regions[..., axis], regions[..., axis + 2]
    if scale:
        begin, end = _rounded(first * scale), _rounded(second * scale)
        return _windows(begin, end - begin + 1, node.options["outputShape"][axis], size)
    return _windows(_rounded(first * size), _rounded(second * size), node.options["outputShape"][axis], size)


def _pool(call: Call, image: Array, regions: Array) -> Array:
    """Arrays are (T, S, C, H, W) and (T, S, R, 4), constants without T and S; the result is (T, S, R, C, h, w)."""
    node = call.node
    regions = jax.lax.stop_gradient(regions)
    regions = regions.reshape(*(regions.shape[:2] if node.input(1).has_layout else (1, 1)), -1, 4)
    image = image if node.input(0).has_layout else image[None, None]
    lead = jnp.broadcast_shapes(image.shape[:2], regions.shape[:2])
    image = jnp.broadcast_to(image, (*lead, *image.shape[2:]))
    regions = jnp.broadcast_to(regions, (*lead, *regions.shape[2:]))
    columns = _cells(node, regions, 0, image.shape[-1])
    rows = _cells(node, regions, 1, image.shape[-2])
    average = str(node.options.get("kind", "max")).lower() == "average"
    pooled = (_mean if average else _largest)(image, columns, rows)
    return pooled if node.has_layout else pooled[0, 0]


def _largest(image: Array, columns: Array, rows: Array) -> Array:
    """Return the largest element of each cell, 0 of an empty one; its gradient goes to the first of equal ones, row by
    row.
    """

    def primal(image: Array, columns: Array, rows: Array) -> Array:
        wide = _each(columns, image[:, :, None], _maximum)  # (T, S, R, C, w, H)
        largest = _each(rows, wide, _maximum)  # (T, S, R, C, h, w)
        return jnp.where(jnp.isneginf(largest), jnp.zeros_like(largest), largest)

    def forward(image: Array, columns: Array, rows: Array) -> tuple[Array, Residuals]:
        filled = jnp.any(rows, axis=-1)[:, :, :, None, :, None] & jnp.any(columns, axis=-1)[:, :, :, None, None, :]
        return primal(image, columns, rows), (_places(image, columns, rows), filled)

    def backward(residuals: Residuals, g: Array) -> Gradients:
        place, filled = residuals
        samples, size = math.prod(image.shape[:3]), math.prod(image.shape[3:])
        index, slopes = (
            jnp.moveaxis(part, 2, 3).reshape(samples, -1) for part in (place, jnp.where(filled, g, jnp.zeros_like(g)))
        )

        def added(where: Array, slope: Array) -> Array:
            return jnp.zeros(size, g.dtype).at[where].add(slope)

        total = jax.vmap(added)(index, slopes)
        return total.reshape(image.shape), None, None

    return custom_gradient(forward, backward, primal)(image, columns, rows)


def _maximum(seen: Array) -> Array:
    return jnp.max(seen, axis=-1)


def _place(seen: Array) -> Array:
    return jnp.argmax(seen, axis=-1)


def _each(cells: Array, values: Array, reduced: Callable[..., Array]) -> Array:
    """For each of the cells the values of its elements along the last axis, -infinity for others, reduced."""
    lowest = jnp.asarray(-jnp.inf, values.dtype)
    rows = [reduced(jnp.where(cells[..., i, :][:, :, :, None, None], values, lowest)) for i in range(cells.shape[-2])]
    return jnp.stack(rows, axis=-2)


def _places(image: Array, columns: Array, rows: Array) -> Array:
    """Return the places of the largest elements of cells in a picture, of which rows lie one after another."""
    image, width = image[:, :, None], image.shape[-1]
    wide = _each(columns, image, _maximum)
    column = _each(columns, image, _place)  # (T, S, R, C, w, H)
    row = _each(rows, wide, _place)  # (T, S, R, C, h, w)
    of_row = jnp.take_along_axis(column, jnp.swapaxes(row, -1, -2), axis=-1)
    return row * width + jnp.swapaxes(of_row, -1, -2)


def _mean(image: Array, columns: Array, rows: Array) -> Array:
    """Return the sum of each cell by the number of its elements; 0 of an empty cell."""
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
        "of the input picture.",
        "max over columns X + floor(i RW / w) to X + ceil((i + 1) RW / w), rows alike; 0 for an empty cell",
        _shape,
        _pool,
        options=(
            Option("kind", TEXT, "max", "what a cell gives", ("max", "average")),
            Option(
                "spatialScale",
                REAL,
                0.0,
                "width of the image by that of the input picture: X is round(x1 scale), RW round(x2 scale) - X + 1; "
                "0: regions are relative to the image",
            ),
        ),
        record=RecordForm(names={"outputShape": "dims"}, without=("kind",)),
        example="h = ROIPooling(picture, Input(4, 10), {2, 2})",
    ),
]
