"""Adaptation with Kullback-Leibler regularisation: labels are mixed with what a frozen reference network says."""

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.networks.arrays.lazy import jax, jnp
from cntkpy.networks.arrays.sparse import Sparse, is_sparse
from cntkpy.networks.graph.network import Node, ValidatedNetwork
from cntkpy.trainers.evaluation.evaluator import Evaluator
from cntkpy.trainers.step.stack import Stack

Array = Any


@dataclass
class MixedTargets:
    """Replaces the labels of minibatches by `weight * reference + (1 - weight) * labels`.

    Attributes:
        label: the input node whose data are replaced.
        reference: a network of its own, which is never trained.
        node: its node that has a value of the shape of a label, computed as in evaluation.
        weight: share of the reference, 0 to 1.
    """

    label: Node
    reference: ValidatedNetwork
    node: Node
    weight: float

    def __post_init__(self) -> None:
        if not self.node.has_layout or math.prod(self.node.shape or ()) != math.prod(self.label.shape or ()):
            raise UserError(
                "DimensionMismatch",
                f"the reference node is {self.node.describe()}, but labels are {self.label.describe()}",
                hint="refNodeName is a node with one value per label, for instance the softmax of the network",
            )
        self._evaluator = Evaluator(self.reference, [self.node], summed=False)

    def __call__(self, stack: Stack) -> Stack:
        """Return the same stack of minibatches with mixed labels."""
        name = next((name for name in stack.batch.inputs if name.lower() == self.label.name.lower()), None)
        if name is None:
            raise UserError("NoLabels", f"the training criterion does not use the labels '{self.label.name}'")
        values = self._evaluator.run(stack)[self.node.name]
        labels = stack.batch.inputs[name]
        mask = stack.batch.mask if stack.batch.axes is None else stack.batch.axes[self.label.axis].mask
        if is_sparse(labels):
            labels = jax.vmap(partial(Sparse.dense, shape=self.label.shape))(labels)
        mixed = self.weight * values + (1 - self.weight) * jnp.asarray(labels).reshape(values.shape)
        mask = mask.reshape(*mask.shape, *(1,) * (mixed.ndim - 3))
        inputs = {**stack.batch.inputs, name: jnp.where(mask, mixed, 0).astype(values.dtype)}
        return replace(stack, batch=stack.batch._replace(inputs=inputs))


def mixed_targets(network: ValidatedNetwork, reference: ValidatedNetwork, node: str, weight: float) -> MixedTargets:
    """Mix the first label of a network with a node of the reference.

    Raises:
        UserError: if the network has no labels or the reference no such node.
    """
    if not network.groups["label"]:
        raise UserError("NoLabels", "the network has no labels to be mixed with the reference")
    return MixedTargets(network.groups["label"][0], reference, reference.find(node), weight)
