"""Synchronous data-parallel SGD: every worker has a part of each minibatch, gradients are summed, all update alike.

The compiled step of `trainers.step` runs on every worker at the same time (`jax.shard_map`). Weights are the same
everywhere; the slots (parallel sequences, or frames) of a minibatch are dealt out along the axis `workers`.
"""

import logging
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from networks.lazy import jax, jnp
from networks.recurrence import CARRIED
from networks.sparse import RowGradient, is_sparse
from trainers.feed import Feeder, Group
from trainers.parallel import AXIS, Team
from trainers.parallel_feed import SharedFeeder
from trainers.placement import scalars_of
from trainers.updates import Rule

log = logging.getLogger("cntkpy.trainers")

Array = Any
Tree = Any


class Together:
    """DataParallelSGD: the sum of all workers' gradients, then one update, the same everywhere.

    **Arguments:** `team`; `statistics`: minibatches between log lines about this worker's share, 0 is never.
    """

    def __init__(self, team: Team, statistics: int = 0):
        self.team, self.statistics = team, statistics
        self._done, self._own, self._all, self._since = 0, 0, 0, time.perf_counter()

    def feeder(self, feeder: Feeder) -> Feeder:
        """Minibatches of the same shape on all workers."""
        return SharedFeeder.like(feeder, self.team)

    def put(self, array: Any, slots: bool = False) -> Array:
        """The same on all workers; of an array with slots each has its own."""
        return self.team.on_all(np.asarray(array), 1 if slots else None)

    def start(self, rule: Rule, weight: Array) -> dict[str, Array]:
        """The same state everywhere."""
        return jax.jit(rule.start, out_shardings=weight.sharding)(weight)

    def sound(self) -> Array:
        """A flag, the same everywhere, that is true."""
        return self.team.on_all(np.ones((), bool))

    def own(self, arrays: Tree) -> Tree:
        """What this process has, as numpy."""
        return jax.tree.map(self.fetch, arrays)

    def fetch(self, array: Array) -> np.ndarray:
        """What all workers have."""
        return np.asarray(array.addressable_shards[0].data)

    def save(self, array: Array, slots: bool = False) -> np.ndarray:
        """The slots of all workers side by side."""
        return self.team.gather(array) if slots else self.fetch(array)

    def restore(self, array: np.ndarray, slots: bool = False) -> Array:
        """The inverse of `save`."""
        if slots:
            array = np.split(array, self.team.link.size, axis=1)[self.team.link.rank]
        return self.put(array, slots)

    def batch(self, batch: Any) -> Any:
        """The parts of all workers as one batch."""
        return shared_batch(self.team, batch)

    def scalars(self, group: Group, momentum: float, dtype: Any) -> Any:
        """As for one device: of the whole minibatches."""
        return scalars_of(group.columns, group.batch.mask.shape[0], momentum, dtype)

    def compiled(self, run: Callable[..., Any]) -> Callable[..., Any]:
        """`run` on every worker with its own slots."""
        P = jax.sharding.PartitionSpec

        def function(weights: Tree, updates: Tree, state: Tree, sound: Array, batches: Any, *rest: Any) -> Any:
            *values, frozen, pieces = rest
            states = {name: P(None, AXIS) if name.endswith(CARRIED) else P() for name in state}
            shared = jax.shard_map(
                partial(_with_flags, run, frozen, pieces),
                mesh=self.team.mesh,
                in_specs=(P(), P(), states, P(), batch_specs(batches), *(P() for _ in values)),
                out_specs=(P(), P(), states, P(), P()),
                check_vma=False,
            )
            return shared(weights, updates, state, sound, batches, *values)

        return function

    def key(self, key: Array) -> Array:
        """Each worker draws its own masks."""
        return jax.random.fold_in(key, jax.lax.axis_index(AXIS))

    def joined(self, gradients: Tree, sums: Tree, state: Tree, before: Tree, batch: Any) -> tuple[Tree, Tree, Tree]:
        """Sums over the workers; running statistics are their mean, weighted by samples.

        What a worker without samples computed is left out: it may be no number.
        """
        samples = jnp.sum(batch.mask)
        real = samples > 0
        dense = {name: _where(real, g) for name, g in gradients.items() if not isinstance(g, RowGradient)}
        dense, sums = _summed((dense, jax.tree.map(partial(_where, real), sums)))
        rows = {name: _joined_rows(g, real) for name, g in gradients.items() if isinstance(g, RowGradient)}
        return dense | rows, sums, self._state(state, before, samples)

    def updated(self, new: Tree, old: Tree, samples: Array) -> Tree:
        """The update is the same everywhere."""
        return new

    def begin(self, weights: Tree, saved: dict[str, dict[str, Any]] | None) -> None:
        """Nothing to do."""

    def more(self) -> dict[str, dict[str, np.ndarray]]:
        """Nothing."""
        return {}

    def kept(self) -> dict[str, np.ndarray]:
        """Nothing."""
        return {}

    def keep(self, arrays: dict[str, np.ndarray]) -> None:
        """Nothing to do."""

    def after(self, trainer: Any, group: Group) -> None:
        """Log statistics if they are due."""
        before, self._done = self._done, self._done + len(group.minibatches)
        self._own += sum(layout.num_samples for layout in group.layouts)
        self._all += int(group.samples.sum())
        if not self.statistics or before // self.statistics == self._done // self.statistics:
            return
        now = time.perf_counter()
        text = "Parallel training statistics: %d of %d samples by this process; time = %.4fs; samplesPerSecond = %.1f"
        log.info(text, self._own, self._all, now - self._since, self._all / (now - self._since))
        self._own, self._all, self._since = 0, 0, now

    def finish(self, trainer: Any) -> None:
        """Nothing to do."""

    @staticmethod
    def _state(state: Tree, before: Tree, samples: Array) -> Tree:
        total = jax.lax.psum(samples, AXIS)
        result = dict(state)
        for name, new in state.items():
            old = before.get(name)
            if name.endswith(CARRIED) or new is old:
                continue
            if name.endswith("/samples"):
                result[name] = old + jax.lax.psum(jnp.where(samples > 0, new - old, 0), AXIS)
            else:
                share = (samples / jnp.maximum(total, 1)).astype(new.dtype)
                mean = jax.lax.psum(share * _where(samples > 0, new), AXIS)
                result[name] = jnp.where(total > 0, mean, old)
        return result


def shared_batch(team: Team, batch: Any) -> Any:
    """A stack of minibatches (numpy, this process's slots) as arrays of all workers."""

    def put(leaf: Any) -> Array:
        return team.on_all(np.asarray(leaf), 1 if leaf.ndim == 2 else 2)

    inputs = {}
    for name, data in batch.inputs.items():
        if is_sparse(data):  # every device of this process looks into the same rows
            data = data._replace(rows=np.tile(np.asarray(data.rows), (1, len(team.own))))
        inputs[name] = data
    return jax.tree.map(put, batch._replace(inputs=inputs))


def batch_specs(batches: Any) -> Any:
    """How a stack is dealt out: by slots (axis 2), the rows of sparse inputs by worker (axis 1)."""
    P = jax.sharding.PartitionSpec
    return jax.tree.map(lambda leaf: P(None, AXIS) if leaf.ndim == 2 else P(None, None, AXIS), batches)


def _with_flags(run: Callable[..., Any], frozen: bool, pieces: int, *values: Any) -> Any:
    return run(*values, frozen, pieces)


def _where(real: Array, value: Array) -> Array:
    return jnp.where(real, value, jnp.zeros_like(value))


SMALL = 1 << 16
"""Elements of an array that is sent together with others: each message has its own delay."""


def _summed(tree: Tree) -> Tree:
    """The sums over all workers, of small arrays in one message."""
    leaves, structure = jax.tree.flatten(tree)
    small = [k for k, leaf in enumerate(leaves) if leaf.size <= SMALL and leaf.dtype == leaves[0].dtype]
    sent = jnp.concatenate([leaves[k].reshape(-1) for k in small]) if small else jnp.zeros(0)
    large = {k: leaf for k, leaf in enumerate(leaves) if k not in small}
    sent, large = jax.lax.psum((sent, large), AXIS)
    parts = jnp.split(sent, np.cumsum([leaves[k].size for k in small])[:-1]) if small else []
    together = large | {k: part.reshape(leaves[k].shape) for k, part in zip(small, parts, strict=True)}
    return jax.tree.unflatten(structure, [together[k] for k in range(len(leaves))])


def _joined_rows(gradient: RowGradient, real: Array) -> RowGradient:
    """The touched rows of all workers, each once; what is left over repeats the padding row number."""
    rows = jax.lax.all_gather(gradient.rows, AXIS, tiled=True)
    values = jax.lax.all_gather(_where(real, gradient.values), AXIS, tiled=True)
    distinct, place = jnp.unique(rows, return_inverse=True, size=rows.shape[0], fill_value=np.iinfo(np.int32).max)
    return RowGradient(distinct, jax.ops.segment_sum(values, place.reshape(-1), num_segments=rows.shape[0]))
