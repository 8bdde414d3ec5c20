"""Where numbers go wrong: the first node of a network that is infinite or not a number."""

import numpy as np

from networks.arrays.sparse import is_sparse
from networks.compile.evaluate import compile_network
from networks.graph.network import Node, ValidatedNetwork
from trainers.step.step import StepContext


def first_not_finite(network: ValidatedNetwork, criterion: Node, at: StepContext) -> Node | None:
    """The first node below a criterion, in evaluation order, that has such a value in a minibatch, inputs included."""
    nodes = network.below([criterion])
    computed = [node.name for node in nodes if node.kind.layout != "always"]
    values, _ = compile_network(network, computed, training=True)(at.weights, at.state, at.batch, at.key, at.settings)
    found = {name.lower(): value for name, value in {**at.batch.inputs, **values}.items()}
    mask = np.asarray(at.batch.mask)
    for node in nodes:
        value = found[node.name.lower()]
        value = np.asarray(value.values if is_sparse(value) else value)
        if not np.isfinite(value[mask] if node.has_layout else value).all():
            return node
    return None
