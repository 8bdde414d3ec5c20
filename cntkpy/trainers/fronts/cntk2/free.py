"""Sizes that only data say: what the free nodes of functions have for the data of a minibatch."""

# What programs give is of any type.
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false, reportUnknownMemberType=false

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from cntkpy.networks.builders.brainscript.node_values import NodeValue, Shape
from cntkpy.networks.builders.python.functions import calls
from cntkpy.networks.builders.python.functions.free import Sizes, axis_input, free_nodes
from cntkpy.networks.builders.python.functions.function import Function
from cntkpy.networks.builders.python.functions.nodes import INPUTS
from cntkpy.readers import MinibatchData, Value
from cntkpy.readers.data_api.batches import InputAxes, batch_of
from cntkpy.readers.data_api.free_axes import of_elements, sized
from cntkpy.readers.data_api.value import axes_of
from cntkpy.readers.errors import ArgumentError
from cntkpy.readers.minibatch import Minibatch
from cntkpy.trainers.fronts.cntk2.pieces import split

Lengths = Callable[[Function, Any], int]
"""The steps of the longest sequence of a function for some data."""


class FreeSizes:
    """The sizes that data say for some functions.

    Args:
        roots: the nodes of the functions.
        computed: computes the steps of sequences whose lengths are not those of an input.
    """

    def __init__(self, roots: Sequence[NodeValue], computed: Lengths) -> None:
        self.nodes = free_nodes(roots)
        """The free nodes, operands before what depends on them."""
        self._computed = computed
        self._inputs = list(Function(roots).arguments) if self.nodes else []
        self._axes: dict[NodeValue, NodeValue | None] = {}
        """By node that unpacks sequences or samples the input that has them; None: their lengths are computed."""

    def __call__(self, arguments: object) -> dict[NodeValue, Shape]:
        """Return the sizes of the free nodes.

        Args:
            arguments: the data, by input.

        Raises:
            ArgumentError: data of an input are missing, or have several sizes.
        """
        sizes: dict[NodeValue, Shape] = {}
        for node in self.nodes:
            if node in INPUTS:
                sizes[node] = _nodes_shape(_sized(axes_of(Function(node)), self._data(node, arguments)))
                continue
            if node.operation.name == "UnpackBatch":
                sizes[node] = (self._longest(self._of_batch(node), arguments, sizes, False),)
                continue
            if node not in self._axes:
                self._axes[node] = axis_input(node, sizes)
            source = self._axes[node]
            operand = Function(calls.inputs_of(node)[0])
            known = source is not None
            sizes[node] = (self._longest(source, arguments, sizes) if known else self._computed(operand, arguments),)
        return sizes

    def of_minibatch(
        self, minibatch: Minibatch, names: Mapping[NodeValue, str], earlier: Sizes
    ) -> dict[NodeValue, Shape]:
        """Return the sizes of a minibatch.

        Args:
            minibatch: its streams are called like input nodes.
            names: of these.
            earlier: the sizes of inputs, which a minibatch does not have.

        Raises:
            ArgumentError: they have other sizes, or lengths of sequences are computed.
        """
        sizes: dict[NodeValue, Shape] = {}
        for node in self.nodes:
            if node in INPUTS:
                count = minibatch.streams[names[node]].shape[-1] if node in names else math.prod(earlier[node])
                is_known = count == math.prod(earlier[node])
                sizes[node] = earlier[node] if is_known else _nodes_shape(_of_elements(axes_of(Function(node)), count))
                continue
            if node.operation.name == "UnpackBatch":
                sizes[node] = (minibatch.layouts[names[self._of_batch(node)]].num_sequences,)
                continue
            if node not in self._axes:
                self._axes[node] = axis_input(node, sizes)
            source = self._axes[node]
            if source is None:
                message = "the lengths of sequences that are unpacked are computed; a source does not say them"
                raise ArgumentError(message, "give arrays: trainer.train_minibatch({input: array})")
            lengths = minibatch.layouts[names[source]].sequences
            sizes[node] = (max(1, int((lengths[:, 3] - lengths[:, 2]).max(initial=1))),)
        return sizes

    def _data(self, node: NodeValue, arguments: object) -> Any:
        """Return the data that a program gives for an input, without the flags of the beginnings of sequences."""
        function = Function(node)
        arguments, _ = split(arguments) if isinstance(arguments, tuple) else (arguments, None)
        if isinstance(arguments, Mapping):
            pairs: Mapping[Any, Any] = arguments
            names = (function.name.lower(), function.uid.lower())
            data = next((data for key, data in pairs.items() if _names(key, function, names)), None)
        else:
            data = arguments if len(self._inputs) == 1 else None
        if data is None or (isinstance(data, MinibatchData) and not data.num_sequences):
            raise ArgumentError(f"there are no data for the {axes_of(function).name}", "give {input: data, ...}")
        return split(data)[0] if isinstance(data, tuple) else data

    def _of_batch(self, node: NodeValue) -> NodeValue:
        """Return an input that has as many sequences as the operand of a node that unpacks the minibatch.

        Raises:
            ArgumentError: the operand has no axis of the minibatch, or one of sequences.
        """
        if node not in self._axes:
            operand = Function(calls.inputs_of(node)[0])
            inputs = [source for source in operand.arguments if source.dynamic_axes]
            if len(operand.dynamic_axes) != 1 or not inputs:
                message = f"unpack_batch: one dynamic axis is expected, {operand!r} has {len(operand.dynamic_axes)}"
                raise ArgumentError(message, "sequence.last(x) and sequence.unpack(x, 0) have no sequence axis")
            self._axes[node] = inputs[0].root
        input_node = self._axes[node]
        assert input_node is not None
        return input_node

    def _longest(
        self, node: NodeValue, arguments: object, sizes: Mapping[NodeValue, Shape], of_steps: bool = True
    ) -> int:
        """Return the steps of the longest sequence of an input, or the number of its sequences."""
        data, axes = self._data(node, arguments), axes_of(Function(node))
        data = data.data if isinstance(data, MinibatchData) else data
        if node in sizes:
            axes = replace(axes, shape=tuple(reversed(sizes[node])))
        batch = data.read(axes) if isinstance(data, Value) else batch_of(data, axes)
        return max(1, int(batch.lengths.max(initial=1)) if of_steps else len(batch.lengths))


def _names(key: object, function: Function, names: Sequence[str]) -> bool:
    """Return whether a key of arguments means an input."""
    return key == function if isinstance(key, Function) else isinstance(key, str) and key.lower() in names


def _sized(axes: InputAxes, data: object) -> InputAxes:
    """Return the axes of an input with the sizes that its data have; samples of a reader may be flat."""
    if not isinstance(data, MinibatchData):
        return sized(axes, data)
    sample = data.sample_shape
    if sample is not None and len(sample) < len(axes.shape):
        return _of_elements(axes, math.prod(sample))
    return sized(axes, data.data if sample is None else np.empty(sample))


def _of_elements(axes: InputAxes, count: int) -> InputAxes:
    result = of_elements(axes, count)
    if result is None:
        message = f"the minibatch has {count} elements of a sample of the {axes.name}, which do not say its shape"
        raise ArgumentError(message, "give arrays: trainer.train_minibatch({input: array})")
    return result


def _nodes_shape(axes: InputAxes) -> Shape:
    """Return the shape of a sample as nodes count axes."""
    return tuple(reversed(axes.shape))
