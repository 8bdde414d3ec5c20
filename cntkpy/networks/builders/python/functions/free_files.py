"""Functions with sizes that only data say, in model files.

A model file holds a network of some sizes. Beside it stands which of them are free (`Written.free`): axes of inputs,
the steps of unpacked sequences, axes of constants that are made for the sizes of the data, and options that are
products of such sizes. Two networks of different sizes say what depends on them.
"""

# What model files hold is of any type.
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.networks.builders.brainscript.node_values import NodeValue, Shape
from cntkpy.networks.builders.python.functions import graph
from cntkpy.networks.builders.python.functions.free import TRIED, free_nodes, with_sizes
from cntkpy.networks.builders.python.functions.nodes import INPUTS
from cntkpy.networks.builders.python.functions.recipes import UNPACKED, Growing, Size, mark_growing, size_of
from cntkpy.networks.graph.node import Node
from cntkpy.networks.graph.written import Written

_SIZES = ((31, 37, 41, 43, 47, 53), (59, 61, 67, 71, 73, 79))
"""Sizes of two networks: every free axis has one of its own."""

_OTHER_SIZES = ((32, 38, 42, 44, 48, 54), (33, 39, 45, 51, 57, 63))
"""Sizes that strides divide: paddings of windows may depend on the remainder."""


class _Sized(NamedTuple):
    """A network of a function, with its free axes by node and number of the axis."""

    model: graph.Model
    known: Mapping[NodeValue, NodeValue]
    sizes: dict[tuple[NodeValue, int], int]

    def node(self, value: NodeValue) -> Node:
        """Return the node of a free node of the function."""
        return self.model.nodes[self.known[value]]


def sized_with_marks(roots: Sequence[NodeValue]) -> graph.Model:
    """Return a network of a function with free sizes, whose nodes say which sizes are free.

    Raises:
        UserError: the function does not work with the sizes that are tried, or a part of it depends on them in another
            way than by its shape.
    """
    free = free_nodes(roots)
    first, second = _pair(roots, free)
    names = [[node.name for node in each.model.network.nodes.values()] for each in (first, second)]
    if names[0] != names[1]:
        raise _refused("its operations depend on the sizes of the data")
    for value in free:
        node = first.node(value)
        axes = [axis for source, axis in first.sizes if source is value]
        node.written = (node.written or Written())._replace(free={"axes": axes})
    marked = {first.node(value).name for value in free}
    for node, larger in zip(first.model.network.nodes.values(), second.model.network.nodes.values(), strict=True):
        if node.operation != larger.operation:
            raise _refused(f"the operation of '{node.name}' depends on the sizes of the data")
        if node.name not in marked:
            _mark_growing(node, larger, first, second)
    first.model.load()
    return first.model


def sized_in_several_ways(roots: Sequence[NodeValue]) -> list[graph.Model]:
    """Return two networks of a function with free sizes or more, of different sizes.

    Raises:
        UserError: the function works with fewer of the sizes that are tried.
    """
    free = free_nodes(roots)
    models = [each.model for each in _pair(roots, free)]
    for choice in _OTHER_SIZES:
        with suppress(UserError):
            models.append(_sized(roots, free, choice).model)
    for model in models:
        model.load()
    return models


def take_free(value: NodeValue, by_name: Mapping[str, NodeValue]) -> None:
    """Let the value of a node of a model file have the free sizes that the file says.

    Raises:
        UserError: the file says something that does not fit to the sizes of its network.
    """
    node = value.stored
    free = None if node is None or node.written is None else node.written.free
    if node is None or free is None:
        return
    try:
        if value in INPUTS:
            value.shape = tuple(0 if index in free["axes"] else size for index, size in enumerate(node.shape or ()))
        elif value.operation.name in UNPACKED:
            value.options[UNPACKED[value.operation.name]] = 0.0
        else:
            options = {name: _read(option, by_name) for name, option in free["options"].items()}
            for name, option in options.items():
                known = node.shape if name == "shape" else node.options[name]
                if size_of(option, _stored_size) != known:
                    raise ValueError(f"{name} is not that of its network")
            make = _MADE[free["kind"]] if "kind" in free else None
            mark_growing(value, Growing(options, make, float(free.get("number", 0))))
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError) as problem:
        message = f"the free sizes of '{node.name}' in the model file cannot be read ({problem})"
        raise UserError("BadModel", message, hint="save the model once more") from None


def _stored_size(value: NodeValue, axis: int) -> int:
    """Return the size of an axis of a free node in the network of the model file."""
    node = value.stored
    if node is None or node.shape is None:
        raise ValueError("a size of a node that has none")
    option = UNPACKED.get(value.operation.name)
    return node.shape[axis] if option is None else int(node.options[option])


def _read(option: Any, by_name: Mapping[str, NodeValue]) -> Any:
    """Return an option of a model file."""
    if isinstance(option, list):
        return [_read(each, by_name) for each in option]
    if isinstance(option, dict):
        return Size(int(option["factor"]), tuple((by_name[name], int(axis)) for name, axis in option["of"]))
    return option


def _pair(roots: Sequence[NodeValue], free: Sequence[NodeValue]) -> tuple[_Sized, _Sized]:
    """Return two networks of different sizes; where free axes have to be of one size, they are.

    Raises:
        UserError: the function works with fewer of the sizes that are tried.
    """
    failed: UserError | None = None
    made: list[_Sized] = []
    for choice in (*_SIZES, *((size,) for size in TRIED)):
        try:
            each = _sized(roots, free, choice)
        except UserError as error:
            failed = failed or error
            continue
        if made and any(made[0].sizes[axis] == size for axis, size in each.sizes.items()):
            continue
        made.append(each)
        if len(made) == 2:
            return made[0], made[1]
    raise failed or _refused("its sizes are not known")


def _sized(roots: Sequence[NodeValue], free: Sequence[NodeValue], choice: Sequence[int]) -> _Sized:
    sizes: dict[NodeValue, Shape] = {}
    by_axis: dict[tuple[NodeValue, int], int] = {}
    for value in free:
        shape = list(value.shape or (0,)) if value in INPUTS else [0]
        for axis in (index for index, size in enumerate(shape) if not size):
            shape[axis] = choice[len(by_axis) % len(choice)]
            by_axis[value, axis] = shape[axis]
        sizes[value] = tuple(shape)
    known = with_sizes(roots, sizes)
    return _Sized(graph.make_outputs(known.roots), known.copies, by_axis)


def _mark_growing(node: Node, larger: Node, first: _Sized, second: _Sized) -> None:
    """Write down the options of a node that depend on sizes, or how a constant is made for them.

    Raises:
        UserError: they depend in another way on them.
    """
    changed = {name: (value, larger.options.get(name)) for name, value in node.options.items()}
    changed = {name: pair for name, pair in changed.items() if pair[0] != pair[1]}
    is_constant = node.is_parameter and node.shape != larger.shape
    if is_constant:
        changed["shape"] = node.shape, larger.shape
    if not changed:
        return
    free: dict[str, Any] = {"options": {}}
    for name, pair in changed.items():
        free["options"][name] = _as_product(*pair, first, second)
        if free["options"][name] is None:
            raise _refused(f"'{name}' of '{node.name}' depends on the sizes of the data")
    if is_constant:
        arrays = [np.asarray(each.value) for each in (node, larger) if each.value is not None and each.value.size]
        number = float(arrays[0].flat[0]) if arrays else 0.0
        kinds = [
            kind
            for kind, make in _MADE.items()
            if len(arrays) == 2 and all(np.array_equal(make(array.shape, number), array) for array in arrays)
        ]
        if not kinds or node.learning_rate_multiplier:
            raise _refused(f"the values of '{node.name}' depend on the sizes of the data")
        free |= {"kind": kinds[0], "number": number}
    node.written = (node.written or Written())._replace(free=free)


def _as_product(value: Any, larger: Any, first: _Sized, second: _Sized) -> Any:
    """Return an option as a model file has it: products of free sizes in the place of what changes; None: it is none.

    Args:
        value: the option in the first network, a number or a tuple.
        larger: the option in the second one.
        first: the first network.
        second: the second one.
    """
    if isinstance(value, tuple) and isinstance(larger, tuple) and len(value) == len(larger):
        parts = [_as_product(*pair, first, second) for pair in zip(value, larger, strict=True)]
        return None if None in parts else parts
    if value == larger:
        return value
    if not isinstance(value, int | float) or not isinstance(larger, int | float):
        return None
    for count in range(1, len(first.sizes) + 1):
        for axes in combinations(first.sizes, count):
            products = [math.prod(each.sizes[axis] for axis in axes) for each in (first, second)]
            factor, remainder = divmod(value, products[0])
            if remainder == 0 and factor * products[1] == larger:
                return {"factor": int(factor), "of": [[first.node(node).name, axis] for node, axis in axes]}
    return None


def _filled(shape: Shape, number: float) -> NDArray[Any]:
    return np.full(shape, number)


def _unit(shape: Shape, number: float) -> NDArray[Any]:
    return np.eye(*shape) if len(shape) == 2 else np.full(shape, np.nan)


def _numbers(shape: Shape, number: float) -> NDArray[Any]:
    """Return numbers from `number` on along the only axis that has several elements."""
    return (
        (number + np.arange(max(shape, default=1), dtype=float)).reshape(shape)
        if np.prod(shape) == max(shape, default=1)
        else np.full(shape, np.nan)
    )


_MADE = {"filled": _filled, "unit": _unit, "numbers": _numbers}
"""By the name in model files what makes the values of a constant for a shape."""


def _refused(reason: str) -> UserError:
    hint = "clone('share', {x: input_variable(shape)}) gives an input sizes; a checkpoint keeps the parameters"
    return UserError("NotSupported", f"a function with free sizes cannot be saved: {reason}", hint=hint)
