"""A minibatch inside of its stack: its data, its random keys, the activations that it carries on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.networks.arrays.lazy import jax, jnp
from cntkpy.networks.compile.evaluate import Settings
from cntkpy.networks.compile.recurrence import CARRIED, carried
from cntkpy.networks.graph.network import ValidatedNetwork
from cntkpy.trainers.step.memory import HostArray
from cntkpy.trainers.step.stack import Stack

if TYPE_CHECKING:
    from jax import Array
    from jaxtyping import PRNGKeyArray

    from cntkpy.networks.compile.evaluate import Batch


@dataclass
class StepContext:
    """A minibatch about to be trained on or evaluated, and all that its values depend on.

    Attributes:
        stack: the stack that it is part of.
        number: from 1 in its epoch.
        batch: its data, without the axis of the stack.
        weights: by name, the parameters under training.
        state: by name, what the network itself changes, and parameters that are not trained.
        key: of its random masks; None: there are none.
        settings: what the epoch sets in the network.
    """

    stack: Stack
    number: int
    batch: Any
    weights: dict[str, Array]
    state: dict[str, Array]
    key: PRNGKeyArray | None
    settings: Settings

    @classmethod
    def of(cls, stack: Stack, index: int, number: int, *values: Any) -> StepContext:
        """Return minibatch `index` of a stack; `values`: the attributes from `weights` on."""
        return cls(stack, number, minibatch_of(stack.batch, index), *values)


Callback = Callable[[StepContext], None]
"""Looks at minibatches before they are trained on or evaluated."""


def minibatch_of(batches: object, k: object) -> Batch:
    """Return minibatch `k` of a stacked `Batch`, at least 0: the same without the axis in front."""
    return jax.tree.map(partial(row_of, k=k), batches)


def row_of(every: Array, k: object) -> Array:
    """Return `every[k]`; where `k`, at least 0, is computed, JAX traces this ten times as fast."""
    if isinstance(k, int):
        return every[k]
    start, shape = (k, *[0] * (every.ndim - 1)), every.shape[1:]
    return jax.lax.dynamic_slice(every, start, (1, *shape), allow_negative_indices=False).reshape(shape)


def with_row(every: Array, k: Array, row: Array) -> Array:
    """Return `every.at[k].set(row)`, likewise."""
    start = (k, *[0] * row.ndim)
    return jax.lax.dynamic_update_slice(every, row.reshape(1, *row.shape), start, allow_negative_indices=False)


def in_words(purpose: str, batches: Any) -> str:
    """Return a description of a computation with a stacked `Batch`: its purpose and how large minibatches are."""
    steps, slots = batches.mask.shape[-2:]
    return f"{purpose}, {slots} samples" if steps == 1 else f"{purpose}, {steps} time steps, {slots} sequences"


def random_keys(seed: tuple[Any, Any], k: object) -> tuple[PRNGKeyArray, PRNGKeyArray]:
    """Return the random keys of a minibatch, which are the same however minibatches are stacked.

    Args:
        seed: that of the epoch, and the number of the stack's first minibatch.
        k: the minibatch's place in its stack.

    Returns:
        The keys of its masks and of the noise of its update.
    """
    masks, noise = jax.random.split(jax.random.fold_in(jax.random.key(seed[0]), seed[1] + k))
    return masks, noise


def carry(
    network: ValidatedNetwork, state: Mapping[str, Any], stack: Stack, put: Callable[[HostArray], Array] | None = None
) -> dict[str, Array]:
    """Return the network's state, with room for carried activations if the sequences of a stack are truncated.

    Args:
        network: the network.
        state: its state by name.
        stack: the next minibatches.
        put: lays an array on the devices; None: on the only one.

    Raises:
        UserError: a FutureValue node would have to look into the next minibatch.
    """
    slots = stack.carried_slots
    if not slots:  # whole sequences may come after pieces of others, in another number of slots
        return {name: value for name, value in state.items() if not name.endswith(CARRIED)}
    whole = (
        node for node in network.nodes.values() if node.kind.time.delay > 0 or node.operation == "OptimizedRNNStack"
    )
    node = next(whole, None)
    if node is not None and any((layout.sequences[:, 3] > layout.T).any() for layout in stack.layouts):
        raise UserError(
            "TruncatedFuture",
            f"{node.operation} '{node.name}' looks at whole sequences, but the reader cuts them into pieces",
            span=node.span,
            hint=f"{node.operation} needs whole sequences: remove truncated=true from the reader",
        )
    fresh: dict[str, Any] = {}
    for name, (steps, *shape) in carried(network).items():
        zeros = np.zeros((steps, slots, *shape), network.dtype)
        fresh[name] = jnp.asarray(zeros) if put is None else put(zeros)
        if name in state and state[name].shape == fresh[name].shape:
            return dict(state)  # all of them have as many slots as the first
    return {**state} | fresh  # the first ones, or the reader has another number of slots and starts over
