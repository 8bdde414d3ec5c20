"""Where the arrays of a training lie, and what joins the work of several devices: here for one device.

`trainers.parallel.data_parallel` and `trainers.parallel.averaging` have the same methods as `OneDevice`, for several
workers.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from networks.arrays.lazy import jax, jnp
from trainers.loop.batching import Batcher, Stack
from trainers.rules.updates import Rule

Array = Any
Tree = Any


class Placement:
    """What a trainer tells the place where its arrays lie. Nothing comes of it where all weights are the same."""

    def updated(self, new: Tree, old: Tree, samples: Array) -> Tree:
        """Weights and state of the update rule after a minibatch of so many samples."""
        return new

    def begin(self, weights: Tree, saved: dict[str, dict[str, Any]] | None) -> None:
        """Told from which weights training goes on, and what a checkpoint had, if it comes from one."""

    def more(self) -> dict[str, dict[str, np.ndarray]]:
        """What a checkpoint keeps beside the state of the update rule, by parameter."""
        return {}

    def kept(self) -> dict[str, np.ndarray]:
        """What else changes while training."""
        return {}

    def keep(self, arrays: dict[str, np.ndarray]) -> None:
        """The inverse of `kept`."""

    def after(self, trainer: Any, stack: Stack) -> None:
        """Told after every stack."""

    def finish(self, trainer: Any) -> None:
        """Told at the end of an epoch."""


class OneDevice(Placement):
    """Everything on one device, which is all there is."""

    def batcher(self, batcher: Batcher) -> Batcher:
        """What pads and stacks minibatches."""
        return batcher

    def put(self, array: Any, slots: bool = False) -> Array:
        """A copy of an array (weights, state) on the device; `slots`: axis 1 is that of the parallel sequences."""
        return jax.block_until_ready(jax.device_put(np.asarray(array), may_alias=False))

    def start(self, rule: Rule, weight: Array) -> dict[str, Array]:
        """The state of an update rule before its first update."""
        return rule.start(weight)

    def finite(self) -> Array:
        """A flag, the same everywhere, that is true."""
        return jnp.ones((), bool)

    def own(self, arrays: Tree) -> Tree:
        """Arrays as this process alone can compute with them."""
        return arrays

    def fetch(self, array: Array) -> np.ndarray:
        """The array as numpy, without a copy where the device's memory is the machine's."""
        return np.asarray(array)

    def save(self, array: Array, slots: bool = False) -> np.ndarray:
        """Everything about an array that differs from worker to worker, as numpy."""
        return np.asarray(array)

    def restore(self, array: np.ndarray, slots: bool = False) -> Array:
        """The inverse of `save`."""
        return self.put(array, slots)

    def batch(self, batch: Any) -> Any:
        """The data of a stack, where they are computed with."""
        return batch

    def scalars(self, stack: Stack, momentum: float, dtype: Any, per_step: bool = False) -> Any:
        """Per minibatch of a stack its momentum and its number of samples: array (capacity, 2)."""
        exponents = stack.steps if per_step else stack.columns
        return scalars_of(stack.columns, stack.batch.mask.shape[0], momentum**exponents, dtype)

    def compiled(self, run: Callable[..., Any]) -> Callable[..., Any]:
        """`Trainer._run`, to be jitted."""
        return run

    def key(self, key: Array) -> Array:
        """The random key of this worker's masks."""
        return key

    def joined(self, gradients: Tree, sums: Tree, state: Tree, before: Tree, batch: Any) -> tuple[Tree, Tree, Tree]:
        """Gradients and sums of the criteria of all workers, and the network's state after one minibatch."""
        return gradients, sums, state


def scalars_of(columns: np.ndarray, capacity: int, momenta: np.ndarray, dtype: Any) -> np.ndarray:
    """Array (capacity, 2): momentum and number of columns of every minibatch, zeros after them."""
    scalars = np.zeros((capacity, 2), dtype)
    scalars[: len(columns), 0] = momenta
    scalars[: len(columns), 1] = columns
    return scalars
