"""Data that have the shapes of data before: nothing but their values is new."""

# What programs give is of any type.
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from cntkpy.networks.builders.python.functions.function import Function
from cntkpy.readers.minibatch import Minibatch
from cntkpy.trainers.step.memory import HostArray, empty, zeros
from cntkpy.trainers.step.stack import Stack

MAX_SHAPES = 32
"""Number of combinations of shapes that are known; of the others a stack is made in full."""

Key = tuple[object, ...]
Inputs = Mapping[str, HostArray]


@dataclass
class Known:
    """The common part of minibatches of some shapes.

    Attributes:
        stack: a stack of one minibatch, without data.
        shapes: those of its inputs, by name.
        dtype: the element type of the network.
        evaluate: gives values of inputs with the parameters of now; None: there were none of these shapes with them.
    """

    stack: Stack
    shapes: Mapping[str, tuple[int, ...]]
    dtype: DTypeLike
    evaluate: Callable[[Inputs], Mapping[str, Any]] | None = None

    def __post_init__(self) -> None:
        layout = self.stack.layouts[0]
        is_flat = 1 in (layout.T, layout.S)
        self._whole = {name for name, shape in self.shapes.items() if is_flat and shape[1:3] == (layout.T, layout.S)}
        """Inputs whose data lie in a program as they lie in an array."""

    def inputs(self, data: Iterable[Any]) -> dict[str, HostArray]:
        """Return inputs for data of these shapes, in the memory of the program where they can be read there."""
        layout = self.stack.layouts[0]
        inputs: dict[str, HostArray] = {}
        for (name, shape), each in zip(self.shapes.items(), data, strict=True):
            if name in self._whole and type(each) is np.ndarray and self._fits(each):
                inputs[name] = each.reshape(shape)
                continue
            cells = np.asarray(each).reshape(layout.S, layout.T, *shape[3:]).swapaxes(0, 1)
            inputs[name] = self._padded(cells, shape)
        return inputs

    def stack_of(self, inputs: Inputs) -> Stack:
        """Return the stack of inputs."""
        return replace(self.stack, batch=self.stack.batch._replace(inputs=inputs))

    def _fits(self, array: HostArray) -> bool:
        """Return whether a program reads an array as it lies."""
        return array.flags.c_contiguous and array.dtype == self.dtype

    def _padded(self, cells: HostArray, shape: tuple[int, ...]) -> HostArray:
        is_full = cells.shape[:2] == shape[1:3]
        if is_full and self._fits(cells):
            return cells.reshape(shape)
        padded = (empty if is_full else zeros)(shape, self.dtype)
        padded[0, : len(cells), : cells.shape[1]] = cells
        return padded


@dataclass
class SameShapes:
    """Knows the shapes of arrays, and of lists of arrays of one shape.

    Args:
        names: the dense inputs of a function, with the names of their nodes.
        dtype: the element type of the network.
    """

    names: Mapping[Function, str]
    dtype: DTypeLike

    def __post_init__(self) -> None:
        self._known: dict[Key, Known] = {}

    def by_input(self, arguments: object) -> tuple[Sequence[Any], Key] | None:
        """Return the data of each input, and their shapes and types; None: they are not arrays, or incomplete."""
        if isinstance(arguments, Mapping):
            pairs: Mapping[Any, Any] = arguments
            data = [pairs.get(function) for function in self.names]
        else:
            data = [arguments] if len(self.names) == 1 else []
        kinds = [_kind(each) for each in data]
        return (data, tuple(kinds)) if kinds and None not in kinds else None

    def keep(self, key: Key, stack: Stack) -> None:
        """Keep what stacks of these shapes have in common."""
        if stack.placed is not None or len(self._known) >= MAX_SHAPES:
            return
        shapes = {name: stack.batch.inputs[name].shape for name in self.names.values()}
        minibatches = [Minibatch({}, minibatch.layouts, []) for minibatch in stack.minibatches]
        empty_stack = replace(stack, batch=stack.batch._replace(inputs={}), minibatches=minibatches)
        self._known[key] = Known(empty_stack, shapes, self.dtype)

    def find(self, key: Key) -> Known | None:
        """Return what is known of shapes; None: they are new."""
        return self._known.get(key)

    def forget_parameters(self) -> None:
        """Evaluate with other parameters from now on."""
        for known in self._known.values():
            known.evaluate = None


def _kind(data: Any) -> Key | None:
    """Return the shape and type of an array or of a list of equal arrays; None: it is something else."""
    if type(data) is np.ndarray:
        return data.shape, data.dtype
    if type(data) is not list or not data or (kind := _kind(data[0])) is None:
        return None
    for each in data:
        if type(each) is not np.ndarray or (each.shape, each.dtype) != kind:
            return None
    return len(data), kind
