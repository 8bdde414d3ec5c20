"""Placement of arrays for the workers of a process group."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

import numpy as np

from cntkpy.networks.arrays.lazy import jax
from cntkpy.networks.arrays.sparse import is_sparse
from cntkpy.networks.compile.recurrence import CARRIED
from cntkpy.trainers.parallel.batching import SharedBatcher
from cntkpy.trainers.parallel.process_group import AXIS, ProcessGroup
from cntkpy.trainers.rules.updates import Rule
from cntkpy.trainers.step.feed import Batcher
from cntkpy.trainers.step.memory import HostArray
from cntkpy.trainers.step.placement import EndsBlock, OneDevice, Placement, filled_steps, padded_scalars, whole_scalars
from cntkpy.trainers.step.stack import Stack
from cntkpy.trainers.step.state import EpochSettings, StepInput, StepOptions, TrainState

if TYPE_CHECKING:
    from jax import Array
    from jax.sharding import PartitionSpec
    from jax.typing import DTypeLike

    from cntkpy.networks.compile.evaluate import Batch
    from cntkpy.trainers.step.placement import Device, Scalars
    from cntkpy.trainers.step.state import Step

T = TypeVar("T")


class ByProcess(OneDevice):
    """Workers of one machine that share memory, each with a device of its own: each places arrays as one device does.

    Args:
        group: the processes.
        sums: name of the function that their programs call for sums.
    """

    def __init__(self, group: ProcessGroup, sums: str) -> None:
        self._group, self._sums = group, sums

    @property
    def identity(self) -> object:
        """Name of the function for sums, and the worker, which draws masks of its own."""
        return type(self).__qualname__, self._sums, self._group.communicator.rank

    @property
    def joins_parameters(self) -> bool:
        """They may not: gradients are summed by name."""
        return False

    def batcher(self, batcher: Batcher, ends_block: EndsBlock | None) -> Batcher:
        """Return a batcher that makes minibatches of the same shape on all workers."""
        return SharedBatcher.like(batcher, self._group, ends_block)

    def fetch_all(self, array: Array, slots: bool = False) -> HostArray:
        """Return the slots of all workers side by side."""
        return self._group.gather(self._group.on_all(np.asarray(array), 1), 1) if slots else self.fetch(array)

    def place_all(self, array: HostArray, slots: bool = False) -> Array:
        """Place a result of `fetch_all`."""
        return self.place(self._group.part(array, 1) if slots else array, slots)


class OnProcessGroup(Placement, Protocol):
    """Arrays on the devices of a process group, which compute one program.

    Args:
        group: the process group.
    """

    group: ProcessGroup

    def __init__(self, group: ProcessGroup) -> None:
        self.group = group

    @property
    def identity(self) -> object:
        """Kind of placement, function for sums, worker; not known with several devices or GPUs."""
        kept = self.group.communicator.size == self.group.workers and self.group.devices[0].platform == "cpu"
        return (type(self).__qualname__, self.group.sums, self.group.first) if kept else object()

    @property
    def devices(self) -> Sequence[Device]:
        """Devices that programs run on."""
        return list(self.group.mesh.devices.flat)

    @property
    def copies(self) -> bool:
        """Return whether one process has devices with memory of their own; several read together, none early."""
        return self.group.communicator.size == 1 and self.devices[0].platform != "cpu"

    def batcher(self, batcher: Batcher, ends_block: EndsBlock | None) -> Batcher:
        """Return a batcher that makes minibatches of the same shape on all workers."""
        return SharedBatcher.like(batcher, self.group, ends_block)

    def flag(self) -> Array:
        """Return True, on every device."""
        return self.group.on_all(np.ones((), bool))

    def local(self, arrays: T) -> T:
        """Return the arrays of this process's first worker, as numpy."""
        return jax.tree.map(self.fetch, arrays)

    def place_batch(self, stack: Stack) -> Batch:
        """Return the `batch` of a stack (numpy, this process's slots) as arrays of all workers."""
        batch = stack.batch

        def put(leaf: HostArray) -> Array:
            return self.group.on_all(np.asarray(leaf), 1 if leaf.ndim == 2 else 2)

        inputs: dict[str, Any] = {}
        for name, data in batch.inputs.items():
            if is_sparse(data):  # every device of this process looks into the same rows
                data = data._replace(rows=np.tile(np.asarray(data.rows), (1, len(self.group.local))))
            inputs[name] = data
        return jax.tree.map(put, batch._replace(inputs=inputs))


class Replicated(OnProcessGroup):
    """The same weights on all devices; slots of minibatches are dealt out."""

    def place(self, array: HostArray | Array, slots: bool = False) -> Array:
        """Place the same on all workers; of an array with slots each gets its own."""
        return self.group.on_all(np.asarray(array), 1 if slots else None)

    def start_update(self, rule: Rule, weight: Array) -> dict[str, Array]:
        """Return the same state everywhere."""
        return {name: self.place(value) for name, value in rule.start(weight).items()}

    def fetch(self, array: Array) -> HostArray:
        """Return what all workers have."""
        return np.asarray(array.addressable_shards[0].data)

    def fetch_all(self, array: Array, slots: bool = False) -> HostArray:
        """Return the slots of all workers side by side."""
        return self.group.gather(array, 1) if slots else self.fetch(array)

    def place_all(self, array: HostArray, slots: bool = False) -> Array:
        """Place a result of `fetch_all`."""
        return self.place(self.group.part(array, 1) if slots else array, slots)

    def step_scalars(self, stack: Stack, settings: EpochSettings, dtype: DTypeLike, gaps: bool = True) -> Array:
        """See `Placement.step_scalars`; array (capacity, 2), of the minibatches of all workers."""
        return cast("Array", whole_scalars(stack, settings, dtype, gaps))

    def shard(self, step: Step) -> Step:
        """Return the step on every worker with its own slots."""
        spec: Callable[..., PartitionSpec] = jax.sharding.PartitionSpec

        def function(state: TrainState, data: StepInput, options: StepOptions) -> tuple[TrainState, Array]:
            network: Any = {name: spec(None, AXIS) if name.endswith(CARRIED) else spec() for name in state.network}
            everywhere: Any = spec()
            states = TrainState(everywhere, everywhere, network, everywhere)
            groups = None if data.group_scalars is None else everywhere
            scalars = everywhere, everywhere, everywhere, everywhere, everywhere
            inputs = StepInput(batch_specs(data.batches), *scalars, groups)

            def part(state: TrainState, data: StepInput) -> tuple[TrainState, Array]:
                return step(state, data, options)

            return self.group.on_each(part, (states, inputs), (states, everywhere))(state, data)

        return function


class PerWorker(OnProcessGroup):
    """Weights of its own for every worker, as one array with the workers along the first axis."""

    def __init__(self, group: ProcessGroup) -> None:
        super().__init__(group)
        self._starts: dict[Rule, Callable[[Array], dict[str, Array]]] = {}

    def place(self, array: HostArray | Array, slots: bool = False) -> Array:
        """Place one copy for every worker."""
        array = np.asarray(array)
        return self.group.on_all(np.broadcast_to(array, (len(self.group.local), *array.shape)), 0)

    def start_update(self, rule: Rule, weight: Array) -> dict[str, Array]:
        """Return a state of its own for every worker."""
        if rule not in self._starts:  # else compiled again after every block
            self._starts[rule] = jax.jit(jax.vmap(rule.start), out_shardings=weight.sharding)
        return self._starts[rule](weight)

    def fetch(self, array: Array) -> HostArray:
        """Return the array of this process's first worker."""
        return np.asarray(array.addressable_shards[0].data)[0]

    def fetch_all(self, array: Array, slots: bool = False) -> HostArray:
        """Return what all workers have."""
        return self.group.gather(array)

    def place_all(self, array: HostArray, slots: bool = False) -> Array:
        """Place a result of `fetch_all`."""
        return self.group.on_all(self.group.part(array), 0)

    def step_scalars(self, stack: Stack, settings: EpochSettings, dtype: DTypeLike, gaps: bool = True) -> Array:
        """See `Placement.step_scalars`; array (workers, capacity, 2), of each worker's own part of every minibatch."""
        devices = len(self.group.local)
        rows = [worker_scalars(stack, settings, dtype, gaps, (device, devices)) for device in range(devices)]
        return self.group.on_all(np.stack(rows), 0)

    def shard(self, step: Step) -> Step:
        """Return the step on every worker with its own slots and weights."""

        def function(state: TrainState, data: StepInput, options: StepOptions) -> tuple[TrainState, Array]:
            def worker(state: TrainState, data: StepInput) -> tuple[TrainState, Array]:
                mine = TrainState(*jax.tree.map(_first, tuple(state[:3])), finite=state.finite)
                after, totals = step(mine, data._replace(scalars=data.scalars[0]), options)
                return TrainState(*jax.tree.map(_as_first, tuple(after[:3])), finite=after.finite), totals

            apart: Any = jax.sharding.PartitionSpec(AXIS)
            everywhere: Any = jax.sharding.PartitionSpec()
            states = TrainState(apart, apart, apart, everywhere)
            common = everywhere, everywhere, everywhere
            inputs = StepInput(batch_specs(data.batches), everywhere, apart, *common)
            return self.group.on_each(worker, (states, inputs), (states, everywhere))(state, data)

        return function


def worker_scalars(
    stack: Stack, settings: EpochSettings, dtype: DTypeLike, gaps: bool, device: tuple[int, int]
) -> Scalars:
    """Return `Placement.step_scalars` of one device of a process: its number, and how many there are."""
    (number, devices), (capacity, _, slots) = device, stack.batch.mask.shape
    width = slots // devices
    filled = stack.batch.mask[: len(stack.layouts), :, number * width : (number + 1) * width]
    grids = [(layout.T, layout.S) for layout in stack.layouts]
    if stack.placed is not None:  # each sequence has its own slot
        grids = [(layout.T, placed.count) for layout, placed in zip(stack.layouts, stack.placed, strict=True)]
    columns = np.array([steps * min(max(slots - number * width, 0), width) for steps, slots in grids])
    sizes = exponents = columns if gaps else filled.sum(axis=(1, 2))
    if settings.per_step:
        exponents = filled_steps(np.array([layout.T for layout in stack.layouts]), sizes, columns)
    return padded_scalars(sizes, capacity, settings.momentum**exponents, dtype)


def batch_specs(batches: Batch) -> Any:
    """Return the sharding of a stack: by slots (axis 2), the rows of sparse inputs by worker (axis 1)."""
    spec: Callable[..., PartitionSpec] = jax.sharding.PartitionSpec

    def of_leaf(leaf: Array) -> PartitionSpec:
        return spec(None, AXIS) if leaf.ndim == 2 else spec(None, None, AXIS)

    return jax.tree.map(of_leaf, batches)


def _first(array: Array) -> Array:
    """Return a worker's part of an array with the workers in front."""
    return array[0]


def _as_first(array: Array) -> Array:
    """Return an array with a worker in front."""
    return array[None]
