"""ModelAveragingSGD and BlockMomentumSGD: workers train by themselves and put their models together now and then.

Every worker has its own weights, as one array with the workers along the first axis, and its own state of the update
rule. After a block of samples (of all workers) the models become one:

- model averaging: `W <- sum_k n_k W_k / sum_k n_k`, `n_k` the samples of worker k since the last time;
- block momentum, blockwise model update filtering (K. Chen and Q. Huo, "Scalable training of deep learning machines by
  incremental block training with intra-block parallel optimization and blockwise model-update filtering", ICASSP 2016):
  `G = mean_k W_k - S`, `D <- eta D + zeta G`, `W <- W + D`, all workers go on from `S = W`, or with Nesterov's form
  from `S = W + eta D`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from networks.arrays.lazy import jax, jnp
from trainers.loop.batching import Batcher, Stack
from trainers.parallel.arrays import OnProcessGroup, batch_specs
from trainers.parallel.batching import SharedBatcher
from trainers.parallel.placement import scalars_of
from trainers.parallel.process_group import AXIS, ProcessGroup
from trainers.rules.updates import Rule

Array = Any
Tree = Any


@dataclass(frozen=True)
class BlockMomentum:
    """How much of the last blocks' change is kept.

    **Arguments:** `momentum` (eta) per block; `rate` (zeta) of a block's own change; `nesterov`: workers start ahead;
    `reset`: the update rule of every worker starts afresh after a block.
    """

    momentum: float
    rate: float = 1.0
    nesterov: bool = True
    reset: bool = True


class LocalSGD(OnProcessGroup):
    """Workers that train by themselves for a block of samples.

    **Arguments:** `group`; `block`: samples of all workers between two synchronisations; `filtering`: `None` for plain
    averaging; `statistics`: see `OnProcessGroup`.
    """

    def __init__(self, group: ProcessGroup, block: int, filtering: BlockMomentum | None = None, statistics: int = 0):
        super().__init__(group, statistics)
        self.block, self.filtering = block, filtering
        self.counts = np.zeros(len(group.own))
        self._start: dict[str, Array] = {}
        self._changes: dict[str, Array] = {}
        self._planned = 0
        self._block_ended = False
        P = jax.sharding.PartitionSpec
        in_step = partial(jax.shard_map, mesh=group.mesh, check_vma=False)
        self._starts: dict[Rule, Callable[[Array], dict[str, Array]]] = {}
        self._average = jax.jit(in_step(_average, in_specs=(P(AXIS), P(AXIS)), out_specs=P(AXIS)))
        if filtering is not None:
            step = partial(_filtered, filtering)
            self._filter = jax.jit(in_step(step, in_specs=(P(AXIS),) * 3, out_specs=(P(AXIS),) * 2))

    # ---- what a trainer asks for

    def batcher(self, batcher: Batcher) -> Batcher:
        """Stacks end where a block does."""
        self._planned = int(self.group.communicator.total([float(self.counts.sum())])[0])
        return SharedBatcher.like(batcher, self.group, self._ends_block)

    def put(self, array: Any, slots: bool = False) -> Array:
        """One copy for every worker."""
        array = np.asarray(array)
        return self.group.on_all(np.broadcast_to(array, (len(self.group.own), *array.shape)), 0)

    def start(self, rule: Rule, weight: Array) -> dict[str, Array]:
        """A state of its own for every worker."""
        if rule not in self._starts:  # else compiled again after every block
            self._starts[rule] = jax.jit(jax.vmap(rule.start), out_shardings=weight.sharding)
        return self._starts[rule](weight)

    def fetch(self, array: Array) -> np.ndarray:
        """What this process's first worker has."""
        return np.asarray(array.addressable_shards[0].data)[0]

    def save(self, array: Array, slots: bool = False) -> np.ndarray:
        """What all workers have."""
        return self.group.gather(array)

    def restore(self, array: np.ndarray, slots: bool = False) -> Array:
        """The inverse of `save`."""
        return self.group.on_all(np.split(array, self.group.communicator.size)[self.group.communicator.rank], 0)

    def scalars(self, stack: Stack, momentum: float, dtype: Any, per_step: bool = False) -> Any:
        """Per worker: momentum and number of samples of its own part of every minibatch."""
        capacity, _, slots = stack.batch.mask.shape
        width = slots // len(self.group.own)
        rows = []
        for device in range(len(self.group.own)):
            columns = np.array([layout.T * min(max(layout.S - device * width, 0), width) for layout in stack.layouts])
            exponents = np.array([layout.T for layout in stack.layouts]) if per_step else columns
            rows.append(scalars_of(columns, capacity, momentum**exponents, dtype))
        return self.group.on_all(np.stack(rows), 0)

    def compiled(self, run: Callable[..., Any]) -> Callable[..., Any]:
        """`run` on every worker with its own slots and weights."""
        P = jax.sharding.PartitionSpec

        def function(weights: Tree, updates: Tree, state: Tree, *rest: Any) -> Any:
            *values, frozen, pieces = rest  # finite, batches, count, scalars, ...

            def own(mine: Tree, finite: Array, batches: Any, count: Any, scalars: Array, *values: Any) -> Any:
                first = jax.tree.map(lambda array: array[0], mine)
                *changed, totals, finite = run(*first, finite, batches, count, scalars[0], *values, frozen, pieces)
                return (*jax.tree.map(lambda array: array[None], changed), totals, finite)

            shared = jax.shard_map(
                own,
                mesh=self.group.mesh,
                in_specs=(P(AXIS), P(), batch_specs(values[1]), P(), P(AXIS), *(P() for _ in values[4:])),
                out_specs=(P(AXIS), P(AXIS), P(AXIS), P(), P()),
                check_vma=False,
            )
            return shared((weights, updates, state), *values)

        return function

    def joined(self, gradients: Tree, sums: Tree, state: Tree, before: Tree, batch: Any) -> tuple[Tree, Tree, Tree]:
        """Only the sums of the criteria are those of all workers."""
        real = jnp.sum(batch.mask) > 0
        sums = jax.lax.psum({name: jnp.where(real, value, 0) for name, value in sums.items()}, AXIS)
        changed = {name: value for name, value in state.items() if value is not before.get(name)}
        return gradients, sums, state | {name: _if(real, new, before[name]) for name, new in changed.items()}

    def updated(self, new: Tree, old: Tree, samples: Array) -> Tree:
        """A worker without samples changes nothing."""
        return jax.tree.map(partial(_if, samples > 0), new, old)

    def begin(self, weights: Tree, saved: dict[str, dict[str, Any]] | None) -> None:
        """A block starts; `saved` may have the change of the last one (see `more`)."""
        self.counts[:] = 0
        if self.filtering is None:
            return
        self._start = _copies(weights)
        for name, weight in weights.items():
            change = (saved or {}).get(name, {}).pop(CHANGE, None)
            self._changes[name] = jnp.zeros_like(weight) if change is None else self.put(change)

    def more(self) -> dict[str, dict[str, np.ndarray]]:
        """What a checkpoint keeps beside the state of the update rule, by parameter."""
        return {name: {CHANGE: self.fetch(change)} for name, change in self._changes.items()}

    def kept(self) -> dict[str, np.ndarray]:
        """Everything that changes while training, of all workers."""
        arrays = {"counts": self.group.gather(self.group.on_all(self.counts, 0))}
        arrays |= {f"start\n{name}": self.save(array) for name, array in self._start.items()}
        return arrays | {f"change\n{name}": self.save(array) for name, array in self._changes.items()}

    def keep(self, arrays: dict[str, np.ndarray]) -> None:
        """The inverse of `kept`."""
        self.counts = np.split(arrays.pop("counts"), self.group.communicator.size)[self.group.communicator.rank].copy()
        for path, array in arrays.items():
            part, _, name = path.partition("\n")
            (self._start if part == "start" else self._changes)[name] = self.restore(array)

    def after(self, trainer: Any, stack: Stack) -> None:
        """Count samples; put the models together at the end of a block."""
        masks = np.asarray(stack.batch.mask)[: len(stack.minibatches)]
        self._statistics.add(stack, int(self._block_ended))
        self.counts += [part.sum() for part in np.split(masks, len(self.group.own), axis=2)]
        if self._block_ended:
            self.finish(trainer)

    def finish(self, trainer: Any) -> None:
        """Put the models together, if anything was learned since the last time."""
        self._planned, self._block_ended = 0, False
        if not self.group.communicator.total([float(self.counts.sum())])[0]:
            return
        counts = self.group.on_all(self.counts, 0)
        self.counts = np.zeros(len(self.group.own))
        if self.filtering is None:
            trainer.replace_weights(self._average(trainer.weights, counts))
            return
        self._start, self._changes = self._filter(trainer.weights, self._start, self._changes)
        trainer.replace_weights(_copies(self._start), afresh=self.filtering.reset)

    def _ends_block(self, samples: int) -> bool:
        self._planned += samples
        self._block_ended = self._planned >= self.block
        if self._block_ended:
            self._planned = 0
        return self._block_ended


CHANGE = "block change"


def _copies(arrays: Tree) -> Tree:
    """Arrays of their own: those of a trainer are given away when it goes on."""
    return jax.tree.map(jnp.copy, arrays)


def _if(condition: Array, new: Array, old: Array) -> Array:
    return jnp.where(condition, new, old)


def _average(weights: Tree, counts: Array) -> Tree:
    """The mean of the workers' models, weighted by their samples."""
    total = jax.lax.psum(counts[0], AXIS)
    return jax.tree.map(lambda w: jax.lax.psum((counts[0] / total).astype(w.dtype) * w, AXIS), weights)


def _filtered(filtering: BlockMomentum, weights: Tree, start: Tree, changes: Tree) -> tuple[Tree, Tree]:
    """Where the next block starts, and the change that was made, from the workers' models after a block."""
    f = filtering

    def one(weight: Array, start: Array, change: Array) -> tuple[Array, Array]:
        ahead = f.momentum * change if f.nesterov else 0
        change = f.momentum * change + f.rate * (jax.lax.pmean(weight, AXIS) - start)
        model = start - ahead + change
        return (model + f.momentum * change if f.nesterov else model), change

    both = {name: one(weights[name], start[name], changes[name]) for name in weights}
    return {name: pair[0] for name, pair in both.items()}, {name: pair[1] for name, pair in both.items()}


def momentum_of_time_constant(block: int, samples: float) -> float:
    """The momentum per block of so many samples that a time constant in samples stands for."""
    return math.exp(-block / samples) if samples else 0.0
