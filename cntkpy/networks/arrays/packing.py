"""Values of sequences that share slots, and of the same sequences in a slot each.

A `PackedGrid` says where several sequences lie after each other in the slots of a time axis. Where a node looks at
whole sequences, their values come into a slot each, or one value of each sequence comes to all its steps. Gradients are
gathered, not scattered: XLA writes the elements of a scatter one by one on a processor.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import TYPE_CHECKING

from cntkpy.networks.arrays.batch import Batch, Grid, PackedGrid
from cntkpy.networks.arrays.lazy import Array, Gradients, Residuals, custom_gradient, jnp
from cntkpy.networks.arrays.sparse import Sparse

if TYPE_CHECKING:
    from jaxtyping import Int32, Shaped


def separated(grid: Grid | PackedGrid) -> Grid:
    """Return the grid of an axis whose sequences have a slot each; the number of time steps stays."""
    if isinstance(grid, Grid):
        return grid
    step = jnp.arange(grid.mask.shape[0], dtype=jnp.int32)[:, None]
    inside = step < grid.lengths
    return Grid(inside, jnp.where(inside, step, -1), jnp.where(inside, grid.lengths - 1 - step, -1))


def lengths_of(grid: Grid | PackedGrid) -> Int32[Array, " N"]:
    """Return the steps of each sequence."""
    return jnp.sum(grid.mask, axis=0, dtype=jnp.int32) if isinstance(grid, Grid) else grid.lengths


def first_cells(grid: Grid | PackedGrid) -> Int32[Array, " N"]:
    """Return the cell `t * S + s` of the first step of each sequence."""
    return jnp.arange(grid.mask.shape[1], dtype=jnp.int32) if isinstance(grid, Grid) else grid.first


def by_cell(rows: Shaped[Array, " N"], grid: Grid | PackedGrid) -> Shaped[Array, "#T S"]:
    """Return a number of each sequence, at its cells; what gaps have is undefined."""
    return rows[None] if isinstance(grid, Grid) else rows[grid.owner]


def apart(packed: Shaped[Array, "T S ..."], grid: PackedGrid) -> Shaped[Array, "T N ..."]:
    """Values with each sequence in a slot of its own; what gaps have is undefined."""
    return _apart(packed, _numbers(grid))


def together(values: Shaped[Array, "T N ..."], grid: PackedGrid) -> Shaped[Array, "T S ..."]:
    """Return the inverse of `apart`."""
    return _together(values, _numbers(grid))


def at_every_step(rows: Shaped[Array, "N ..."], grid: PackedGrid) -> Shaped[Array, "T S ..."]:
    """Return the value of each sequence at all its steps; what gaps have is undefined."""
    return together(jnp.broadcast_to(rows, (grid.mask.shape[0], *rows.shape)), grid)


def batch_apart(batch: Batch, axes: Mapping[str, str | None], packed: Container[str] = ()) -> Batch:
    """Return a batch with each sequence in a slot of its own.

    Args:
        batch: the batch.
        axes: by name of an input, its time axis.
        packed: the axes on which sequences go on sharing slots.
    """
    shared = {
        name: grid for name, grid in (batch.axes or {}).items() if isinstance(grid, PackedGrid) and name not in packed
    }
    if not shared:
        return batch

    def of(name: str, data: Array | Sparse) -> Array | Sparse:
        grid = shared.get(axes.get(name) or "")
        if grid is None:
            return data
        if isinstance(data, Sparse):
            return Sparse(data.rows, *(_masked(apart(value, grid), separated(grid).mask) for value in data[1:]))
        return _masked(apart(data, grid), separated(grid).mask)

    lie = {name: separated(grid) if name in shared else grid for name, grid in (batch.axes or {}).items()}
    return batch._replace(inputs={name: of(name, data) for name, data in batch.inputs.items()}, axes=lie)


Numbers = tuple[Array, Array, Array, Array]
"""The cells in the slots of others of the cells of own slots, and the other way round; which of both are no gaps."""


def _numbers(grid: PackedGrid) -> Numbers:
    steps, slots = grid.mask.shape
    step = jnp.arange(steps, dtype=jnp.int32)[:, None]
    flat_index = jnp.maximum(grid.to_start, 0) * len(grid.first) + grid.owner
    return grid.first + step * slots, flat_index, step < grid.lengths, grid.mask


def _taken(values: Array, cells: Array) -> Array:
    return jnp.take(values.reshape(-1, *values.shape[2:]), cells, axis=0, mode="clip")


def _masked(values: Array, mask: Array) -> Array:
    return jnp.where(mask.reshape(*mask.shape, *(1,) * (values.ndim - 2)), values, jnp.zeros((), values.dtype))


def _apart_forward(packed: Array, numbers: Numbers) -> tuple[Array, Residuals]:
    return _taken(packed, numbers[0]), numbers


def _apart_backward(numbers: Numbers, g: Array) -> Gradients:
    return _masked(_taken(g, numbers[1]), numbers[3]), None


def _together_forward(values: Array, numbers: Numbers) -> tuple[Array, Residuals]:
    return _taken(values, numbers[1]), numbers


def _together_backward(numbers: Numbers, g: Array) -> Gradients:
    return _masked(_taken(g, numbers[0]), numbers[2]), None


_apart = custom_gradient(_apart_forward, _apart_backward)
_together = custom_gradient(_together_forward, _together_backward)
