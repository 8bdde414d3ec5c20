"""Sums over the workers of a process group, and what they are for: gradients and criteria of a minibatch.

Where workers share memory, each runs the program of a single device, which calls a function of its process for sums.
Else one program runs on all devices, with the slots along the axis `workers`, and JAX sums over that axis.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Protocol, TypeVar

import numpy as np

from cntkpy.networks.arrays.lazy import jax, jnp
from cntkpy.networks.arrays.sparse import RowGradient
from cntkpy.networks.compile.evaluate import PROBLEM
from cntkpy.networks.compile.recurrence import CARRIED
from cntkpy.networks.nodes.observers.kinds import COUNT, SUM
from cntkpy.networks.nodes.sampling.kinds import DRAWN
from cntkpy.trainers.parallel import host_call
from cntkpy.trainers.parallel.process_group import AXIS, ProcessGroup
from cntkpy.trainers.step.reduction import Reduction

if TYPE_CHECKING:
    from jax import Array
    from jaxtyping import PRNGKeyArray

    from cntkpy.networks.compile.evaluate import Batch
    from cntkpy.trainers.step.reduction import Gradients, Named

T = TypeVar("T")

MAX_ELEMENTS_JOINED = 1 << 22
"""Elements of an array that is sent together with others: each message has its own delay, and a copy its memory."""

ADDED = ("/samples", SUM, COUNT, DRAWN)
"""Parts of a state that add up what was seen, by the ends of their names."""


class Sums(Protocol):
    """Sums over all workers, in a compiled step."""

    def summed(self, tree: T, real: Array | bool = True) -> T:
        """Return the sums over all workers; of a worker that is not `real`, nothing is counted."""
        ...

    def gathered(self, tree: T) -> T:
        """Return the arrays of all workers, one after the other along the first axis."""
        ...


class SumsByJax(Sums):
    """Sums over the axis `workers`."""

    def summed(self, tree: T, real: Array | bool = True) -> T:
        """Sum all but large arrays in one message."""
        from jax.flatten_util import ravel_pytree

        leaves, structure = jax.tree.flatten(tree if real is True else jax.tree.map(partial(only_if, real), tree))
        large = {k: leaf for k, leaf in enumerate(leaves) if not _is_joined(leaf, leaves[0])}
        together, separate = ravel_pytree({k: leaf for k, leaf in enumerate(leaves) if k not in large})
        together, large = jax.lax.psum((together, large), AXIS)
        parts = large | separate(together)
        return jax.tree.unflatten(structure, [parts[k] for k in range(len(leaves))])

    def gathered(self, tree: T) -> T:
        """See `Sums`."""
        return jax.tree.map(partial(jax.lax.all_gather, axis_name=AXIS, tiled=True), tree)


def _is_joined(leaf: Array, first: Array) -> bool:
    return leaf.size <= MAX_ELEMENTS_JOINED and leaf.dtype == first.dtype


class SumsInMemory(Sums):
    """Sums in memory that workers share.

    Every message has to wait for the message before it, which its arrays must depend on.

    Args:
        group: the processes.
        name: see `ProcessGroup.sums`.
    """

    def __init__(self, group: ProcessGroup, name: str) -> None:
        self._communicator, self._name = group.communicator, name

    def summed(self, tree: T, real: Array | bool = True) -> T:
        """See `Sums`."""
        leaves, structure = jax.tree.flatten(tree)
        # the flag goes along: a program would copy all arrays to make them 0
        _, *sums = host_call.call(self._name, [jnp.asarray(real, jnp.int32), *leaves])
        return jax.tree.unflatten(structure, sums)

    def gathered(self, tree: T) -> T:
        """Add zeros to the arrays of the other workers."""
        return self.summed(jax.tree.map(self._at_rank, tree))

    def _at_rank(self, array: Array) -> Array:
        """Return zeros for all workers, with the array of this one at its place."""
        size, rank = self._communicator.size, self._communicator.rank
        behind = (size - 1 - rank) * len(array)
        return jnp.pad(array, [(rank * len(array), behind), *[(0, 0)] * (array.ndim - 1)])


def sums_of(group: ProcessGroup) -> Sums:
    """Return the sums that these workers can have."""
    return SumsByJax() if group.sums is None else SumsInMemory(group, group.sums)


class GradientSums(Reduction):
    """The sum of all workers' gradients.

    Args:
        sums: over all workers.
        worker: number of the first worker that runs the program.
        in_program: whether the program knows the number of a worker after the first.
    """

    def __init__(self, sums: Sums, worker: int, in_program: bool) -> None:
        self._sums, self._worker, self._in_program = sums, worker, in_program

    def mask_key(self, key: PRNGKeyArray) -> PRNGKeyArray:
        """Return a key for each worker."""
        worker = self._worker + jax.lax.axis_index(AXIS) if self._in_program else self._worker
        return jax.random.fold_in(key, worker)

    def reduce(
        self, gradients: Gradients, sums: Named, state: Named, start: Named, batch: Batch
    ) -> tuple[Gradients, Named, Named]:
        """Sum over the workers; running statistics are their mean, weighted by samples.

        A worker without samples is left out: its results may be no numbers.
        """
        samples = jnp.sum(batch.mask)
        real = samples > 0
        dense = {name: g for name, g in gradients.items() if not isinstance(g, RowGradient)}
        rows = {name: g for name, g in gradients.items() if isinstance(g, RowGradient)}
        changed = {name for name in state if not name.endswith(CARRIED) and state[name] is not start.get(name)}
        counted = samples if changed or rows else None
        dense, sums, total = self._sums.summed((dense, sums, counted), real)
        if rows and total is not None:  # they wait for the others: all workers have to send the same message at a time
            real &= total >= 0
            every = self._sums.gathered({k: g._replace(values=only_if(real, g.values)) for k, g in rows.items()})
            rows = {name: _joined(g) for name, g in every.items()}
            total = jnp.where(next(iter(every.values())).rows[0] >= 0, total, 0)  # what waits for it waits for them
        if changed:
            assert total is not None
            state = {**state} | self._state({name: state[name] for name in changed}, start, samples, total)
        return dense | rows, sums, state

    def _state(self, state: Named, start: Named, samples: Array, total: Array) -> Named:
        """Return the part of the network's state that a minibatch has changed, of all workers."""
        real = samples > 0
        parts: Named = {}
        for name, new in state.items():
            if name.endswith(PROBLEM):
                parts[name] = new.astype(jnp.int32)
            elif name.endswith(ADDED):
                parts[name] = jnp.where(real, new - start[name], 0)
            else:
                parts[name] = (samples / jnp.maximum(total, 1)).astype(new.dtype) * only_if(real, new)
        sums, _ = self._sums.summed((parts, total))  # with the total, it waits for the message that had it
        result: Named = {}
        for name, value in sums.items():
            if name.endswith(PROBLEM):
                result[name] = value > 0
            elif name.endswith(ADDED):
                result[name] = start[name] + value
            else:
                result[name] = jnp.where(total > 0, value, start[name])
        return result


class CriterionSums(GradientSums):
    """The sums of the criteria alone: workers train by themselves."""

    def reduce(
        self, gradients: Gradients, sums: Named, state: Named, start: Named, batch: Batch
    ) -> tuple[Gradients, Named, Named]:
        """Sum the criteria; a worker without samples keeps its state."""
        real = jnp.sum(batch.mask) > 0
        sums = self._sums.summed(sums, real)
        changed = {name: value for name, value in state.items() if value is not start.get(name)}
        return gradients, sums, state | {name: jnp.where(real, new, start[name]) for name, new in changed.items()}


def only_if(real: Array | bool, value: Array) -> Array:
    """Return the value, or zeros, whatever it is."""
    return jnp.where(real, value, jnp.zeros_like(value))


def _joined(every: RowGradient) -> RowGradient:
    """Return touched rows that may be there several times, each once, padded with the row number of padding."""
    rows = every.rows
    distinct, place = jnp.unique(rows, return_inverse=True, size=rows.shape[0], fill_value=np.iinfo(np.int32).max)
    return RowGradient(distinct, jax.ops.segment_sum(every.values, place.reshape(-1), num_segments=rows.shape[0]))
