"""The first minibatch and the first node that are infinite or not a number."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from cntkpy.networks.arrays.batch import Batch
from cntkpy.networks.arrays.lazy import Array, jax
from cntkpy.networks.arrays.sparse import is_sparse
from cntkpy.networks.compile.evaluate import PROBLEM, compile_network, own_mask
from cntkpy.networks.graph.network import Node, ValidatedNetwork
from cntkpy.readers.minibatch import Minibatch
from cntkpy.trainers.step.context import StepContext
from cntkpy.trainers.step.sequence_problems import sequence_problem
from cntkpy.trainers.step.stack import Stack
from cntkpy.trainers.step.step import CompiledStep


@dataclass(frozen=True)
class NotFinite:
    """A minibatch whose criterion is infinite or not a number.

    Attributes:
        number: of the minibatch, from 1.
        stack: the stack that it is part of.
        index: its place there.
    """

    number: int
    stack: Stack
    index: int

    @property
    def minibatch(self) -> Minibatch:
        """Return the data."""
        return self.stack.minibatches[self.index]

    def node(self, step: CompiledStep) -> Node | None:
        """Return the first node that is not finite with the parameters of now."""
        return first_not_finite(step.network, step.nodes[0], step.at(self.stack, self.index, self.number))


def first_not_finite(network: ValidatedNetwork, criterion: Node, context: StepContext) -> Node | None:
    """Return the first node below a criterion, in evaluation order, that has such a value in a minibatch, inputs
    included.

    Raises:
        UserError: the sequences of the minibatch do not fit.
    """
    nodes = network.below([criterion])
    computed = [node.name for node in nodes if node.kind.layout != "always" and not node.kind.time.makes_axis]
    function = compile_network(network, computed, training=True)

    @jax.jit  # one program compiles faster than one for each operation
    def all_values(
        weights: Mapping[str, Array], state: Mapping[str, Array], batch: Batch, key: Array | None
    ) -> tuple[dict[str, Array], dict[str, Array]]:
        return function(weights, state, batch, key, context.settings)

    values, state = all_values(context.weights, context.state, context.batch, context.key)
    for node in nodes:
        if np.any(state.get(node.name + PROBLEM, False)):
            raise sequence_problem(
                node, context.stack.minibatches[0].keys if len(context.stack.minibatches) == 1 else []
            )
    by_name = {name.lower(): value for name, value in {**context.batch.inputs, **values}.items()}
    for node in nodes:
        value = by_name[node.name.lower()]
        mask = own_mask(node, value.index if is_sparse(value) else value, context.batch, values)
        value = np.asarray(value.values if is_sparse(value) else value)
        if not np.isfinite(value if mask is None else value[np.asarray(mask)]).all():
            return node
    return None
