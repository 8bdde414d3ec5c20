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
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from cntkpy.networks.arrays.lazy import jax, jnp
from cntkpy.trainers.parallel.placement import PerWorker
from cntkpy.trainers.parallel.process_group import AXIS
from cntkpy.trainers.parallel.reduction import sums_of
from cntkpy.trainers.parallel.statistics import Statistics
from cntkpy.trainers.rules.updates import Rule
from cntkpy.trainers.step.averaging import Averaging
from cntkpy.trainers.step.stack import Stack
from cntkpy.trainers.step.state import TrainState

if TYPE_CHECKING:
    from jax import Array

    from cntkpy.trainers.step.averaging import Saved
    from cntkpy.trainers.step.placement import EndsBlock

    Weights = dict[str, Array]

T = TypeVar("T")


@dataclass(frozen=True)
class BlockMomentum:
    """Parts of the last blocks' change that are kept.

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


class LocalSGD(Averaging):
    """Workers that train by themselves for a block of samples.

    Args:
        placement: of the workers' models.
        block: samples of all workers between two synchronisations.
        filtering: `None` for plain averaging.
        statistics: see `Statistics`.
    """

    def __init__(
        self, placement: PerWorker, block: int, filtering: BlockMomentum | None = None, statistics: int = 0
    ) -> None:
        self.block, self.filtering, self._placement = block, filtering, placement
        self._group = group = placement.group
        self._statistics = Statistics(statistics)
        self.counts = np.zeros(len(group.local))
        self._start: Weights = {}
        self._changes: Weights = {}
        self._planned = 0
        self._block_ended = False
        apart = jax.sharding.PartitionSpec(AXIS)
        summed = sums_of(group).summed
        self._average = jax.jit(group.on_each(partial(_average, summed), (apart, apart), apart))
        if filtering is not None:
            step = partial(_filtered, filtering, summed, group.workers)
            self._filter = jax.jit(group.on_each(step, (apart,) * 3, (apart,) * 2))

    def start_block(self) -> EndsBlock:
        """Return the function that ends stacks at the end of a block."""
        self._planned = self._samples()
        return self._ends_block

    def updated(self, new: T, old: T, samples: Array) -> T:
        """Change nothing on a worker without samples."""
        return jax.tree.map(partial(jnp.where, samples > 0), new, old)

    def start_from(self, weights: Weights, saved: dict[str, Saved] | None) -> None:
        """Start a block; `saved` may have the change of the last one (see `saved_updates`)."""
        self.counts[:] = 0
        if self.filtering is None:
            return
        self._start = _copies(weights)
        for name, weight in weights.items():
            change = (saved or {}).get(name, {}).pop(CHANGE, None)
            self._changes[name] = jnp.zeros_like(weight) if change is None else self._placement.place(change)

    def saved_updates(self) -> dict[str, Saved]:
        """Return by parameter the change of the last block."""
        return {name: {CHANGE: self._placement.fetch(change)} for name, change in self._changes.items()}

    def save_state(self) -> Saved:
        """Return the samples of all workers in this block, where it started, and the change of the last one."""
        arrays = {"counts": self._group.gather(self._group.on_all(self.counts, 0))}
        arrays |= {f"start\n{name}": self._placement.fetch_all(array) for name, array in self._start.items()}
        return arrays | {f"change\n{name}": self._placement.fetch_all(array) for name, array in self._changes.items()}

    def restore_state(self, saved: Saved) -> None:
        """Restore the result of `save_state`."""
        self.counts = self._group.part(saved.pop("counts")).copy()
        for path, array in saved.items():
            part, _, name = path.partition("\n")
            (self._start if part == "start" else self._changes)[name] = self._placement.place_all(array)

    def after_stack(self, state: TrainState, stack: Stack, rule: Rule) -> TrainState:
        """Count samples; at the end of a block, the models of all workers become one."""
        masks = np.asarray(stack.batch.mask)[: len(stack.minibatches)]
        self._statistics.add(stack, int(self._block_ended))
        self.counts += [part.sum() for part in np.split(masks, len(self._group.local), axis=2)]
        return self.after_epoch(state, rule) if self._block_ended else state

    def after_epoch(self, state: TrainState, rule: Rule) -> TrainState:
        """Return one model for all workers, if anything was learned since the last time."""
        self._planned, self._block_ended = 0, False
        if not self._samples():
            return state
        counts = self._group.on_all(self.counts, 0)
        self.counts = np.zeros(len(self._group.local))
        if self.filtering is None:
            return state._replace(weights=self._average(state.weights, counts))
        self._start, self._changes = self._filter(state.weights, self._start, self._changes)
        weights = _copies(self._start)
        if not self.filtering.reset:
            return state._replace(weights=weights)
        updates = {name: self._placement.start_update(rule, weight) for name, weight in weights.items()}
        return state._replace(weights=weights, updates=updates)

    def _samples(self) -> int:
        """Return the samples of all workers in this block."""
        return int(self._group.communicator.total([float(self.counts.sum())])[0])

    def _ends_block(self, samples: int) -> bool:
        self._planned += samples
        self._block_ended = self._planned >= self.block
        if self._block_ended:
            self._planned = 0
        return self._block_ended


CHANGE = "block change"


def _copies(arrays: Weights) -> Weights:
    """Return arrays of their own: the state of a training is donated to its next step."""
    return jax.tree.map(jnp.copy, arrays)


def _average(summed: Callable[[Any], Any], weights: Weights, counts: Array) -> Weights:
    """Return the mean of the workers' models, weighted by their samples; `summed`: over all workers."""
    share = counts[0] / summed(counts[0])
    return summed({name: share.astype(weight.dtype) * weight for name, weight in weights.items()})


def _filtered(
    filtering: BlockMomentum,
    summed: Callable[[Any], Any],
    workers: int,
    weights: Weights,
    start: Weights,
    changes: Weights,
) -> tuple[Weights, Weights]:
    """Return the start of the next block, and the change that was made, from the workers' models after a block."""
    f = filtering

    def filtered(mean: Array, start: Array, change: Array) -> tuple[Array, Array]:
        ahead = f.momentum * change if f.nesterov else 0
        change = f.momentum * change + f.rate * (mean - start)
        model = start - ahead + change
        return (model + f.momentum * change if f.nesterov else model), change

    sums = summed(weights)
    both = {name: filtered(sums[name] / workers, start[name], changes[name]) for name in weights}
    return {name: pair[0] for name, pair in both.items()}, {name: pair[1] for name, pair in both.items()}


def momentum_of_time_constant(block: int, samples: float) -> float:
    """Return the momentum per block of this many samples for a time constant in samples."""
    return math.exp(-block / samples) if samples else 0.0
