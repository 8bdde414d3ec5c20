"""The values of functions for some data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from networks.arrays.batch import Batch
from networks.builders.brainscript.node_values import NodeValue
from networks.builders.python import graph
from networks.builders.python.function import Function
from networks.builders.python.per_sample import per_sample
from networks.graph.network import ValidatedNetwork
from networks.graph.node import Node
from readers import Value
from trainers.evaluation.evaluator import Evaluator
from trainers.session.data import Arguments, inputs_of
from trainers.step.batching import Stack
from trainers.step.step import minibatch_of


class Values:
    """Computes some functions, compiled once.

    Args:
        outputs: the functions.
    """

    def __init__(self, outputs: Sequence[Function]) -> None:
        self.outputs = list(outputs)
        roots = [per_sample(one.root) for one in self.outputs]
        self._criteria = {root for root, one in zip(roots, self.outputs, strict=True) if root is not one.root}
        self._graph = graph.make(list(dict.fromkeys(roots)), {"output": roots})
        self._nodes = [self._graph.nodes[root] for root in roots]
        self._scalars = {self._graph.nodes[root] for root in self._criteria}
        self.arguments = Arguments(inputs_of(self._graph, self._nodes), self._graph.network.dtype)
        self._evaluator: Evaluator | None = None
        self._evaluations = 0

    @property
    def network(self) -> ValidatedNetwork:
        """The network of the functions."""
        return self._graph.network

    @property
    def nodes(self) -> dict[NodeValue, Node]:
        """The node of each value of the network."""
        return self._graph.nodes

    def __call__(self, given: Any) -> list[Any]:
        """The values of the functions, in their order."""
        if not self.arguments.inputs:
            self._graph.load()
            return self._constants()
        stack = self.stack(given)
        assert self._evaluator is not None
        found = self._evaluator.run(stack)
        first = {name: np.asarray(value)[0] for name, value in found.items()}
        return [self.samples(node, first, stack) for node in self._nodes]

    def stack(self, given: Any) -> Stack:
        """Data as the compiled network takes them, with the parameters of now."""
        self._graph.load()
        if self._evaluator is None:
            self._evaluator = Evaluator(self._graph.network, self._nodes, summed=False)
        else:
            self._evaluator.load_again()
        minibatch = self.arguments.minibatch(given)
        batcher = self._evaluator.batcher(max(1, minibatch.num_samples), 1, planned=0)
        return next(iter(batcher.stacks(iter([minibatch]), lambda number: True)))

    def batch(self, given: Any) -> tuple[Batch, Callable[[Node, dict[str, Any]], Any]]:
        """Data as one minibatch of the compiled network, and what gives the samples of a node in it; see `samples`."""
        if not self.arguments.inputs:
            self._graph.load()
            return Batch({}), lambda node, found: self._scalar(node, found[node.name])
        stack = self.stack(given)
        return minibatch_of(stack.batch, 0), lambda node, found: self.samples(node, found, stack)

    def _constants(self) -> list[Any]:
        from networks.arrays.lazy import jax
        from networks.compile.evaluate import compile_network, network_parameters, network_state

        network = self._graph.network
        function = compile_network(network, [node.name for node in self._nodes])
        self._evaluations += 1
        key = jax.random.key(self._evaluations)
        found, _ = function(network_parameters(network), network_state(network), Batch({}), key)
        return [self._scalar(node, np.asarray(found[node.name])) for node in self._nodes]

    def _scalar(self, node: Node, values: NDArray[Any]) -> NDArray[Any]:
        """The values of a criterion have the shape () for each sample."""
        return values.reshape(values.shape[:2] if node.has_layout else ()) if node in self._scalars else values

    def samples(self, node: Node, found: dict[str, Any], stack: Stack) -> Any:
        """The samples of a node without padding: an array, or a list of sequences."""
        array = self._scalar(node, found[node.name])
        if not node.has_layout:
            return array
        layout = stack.layout(0, node, found)
        lengths, slots = layout.sequences[:, 3], layout.sequences[:, 1]
        several = any(one.sequence for one in self.arguments.inputs)
        if node.axis == graph.ONE_STEP or (layout.T == 1 and not several):
            return array[0, slots]
        return [array[:length, slot] for length, slot in zip(lengths.tolist(), slots.tolist(), strict=True)]


_known: dict[tuple[Any, ...], Values] = {}

KEPT = 32
"""So many compiled functions are kept."""


def evaluate(
    function: Function, arguments: Any, outputs: Sequence[Function], training: bool = False, as_numpy: bool = True
) -> Any:
    """The values of outputs for some data; see `Function.eval`."""
    key = tuple(one.roots for one in outputs)
    values = _known.get(key)
    if values is None:
        if len(_known) >= KEPT:
            _known.pop(next(iter(_known)))
        values = _known[key] = Values(outputs)
    found = values(arguments if arguments is not None else {})
    if not as_numpy:
        found = [Value(one) for one in found]
    return found[0] if len(outputs) == 1 else dict(zip(outputs, found, strict=True))


Function.evaluator = staticmethod(evaluate)
