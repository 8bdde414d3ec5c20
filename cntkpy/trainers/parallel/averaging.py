"""ModelAveragingSGD and BlockMomentumSGD: workers train by themselves and put their models together now and then.

Every worker has its own weights, as one array with the workers along the first axis, and its own state of the update
rule. After a block of samples (of all workers) the models become one:

- model averaging: `W <- sum_k n_k W_k / sum_k n_k`, `n_k` the samples of worker k since the last time;
- block momentum, blockwise model update filtering (K. Chen and Q. Huo, "Scalable training of deep learning machines by
  incremental block training with intra-block parallel optimization and blockwise model-update filtering", ICASSP 2016):
  `G = mean_k W_k - S`, `D <- eta D + zeta G`, `W <- W + D`, all workers resume from `S = W`, or with Nesterov's form
  from `S = W + eta D`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cntkpy.networks.arrays.lazy import jax, jnp
from cntkpy.trainers.parallel.arrays import OnProcessGroup, batch_specs
from cntkpy.trainers.parallel.batching import SharedBatcher
from cntkpy.trainers.parallel.process_group import AXIS, ProcessGroup
from cntkpy.trainers.rules.updates import Rule
from cntkpy.trainers.step.batching import Batcher
from cntkpy.trainers.step.stack import Stack
from cntkpy.trainers.step.state import EpochSettings, StepInput, StepOptions, TrainState
from cntkpy.trainers.step.strategy import Saved, filled_steps, padded_scalars

if TYPE_CHECKING:
    from cntkpy.trainers.step.state import Step

Array = Any
Tree = Any


@dataclass(frozen=True)
class BlockMomentum:
    """How much of the last blocks' change is kept.

    Attributes:
        momentum: eta, per block.
        rate: zeta, the factor of a block's own change.
        nesterov: workers start ahead.
        reset: the update rule of every worker starts afresh after a block.
    """

    momentum: float
    rate: float = 1.0
    nesterov: bool = True
    reset: bool = True


class LocalSGD(OnProcessGroup):
    """Workers that train by themselves for a block of samples.

    Args:
        group: the processes.
        block: samples of all workers between two synchronisations.
        filtering: `None` for plain averaging.
        statistics: see `OnProcessGroup`.
    """

    def __init__(self, group: ProcessGroup, block: int, filtering: BlockMomentum | None = None, statistics: int = 0):
        super().__init__(group, statistics)
        self.block, self.filtering = block, filtering
        self.counts = np.zeros(len(group.own))
        self._start: dict[str, Array] = {}
        self._changes: dict[str, Array] = {}
        self._planned = 0
        self._block_ended = False
        P: Any = jax.sharding.PartitionSpec
        self._starts: dict[Rule, Callable[[Array], dict[str, Array]]] = {}
        self._average = jax.jit(group.on_each(partial(_average, self.summed), (P(AXIS), P(AXIS)), P(AXIS)))
        if filtering is not None:
            step = partial(_filtered, filtering, self.summed, group.workers)
            self._filter = jax.jit(group.on_each(step, (P(AXIS),) * 3, (P(AXIS),) * 2))

    def batcher(self, batcher: Batcher) -> Batcher:
        """Stacks end where a block does."""
        self._planned = int(self.group.communicator.total([float(self.counts.sum())])[0])
        return SharedBatcher.like(batcher, self.group, self._ends_block)

    def place(self, array: Any, slots: bool = False) -> Array:
        """One copy for every worker."""
        array = np.asarray(array)
        return self.group.on_all(np.broadcast_to(array, (len(self.group.own), *array.shape)), 0)

    def initial_update_state(self, rule: Rule, weight: Array) -> dict[str, Array]:
        """A state of its own for every worker."""
        if rule not in self._starts:  # else compiled again after every block
            self._starts[rule] = jax.jit(jax.vmap(rule.start), out_shardings=weight.sharding)
        return self._starts[rule](weight)

    def to_host(self, array: Array) -> NDArray[Any]:
        """What this process's first worker has."""
        return np.asarray(array.addressable_shards[0].data)[0]

    def to_save(self, array: Array, slots: bool = False) -> NDArray[Any]:
        """What all workers have."""
        return self.group.gather(array)

    def from_saved(self, array: NDArray[Any], slots: bool = False) -> Array:
        """The inverse of `to_save`."""
        return self.group.on_all(self.group.part(array), 0)

    def step_scalars(self, stack: Stack, settings: EpochSettings, dtype: Any, gaps: bool = True) -> Any:
        """See `Strategy.step_scalars`; array (workers, capacity, 2), of each worker's own part of every minibatch."""
        capacity, _, slots = stack.batch.mask.shape
        width, own = slots // len(self.group.own), stack.batch.mask[: len(stack.layouts)]
        rows: list[NDArray[Any]] = []
        for device in range(len(self.group.own)):
            grids = [(layout.T, layout.S) for layout in stack.layouts]
            if stack.placed is not None:  # each sequence has its own slot
                grids = [(layout.T, one.count) for layout, one in zip(stack.layouts, stack.placed, strict=True)]
            columns = np.array([steps * min(max(slots - device * width, 0), width) for steps, slots in grids])
            sizes = exponents = columns if gaps else own[:, :, device * width : (device + 1) * width].sum(axis=(1, 2))
            if settings.per_step:
                exponents = filled_steps(np.array([layout.T for layout in stack.layouts]), sizes, columns)
            rows.append(padded_scalars(sizes, capacity, settings.momentum**exponents, dtype))
        return self.group.on_all(np.stack(rows), 0)

    def compiled(self, step: Step) -> Step:
        """The step on every worker with its own slots and weights."""
        P: Any = jax.sharding.PartitionSpec

        def function(state: TrainState, given: StepInput, options: StepOptions) -> tuple[TrainState, Array]:
            def own(state: TrainState, given: StepInput) -> tuple[TrainState, Array]:
                mine = TrainState(*jax.tree.map(_first, tuple(state[:3])), finite=state.finite)
                after, totals = step(mine, given._replace(scalars=given.scalars[0]), options)
                return TrainState(*jax.tree.map(_as_first, tuple(after[:3])), finite=after.finite), totals

            states = TrainState(P(AXIS), P(AXIS), P(AXIS), P())
            inputs = StepInput(batch_specs(given.batches), P(), P(AXIS), P(), P(), P())
            return self.group.on_each(own, (states, inputs), (states, P()))(state, given)

        return function

    def reduce(self, gradients: Tree, sums: Tree, state: Tree, before: Tree, batch: Any) -> tuple[Tree, Tree, Tree]:
        """Only the sums of the criteria are those of all workers."""
        real = jnp.sum(batch.mask) > 0
        sums = self.summed(sums, real)
        changed = {name: value for name, value in state.items() if value is not before.get(name)}
        return gradients, sums, state | {name: _if(real, new, before[name]) for name, new in changed.items()}

    def updated(self, new: Tree, old: Tree, samples: Array) -> Tree:
        """A worker without samples changes nothing."""
        return jax.tree.map(partial(_if, samples > 0), new, old)

    def start_from(self, weights: dict[str, Array], saved: dict[str, Saved] | None) -> None:
        """A block starts; `saved` may have the change of the last one (see `saved_updates`)."""
        self.counts[:] = 0
        if self.filtering is None:
            return
        self._start = _copies(weights)
        for name, weight in weights.items():
            change = (saved or {}).get(name, {}).pop(CHANGE, None)
            self._changes[name] = jnp.zeros_like(weight) if change is None else self.place(change)

    def saved_updates(self) -> dict[str, Saved]:
        """By parameter, the change of the last block."""
        return {name: {CHANGE: self.to_host(change)} for name, change in self._changes.items()}

    def save_state(self) -> Saved:
        """The samples of all workers in this block; where it started; the change of the last one."""
        arrays = {"counts": self.group.gather(self.group.on_all(self.counts, 0))}
        arrays |= {f"start\n{name}": self.to_save(array) for name, array in self._start.items()}
        return arrays | {f"change\n{name}": self.to_save(array) for name, array in self._changes.items()}

    def restore_state(self, saved: Saved) -> None:
        """The inverse of `save_state`."""
        self.counts = self.group.part(saved.pop("counts")).copy()
        for path, array in saved.items():
            part, _, name = path.partition("\n")
            (self._start if part == "start" else self._changes)[name] = self.from_saved(array)

    def after_stack(self, state: TrainState, stack: Stack, rule: Rule) -> TrainState:
        """Count samples; at the end of a block, the models of all workers become one."""
        masks = np.asarray(stack.batch.mask)[: len(stack.minibatches)]
        self._statistics.add(stack, int(self._block_ended))
        self.counts += [part.sum() for part in np.split(masks, len(self.group.own), axis=2)]
        return self.after_epoch(state, rule) if self._block_ended else state

    def after_epoch(self, state: TrainState, rule: Rule) -> TrainState:
        """The models of all workers become one, if anything was learned since the last time."""
        self._planned, self._block_ended = 0, False
        if not self.group.communicator.total([float(self.counts.sum())])[0]:
            return state
        counts = self.group.on_all(self.counts, 0)
        self.counts = np.zeros(len(self.group.own))
        if self.filtering is None:
            return state._replace(weights=self._average(state.weights, counts))
        self._start, self._changes = self._filter(state.weights, self._start, self._changes)
        weights = _copies(self._start)
        if not self.filtering.reset:
            return state._replace(weights=weights)
        updates = {name: self.initial_update_state(rule, weight) for name, weight in weights.items()}
        return state._replace(weights=weights, updates=updates)

    def _ends_block(self, samples: int) -> bool:
        self._planned += samples
        self._block_ended = self._planned >= self.block
        if self._block_ended:
            self._planned = 0
        return self._block_ended


CHANGE = "block change"


def _first(array: Array) -> Array:
    """What a worker has of an array with the workers in front."""
    return array[0]


def _as_first(array: Array) -> Array:
    """The inverse of `_first`."""
    return array[None]


def _copies(arrays: Tree) -> Tree:
    """Arrays of their own: the state of a training is donated to its next step."""
    return jax.tree.map(jnp.copy, arrays)


def _if(condition: Array, new: Array, old: Array) -> Array:
    return jnp.where(condition, new, old)


def _average(summed: Callable[[Tree], Tree], weights: Tree, counts: Array) -> Tree:
    """The mean of the workers' models, weighted by their samples; `summed`: over all workers."""
    share = counts[0] / summed(counts[0])
    return summed({name: share.astype(weight.dtype) * weight for name, weight in weights.items()})


def _filtered(
    filtering: BlockMomentum, summed: Callable[[Tree], Tree], workers: int, weights: Tree, start: Tree, changes: Tree
) -> tuple[Tree, Tree]:
    """Where the next block starts, and the change that was made, from the workers' models after a block."""
    f = filtering

    def one(mean: Array, start: Array, change: Array) -> tuple[Array, Array]:
        ahead = f.momentum * change if f.nesterov else 0
        change = f.momentum * change + f.rate * (mean - start)
        model = start - ahead + change
        return (model + f.momentum * change if f.nesterov else model), change

    sums = summed(weights)
    both = {name: one(sums[name] / workers, start[name], changes[name]) for name in weights}
    return {name: pair[0] for name, pair in both.items()}, {name: pair[1] for name, pair in both.items()}


def momentum_of_time_constant(block: int, samples: float) -> float:
    """The momentum per block of this many samples that a time constant in samples stands for."""
    return math.exp(-block / samples) if samples else 0.0
