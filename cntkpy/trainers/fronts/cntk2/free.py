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

    def __call__(self, given: Any) -> dict[NodeValue, Shape]:
        """The sizes of the free nodes.

        Args:
            given: the data, by input.

        Raises:
            ArgumentError: data of an input are missing, or have several sizes.
        """
        found: dict[NodeValue, Shape] = {}
        for one in self.nodes:
            if one in INPUTS:
                found[one] = _nodes_shape(_sized(axes_of(Function(one)), self._data(one, given)))
                continue
            if one.operation.name == "UnpackBatch":
                found[one] = (self._longest(self._of_batch(one), given, found, False),)
                continue
            if one not in self._axes:
                self._axes[one] = axis_input(one, found)
            source = self._axes[one]
            operand = Function(calls.inputs_of(one)[0])
            known = source is not None
            found[one] = (self._longest(source, given, found) if known else self._computed(operand, given),)
        return found

    def of_minibatch(
        self, minibatch: Minibatch, names: Mapping[NodeValue, str], before: Sizes
    ) -> dict[NodeValue, Shape]:
        """The sizes of a minibatch.

        Args:
            minibatch: its streams are called like input nodes.
            names: of these.
            before: the sizes of inputs, which a minibatch does not have.

        Raises:
            ArgumentError: they have other sizes, or lengths of sequences are computed.
        """
        found: dict[NodeValue, Shape] = {}
        for one in self.nodes:
            if one in INPUTS:
                count = minibatch.streams[names[one]].shape[-1] if one in names else math.prod(before[one])
                is_known = count == math.prod(before[one])
                found[one] = before[one] if is_known else _nodes_shape(_of_elements(axes_of(Function(one)), count))
                continue
            if one.operation.name == "UnpackBatch":
                found[one] = (minibatch.layouts[names[self._of_batch(one)]].num_sequences,)
                continue
            if one not in self._axes:
                self._axes[one] = axis_input(one, found)
            source = self._axes[one]
            if source is None:
                message = "the lengths of sequences that are unpacked are computed; a source does not say them"
                raise ArgumentError(message, "give arrays: trainer.train_minibatch({input: array})")
            lengths = minibatch.layouts[names[source]].sequences
            found[one] = (max(1, int((lengths[:, 3] - lengths[:, 2]).max(initial=1))),)
        return found

    def _data(self, one: NodeValue, given: Any) -> Any:
        """What a program gives for an input, without what it says of the beginnings of sequences."""
        function = Function(one)
        given, _ = split(given) if isinstance(given, tuple) else (given, None)
        if isinstance(given, Mapping):
            pairs: Mapping[Any, Any] = given
            names = (function.name.lower(), function.uid.lower())
            data = next((data for key, data in pairs.items() if _names(key, function, names)), None)
        else:
            data = given if len(self._inputs) == 1 else None
        if data is None or (isinstance(data, MinibatchData) and not data.num_sequences):
            raise ArgumentError(f"there are no data for the {axes_of(function).name}", "give {input: data, ...}")
        return split(data)[0] if isinstance(data, tuple) else data

    def _of_batch(self, one: NodeValue) -> NodeValue:
        """An input that has as many sequences as the operand of a node that unpacks the minibatch.

        Raises:
            ArgumentError: the operand has no axis of the minibatch, or one of sequences.
        """
        if one not in self._axes:
            operand = Function(calls.inputs_of(one)[0])
            inputs = [source for source in operand.arguments if source.dynamic_axes]
            if len(operand.dynamic_axes) != 1 or not inputs:
                message = f"unpack_batch: one dynamic axis is expected, {operand!r} has {len(operand.dynamic_axes)}"
                raise ArgumentError(message, "sequence.last(x) and sequence.unpack(x, 0) have no sequence axis")
            self._axes[one] = inputs[0].root
        found = self._axes[one]
        assert found is not None
        return found

    def _longest(self, one: NodeValue, given: Any, found: Mapping[NodeValue, Shape], of_steps: bool = True) -> int:
        """The steps of the longest sequence of an input, or the number of its sequences."""
        data, axes = self._data(one, given), axes_of(Function(one))
        data = data.data if isinstance(data, MinibatchData) else data
        if one in found:
            axes = replace(axes, shape=tuple(reversed(found[one])))
        batch = data.read(axes) if isinstance(data, Value) else batch_of(data, axes)
        return max(1, int(batch.lengths.max(initial=1)) if of_steps else len(batch.lengths))


def _names(key: Any, function: Function, names: Sequence[str]) -> bool:
    """Whether a key of arguments means an input."""
    return key == function if isinstance(key, Function) else isinstance(key, str) and key.lower() in names


def _sized(axes: InputAxes, data: Any) -> InputAxes:
    """The axes of an input with the sizes that its data have; samples of a reader may be flat."""
    if not isinstance(data, MinibatchData):
        return sized(axes, data)
    sample = data.sample_shape
    if sample is not None and len(sample) < len(axes.shape):
        return _of_elements(axes, math.prod(sample))
    return sized(axes, data.data if sample is None else np.empty(sample))


def _of_elements(axes: InputAxes, count: int) -> InputAxes:
    found = of_elements(axes, count)
    if found is None:
        message = f"the minibatch has {count} elements of a sample of the {axes.name}, which do not say its shape"
        raise ArgumentError(message, "give arrays: trainer.train_minibatch({input: array})")
    return found


def _nodes_shape(axes: InputAxes) -> Shape:
    """The shape of a sample as nodes count axes."""
    return tuple(reversed(axes.shape))


__all__ = ["FreeSizes"]
