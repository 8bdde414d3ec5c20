"""The values of functions for some data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from networks.builders.python import graph
from networks.builders.python.function import Function
from trainers.evaluation.evaluator import Evaluator
from trainers.session.data import Arguments, inputs_of, time_axis
from trainers.step.batching import Stack


class Values:
    """Computes some functions, compiled once.

    Args:
        outputs: the functions.
    """

    def __init__(self, outputs: Sequence[Function]) -> None:
        self.outputs = list(outputs)
        roots = [one.root for one in self.outputs]
        self._graph = graph.make(list(dict.fromkeys(roots)), {"output": roots})
        self._nodes = [self._graph.nodes[root] for root in roots]
        self.arguments = Arguments(inputs_of(self._graph, self._nodes), self._graph.network.dtype)
        self._evaluator: Evaluator | None = None

    def __call__(self, given: Any) -> list[Any]:
        """The values of the functions, in their order."""
        self._graph.load()
        if not self.arguments.inputs:
            return self._constants()
        if self._evaluator is None:
            self._evaluator = Evaluator(self._graph.network, self._nodes, summed=False)
        else:
            self._evaluator.load()
        minibatch = self.arguments.minibatch(given)
        batcher = self._evaluator.batcher(max(1, minibatch.num_samples), 1)
        stack = next(iter(batcher.stacks(iter([minibatch]), lambda number: True)))
        found = self._evaluator.run(stack)
        return [self._value(index, np.asarray(found[node.name])[0], stack) for index, node in enumerate(self._nodes)]

    def _constants(self) -> list[Any]:
        from networks.compile.evaluate import Batch, compile_network, network_parameters, network_state

        network = self._graph.network
        function = compile_network(network, [node.name for node in self._nodes])
        found, _ = function(network_parameters(network), network_state(network), Batch({}))
        return [np.asarray(found[node.name]) for node in self._nodes]

    def _value(self, index: int, array: Any, stack: Stack) -> Any:
        """The samples of a node without padding: an array, or a list of sequences."""
        node = self._nodes[index]
        if not node.has_layout:
            return array
        own = [one for one in self.arguments.inputs if time_axis(one.node) == time_axis(node)]
        layout = stack.minibatches[0].layouts[own[0].node.name]
        lengths, slots = layout.sequences[:, 3], layout.sequences[:, 1]
        if not any(one.sequence for one in own) and layout.T == 1:
            return array[0, slots]
        return [array[:length, slot] for length, slot in zip(lengths.tolist(), slots.tolist(), strict=True)]


_known: dict[tuple[Any, ...], Values] = {}

KEPT = 32
"""So many compiled functions are kept."""


def evaluate(function: Function, arguments: Any, outputs: Sequence[Function], training: bool = False) -> Any:
    """The values of outputs for some data; see `Function.eval`."""
    key = tuple(one.roots for one in outputs)
    values = _known.get(key)
    if values is None:
        if len(_known) >= KEPT:
            _known.pop(next(iter(_known)))
        values = _known[key] = Values(outputs)
    found = values(arguments if arguments is not None else {})
    return found[0] if len(outputs) == 1 else dict(zip(outputs, found, strict=True))


Function.evaluator = staticmethod(evaluate)
