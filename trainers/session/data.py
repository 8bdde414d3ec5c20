"""What programs give for the inputs of a network becomes a minibatch."""

# What programs give is of any type.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from networks.builders.python.calls import as_list
from networks.builders.python.function import Function
from networks.builders.python.graph import INPUTS, ONE_STEP, Model
from networks.graph.axes import main_axis, summed_axis
from networks.graph.network import Node
from readers import MinibatchData, Value
from readers.common.sparse import is_sparse
from readers.data_api.layouts import layout_of, rows_by_cell, single_samples
from readers.errors import ArgumentError
from readers.minibatch import Layout, Minibatch
from trainers.session.pieces import Pieces, split
from trainers.step.batching import input_nodes


def has_one_element(node: Node) -> bool:
    """Whether samples of a node are single numbers; a criterion of several elements counts with their sum."""
    return math.prod(node.shape or ()) == 1


@dataclass(eq=False)
class NetworkInput:
    """An input of a network.

    Args:
        function: what programs name it by.
        node: its node.
        sequence: whether its samples come in sequences; None: as the data do.
    """

    function: Function
    node: Node
    sequence: bool | None

    @cached_property
    def size(self) -> int:
        """Elements of a sample."""
        return math.prod(self.node.shape or ())

    @property
    def sample_shape(self) -> tuple[int, ...]:
        """Shape of a sample."""
        return tuple(reversed(self.node.shape or ()))

    def __str__(self) -> str:
        return f"input '{self.function.name or self.node.name}'"


def inputs_of(model: Model, roots: Iterable[Node]) -> list[NetworkInput]:
    """The inputs that some nodes of a network depend on."""
    needed = set(input_nodes(model.network, list(roots)))
    found: list[NetworkInput] = []
    for value, node in model.nodes.items():
        if node in needed:
            own = INPUTS.get(value)
            found.append(NetworkInput(Function(value), node, None if own is None else own.sequence))
    return found


def counted(criterion: Node, inputs: list[NetworkInput]) -> Callable[[Minibatch], int]:
    """How many samples of a minibatch a criterion is the sum of: those of its own time axis.

    The steps that a network keeps are known only when it is computed: all count.
    """
    axis = summed_axis(criterion)
    nodes = [one.node for one in inputs]
    of_axis = next((node.name for node in nodes if node.axis == axis), None)
    if of_axis is None and axis == ONE_STEP:
        return lambda minibatch: next(iter(minibatch.layouts.values())).num_sequences
    if of_axis is None:
        main = main_axis(nodes, [criterion])
        of_axis = next(node.name for node in nodes if node.axis == main)
    return lambda minibatch: minibatch.layouts[of_axis].num_samples


class Arguments:
    """Makes minibatches of the arguments of a network.

    Args:
        inputs: its inputs.
        dtype: its element type.
        whole: whether the network looks at whole sequences, which cannot come in pieces.
    """

    def __init__(self, inputs: list[NetworkInput], dtype: Any, whole: bool = False) -> None:
        self.whole = whole
        self.inputs, self._dtype = inputs, np.dtype(dtype)
        self._of = {one.function: one for one in inputs}
        self.pieces = Pieces()

    def by_input(self, given: Any) -> dict[NetworkInput, Any]:
        """The data by input.

        Raises:
            ArgumentError: something is missing, or is no input.
        """
        if not isinstance(given, Mapping):
            if len(self.inputs) != 1:
                names = ", ".join(map(str, self.inputs)) or "none"
                raise ArgumentError(
                    f"the arguments of a function of several inputs are a dictionary {{input: data}}, not "
                    f"{type(given).__name__}", f"it has: {names}",
                )  # fmt: skip
            return {self.inputs[0]: given}
        pairs: Mapping[Any, Any] = given
        try:
            return {one: pairs[function] for function, one in self._of.items()}
        except KeyError:
            pass  # keys are names, or something is missing
        found = {self._input(key): data for key, data in pairs.items()}
        result = {one: found[one] for one in self.inputs if one in found}
        missing = [one for one in self.inputs if one not in found]
        if missing:
            raise ArgumentError(f"there are no data for the {missing[0]}", "give {input: data, ...}")
        return result

    def _input(self, key: Any) -> NetworkInput | None:
        if isinstance(key, Function):
            return self._of.get(key)  # an input of some other part of the model may be given, too
        if isinstance(key, str):
            for one in self.inputs:
                if key.lower() in (one.node.name.lower(), one.function.name.lower()):
                    return one
            names = ", ".join(one.node.name for one in self.inputs)
            raise ArgumentError(f"there is no input '{key}'", f"there are: {names}")
        raise ArgumentError(f"the keys of arguments are inputs, not {type(key).__name__}")

    def minibatch(self, given: Any, *, goes_on: bool = False) -> Minibatch:
        """The minibatch of some arguments, with data that nobody else changes.

        Args:
            given: the arguments.
            goes_on: pieces of sequences stay in the slots of their source, for they go on in the next minibatch; else
                each is a sequence of its own.
        """
        streams: dict[str, Any] = {}
        layouts: dict[str, Layout] = {}
        sweep_end = truncated = False
        given, begins = split(given)
        for one, data in self.by_input(given).items():
            if isinstance(data, MinibatchData):
                sweep_end |= data.end_of_sweep
                pieces = goes_on and data.truncated
                truncated |= pieces
                lent = data.lend() if pieces or not data.truncated else None
                if lent is not None and (pieces or self._fits(one, lent[0])):
                    lent_data, layout = lent
                    streams[one.node.name] = self._checked(one, lent_data) if pieces else lent_data
                    layouts[one.node.name] = layout if pieces else single_samples(layout.S)
                    continue
                data = data.data
            else:
                data, own = split(data)
                begins = own if begins is None else begins
            streams[one.node.name], layouts[one.node.name] = self._stream(one, data)
        _check_counts(layouts)
        if not goes_on and layouts and not next(iter(layouts.values())).num_sequences:
            raise ArgumentError("the data have no sample", "give at least one")
        if begins is not None and not truncated:
            truncated = self._goes_on(begins, goes_on)
            layouts = self.pieces.place(layouts, begins) if truncated else layouts
        elif goes_on:
            self.pieces.forget()
        return Minibatch(streams, layouts, [], sweep_end, truncated=truncated)

    def _goes_on(self, begins: list[bool], trained: bool) -> bool:
        """Whether sequences of a minibatch may go on in the next one, or from the one before."""
        if not trained and not all(begins):
            message = "sequences go on from one minibatch to the next in training only"
            raise ArgumentError(
                message, "eval and tests see each minibatch by itself: give the sequences from the start"
            )
        return trained and not (all(begins) and self.whole)

    def _checked(self, one: NetworkInput, data: Any) -> Any:
        if data.shape[-1] != one.size:
            raise _wrong(one, data.shape)
        return data.astype(self._dtype, copy=False)

    def _fits(self, one: NetworkInput, data: Any) -> bool:
        return data.dtype == self._dtype and data.shape[-1] == one.size

    def _stream(self, one: NetworkInput, data: Any) -> tuple[Any, Layout]:
        if data is None:
            return np.zeros((1, 0, one.size), self._dtype), Layout(1, 0, np.zeros((0, 4), np.int64))
        value = data if isinstance(data, Value) else _value(one, data)
        if value.is_sparse:
            rows = value.as_csr().astype(self._dtype, copy=True)
            if rows.shape[1] != one.size:
                raise _wrong(one, rows.shape)
            lengths = np.ones(rows.shape[0], np.int64) if value.lengths is None else value.lengths
            layout = self._layout(one, lengths)
            return (rows if layout.T == 1 else rows_by_cell(rows, layout)), layout
        array = np.asarray(value.padded())
        count = array.shape[0]
        if value.lengths is None and array.size == count * one.size and array.size:
            _check_axes(one, array, 1)
            return np.array(array.reshape(1, count, one.size), self._dtype), single_samples(count)
        steps = array.shape[1] if value.lengths is not None else self._steps(one, array)
        no_sample = one.sequence is False and value.lengths is None and steps != 1 and array.size
        if count * steps * one.size != array.size or no_sample:
            raise _wrong(one, array.shape)
        _check_axes(one, array, 2)
        lengths = np.full(count, steps, np.int64) if value.lengths is None else value.lengths
        cells = array.reshape(count, steps, one.size).transpose(1, 0, 2)
        return np.array(cells, self._dtype, order="C"), self._layout(one, lengths)

    def _steps(self, one: NetworkInput, array: NDArray[Any]) -> int:
        """Samples of each row of an array."""
        if array.shape[0] and array.size == array.shape[0] * one.size:
            return 1
        return array.shape[1] if array.ndim > 1 else 1

    def _layout(self, one: NetworkInput, lengths: NDArray[np.int64]) -> Layout:
        if one.sequence is False and (lengths != 1).any():
            at = int(np.argmax(lengths != 1))
            raise ArgumentError(
                f"{one}: sequence {at} of the data has {int(lengths[at])} samples, an input_variable has one",
                SEQUENCES,
            )
        return layout_of(lengths)


FORM = "data are (n, *sample), or for sequences a list of arrays (length, *sample)"
SEQUENCES = "sequences need a sequence.input_variable"


def _value(one: NetworkInput, data: Any) -> Value:
    several = as_list(data)
    if isinstance(data, list) and several and not _is_sequence(one, several):
        try:
            data = np.asarray(several)
        except ValueError:
            raise ArgumentError(f"the samples for the {one} have different shapes", FORM) from None
    return Value(np.asarray([data]) if np.isscalar(data) else data)


def _is_sequence(one: NetworkInput, data: list[Any]) -> bool:
    """Whether the elements of a list are sequences, not samples."""
    first = data[0]
    if one.sequence is False:
        return is_sparse(first) or (isinstance(first, np.ndarray) and first.ndim > len(one.sample_shape))
    if np.ndim(first) > len(one.sample_shape) or is_sparse(first) or one.sequence is True:
        return True
    return one.size == 1 and any(np.ndim(each) == 1 and len(each) != 1 for each in data)  # of numbers


def _check_axes(one: NetworkInput, array: NDArray[Any], begin: int) -> None:
    """The axes of samples are those of the input, in their order; or samples are flat.

    Axes of one element may be there or not.
    """
    given = [size for size in array.shape[begin:] if size != 1]
    if len(given) > 1 and given != [size for size in one.sample_shape if size != 1]:
        raise _wrong(one, array.shape)


def _wrong(one: NetworkInput, shape: tuple[int, ...]) -> ArgumentError:
    return ArgumentError(
        f"data of shape {tuple(shape)} for the {one}, whose samples have the shape {one.sample_shape}",
        FORM if one.sequence is not False else f"data are (n, *sample); {SEQUENCES}",
    )


def _check_counts(layouts: Mapping[str, Layout]) -> None:
    """All inputs have as many sequences."""
    if len(set(map(id, layouts.values()))) == 1:
        return
    counts = {name: layout.num_sequences for name, layout in layouts.items()}
    for name, count in counts.items():
        first = next(iter(counts))
        if count != counts[first]:
            raise ArgumentError(
                f"input '{first}' has {counts[first]} sequences in this minibatch, input '{name}' has {count}"
            )
