"""Minibatches from the data that programs give for the inputs of a network."""

# What programs give is of any type.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from cntkpy.networks.builders.python.functions.function import Function
from cntkpy.networks.builders.python.functions.graph import ONE_STEP, Model, looks_along_time
from cntkpy.networks.builders.python.functions.per_sample import per_sample
from cntkpy.networks.graph.axes import main_axis, summed_axis
from cntkpy.networks.graph.network import Node
from cntkpy.readers import MinibatchData, Value
from cntkpy.readers.common.sparse import is_dense
from cntkpy.readers.data_api.batches import InputAxes, batch_of, check_sample, items_of
from cntkpy.readers.data_api.layouts import laid_out, single_samples
from cntkpy.readers.data_api.value import axes_of
from cntkpy.readers.errors import ArgumentError
from cntkpy.readers.minibatch import Layout, Minibatch
from cntkpy.trainers.fronts.cntk2.pieces import Pieces, check_beginnings, same_beginnings, split
from cntkpy.trainers.step.axes import made_samples
from cntkpy.trainers.step.memory import HostArray
from cntkpy.trainers.step.padding import input_nodes


def has_one_element(node: Node) -> bool:
    """Return whether samples of a node are single numbers; a criterion of several elements counts with their sum."""
    return math.prod(node.shape or ()) == 1


def with_samples(criterion: Function) -> Function:
    """Return the criterion itself; of an operand without samples, an array, the formula that has a value for each
    sample.

    A criterion node sums over the minibatch, in which both of its operands have samples.
    """
    if all(argument.arguments for argument in criterion.inputs[:2]):
        return criterion
    return Function(per_sample(criterion.root))


@dataclass(eq=False)
class NetworkInput:
    """An input of a network.

    Args:
        function: what programs name it by.
        node: its node.
        axes: the axes that its data have.
    """

    function: Function
    node: Node
    axes: InputAxes

    @cached_property
    def size(self) -> int:
        """Elements of a sample."""
        return math.prod(self.node.shape or ())

    @property
    def sequence(self) -> bool:
        """Return whether its samples come in sequences."""
        return self.axes.dynamic == 2

    @property
    def may_have_steps(self) -> bool:
        """Return whether its data may be sequences of more than one step."""
        return self.axes.dynamic in (2, None)

    @property
    def is_dense(self) -> bool:
        """Return whether its data are dense samples of a minibatch."""
        return self.axes.dynamic != 0 and not self.node.kind.sparse

    def __str__(self) -> str:
        return self.axes.name


def inputs_of(model: Model, roots: Iterable[Node]) -> list[NetworkInput]:
    """Return the inputs that some nodes of a network depend on."""
    needed = set(input_nodes(model.network, list(roots)))
    steps = any(map(looks_along_time, model.nodes))
    return [_input_of(Function(value), node, steps) for value, node in model.nodes.items() if node in needed]


def _input_of(function: Function, node: Node, steps: bool) -> NetworkInput:
    """Return an input of a network; of a file it has sequences where the network looks along their steps."""
    axes = replace(axes_of(function), name=f"input '{function.name or node.name}'")
    if 0 in axes.shape:  # free axes, whose sizes the node has
        axes = replace(axes, shape=tuple(reversed(node.shape or ())))
    if axes.dynamic is None:
        axes = replace(axes, shape=tuple(reversed(node.shape or ())))
        if node.axis == ONE_STEP:
            axes = replace(axes, dynamic=1)
        elif steps:
            axes = replace(axes, dynamic=2)
    return NetworkInput(function, node, axes)


def counted(criterion: Node, inputs: list[NetworkInput], below: Iterable[Node]) -> Callable[[Minibatch], int]:
    """Return a function that counts the samples of a minibatch on the time axis of a criterion.

    The steps that a network keeps are known only when it is computed: all count.
    """
    axis = summed_axis(criterion)
    made = made_samples(below)
    if axis in made:
        return made[axis]
    nodes = [argument.node for argument in inputs]
    of_axis = next((node.name for node in nodes if node.axis == axis), None)
    if of_axis is None and axis == ONE_STEP:
        return lambda minibatch: next(iter(minibatch.layouts.values())).num_sequences
    if of_axis is None:
        main = main_axis(nodes, [criterion])
        of_axis = next(node.name for node in nodes if node.axis == main)
    return lambda minibatch: minibatch.layouts[of_axis].num_samples


def needs_whole(nodes: Iterable[Node]) -> bool:
    """Return whether one of some nodes looks at whole sequences, which cannot come in pieces."""
    return any(node.kind.time.own_slots for node in nodes)


class Arguments:
    """Makes minibatches of the arguments of a network.

    Args:
        inputs: its inputs.
        dtype: its element type.
        whole: whether the network looks at whole sequences, which cannot come in pieces.
        made: the samples of a minibatch that the network makes itself, of values that all its samples share; 0: none.
    """

    def __init__(self, inputs: list[NetworkInput], dtype: DTypeLike, whole: bool = False, made: int = 0) -> None:
        self.whole, self._made = whole, made
        self.inputs, self._dtype = inputs, np.dtype(dtype)
        self._of = {argument.function: argument for argument in inputs}
        self.pieces = Pieces()
        static = [argument for argument in inputs if argument.axes.dynamic == 0]
        self.repeated = [argument.function for argument in static] if len(static) < len(inputs) or made else []
        """Inputs without dynamic axes whose value is in every sequence of a minibatch."""
        self._may_have_steps = any(argument.may_have_steps for argument in inputs)
        self.is_static = bool(inputs) and len(static) == len(inputs) and not made
        """Return whether no input has dynamic axes."""

    def by_input(self, arguments: object) -> dict[NetworkInput, object]:
        """Return the data by input.

        Raises:
            ArgumentError: something is missing, or is not an input.
        """
        if not isinstance(arguments, Mapping):
            if len(self.inputs) != 1:
                names = ", ".join(map(str, self.inputs)) or "none"
                raise ArgumentError(
                    f"the arguments of a function of several inputs are a dictionary {{input: data}}, not "
                    f"{type(arguments).__name__}",
                    f"it has: {names}",
                )
            return {self.inputs[0]: arguments}
        pairs: Mapping[Any, Any] = arguments
        try:
            return {argument: pairs[function] for function, argument in self._of.items()}
        except KeyError:
            pass  # keys are names, or something is missing
        by_argument = {self._input(key): data for key, data in pairs.items()}
        result = {argument: by_argument[argument] for argument in self.inputs if argument in by_argument}
        missing = [argument for argument in self.inputs if argument not in by_argument]
        if missing:
            raise ArgumentError(f"there are no data for the {missing[0]}", "give {input: data, ...}")
        return result

    def _input(self, key: object) -> NetworkInput | None:
        if isinstance(key, Function):
            return self._of.get(key)  # an input of some other part of the model may be given, too
        if isinstance(key, str):
            for argument in self.inputs:
                if key.lower() in (argument.node.name.lower(), argument.function.name.lower()):
                    return argument
            names = ", ".join(argument.node.name for argument in self.inputs)
            raise ArgumentError(f"there is no input '{key}'", f"there are: {names}")
        raise ArgumentError(f"the keys of arguments are inputs, not {type(key).__name__}")

    def minibatch(self, arguments: object, *, continued: bool = False, resumes: bool = False) -> Minibatch:
        """Return the minibatch of some arguments, with data that nobody else changes.

        Args:
            arguments: the arguments.
            continued: pieces of sequences stay in the slots of their source, because they continue in the next
                minibatch; else each is a sequence of its own.
            resumes: sequences may resume from the minibatch before, as the truth values of a program say.
        """
        streams: dict[str, Any] = {}
        layouts: dict[str, Layout] = {}
        sweep_end = truncated = False
        arguments, shared = split(arguments) if isinstance(arguments, tuple) else (arguments, None)
        begins = shared
        for argument, data in self.by_input(arguments).items():
            starts = shared
            if shared is not None and isinstance(data, Value | MinibatchData):
                split((data, shared))
            if isinstance(data, MinibatchData):
                sweep_end |= data.end_of_sweep
                if data.sample_shape is not None:
                    check_sample(data.sample_shape, argument.axes)
                pieces = continued and data.truncated
                truncated |= pieces
                lent = data.lend() if pieces or not data.truncated else None
                if lent is not None and (pieces or lent[0].dtype == self._dtype):
                    lent_data, layout = lent
                    streams[argument.node.name] = lent_data.astype(self._dtype, copy=False) if pieces else lent_data
                    layouts[argument.node.name] = layout if pieces else single_samples(layout.S)
                    continue
                data = data.data
            else:
                data, given_here = split(data)
                starts = given_here if starts is None else starts
                begins = same_beginnings(begins, starts)
                if starts is not None and not (
                    argument.may_have_steps or (shared is not None and self._may_have_steps)
                ):
                    message = f"there are truth values for the {argument}, which has no sequence axis"
                    raise ArgumentError(message, "they say where sequences begin: make it a sequence.input_variable")
            streams[argument.node.name], layouts[argument.node.name] = self._stream(argument, data, starts is not None)
        self._repeat(streams, layouts)
        _check_counts(layouts)
        if not continued and layouts and not next(iter(layouts.values())).num_sequences:
            raise ArgumentError("the data have no sample", "give at least one")
        check_beginnings(begins, layouts)
        alike = len({layout.sequences.tobytes() for layout in layouts.values()}) == 1
        if begins is not None and not truncated and (continued or alike or not all(begins)):
            truncated = self._continued(begins, continued or resumes)
            layouts = self.pieces.place(layouts, begins) if truncated else layouts
        elif continued or resumes:
            self.pieces.forget()
        return Minibatch(streams, layouts, [], sweep_end, truncated=truncated)

    def _repeat(self, streams: dict[str, HostArray], layouts: dict[str, Layout]) -> None:
        """Let inputs without dynamic axes have their value in every sequence of the minibatch."""
        if not self.repeated:
            return
        names = [argument.node.name for argument in self.inputs if argument.function in self.repeated]
        counts = (layout.num_sequences for name, layout in layouts.items() if name not in names)
        count = next(counts, self._made)
        for name in names:
            data = streams[name]
            streams[name] = np.repeat(data, count, axis=1) if is_dense(data) else data[np.zeros(count, int)]
            layouts[name] = single_samples(count)

    def _continued(self, begins: list[bool], may_resume: bool) -> bool:
        """Return whether sequences of a minibatch may continue in the next one, or from the one before."""
        if not may_resume and not all(begins):
            message = "sequences resume from one minibatch to the next in training and in eval only"
            raise ArgumentError(
                message, "tests, forward and grad see each minibatch by itself: give the sequences from the start"
            )
        if self.whole and not all(begins):
            message = "the network looks at whole sequences, as sequence.last does, so that none can resume"
            raise ArgumentError(message, "give the sequences from the start")
        return may_resume and not self.whole

    def _stream(self, argument: NetworkInput, data: object, apart: bool) -> tuple[Any, Layout]:
        """Return the cells of an input and their layout.

        Args:
            argument: the input.
            data: what a program gives for it.
            apart: each row of an array is a sequence.
        """
        if data is None:
            return np.zeros((1, 0, argument.size), self._dtype), Layout(1, 0, np.zeros((0, 4), np.int64))
        if isinstance(data, Value):
            batch = data.read(argument.axes)
        else:
            batch = items_of(data, argument.axes) if apart and is_dense(data) else batch_of(data, argument.axes)
        return laid_out(batch, self._dtype)


def _check_counts(layouts: Mapping[str, Layout]) -> None:
    """All inputs have as many sequences."""
    if len(set(map(id, layouts.values()))) == 1:
        return
    counts = {name: layout.num_sequences for name, layout in layouts.items()}
    for name, count in counts.items():
        first = next(iter(counts))
        if count != counts[first]:
            raise ArgumentError(
                f"input '{first}' has {counts[first]} sequence{'s' * (counts[first] != 1)} in this minibatch, "
                f"input '{name}' has {count}"
            )
