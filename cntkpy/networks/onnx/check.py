"""An exported model computed by onnxruntime and by this package, on the same random data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.networks.graph.axes import ONE
from cntkpy.networks.graph.node import Node
from cntkpy.networks.onnx import ours
from cntkpy.networks.onnx.export import Exported
from cntkpy.networks.onnx.package import onnxruntime

ABSOLUTE, RELATIVE = 1e-5, 1e-4
"""Largest difference of values in single precision."""

DOUBLE_BOUND = 1e-9
"""The same in double precision, absolute and relative."""

FATAL = 4
"""The level of onnxruntime's log that says least."""

STEPS, SEQUENCES = (1, 2, 7), 3

MOST_SEQUENCES = 16
"""Sequences of a minibatch that are compared."""


class Difference(NamedTuple):
    """Difference of an output.

    Attributes:
        output: its name.
        largest: the largest absolute difference.
        allowed: whether all elements are within the bound.
    """

    output: str
    largest: float
    allowed: bool


def random_data(exported: Exported, random: np.random.Generator) -> Iterator[dict[str, np.ndarray]]:
    """Minibatches of normal numbers, one-hot vectors for sparse inputs, by name of the input `(T, S, ...)`."""
    along_time = len(exported.axes) == 2
    for steps in STEPS if along_time else (1,):
        feeds: dict[str, np.ndarray] = {}
        for node in (*exported.inputs, *exported.unused):
            count = 1 if node.axis == ONE else steps
            dims = tuple(reversed(node.shape or ()))
            values = random.normal(size=(count, SEQUENCES, *dims))
            if node.operation == "SparseInputValue" or node in exported.indices:
                values = np.zeros_like(values)
                size = values[0, 0].size
                places = random.integers(0, size, (count, SEQUENCES, 1))
                np.put_along_axis(values.reshape(count, SEQUENCES, size), places, 1, axis=2)
            feeds[node.name] = values.astype(exported.dtype)
        yield feeds


def as_fed(exported: Exported, node: Node, array: np.ndarray) -> np.ndarray:
    """Return the value of a node, `(T, S, ...)` if it carries data, with the leading axes that it has in the model."""
    if not node.has_layout:
        return array
    if node in exported.indices:
        array = array.argmax(axis=-1)
    if len(exported.axes) == 1 or node.axis == ONE:
        return array[0]
    return np.ascontiguousarray(array.swapaxes(0, 1)) if exported.axes[0] == "batch" else array


def run(model: bytes, data: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the outputs of a model by onnxruntime, by name.

    Raises:
        UserError: onnxruntime is not installed.
    """
    runtime = onnxruntime()
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = FATAL
    try:
        session = runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        names = [output.name for output in session.get_outputs()]
        return dict(zip(names, session.run(names, dict(data)), strict=True))
    except Exception as problem:  # its exceptions have no common base of their own
        if not type(problem).__module__.startswith("onnxruntime"):
            raise
        message = f"onnxruntime cannot run the model: {problem}"
        hint = (
            "in double precision it lacks some operators: leave out --double"
            if "double" in str(problem).lower() or "NOT_IMPLEMENTED" in str(problem)
            else "--no-check writes it unchecked"
        )
        raise UserError("NotSupported", message, hint=hint) from None


def check(exported: Exported, model: bytes, seed: int = 1) -> list[Difference]:
    """Return the largest difference of each output.

    Raises:
        UserError: onnxruntime is not installed.
    """
    differences: list[Difference] = []
    names = [node.name for node in exported.outputs]
    random = np.random.default_rng(seed)
    for data in random_data(exported, random):
        lengths = random_lengths(exported, data, random)
        batch = ours.minibatch(exported.network, names, data, lengths)
        expected = ours.masked_values(exported.network, names, batch)
        feeds = {
            node.name: as_fed(exported, node, _with_mean(exported, node, data[node.name])) for node in exported.inputs
        }
        got = run(model, feeds | {exported.lengths[axis]: lengths for axis, lengths in lengths.items()})
        here: list[Difference] = []
        for node in exported.outputs:
            value, mask = expected[node.name]
            pair = (got[node.name], as_fed(exported, node, value))
            if lengths and mask is not None and node.axis != ONE:
                pair = _where_there_are_steps(pair, mask, exported.axes[0] == "batch")
            here.append(difference(node.name, *pair))
        differences = merged(differences, here)
    return differences


def _with_mean(exported: Exported, node: Node, value: np.ndarray) -> np.ndarray:
    """Return the value of an input as the model takes it, which subtracts a mean first."""
    return value + exported.means[node.name] if node.name in exported.means else value


def random_lengths(
    exported: Exported, data: Mapping[str, np.ndarray], random: np.random.Generator
) -> dict[str, np.ndarray]:
    """By time axis, the numbers of steps that a model has as inputs; one sequence is as long as the data."""
    drawn_lengths: dict[str, np.ndarray] = {}
    for node in (*exported.inputs, *exported.unused):
        if node.axis in exported.lengths and node.axis not in drawn_lengths:
            steps, count = (int(size) for size in data[node.name].shape[:2])
            drawn = [steps, *(int(random.integers(1, steps + 1)) for _ in range(count - 1))]
            drawn_lengths[node.axis] = np.array(drawn, np.int64)
    return drawn_lengths


def _where_there_are_steps(
    pair: tuple[np.ndarray, np.ndarray], mask: np.ndarray, batch_first: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return two values without the padding of sequences."""
    time = 1 if batch_first else 0
    steps = min(pair[0].shape[time], pair[1].shape[time])
    mask = (mask.T if batch_first else mask).take(range(steps), axis=time)
    return pair[0].take(range(steps), axis=time)[mask], pair[1].take(range(steps), axis=time)[mask]


def merged(some: Sequence[Difference], later: Sequence[Difference]) -> list[Difference]:
    """For each output the larger of two differences; those of an output that only one has."""
    by_output = {difference.output: difference for difference in some}
    for difference in later:
        former = by_output.get(difference.output, difference)
        by_output[difference.output] = Difference(
            difference.output, max(former.largest, difference.largest), former.allowed and difference.allowed
        )
    return list(by_output.values())


def with_data(exported: Exported) -> list[Node]:
    """Return the inputs, and the outputs whose values on data are known: of sequences, those with a value for each
    step.
    """
    single = len(exported.axes) == 1
    return [*exported.inputs, *(node for node in exported.outputs if single or node.has_layout)]


def check_data(exported: Exported, model: bytes, sequences: Sequence[Sequence[np.ndarray]]) -> list[Difference]:
    """As `check`, on values that are known.

    Args:
        exported: the graph.
        model: the ONNX model.
        sequences: of each sequence, or of all frames together, the values `(steps, elements)` of `with_data`.

    Raises:
        UserError: onnxruntime is not installed.
    """
    differences: list[Difference] = []
    nodes = with_data(exported)
    for values in sequences[:MOST_SEQUENCES]:
        arrays = {node.name: _arranged(exported, node, value) for node, value in zip(nodes, values, strict=True)}
        feeds = {node.name: _with_mean(exported, node, arrays[node.name]) for node in exported.inputs}
        for node in exported.inputs:
            if node.axis in exported.lengths:
                steps = arrays[node.name].shape[1 if exported.axes[0] == "batch" else 0]
                feeds[exported.lengths[node.axis]] = np.array([steps])
        got = run(model, feeds)
        here = [difference(node.name, got[node.name], arrays[node.name]) for node in nodes[len(exported.inputs) :]]
        differences = merged(differences, here)
    return differences


def _arranged(exported: Exported, node: Node, value: np.ndarray) -> np.ndarray:
    """Values `(steps, elements)` of one sequence as in the model."""
    dims = tuple(reversed(node.shape or ()))
    if not node.has_layout:
        return value.astype(exported.dtype).reshape(dims)
    array = value.astype(exported.dtype).reshape(len(value), *dims)
    if node in exported.indices and len(exported.axes) == 1:
        return array.argmax(axis=-1)
    if len(exported.axes) == 1:
        return array
    return as_fed(exported, node, array[:, None])


def difference(name: str, got: np.ndarray, expected: np.ndarray) -> Difference:
    """Return the difference of two arrays; elements that are equal, infinite or not numbers in both, are not."""
    if got.shape != expected.shape:
        return Difference(name, float("inf"), False)
    mine, theirs = np.asarray(expected, np.float64), np.asarray(got, np.float64)
    same = (mine == theirs) | (np.isnan(mine) & np.isnan(theirs))
    with np.errstate(invalid="ignore"):
        apart: Any = np.where(same, 0, np.abs(mine - theirs))
    both_double = got.dtype == expected.dtype == np.float64
    bound = DOUBLE_BOUND * (1 + np.abs(mine)) if both_double else ABSOLUTE + RELATIVE * np.abs(mine)
    return Difference(name, float(np.max(apart, initial=0)), bool(np.all(same | (apart <= bound))))
