"""Arrays and minibatches of several workers: what the strategies for a process group have in common."""

import logging
import time
from collections.abc import Sequence
from functools import partial
from typing import Any, Protocol

import numpy as np

from cntkpy.networks.arrays.lazy import jax, jnp
from cntkpy.networks.arrays.sparse import is_sparse
from cntkpy.trainers.parallel import host_call
from cntkpy.trainers.parallel.process_group import AXIS, ProcessGroup
from cntkpy.trainers.step.stack import Stack
from cntkpy.trainers.step.strategy import Strategy

log = logging.getLogger("cntkpy.trainers")

Array = Any
Tree = Any


class OnProcessGroup(Strategy, Protocol):
    """What strategies for the devices of a process group have in common.

    Args:
        group: the process group.
        statistics: synchronisations between log lines about this worker's share; 0 is never.
    """

    group: ProcessGroup
    _sums: str | None
    _statistics: "Statistics"

    def __init__(self, group: ProcessGroup, statistics: int = 0):
        self.group = group
        self._sums = group.sums
        self._statistics = Statistics(statistics)

    @property
    def identity(self) -> Any:
        """The way of training, what programs call for sums, the worker; not known with several devices or GPUs."""
        kept = self.group.communicator.size == self.group.workers and self.group.devices[0].platform == "cpu"
        return (type(self).__qualname__, self._sums, self.group.first) if kept else object()

    @property
    def devices(self) -> Sequence[Any]:
        """Those that programs run on."""
        return list(self.group.mesh.devices.flat)

    @property
    def copies(self) -> bool:
        """Of one process whose devices have memory of their own. Several read together, and none of them early."""
        return self.group.communicator.size == 1 and self.devices[0].platform != "cpu"

    def flag(self) -> Array:
        """True, on every device."""
        return self.group.on_all(np.ones((), bool))

    def to_process(self, arrays: Tree) -> Tree:
        """What this process's first worker has, as numpy."""
        return jax.tree.map(self.to_host, arrays)

    def place_batch(self, stack: Stack) -> Any:
        """The `batch` of a stack (numpy, this process's slots) as arrays of all workers."""
        batch = stack.batch

        def put(leaf: Any) -> Array:
            return self.group.on_all(np.asarray(leaf), 1 if leaf.ndim == 2 else 2)

        inputs: dict[str, Any] = {}
        for name, data in batch.inputs.items():
            if is_sparse(data):  # every device of this process looks into the same rows
                data = data._replace(rows=np.tile(np.asarray(data.rows), (1, len(self.group.own))))
            inputs[name] = data
        return jax.tree.map(put, batch._replace(inputs=inputs))

    def summed(self, tree: Tree, real: Any = True) -> Tree:
        """In the compiled step, the sums over all workers; of a worker that is not `real`, nothing is counted."""
        if self._sums is None:
            return _summed(tree if real is True else jax.tree.map(partial(only_if, real), tree))
        return sums_in_memory(self._sums, tree, real)

    def mask_key(self, key: Array) -> Array:
        """Each worker draws its own masks."""
        return jax.random.fold_in(key, self.group.first + jax.lax.axis_index(AXIS))


def sums_in_memory(name: str, tree: Tree, real: Any = True) -> Tree:
    """In a compiled step, sums over workers that share memory; of one that is not `real`, nothing is counted.

    Every message has to wait for the one before it, which its arrays must depend on.

    Args:
        name: see `ProcessGroup.sums`.
        tree: arrays.
        real: whether they count.
    """
    leaves, structure = jax.tree.flatten(tree)
    # the flag goes along: a program would copy all arrays to make them 0
    _, *found = host_call.call(name, [jnp.asarray(real, jnp.int32), *leaves])
    return jax.tree.unflatten(structure, found)


def batch_specs(batches: Any) -> Any:
    """How a stack is dealt out: by slots (axis 2), the rows of sparse inputs by worker (axis 1)."""
    P: Any = jax.sharding.PartitionSpec

    def spec(leaf: Any) -> Any:
        return P(None, AXIS) if leaf.ndim == 2 else P(None, None, AXIS)

    return jax.tree.map(spec, batches)


def only_if(real: Array, value: Array) -> Array:
    """The value, or zeros, whatever it is."""
    return jnp.where(real, value, jnp.zeros_like(value))


MAX_ELEMENTS_JOINED = 1 << 22
"""Elements of an array that is sent together with others: each message has its own delay, and a copy its memory."""


def _summed(tree: Tree) -> Tree:
    """The sums over all workers, of all but large arrays in one message."""
    from jax.flatten_util import ravel_pytree

    leaves, structure = jax.tree.flatten(tree)
    apart = {
        k: leaf for k, leaf in enumerate(leaves) if leaf.size > MAX_ELEMENTS_JOINED or leaf.dtype != leaves[0].dtype
    }
    together, separate = ravel_pytree({k: leaf for k, leaf in enumerate(leaves) if k not in apart})
    together, apart = jax.lax.psum((together, apart), AXIS)
    found = apart | separate(together)
    return jax.tree.unflatten(structure, [found[k] for k in range(len(leaves))])


class Statistics:
    """Log lines about the share and the speed of this worker; `every`: synchronisations between them, 0 is never."""

    def __init__(self, every: int):
        self._every, self._done = every, 0
        self._start()

    def _start(self) -> None:
        self._own, self._all, self._since = 0, 0, time.perf_counter()

    def add(self, stack: Stack, synchronisations: int) -> None:
        """Count the samples of a stack, and how often the workers synchronised in it."""
        if not self._every:
            return
        before, self._done = self._done, self._done + synchronisations
        self._own += sum(layout.num_samples for layout in stack.layouts)
        self._all += int(stack.samples.sum())
        if before // self._every == self._done // self._every:
            return
        seconds = time.perf_counter() - self._since
        text = "Parallel training statistics: %d of %d samples by this process; time = %.4fs; samplesPerSecond = %.1f"
        log.info(text, self._own, self._all, seconds, self._all / seconds)
        self._start()
