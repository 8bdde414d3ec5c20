"""The step of a training as a pure function: forward, backward and update for every minibatch of a stack."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from cntkpy.networks.arrays.lazy import jax, jnp
from cntkpy.networks.compile.evaluate import LENGTHS, kept_lengths
from cntkpy.networks.graph.network import Node
from cntkpy.trainers.rules.update_step import OF_MEAN, PER_SAMPLE, Update
from cntkpy.trainers.rules.updates import StepScalars
from cntkpy.trainers.step.context import minibatch_of, random_keys, row_of, with_row
from cntkpy.trainers.step.pieces import in_pieces
from cntkpy.trainers.step.state import StepInput, StepOptions, TrainState
from cntkpy.trainers.step.strategy import Strategy

if TYPE_CHECKING:
    from jax import Array
    from jaxtyping import Bool, Float

    from cntkpy.trainers.step.state import Gradient, Step


def make_step(
    nodes: Sequence[Node],
    update: Update,
    gradient: Gradient,
    strategy: Strategy,
    axes: Mapping[str, str | None],
    random: bool,
) -> Step:
    """Return the step of one device, to be compiled.

    Args:
        nodes: the criterion, then the nodes to report.
        update: changes the parameters.
        gradient: see `compile_gradient`.
        strategy: joins what several devices compute.
        axes: the time axis of every input.
        random: whether anything draws random numbers.
    """
    columns = [node.name for node in nodes]
    columns += [node.name + LENGTHS for node in kept_lengths(nodes)]

    def step(
        state: TrainState, inputs: StepInput, options: StepOptions
    ) -> tuple[TrainState, Float[Array, "minibatches nodes"]]:
        compute = in_pieces(gradient, options.pieces, axes)

        def minibatch(k: Array, carried: tuple[TrainState, Array]) -> tuple[TrainState, Array]:
            previous, totals = carried
            batch = minibatch_of(inputs.batches, k)
            key, noise_key = random_keys(inputs.seed, k) if random else (None, None)
            key = None if key is None else strategy.reduction.mask_key(key)
            gradients, sums, network = compute(previous.weights, previous.network, batch, key, inputs.settings)
            gradients, sums, network = strategy.reduction.reduce(gradients, sums, network, previous.network, batch)
            finite = previous.finite & (jnp.isfinite(sums[nodes[0].name]) & _computed(gradients))
            network = jax.tree.map(partial(jnp.where, finite), network, previous.network)
            weights, updates = previous.weights, previous.updates
            if not options.frozen:
                row = row_of(inputs.scalars, k)
                number = jnp.maximum(row[1], 1)
                rate = inputs.rate if options.rate_for == PER_SAMPLE else inputs.rate / number
                scalars = StepScalars(rate, row[0], row[1], number if options.rate_for == OF_MEAN else 1.0)
                changed = update(weights, updates, gradients, scalars, noise_key, finite, inputs.group_scalars)
                weights, updates = strategy.averaging.updated(changed, (weights, updates), scalars.samples)
            values = jnp.stack([sums[name] for name in columns]).astype(totals.dtype)
            return TrainState(weights, updates, network, finite), with_row(totals, k, values)

        totals = jnp.zeros((inputs.scalars.shape[0], len(columns)), inputs.scalars.dtype)
        return jax.lax.fori_loop(0, inputs.count, minibatch, (state, totals))

    return step


LARGE_PARAMETER = 1 << 16
"""Elements of a parameter from which on copying it takes longer than waiting for what would be computed beside."""


def _computed(gradients: object) -> Bool[Array, ""]:
    """Return True, but not before the gradients of the large parameters are computed.

    What waits for it changes parameters in place. Otherwise XLA copies those that the backward pass still reads, in
    every minibatch.
    """
    leaves = [leaf for leaf in jax.tree.leaves(gradients) if leaf.size >= LARGE_PARAMETER]
    elements = jnp.stack([jnp.isnan(leaf[(0,) * leaf.ndim]) for leaf in leaves] or [jnp.asarray(True)])
    return jnp.sum(elements) <= elements.size
