"""`traceNodeNamesReal`, `...Category`, `...Sparse`: the values of some nodes in the log, minibatch after minibatch."""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cntkpy.networks.arrays.lazy import jax
from cntkpy.networks.compile.evaluate import LENGTHS, compile_network
from cntkpy.networks.graph.network import Node, ValidatedNetwork
from cntkpy.readers.minibatch import Layout
from cntkpy.trainers.evaluation.output import Format, NodeWriter, node_sequences
from cntkpy.trainers.log.nodes import prototype
from cntkpy.trainers.step.context import StepContext

log = logging.getLogger("cntkpy.trainers")

ROWS, STEPS = 3, 8
"""Elements of a sequence that are shown; sparse nodes are shown whole."""

_LINES = Format(transpose=False, sequence_prologue="\\s\\s", sample_separator="\\n\\s\\s", precision="13.10")


class Trace:
    """Logs the values of nodes.

    Args:
        network: the network.
        roots: the nodes that are computed anyway; nodes that they do not depend on are not traced.
        forms: by name of a node how it is shown: real, category, sparse.
        training: whether values are those of training, with dropout, or of evaluation.
    """

    def __init__(self, network: ValidatedNetwork, roots: Sequence[Node], forms: dict[str, str], training: bool):
        computed = network.below(roots)
        wanted: dict[Node, str] = {}
        for name, form in forms.items():
            if name not in network.nodes:
                log.info("Trace: the network has no node '%s'; it is not traced", name)
            elif network.nodes[name] not in computed:
                log.info("Trace: node '%s' is not needed for what is computed; it is not traced", name)
            else:
                wanted[network.nodes[name]] = form
        self.nodes = {node: wanted[node] for node in computed if node in wanted}
        self._writers = {node: _writer(node, form) for node, form in self.nodes.items()}
        # the roots come first, so that random masks are those of the training
        compiled = compile_network(network, [node.name for node in [*roots, *self.nodes]], training)

        def values(weights: object, state: object, batch: object, key: object, settings: object) -> dict[str, Any]:
            results, _ = compiled(weights, state, batch, key, settings)
            shown = {node.name for node in self.nodes}
            return {name: value for name, value in results.items() if name in shown or name.endswith(LENGTHS)}

        self._values = jax.jit(values)

    def __call__(self, context: StepContext) -> None:
        """Log the values for one minibatch."""
        w = context
        values = self._values(w.weights, w.state, w.batch, w.key, w.settings)
        for node in self.nodes:
            for line in self._lines(node, np.asarray(values[node.name]), w.stack.layout(0, node, values)):
                log.info("%s", line, extra={"plain": True})

    def _lines(self, node: Node, values: NDArray[np.generic], layout: Layout) -> Iterator[str]:
        yield f"Trace --> {prototype(node)}"
        sequences = node_sequences(node, values, layout)
        form = self.nodes[node]
        if form == "category":
            sequences = [sequence.argmax(axis=1)[:STEPS, None] for sequence in sequences]
        elif form == "real":
            sequences = [sequence[:STEPS, :ROWS] for sequence in sequences]
        yield from self._writers[node].minibatch(sequences).removesuffix("\n").split("\n")


def _writer(node: Node, form: str) -> NodeWriter:
    if form == "sparse":
        return NodeWriter(node.name, node.shape or (1,), replace(_LINES, kind="sparse"))
    return NodeWriter(node.name, (1,) if form == "category" else node.shape or (1,), _LINES)
