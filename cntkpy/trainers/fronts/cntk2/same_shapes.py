"""Stacks of data that have the shapes of data before: nothing but their values is new."""

# What programs give is of any type.
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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


@dataclass
class SameShapes:
    """Makes stacks of one minibatch of arrays, and of lists of arrays of one shape.

    Args:
        names: the dense inputs of a function, with the names of their nodes.
        dtype: the element type of the network.
    """

    names: Mapping[Function, str]
    dtype: DTypeLike

    def __post_init__(self) -> None:
        self._known: dict[Key, tuple[Stack, list[tuple[int, ...]]]] = {}

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
        shapes = [stack.batch.inputs[name].shape for name in self.names.values()]
        minibatches = [Minibatch({}, minibatch.layouts, []) for minibatch in stack.minibatches]
        self._known[key] = replace(stack, batch=stack.batch._replace(inputs={}), minibatches=minibatches), shapes

    def stack(self, data: Iterable[Any], key: Key) -> Stack | None:
        """Return the stack of some data, in the memory of the program where it can be read there; None: their shapes
        are new.
        """
        if (known := self._known.get(key)) is None:
            return None
        stack, shapes = known
        steps, slots = stack.layouts[0].T, stack.layouts[0].S
        inputs: dict[str, Any] = {}
        for name, each, shape in zip(self.names.values(), data, shapes, strict=True):
            cells = np.asarray(each).reshape(slots, steps, *shape[3:]).swapaxes(0, 1)
            inputs[name] = self._padded(cells, shape)
        return replace(stack, batch=stack.batch._replace(inputs=inputs))

    def _padded(self, cells: HostArray, shape: tuple[int, ...]) -> HostArray:
        is_full = cells.shape[:2] == shape[1:3]
        if is_full and cells.flags.c_contiguous and cells.dtype == self.dtype:
            return cells.reshape(shape)
        padded = (empty if is_full else zeros)(shape, self.dtype)
        padded[0, : len(cells), : cells.shape[1]] = cells
        return padded


def _kind(data: Any) -> Key | None:
    """Return the shape and type of an array or of a list of equal arrays; None: it is something else."""
    if type(data) is np.ndarray:
        return data.shape, data.dtype
    if type(data) is list and data and {type(each) for each in data} == {np.ndarray}:
        kinds = {(each.shape, each.dtype) for each in data}
        return (len(data), *kinds) if len(kinds) == 1 else None
    return None
