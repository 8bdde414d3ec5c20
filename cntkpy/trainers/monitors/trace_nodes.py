"""The nodes of the operation `Trace`: the values of their operands in the log, of the minibatches that they ask for."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cntkpy.cntk_config import parse
from cntkpy.networks.arrays.lazy import jax, jnp
from cntkpy.networks.compile.evaluate import compile_network, node_total
from cntkpy.networks.graph.network import Node, ValidatedNetwork
from cntkpy.networks.graph.order import is_loop
from cntkpy.networks.nodes.observers.kinds import NUDGE
from cntkpy.readers.minibatch import Layout
from cntkpy.trainers.evaluation.output import Format, NodeWriter, node_sequences
from cntkpy.trainers.monitors.trace import prototype
from cntkpy.trainers.step.context import StepContext

if TYPE_CHECKING:
    from jax import Array
    from jaxtyping import PRNGKeyArray

    from cntkpy.networks.arrays.batch import Batch
    from cntkpy.networks.compile.evaluate import Settings

log = logging.getLogger("cntkpy.trainers")

PLAIN = Format(sequence_prologue="", sample_separator="\\n")


class TraceNodes:
    """Logs the values of the Trace nodes that some roots depend on.

    Args:
        network: the network.
        roots: the nodes that are computed; the first is the criterion.
        training: whether values are those of training, with dropout, or of evaluation. Gradients exist in training.
    """

    def __init__(self, network: ValidatedNetwork, roots: Sequence[Node], training: bool):
        self.nodes = [node for node in network.below(roots) if node.operation == "Trace"]
        self._formats = {node: _format(node) for node in self.nodes}
        asked = [node for node in self.nodes if training and node.options["logGradientToo"]]
        loops = {node for component in network.components(roots) if is_loop(component) for node in component}
        self._with_gradient = [node for node in asked if node not in loops]
        for node in asked:
            if node in loops:
                log.info("Trace: the gradient of '%s' is not shown, because it is part of a loop", node.name)
        self._minibatch = 0
        if not self.nodes:
            return
        names = [node.name for node in [*roots, *self.nodes]]
        compiled = compile_network(network, names, training)
        criterion = roots[0]

        def total(
            nudges: dict[str, Array],
            weights: dict[str, Array],
            state: dict[str, Array],
            batch: Batch,
            key: PRNGKeyArray | None,
            settings: Settings,
        ) -> tuple[Array, dict[str, Array]]:
            results, _ = compiled(weights, {**state, **nudges}, batch, key, settings)
            return node_total(criterion, results, batch), results

        def values(
            weights: object, state: object, batch: object, key: object, settings: object
        ) -> tuple[dict[str, Array], dict[str, Array]]:
            shapes = jax.eval_shape(total, {}, weights, state, batch, key, settings)[1]
            nudges = {
                node.name + NUDGE: jnp.zeros(shapes[node.name].shape, shapes[node.name].dtype)
                for node in self._with_gradient
            }
            (_, results), slopes = jax.value_and_grad(total, has_aux=True)(nudges, weights, state, batch, key, settings)
            return results, slopes

        self._values = jax.jit(values)

    def __call__(self, context: StepContext) -> None:
        """Log the nodes that are due for a minibatch."""
        self._minibatch += 1
        due = [node for node in self.nodes if is_due(node, self._minibatch)]
        if not due:
            return
        w = context
        values, slopes = self._values(w.weights, w.state, w.batch, w.key, w.settings)
        now = time.strftime("%m/%d/%Y %H:%M:%S")
        for node in due:
            layout = w.stack.layout(0, node, values)
            self._log(node, f"Trace[{now}] {node.options['say']}", np.asarray(values[node.name]), layout)
            if node in self._with_gradient:
                slope = np.asarray(slopes[node.name + NUDGE])
                self._log(node, f"Trace[{now}] {node.options['say']} (gradient)", slope, layout)

    def _log(self, node: Node, head: str, values: NDArray[Any], layout: Layout) -> None:
        log.info("------- %s --> %s", head, prototype(node.input(0)), extra={"plain": True})
        for line in self._lines(node, node_sequences(node, values, layout)):
            log.info("%s", line, extra={"plain": True})

    def _lines(self, node: Node, sequences: Sequence[NDArray[Any]]) -> Iterator[str]:
        rows, steps = int(node.options["onlyUpToRow"]), int(node.options["onlyUpToT"])
        shape = node.shape or (1,)
        for sequence in sequences:
            shown, cut_steps = _cut(sequence, 0, steps)
            cut_rows = ""
            if self._formats[node].kind == "real":
                shown, cut_rows = _cut(shown, 1, rows)
            writer = NodeWriter(
                node.name, shape if shown.shape[1] == sequence.shape[1] else (shown.shape[1],), self._formats[node]
            )
            lines = writer.minibatch([shown]).removesuffix("\n").split("\n")
            yield from (line + cut_rows for line in lines)
            if cut_steps:
                yield cut_steps.strip()


def is_due(node: Node, minibatch: int) -> bool:
    """Return whether a Trace node logs its values in a minibatch, counted from 1."""
    first, every = int(node.options["logFirst"]), int(node.options["logFrequency"])
    return minibatch <= first or (every > 0 and minibatch % every == 1 % every)


def _cut(values: NDArray[Any], axis: int, limit: int) -> tuple[NDArray[Any], str]:
    """Return the first `limit` items, and what is said of the rest; a single one more is shown instead."""
    missing = values.shape[axis] - limit
    if missing <= 1:
        return values, ""
    return values.take(range(max(limit, 0)), axis), f" ...+{missing}"


def _format(node: Node) -> Format:
    text = str(node.options["format"]).strip()
    if not text:
        return PLAIN
    layout = Format.read(parse(text.removeprefix("[").removesuffix("]"), f"format of {node.name}"))
    return replace(layout, prologue="", epilogue="")
