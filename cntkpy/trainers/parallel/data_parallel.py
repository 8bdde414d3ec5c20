"""Synchronous data-parallel SGD: every worker has a part of each minibatch, gradients are summed, all update alike.

Weights are the same everywhere; the slots (parallel sequences, or frames) of a minibatch are dealt out. Where workers
share memory, each runs the program of a single device, which calls for sums (`InMemory`). Else the compiled step of
`cntkpy.trainers.step.step` runs on all devices at the same time, with the slots along the axis `workers`
(`OverDevices`).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cntkpy.networks.arrays.lazy import jax, jnp
from cntkpy.networks.arrays.sparse import RowGradient
from cntkpy.networks.compile.evaluate import PROBLEM
from cntkpy.networks.compile.recurrence import CARRIED
from cntkpy.networks.nodes.observers.kinds import COUNT, SUM
from cntkpy.networks.nodes.sampling.kinds import DRAWN
from cntkpy.trainers.parallel.arrays import OnProcessGroup, Statistics, batch_specs, only_if, sums_in_memory
from cntkpy.trainers.parallel.batching import SharedBatcher
from cntkpy.trainers.parallel.process_group import AXIS, ProcessGroup
from cntkpy.trainers.rules.updates import Rule
from cntkpy.trainers.step.batching import Batcher
from cntkpy.trainers.step.stack import Stack
from cntkpy.trainers.step.state import EpochSettings, StepInput, StepOptions, TrainState
from cntkpy.trainers.step.strategy import SingleDevice, Strategy, whole_scalars

if TYPE_CHECKING:
    from cntkpy.trainers.step.state import Step

Array = Any
Tree = Any


class DataParallel(Strategy, Protocol):
    """DataParallelSGD: the sum of all workers' gradients, then one update, the same everywhere."""

    group: ProcessGroup
    _statistics: Statistics

    def summed(self, tree: Tree, real: Any = True) -> Tree:
        """In the compiled step, the sums over all workers; of a worker that is not `real`, nothing is counted."""
        ...

    def gathered(self, tree: Tree) -> Tree:
        """In the compiled step, the arrays of all workers, one after the other along the first axis."""
        ...

    def reduce(self, gradients: Tree, sums: Tree, state: Tree, before: Tree, batch: Any) -> tuple[Tree, Tree, Tree]:
        """Sums over the workers; running statistics are their mean, weighted by samples.

        What a worker without samples computed is left out: it may be no number.
        """
        samples = jnp.sum(batch.mask)
        real = samples > 0
        dense = {name: g for name, g in gradients.items() if not isinstance(g, RowGradient)}
        rows = {name: g for name, g in gradients.items() if isinstance(g, RowGradient)}
        changed = {name for name in state if not name.endswith(CARRIED) and state[name] is not before.get(name)}
        counted = samples if changed or rows else None
        dense, sums, total = self.summed((dense, sums, counted), real)
        if rows:  # they wait for the others: all workers have to send the same message at a time
            real &= total >= 0
            every = self.gathered({name: g._replace(values=only_if(real, g.values)) for name, g in rows.items()})
            rows = {name: _joined(g) for name, g in every.items()}
            total = jnp.where(next(iter(every.values())).rows[0] >= 0, total, 0)  # what waits for it waits for them
        if changed:
            state = {**state} | self._state({name: state[name] for name in changed}, before, samples, total)
        return dense | rows, sums, state

    def from_saved(self, array: NDArray[Any], slots: bool = False) -> Array:
        """The inverse of `to_save`."""
        return self.place(self.group.part(array, 1) if slots else array, slots)

    def after_stack(self, state: TrainState, stack: Stack, rule: Rule) -> TrainState:
        """The same state. Log statistics if they are due: workers synchronise in every minibatch."""
        self._statistics.add(stack, len(stack.minibatches))
        return state

    def _state(self, state: Tree, before: Tree, samples: Array, total: Array) -> Tree:
        """The part of the network's state that a minibatch has changed, of all workers."""
        real = samples > 0
        parts: dict[str, Array] = {}
        for name, new in state.items():
            if name.endswith(PROBLEM):
                parts[name] = new.astype(jnp.int32)
            elif name.endswith(ADDED):
                parts[name] = jnp.where(real, new - before[name], 0)
            else:
                parts[name] = (samples / jnp.maximum(total, 1)).astype(new.dtype) * only_if(real, new)
        sums, _ = self.summed((parts, total))  # with the total, it waits for the message that had it
        result: dict[str, Array] = {}
        for name, found in sums.items():
            if name.endswith(PROBLEM):
                result[name] = found > 0
            elif name.endswith(ADDED):
                result[name] = before[name] + found
            else:
                result[name] = jnp.where(total > 0, found, before[name])
        return result


class InMemory(DataParallel, SingleDevice):
    """Workers of one machine, each with a device: they differ from a single device in what their programs sum up.

    Args:
        group: the processes, which share memory.
        sums: what programs call for sums.
        statistics: see `OnProcessGroup`.
    """

    def __init__(self, group: ProcessGroup, sums: str, statistics: int = 0):
        self.group, self._sums, self._statistics = group, sums, Statistics(statistics)

    @property
    def identity(self) -> Any:
        """What programs call for sums, and the worker, which draws masks of its own."""
        return type(self).__qualname__, self._sums, self.group.communicator.rank

    @property
    def joins_parameters(self) -> bool:
        """They may not: gradients are summed by name."""
        return False

    def batcher(self, batcher: Batcher) -> Batcher:
        """Minibatches of the same shape on all workers, which give each other frames."""
        return SharedBatcher.like(batcher, self.group, levels=True)

    def to_save(self, array: Array, slots: bool = False) -> NDArray[Any]:
        """The slots of all workers side by side."""
        return self.group.gather(self.group.on_all(np.asarray(array), 1), 1) if slots else self.to_host(array)

    def mask_key(self, key: Array) -> Array:
        """Each worker draws its own masks."""
        return jax.random.fold_in(key, self.group.communicator.rank)

    def summed(self, tree: Tree, real: Any = True) -> Tree:
        """See `DataParallel`."""
        return sums_in_memory(self._sums, tree, real)

    def gathered(self, tree: Tree) -> Tree:
        """See `DataParallel`: each adds zeros to what others have."""
        return self.summed(jax.tree.map(self._at_rank, tree))

    def _at_rank(self, array: Array) -> Array:
        """Zeros for all workers, with what this one has at its place."""
        size, rank = self.group.communicator.size, self.group.communicator.rank
        before, behind = rank * len(array), (size - 1 - rank) * len(array)
        return jnp.pad(array, [(before, behind), *[(0, 0)] * (array.ndim - 1)])


class OverDevices(OnProcessGroup, DataParallel):
    """Workers of several machines, or with GPUs, or several devices of one process: JAX sums over all devices."""

    def batcher(self, batcher: Batcher) -> Batcher:
        """Minibatches of the same shape on all workers."""
        return SharedBatcher.like(batcher, self.group)

    def place(self, array: Any, slots: bool = False) -> Array:
        """The same on all workers; of an array with slots each has its own."""
        return self.group.on_all(np.asarray(array), 1 if slots else None)

    def initial_update_state(self, rule: Rule, weight: Array) -> dict[str, Array]:
        """The same state everywhere."""
        return {name: self.place(value) for name, value in rule.start(weight).items()}

    def to_host(self, array: Array) -> NDArray[Any]:
        """What all workers have."""
        return np.asarray(array.addressable_shards[0].data)

    def to_save(self, array: Array, slots: bool = False) -> NDArray[Any]:
        """The slots of all workers side by side."""
        return self.group.gather(array, 1) if slots else self.to_host(array)

    def step_scalars(self, stack: Stack, settings: EpochSettings, dtype: Any, gaps: bool = True) -> Array:
        """See `Strategy.step_scalars`; array (capacity, 2), of the minibatches of all workers."""
        return whole_scalars(stack, settings, dtype, gaps)

    def compiled(self, step: Step) -> Step:
        """The step on every worker with its own slots."""
        P: Any = jax.sharding.PartitionSpec

        def function(state: TrainState, given: StepInput, options: StepOptions) -> tuple[TrainState, Array]:
            network = {name: P(None, AXIS) if name.endswith(CARRIED) else P() for name in state.network}
            states = TrainState(P(), P(), network, P())
            more = None if given.more is None else P()
            inputs = StepInput(batch_specs(given.batches), P(), P(), P(), P(), P(), more)

            def own(state: TrainState, given: StepInput) -> tuple[TrainState, Array]:
                return step(state, given, options)

            return self.group.on_each(own, (states, inputs), (states, P()))(state, given)

        return function

    def gathered(self, tree: Tree) -> Tree:
        """See `DataParallel`."""
        return jax.tree.map(partial(jax.lax.all_gather, axis_name=AXIS, tiled=True), tree)


ADDED = ("/samples", SUM, COUNT, DRAWN)
"""Parts of a state that add up what was seen, by the ends of their names."""


def data_parallel(group: ProcessGroup, statistics: int = 0) -> DataParallel:
    """The way in which these workers can train together, see `OnProcessGroup`."""
    sums = group.sums
    return OverDevices(group, statistics) if sums is None else InMemory(group, sums, statistics)


def _joined(every: RowGradient) -> RowGradient:
    """Touched rows that may be there several times, each once; what is left over repeats the padding row number."""
    rows = every.rows
    distinct, place = jnp.unique(rows, return_inverse=True, size=rows.shape[0], fill_value=np.iinfo(np.int32).max)
    return RowGradient(distinct, jax.ops.segment_sum(every.values, place.reshape(-1), num_segments=rows.shape[0]))
