"""Data for comparing source with its network, and how source has them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from cntkpy.networks.graph.axes import ONE, equal_lengths
from cntkpy.networks.graph.network import Node
from cntkpy.networks.nodes.source_support.values import dims_of
from cntkpy.networks.source.export import Source

OF_LABELS = ("CrossEntropyWithSoftmax", "CrossEntropy", "ClassificationError")
"""Criteria whose first operand is one-hot, or sums to 1."""

OF_PROBABILITIES = ("CrossEntropy", "Logistic")
"""Criteria whose second operand is a probability."""

SEQUENCES, LONGER = 3, 4
"""Sequences of a minibatch; by how many steps those of the second minibatch are longer."""


class Data(NamedTuple):
    """A minibatch.

    Attributes:
        values: by name of the input node, `(steps, sequences, ...)`.
        lengths: by time axis, the steps of each sequence.
    """

    values: Mapping[str, np.ndarray]
    lengths: Mapping[str, np.ndarray]


def random_data(source: Source, seed: int = 1, shortest: int = 1) -> Iterator[Data]:
    """Yield minibatches of normal numbers, one-hot vectors for sparse inputs and labels, and probabilities.

    Args:
        source: the module.
        seed: of the numbers.
        shortest: steps of the shortest sequences.
    """
    random, graph = np.random.default_rng(seed), source.graph
    probabilities = {node.input(1).name for node in graph.users if node.operation in OF_PROBABILITIES}
    dtype = np.float64 if graph.network.precision == "double" else np.float32
    labels = {node.name for node in graph.network.groups["label"]}
    labels |= {node.input(0).name for node in graph.users if node.operation in OF_LABELS}
    tied, classes = _tied_axes(source), _classes(source)
    for steps in (shortest, shortest + LONGER) if graph.along_time else (1,):
        lengths: dict[str, np.ndarray] = {}
        values: dict[str, np.ndarray] = {}
        for node in graph.plan.inputs:
            axis = str(node.axis)
            chief = tied.get(axis, axis)
            entry = 1 if ONE in (node.axis, chief) else steps
            if axis not in lengths and node.axis != ONE and graph.along_time:
                if chief not in lengths:
                    lengths[chief] = np.array([entry, *random.integers(min(shortest, entry), entry + 1, SEQUENCES - 1)])
                lengths[axis] = lengths[chief]
            array = random.normal(size=(entry, SEQUENCES, *reversed(node.shape or ())))
            if node.name in probabilities:
                array = 1 / (1 + np.exp(-array))
            if node.name in classes:
                array = _word_labels(random, array.shape, *classes[node.name])
            elif node.operation == "SparseInputValue" or node.name in labels:
                flat = np.zeros_like(array).reshape(entry, SEQUENCES, -1)
                places = random.integers(0, flat.shape[-1], (entry, SEQUENCES, 1))
                np.put_along_axis(flat, places, 1, axis=2)
                array = flat.reshape(array.shape)
            values[node.name] = array.astype(dtype)
        yield Data(values, lengths)


def _classes(source: Source) -> dict[str, tuple[int, int]]:
    """Return, for labels of criteria with word classes, the numbers of words and of classes."""
    return {
        node.input(0).name: ((node.input(2).shape or (1, 1))[1], (node.input(3).shape or (1,))[0])
        for node in source.graph.users
        if node.operation == "ClassBasedCrossEntropyWithSoftmax"
    }


def _word_labels(random: np.random.Generator, shape: tuple[int, ...], words: int, classes: int) -> np.ndarray:
    """Return labels: word, class, first word of the class, word behind the last one of the class."""
    result = np.zeros(shape)
    word = random.integers(0, words, shape[:2])
    bounds = np.linspace(0, words, classes + 1).astype(int)
    group = np.searchsorted(bounds, word, side="right") - 1
    for place, number in enumerate((word, group, bounds[group], bounds[group + 1])):
        result.reshape(*shape[:2], -1)[..., place] = number
    return result


def _tied_axes(source: Source) -> dict[str, str]:
    """Return, for time axes whose sequences have the lengths of another one, that one."""
    network = source.graph.filled()
    below = network.below([network.find(node.name) for node in source.outputs])
    result: dict[str, str] = {}
    for _, first, second in equal_lengths(below):
        axes = sorted({str(first.axis), str(second.axis)}, key=lambda axis: (axis != ONE, axis))
        for axis in axes:
            result[axis] = result.get(axes[0], axes[0])
    return result


class Result(NamedTuple):
    """Values and gradients, by the names of outputs, inputs and parameters."""

    values: dict[str, np.ndarray]
    gradients: dict[str, np.ndarray]
    masks: dict[str, np.ndarray | None]


def fed(source: Source, node: Node, array: np.ndarray) -> np.ndarray:
    """Return `(steps, sequences, ...)` of a node as the module has it."""
    if not node.has_layout:
        return array.reshape(dims_of(node))
    if node in source.indices:
        array = array.argmax(-1)
        return np.ascontiguousarray(array.swapaxes(0, 1))
    if not source.graph.along_time or node.axis == ONE:
        return array[0].reshape(array.shape[1], *dims_of(node))
    dims = array.shape[2:] if node.operation == "AttentionWeights" else dims_of(node)
    return np.ascontiguousarray(array.swapaxes(0, 1)).reshape(array.shape[1], array.shape[0], *dims)


def mask_of(source: Source, data: Data, axis: str) -> np.ndarray:
    """Return the mask of steps of the sequences of an axis, `(sequences, steps)`."""
    node = next(node for node in source.graph.plan.inputs if str(node.axis) == axis)
    steps, count = (int(size) for size in data.values[node.name].shape[:2])
    numbers: Any = np.arange(steps)
    ends: Any = data.lengths.get(axis)
    if ends is None:
        return np.ones((count, steps), bool)
    return np.less(numbers[None], np.asarray(ends)[:, None])


Run = Callable[[Data, Mapping[str, np.ndarray], bool], Result]
"""Computes what source gives for data; the weights of outputs whose sum is differentiated; whether it is."""
