"""Functions of what is not known yet.

An operator that needs the shapes of its operands cannot be made of a placeholder of unknown shape, nor of a state of a
recurrence whose step is being made. Its function is kept as a recipe then: a node with the operands as its inputs. It
becomes the operator's own node as soon as their shapes are known.
"""

# What model files hold is of any type.
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Container, Generator, Iterable, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple
from weakref import WeakSet

import numpy as np

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.networks.builders.brainscript.node_values import NodeValue, Shape
from cntkpy.networks.builders.brainscript.operations import OPERATIONS, Operation
from cntkpy.networks.builders.python.functions import calls
from cntkpy.networks.builders.python.functions.blocks import block_of, mark_block, mark_written, written_operands
from cntkpy.networks.builders.python.functions.cells import cell_of
from cntkpy.networks.builders.python.functions.nodes import (
    INPUTS,
    SETTLED,
    add,
    add_settled,
    has_value,
    known_inputs,
    ordered,
    settle,
)
from cntkpy.networks.builders.python.functions.per_sample import CRITERIA
from cntkpy.networks.graph.axes import single_beside_steps
from cntkpy.networks.graph.network import Network
from cntkpy.networks.graph.node import Node, NodeKind
from cntkpy.networks.graph.validate import above_nodes, infer_known

Build = Callable[[tuple[NodeValue, ...]], NodeValue]

UNPACKED = {"UnpackBatch": "count", "UnpackSequence": "steps"}
"""The operations whose results have an axis of a size that only data say, and the options that hold that size."""

TRIED_SIZES = (7919, 7927)
"""Sizes that stand for one that only data say: primes, larger than sizes of slices and windows."""

MADE_SIZES = (149, 223)
"""Sizes for which recipes are made: they may have a node for each element."""

_RECIPE = Operation("Recipe")
_UNKNOWN = NodeKind("Unknown", layout="always")

_WAITING: WeakSet[NodeValue] = WeakSet()
"""Nodes without a shape, because there is a placeholder without one below."""

_known: list[Mapping[NodeValue, Shape]] = []
"""Shapes that were inferred while recipes become nodes, the last ones last."""


class OpenShape(UserError):
    """The shape of a function is not known before its placeholders are replaced, or before there are data.

    Args:
        is_free: whether there are no placeholders, but sizes that data say.
    """

    def __init__(self, is_free: bool = False) -> None:
        message = "the shape is not known: a placeholder is left in the function"
        hint = "give it an input first (f(x), replace_placeholders), or the placeholder a shape: placeholder((3,))"
        if is_free:
            message = "the shape is not known: it depends on an axis whose size only data say (FreeDimension, unpack)"
            hint = "operators take it as it is; f.eval(data).shape is the shape for some data"
        super().__init__("NoNode", message, hint=hint)


def recipe(
    build: Build,
    operands: Iterable[NodeValue],
    name: str,
    closed: bool = False,
    shape: Shape | None = None,
    shape_for: Callable[[NodeValue, int], Shape | None] = lambda _node, _size: None,
) -> NodeValue:
    """Return a node that becomes what `build` makes of the operands when their shapes are known.

    Args:
        build: makes the node.
        operands: its operands.
        name: begins the name of the node.
        closed: it also waits until no placeholder is left below it: it depends on what these are.
        shape: its shape, where that is known before.
        shape_for: returns the shape of the node for a size that stands for those that only data say; None: unknown.
    """
    options = {"build": build, "closed": closed, "shape_for": shape_for}
    return NodeValue(_RECIPE, calls.origin(name), options, tuple(operands), shape=shape)


def is_recipe(node: NodeValue) -> bool:
    """Return whether it waits for the shapes of its operands."""
    return node.operation is _RECIPE


def is_open(root: NodeValue) -> bool:
    """Return whether a node depends on something that is not known yet: its shape may not be known either."""
    return any(_is_unknown(node) or _is_unmade(node) for node in ordered([root], SETTLED))


def _is_unmade(node: NodeValue) -> bool:
    """Return whether a node stands for one that is not made yet, even if its shape is known."""
    return is_recipe(node) or node.operation.name == "Placeholder"


def has_placeholders(roots: Iterable[NodeValue]) -> bool:
    """Return whether something that a program has yet to say is below some nodes."""
    return any(node.operation.name == "Placeholder" for node in ordered(roots, SETTLED))


def settled(root: NodeValue) -> bool:
    """Return whether all is known that a node depends on, once its recipes have become nodes where that is possible."""
    if is_waiting(root):
        return False
    if not is_open(root):
        return True
    if _known:  # a recipe is becoming a node now, with the shapes that are known
        return False
    resolve([root])
    return not is_open(root)


def is_waiting(root: NodeValue) -> bool:
    """Return whether the shape of a node is unknown because of a placeholder without one."""
    user: dict[NodeValue, NodeValue | None] = {root: None}
    stack = [root]
    while stack:
        node = stack.pop()
        if node in _WAITING or (node.operation.name == "Placeholder" and _is_unknown(node)):
            path: NodeValue | None = node
            while path is not None:
                _WAITING.add(path)
                path = user[path]
            return True
        if node not in SETTLED and (node.shape is None or 0 in node.shape):
            for operand in known_inputs(node):
                if operand not in user:
                    user[operand] = node
                    stack.append(operand)
    return False


def placeholders_replaced() -> None:
    """Look at all functions again: placeholders of some have become something else."""
    _WAITING.clear()


def shape_of(root: NodeValue) -> Shape:
    """Return the shape of a node that depends on something that is not known yet.

    Raises:
        OpenShape: it is not known.
    """
    for known in reversed(_known):
        if root in known:
            return known[root]
    if is_waiting(root):
        raise OpenShape
    shape = _known_shapes([root], strict=True).get(root)
    if shape is None:
        raise OpenShape(any(map(is_free, ordered([root]))) and not has_placeholders([root]))
    return shape


def resolve(roots: Iterable[NodeValue], ends: Container[NodeValue] = ()) -> list[NodeValue]:
    """Let recipes whose operands have known shapes become nodes.

    Args:
        roots: the roots.
        ends: nodes that hold no recipes; what lies below these only is left out of the result.

    Returns:
        What the roots depend on, see `ordered`.
    """
    if not calls.is_inside_step():
        order = ordered(roots, SETTLED)
        if any(map(is_recipe, order)):
            _resolve_settled(order)
            order = ordered(roots, SETTLED)
        while (recipes := [node for node in order if is_recipe(node)]) and _resolve_some(order, recipes):
            order = ordered(roots, SETTLED)
        if ends is SETTLED:
            return order
    return ordered(roots, ends)


def _resolve_settled(order: list[NodeValue]) -> None:
    """Let recipes become nodes whose operands depend on nothing unknown, each after those below it."""
    open_nodes: set[NodeValue] = set()
    for node in _operands_first(order):
        operands = () if node in SETTLED else known_inputs(node)
        if not open_nodes.isdisjoint(operands) or node.operation.later or (_is_unknown(node) and not is_recipe(node)):
            open_nodes.add(node)
        elif is_recipe(node):
            known: dict[NodeValue, Shape] = {}
            for operand in operands:
                known |= _known_shapes([operand], strict=True)
            if all(operand in known for operand in operands):
                with _knowing(known):
                    _become(node, node.options["build"](node.inputs))
            if is_open(node):
                open_nodes.add(node)
        elif node.operation.name == "Placeholder":
            open_nodes.add(node)


def _operands_first(order: list[NodeValue]) -> list[NodeValue]:
    """Return nodes, operands before what depends on them, but in loops."""
    nodes = set(order)
    sorted_nodes: dict[NodeValue, None] = {}
    entered: set[NodeValue] = set()
    for root in order:
        stack = [root]
        while stack:
            node = stack[-1]
            if node in entered:
                sorted_nodes.setdefault(stack.pop())
                continue
            entered.add(node)
            if node not in SETTLED:
                stack.extend(source for source in known_inputs(node) if source in nodes and source not in entered)
    return list(sorted_nodes)


def _resolve_some(order: list[NodeValue], recipes: list[NodeValue]) -> bool:
    """Let the recipes become nodes whose operands have known shapes; whether there are such."""
    only_loops = not any(_is_unknown(node) and not is_recipe(node) for node in order)
    for strict in (True, False) if only_loops else (True,):
        known = _known_shapes(order, strict)
        ready = [
            recipe
            for recipe in recipes
            if all(source in known for source in known_inputs(recipe)) and not _waits(recipe)
        ]
        if ready:
            with _knowing(known):
                for recipe in filter(is_recipe, ready):  # one that is made may make those below it
                    _become(recipe, recipe.options["build"](recipe.inputs))
            return True
    return False


def _waits(node: NodeValue) -> bool:
    """Return whether a recipe waits for what placeholders stand for."""
    return node.options["closed"] and any(below.operation.name == "Placeholder" for below in ordered([node]))


@contextmanager
def _knowing(shapes: Mapping[NodeValue, Shape]) -> Generator[None]:
    _known.append(shapes)
    try:
        yield
    finally:
        _known.pop()


def _become(recipe_node: NodeValue, made: NodeValue) -> None:
    """Let a recipe be what was made of it; what is used elsewhere, too, is passed on."""
    operands = known_inputs(recipe_node)
    if made in operands or not calls.inputs_of(made) or _is_in_loop(made, operands):
        recipe_node.operation, recipe_node.options, recipe_node.inputs = OPERATIONS["Pass"], {}, (made,)
        return
    if made in CRITERIA:
        CRITERIA[recipe_node] = CRITERIA[made]
    if (block := block_of(made)) is not None and block_of(recipe_node) is None:
        mark_block(recipe_node, block)
    if not written_operands(recipe_node):
        mark_written(recipe_node, written_operands(made))
    recipe_node.operation, recipe_node.options, recipe_node.inputs, recipe_node.origin = (
        made.operation,
        made.options,
        made.inputs,
        made.origin,
    )
    recipe_node.name = recipe_node.name or made.name


def _is_in_loop(made: NodeValue, below: Iterable[NodeValue]) -> bool:
    seen = set(below)
    waiting = [source for source in calls.inputs_of(made) if source not in seen]
    while waiting:
        node = waiting.pop()
        if node is made:
            return True
        if node not in seen:
            seen.add(node)
            waiting.extend(calls.inputs_of(node))
    return False


def is_free(node: NodeValue) -> bool:
    """Return whether only data give its shape: an input with free dimensions, unpacked steps of sequences."""
    if node in INPUTS:
        return node.shape is not None and 0 in node.shape
    if node.operation.name not in UNPACKED:
        return False
    return not node.options.get(UNPACKED[node.operation.name])


def _is_unknown(node: NodeValue) -> bool:
    """Return whether a node is unknown: a placeholder without shape, a recipe, a state of an unfinished step."""
    if node.operation.name == "Placeholder":
        return node.shape is None or 0 in node.shape
    is_open_recipe = is_recipe(node) and node.shape is None
    return is_free(node) or is_open_recipe or (node.operation.later and not known_inputs(node))


def _known_shapes(roots: Iterable[NodeValue], strict: bool) -> dict[NodeValue, Shape]:
    """Return the shapes of nodes as far as they are known; see `infer_known`.

    Sizes that only data say stand for two numbers after each other: a shape that is the same for both depends on none.
    """
    order = ordered(roots, SETTLED)
    shapes = _infer_shapes(order, strict, None)
    if any(map(is_free, order)):
        sizes = MADE_SIZES if any(is_recipe(node) and node.shape is None for node in order) else TRIED_SIZES
        first, second = (_infer_shapes(order, strict, size) for size in sizes)
        shapes |= {node: shape for node, shape in first.items() if second.get(node) == shape}
    return shapes


def _infer_shapes(order: list[NodeValue], strict: bool, free_size: int | None) -> dict[NodeValue, Shape]:
    """Return the shapes of nodes where the sizes that only data say are `free_size`; None: they are not known."""
    network = Network("float")
    made: dict[NodeValue, Node] = {}
    for index, value in enumerate(order):
        if free_size is not None and growing(value) is not None:
            made[value] = add(network, grown(value, lambda _node, _axis: free_size), str(index), True)
        elif growing(value) is not None and any(map(is_free, order)):
            made[value] = network.add(str(index), _UNKNOWN)
        elif free_size is not None and is_free(value):
            made[value] = add(network, sized(value, with_free(value, free_size)), str(index), True)
        elif _is_unknown(value) or _is_unmade(value):
            made[value] = network.add(str(index), _UNKNOWN)
        else:
            made[value] = add_settled(network, value, str(index))
    for value, node in made.items():
        if node.kind is not _UNKNOWN:
            node.inputs = [] if value in SETTLED else [made[source] for source in known_inputs(value)]
        elif not _is_unknown(value) and growing(value) is None:
            node.shape = value.shape
        elif free_size is not None and is_recipe(value) and not calls.is_inside_step():
            # Inside of a step a copy for the size would need the inputs of delay nodes.
            node.shape = value.options["shape_for"](value, free_size)
    infer_known(list(made.values()), strict)
    if not calls.is_inside_step():
        unsettled = {node for value, node in made.items() if not _is_settled_leaf(value)}
        # One step per sequence beside all steps: `graph.inferred` repeats it, which changes the axis of the result.
        unsettled |= {node for node in made.values() if node.inputs and single_beside_steps(node) is not None}
        above = above_nodes(unsettled, network.nodes.values())
        settle({value: node for value, node in made.items() if node not in above})
    return {value: node.shape for value, node in made.items() if node.shape is not None and 0 not in node.shape}


def _is_settled_leaf(value: NodeValue) -> bool:
    """Return whether nothing is unknown of a node that is looked at alone; sizes of parameters may be."""
    if _is_unknown(value) or _is_unmade(value):
        return False
    return growing(value) is None and (
        not has_value(value) or cell_of(value).value is not None or (value.shape is not None and 0 not in value.shape)
    )


def with_free(node: NodeValue, size: int) -> Shape:
    """Return the sizes of a free node where those that only data say are `size`; see `sized`."""
    return tuple(axis or size for axis in node.shape or ()) if node in INPUTS else (size,)


def sized(node: NodeValue, size: Shape) -> NodeValue:
    """Return a copy of a free node with a known size.

    Args:
        node: the node.
        size: the shape of an input, or the size (one) of the axis that it makes.
    """
    copied = copy.copy(node)
    copied.options = dict(node.options)
    cell_of(copied).dtype = cell_of(node).dtype
    if node in INPUTS:
        copied.shape = size
        if node.stored is not None:
            copied.stored = copy.copy(node.stored)
            copied.stored.shape = size
        INPUTS[copied] = INPUTS[node]
    else:
        copied.options[UNPACKED[node.operation.name]] = float(size[0])
    return copied


class Size(NamedTuple):
    """A size that follows from sizes of data: a factor times the sizes of axes of free nodes."""

    factor: int
    axes: tuple[tuple[NodeValue, int], ...]


class Growing(NamedTuple):
    """A node of a model file that depends on sizes that only data say.

    **Fields:**

    - `options`: by name the options that do, and `shape` for the shape of a constant: sizes, or lists of them.
    - `make`: makes the values of a constant of a shape and a number; None: it is no constant.
    - `number`: that number.
    """

    options: Mapping[str, Any]
    make: Callable[[Shape, float], Any] | None = None
    number: float = 0.0


_GROWING = "_growing"
"""The attribute of a node that is made for the sizes of data."""


def mark_growing(node: NodeValue, how: Growing) -> None:
    """Let a node be made for the sizes of data."""
    vars(node)[_GROWING] = how


def growing(node: NodeValue) -> Growing | None:
    """Return how a node is made for the sizes of data; None: it is as it is."""
    return vars(node).get(_GROWING)


def grow_options(node: NodeValue, of: NodeValue, size: Callable[[NodeValue, int], int]) -> None:
    """Give a copy of a node the options that it has for the sizes of data.

    Args:
        node: the copy.
        of: the node of the model file.
        size: the size of an axis of a free node.
    """
    how = growing(of)
    for name, option in how.options.items() if how is not None and how.make is None else ():
        value = size_of(option, size)
        node.options[name] = value if isinstance(value, tuple) else type(of.options[name])(value)
    vars(node).pop(_GROWING, None)


def grown(node: NodeValue, size: Callable[[NodeValue, int], int]) -> NodeValue:
    """Return a copy of a node made for the sizes of data, see `grow_options`; a constant has other values."""
    how = growing(node)
    copied = copy.copy(node)
    copied.options = dict(node.options)
    grow_options(copied, node, size)
    cell_of(copied).dtype = cell_of(node).dtype
    if how is not None and how.make is not None and node.stored is not None:
        shape = size_of(how.options["shape"], size)
        copied.stored = copy.copy(node.stored)
        copied.shape = copied.stored.shape = shape
        copied.stored.value = cell_of(copied).value = how.make(shape, how.number).transpose().astype(np.float32)
    return copied


def size_of(option: Any, size: Callable[[NodeValue, int], int]) -> Any:
    """Return the value of an option for the sizes of data, see `grow_options`; of a list a tuple."""
    if isinstance(option, list):
        return tuple(size_of(each, size) for each in option)
    return option.factor * math.prod(size(*axis) for axis in option.axes) if isinstance(option, Size) else option


def keep_growing(node: NodeValue, copies: Mapping[NodeValue, NodeValue]) -> None:
    """Let a copy of a node that is made for the sizes of data follow the copies of the nodes that have these sizes.

    Raises:
        UserError: one of these has a size that only data say, and is no input.
    """
    how = growing(node)
    if how is None:
        return
    options = {name: _of_copies(option, copies) for name, option in how.options.items()}
    mark_growing(node, how._replace(options=options))
    sources = {source for option in options.values() for source in _sources(option)}
    if any(map(is_free, sources)):
        return
    try:
        shapes = {source: shape_of(source) for source in sources}
    except OpenShape:
        message = "a model of free sizes is applied to a function whose sizes only data say"
        hint = "apply it to an input_variable, which may have a FreeDimension"
        raise UserError("NotSupported", message, hint=hint) from None
    made = grown(node, lambda source, axis: shapes[source][axis])
    node.options, node.shape, node.stored = made.options, made.shape, made.stored
    cell_of(node).value = cell_of(made).value
    del vars(node)[_GROWING]


def _of_copies(option: Any, copies: Mapping[NodeValue, NodeValue]) -> Any:
    if isinstance(option, list):
        return [_of_copies(each, copies) for each in option]
    if not isinstance(option, Size):
        return option
    return option._replace(axes=tuple((copies.get(node, node), axis) for node, axis in option.axes))


def _sources(option: Any) -> list[NodeValue]:
    """Return the nodes whose sizes an option follows."""
    if isinstance(option, list):
        return [node for each in option for node in _sources(each)]
    return [node for node, _ in option.axes] if isinstance(option, Size) else []
