"""Samples of the nodes of functions: from the cells of a computation, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cntkpy.cntk_config.base.diagnostics import shorten
from cntkpy.cntk_config.base.narrowing import is_list
from cntkpy.networks.builders.python.functions import graph
from cntkpy.networks.builders.python.functions.defaults import HALF
from cntkpy.networks.builders.python.functions.function import Function
from cntkpy.networks.compile.evaluate import LENGTHS
from cntkpy.networks.graph.axes import is_kept
from cntkpy.networks.graph.network import ValidatedNetwork
from cntkpy.networks.graph.node import Node
from cntkpy.readers import Value
from cntkpy.readers.data_api.batches import InputAxes, batch_of
from cntkpy.readers.errors import ArgumentError
from cntkpy.trainers.fronts.cntk2.data import Arguments
from cntkpy.trainers.step.memory import HostArray
from cntkpy.trainers.step.stack import Stack

if TYPE_CHECKING:
    from jax import Array


Results = Mapping[str, "HostArray | Array"]
"""By name of a node, its values with padding."""


class Samples:
    """Finds samples among the values of nodes.

    Args:
        network: the network.
        outputs: functions, and the node of each.
        scalars: nodes of criteria, whose samples are single numbers.
        arguments: the inputs of the functions.
        made: samples of minibatches that the network makes itself; 0: none.
    """

    def __init__(
        self,
        network: ValidatedNetwork,
        outputs: Sequence[tuple[Function, Node]],
        scalars: set[Node],
        arguments: Arguments,
        made: int,
    ) -> None:
        self._scalars, self._arguments, self._made = scalars, arguments, made
        self._half = {node for function, node in outputs if function.dtype == HALF}
        """Nodes whose values are of half precision."""
        self._half.update(known.node for known in arguments.inputs if known.function.dtype == HALF)
        self._has_sequences = any(known.sequence for known in arguments.inputs)
        static = {known.function for known in arguments.inputs if known.axes.dynamic == 0}
        self._single = {
            node
            for function, node in outputs
            if static and static.issuperset(function.arguments) and not _makes_batch(network, node)
        }
        """Nodes of functions of inputs without dynamic axes only: they have one value for the whole minibatch."""

    def _scalar(self, node: Node, values: HostArray) -> HostArray:
        """Return the values of a criterion with the shape () for each sample."""
        return values.reshape(values.shape[:2] if node.has_layout else ()) if node in self._scalars else values

    def cells(self, node: Node, gradient: object, results: Results, stack: Stack | None) -> HostArray:
        """Return samples in the layout from which `of` takes them; padding is 0.

        Args:
            node: the node.
            gradient: an array, or a list of sequences, like the value of the node.
            results: values of the computation that the samples belong to, the node's among them.
            stack: its data; None: there are none.

        Raises:
            ArgumentError: it has another number of sequences or steps, or samples of another shape.
        """
        value = np.asarray(results[node.name])
        cells, numbers = np.zeros(value.size, value.dtype), np.arange(value.size).reshape(value.shape)
        places: Any = self.of(node, {**results, node.name: numbers}, stack)
        dynamic = 2 if is_list(places) else int(self.has_batch(node))
        parts: Any = places if dynamic else [places]
        shape = parts[0].shape[1:] if dynamic == 2 else parts[0].shape
        axes = InputAxes(f"gradient of '{node.name}'", shape, dynamic)
        batch = gradient.read(axes) if isinstance(gradient, Value) else batch_of(gradient, axes)
        lengths = [len(part) for part in parts] if dynamic == 2 else [1] * len(parts)
        if batch.lengths.tolist() != lengths or batch.cells is None:
            steps, expected = shorten(str(batch.lengths.tolist())), shorten(str(lengths))
            message = f"the gradient of '{node.name}' has sequences of {steps} steps, its value of {expected}"
            raise ArgumentError(message, "np.ones_like(value)")
        for part, length, place in zip(batch.cells, lengths, parts, strict=True):
            cells[place.reshape(-1)] = part[:length].astype(value.dtype).reshape(-1)
        return cells.reshape(value.shape)

    def has_batch(self, node: Node) -> bool:
        """Return whether a node has values for each sequence of a minibatch, not one for the whole."""
        several = bool(self._arguments.inputs or self._made) and not self._arguments.is_static
        return several and node.has_layout and node not in self._single

    def of(self, node: Node, results: Results, stack: Stack | None) -> Any:
        """Return the samples of a node without padding: an array, or a list of sequences.

        Args:
            node: the node.
            results: its value by its name, and what else the computation gave.
            stack: the data; None: there are none.
        """
        array = self._scalar(node, np.asarray(results[node.name]))
        if node in self._half and array.dtype.kind == "f":
            array = array.astype(HALF)
        if stack is None and node.has_layout and self._made:
            if not is_kept(node.axis):
                return array[0]
            lengths = np.asarray(results[f"{node.axis}{LENGTHS}"]).tolist()
            return [array[:length, slot] for slot, length in enumerate(lengths)]
        if not node.has_layout or stack is None:
            return array
        if node.operation == "AttentionWeights":  # as many elements as the longest sequence of the keys has steps
            keys = stack.layout(0, node.input(1), results).sequences
            array = array[:, :, : int((keys[:, 3] - keys[:, 2]).max())]
        layout = stack.layout(0, node, results)
        if self._arguments.is_static or node in self._single:
            return array[0, 0]
        if node.axis == graph.ONE_STEP or (layout.T == 1 and not self._has_sequences and not is_kept(node.axis)):
            return array[0, : layout.S].copy() if layout.is_single else array[0, layout.sequences[:, 1]]
        if layout.is_full:
            return list(array[: layout.T, : layout.S].swapaxes(0, 1))
        return [array[max(begin, 0) : end, slot] for _, slot, begin, end in layout.sequences.tolist()]


def made_samples(network: ValidatedNetwork, nodes: Sequence[Node]) -> int:
    """Return the samples of the minibatches that a network makes of values without a minibatch axis; 0: it makes
    none.
    """
    counts = {(node.input(0).shape or (0,))[-1] for node in network.below(list(nodes)) if node.operation == "ToBatch"}
    if len(counts) > 1:
        sizes = " and ".join(map(str, sorted(counts)))
        raise ArgumentError(
            f"to_batch makes minibatches of {sizes} samples of one function", "give all as many samples"
        )
    return next(iter(counts), 0)


def _makes_batch(network: ValidatedNetwork, node: Node) -> bool:
    return any(source.operation == "ToBatch" for source in network.below([node]))
