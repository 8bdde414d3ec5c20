"""Minibatches computed in pieces: the gradient of the whole is the sum over groups of parallel sequences.

`numSubminibatches` and `maxSamplesInRAM` bound the memory of the activations; the numbers stay the same, except where a
node looks at the whole minibatch (batch normalisation) or draws random masks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, cast

from cntkpy.networks.arrays.batch import Grid
from cntkpy.networks.arrays.lazy import jax, jnp
from cntkpy.networks.arrays.packing import batch_apart
from cntkpy.networks.arrays.sparse import Sparse
from cntkpy.networks.compile.evaluate import Batch
from cntkpy.networks.compile.recurrence import CARRIED
from cntkpy.trainers.parameters.sgd import SGDParameters

if TYPE_CHECKING:
    from jax import Array
    from jaxtyping import PRNGKeyArray

    from cntkpy.networks.compile.evaluate import Settings
    from cntkpy.trainers.step.state import Gradient, GradientResult


def pieces_of(p: SGDParameters, minibatch_size: int) -> int:
    """Return the number of pieces of a minibatch of that size: `numSubminibatches`, else by `maxSamplesInRAM`."""
    if p.subminibatches > 1:
        return p.subminibatches
    return max(1, -(-minibatch_size // p.max_samples_in_ram))


def in_pieces(gradient: Gradient, pieces: int, axes: Mapping[str, str | None]) -> Gradient:
    """Return a function like that of `compile_gradient` that computes a minibatch piece by piece.

    Args:
        gradient: `f(weights, state, batch, key, settings) -> (gradients, totals, state)`.
        pieces: number of pieces, each of consecutive slots; not more than there are slots.
        axes: by name of an input, its time axis.
    """
    if pieces <= 1:
        return gradient

    def function(
        weights: dict[str, Array], state: dict[str, Array], batch: Batch, key: PRNGKeyArray | None, settings: Settings
    ) -> GradientResult:
        batch = batch_apart(batch, axes)
        assert batch.mask is not None  # the trainer pads minibatches
        slots = batch.mask.shape[1]
        width = -(-slots // min(pieces, slots))
        count = -(-slots // width)
        padded = _map_cells(batch, lambda cells: _pad(cells, count * width - slots))
        carried = [name for name in state if name.endswith(CARRIED)]

        def own(cells: Array, j: Array) -> Array:
            return jax.lax.dynamic_slice_in_dim(cells, j * width, width, axis=1)

        def piece(j: Array, state: dict[str, Array]) -> GradientResult:
            part = _map_cells(padded, lambda cells: own(cells, j))
            start = state | {name: own(state[name], j) for name in carried}
            own_key = None if key is None else jax.random.fold_in(key, j)
            gradients, totals, after = gradient(weights, start, part, own_key, settings)
            for name in carried:
                after[name] = jax.lax.dynamic_update_slice_in_dim(state[name], after[name], j * width, axis=1)
            return gradients, totals, after

        def add(j: Array, carry: GradientResult) -> GradientResult:
            gradients, totals, state = carry
            added, further, state = piece(j, state)
            return jax.tree.map(_sum, gradients, added), jax.tree.map(jnp.add, totals, further), state

        state = state | {name: _pad(state[name], count * width - slots) for name in carried}
        gradients, totals, state = jax.lax.fori_loop(1, count, add, piece(jnp.int32(0), state))
        return gradients, totals, state | {name: state[name][:, :slots] for name in carried}

    return function


def _sum(left: Array, right: Array) -> Array:
    """Sum of two leaves of gradients; the row numbers of a sparse gradient are the same in all pieces."""
    return left if jnp.issubdtype(left.dtype, jnp.integer) else left + right


def _pad(cells: Array, missing: int) -> Array:
    if not missing:
        return cells
    value = -1 if jnp.issubdtype(cells.dtype, jnp.signedinteger) and cells.ndim == 2 else 0
    return jnp.pad(cells, [(0, 0), (0, missing)] + [(0, 0)] * (cells.ndim - 2), constant_values=value)


def _map_cells(batch: Batch, change: Callable[[Array], Array]) -> Batch:
    """Return a batch with every array that has time and slot in front changed."""
    inputs = {
        name: Sparse(data.rows, change(data.index), change(data.values)) if isinstance(data, Sparse) else change(data)
        for name, data in batch.inputs.items()
    }
    grids = [None if array is None else change(array) for array in (batch.mask, batch.to_start, batch.to_end)]
    axes = (
        None
        if batch.axes is None
        else {name: Grid(*map(change, cast("tuple[Array, ...]", grid))) for name, grid in batch.axes.items()}
    )
    return Batch(inputs, *grids, axes=axes)
