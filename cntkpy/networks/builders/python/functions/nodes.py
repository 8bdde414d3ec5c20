"""The nodes of functions: what they depend on, inputs, and their nodes in a network."""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary, ref

import numpy as np

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.networks.builders.brainscript.graph import add_node
from cntkpy.networks.builders.brainscript.node_values import NodeValue, Shape
from cntkpy.networks.builders.python.functions.calls import MARK, inputs_of, is_inside_step
from cntkpy.networks.builders.python.functions.cells import cell_of
from cntkpy.networks.graph.axes import is_kept
from cntkpy.networks.graph.network import Network
from cntkpy.networks.graph.node import Node, NodeKind

ONE_STEP = "#"
"""The time axis of inputs with one sample for each sequence, in a network that has sequences."""


@dataclass
class Input:
    """The properties of an input apart from its shape.

    Args:
        sequence: whether its samples come in sequences.
        axis: the name of its time axis, if it is not the usual one.
        static: whether it has no dynamic axes: one value for the whole minibatch.
        needs_gradient: whether user-defined functions that it enters give a gradient by it.
        unknown: what stands in its shape for a size that data say: -3 (free), or -1 (to be inferred).
    """

    sequence: bool
    axis: str = ""
    static: bool = False
    needs_gradient: bool = False
    unknown: int = -3


class DataAxes(NamedTuple):
    """The axes that data of an input have.

    **Fields:**

    - `shape`: of a sample, as NumPy counts axes; () of a single number.
    - `dynamic`: the number of dynamic axes; None for an input of a file, which does not say.
    - `is_sparse`: whether it takes sparse data only.
    """

    shape: tuple[int, ...]
    dynamic: int | None
    is_sparse: bool = False


def type_text(shape: tuple[int, ...], is_sparse: bool, steps: bool) -> str:
    """Return a type as `cntk.layers.typing` writes it: `Sequence[Tensor[3, 4]]`.

    Args:
        shape: of a sample.
        is_sparse: whether only elements that are not zero are kept.
        steps: whether samples lie along a sequence axis.
    """
    tensor = f"{'SparseTensor' if is_sparse else 'Tensor'}[{', '.join(map(str, shape))}]"
    return f"Sequence[{tensor}]" if steps else tensor


class Inferred(NamedTuple):
    """The part of a node's type that follows from its operands.

    **Fields:**

    - `shape`: of a sample, as nodes count axes.
    - `axis`: the time axis, see `cntkpy.networks.graph.axes`.
    """

    shape: Shape
    axis: str | None


@dataclass(frozen=True)
class ValueType:
    """The type of a value; as a mapping, arguments of `input_variable`: `input_variable(**z.type)`.

    Attributes:
        shape: of a sample.
        dtype: of its elements.
        is_sparse: whether it is an input of sparse data.
        dynamic_axes: the axes that samples lie along.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    is_sparse: bool
    dynamic_axes: tuple[Any, ...]

    def __str__(self) -> str:
        return type_text(self.shape, self.is_sparse, len(self.dynamic_axes) > 1)

    def keys(self) -> list[str]:
        """Return the names of the arguments."""
        return [field.name for field in fields(self)]

    def __getitem__(self, argument: str) -> Any:
        return getattr(self, argument)


INPUTS: WeakKeyDictionary[NodeValue, Input] = WeakKeyDictionary()

SETTLED: WeakKeyDictionary[NodeValue, Inferred] = WeakKeyDictionary()
"""Inferred types of operations that depend on nothing unknown: they stay as they are, so they are inferred once."""

CASTS: WeakKeyDictionary[NodeValue, np.dtype[Any]] = WeakKeyDictionary()
"""The nodes that a program has made by `cast`, with the element type that it wants."""


def known_inputs(node: NodeValue) -> tuple[NodeValue, ...]:
    """Return the inputs of a node; none of a delay node of a recurrence whose step is being made."""
    if is_inside_step():
        return node.inputs if isinstance(node.inputs, tuple) else ()
    return inputs_of(node)


def ordered(roots: Iterable[NodeValue], ends: Container[NodeValue] = ()) -> list[NodeValue]:
    """Return the nodes breadth first, as BrainScript enters them into a network; what lies below `ends` only is left
    out.
    """
    waiting, order = deque(roots), dict[NodeValue, None]()
    while waiting:
        node = waiting.popleft()
        if node not in order:
            order[node] = None
            if node not in ends:
                waiting.extend(known_inputs(node))
    return list(order)


_SETTLED_DATA, _SETTLED_VALUE = NodeKind("Settled", layout="always"), NodeKind("Settled", layout="none")


def add_settled(network: Network, value: NodeValue, name: str) -> Node:
    """Add a node; one of `SETTLED` as a leaf with the shape and the axis that were inferred.

    The other arguments are those of `add`, of a network with sequences.
    """
    known = SETTLED.get(value)
    if known is None:
        return add(network, value, name, True)
    kind = _SETTLED_VALUE if known.axis is None else _SETTLED_DATA
    return network.add(name, kind, options={"dynamicAxis": known.axis}, shape=known.shape)


def settle(made: Mapping[NodeValue, Node]) -> None:
    """Keep what was inferred of operations that depend on nothing unknown.

    Axes of kept steps are left out: their names are those of one network.
    """
    for value, node in made.items():
        known = node.inputs and node.shape is not None and 0 not in node.shape and not is_kept(node.axis)
        if known and node.operation != "AttentionWeights":  # whose operation is looked at
            SETTLED[value] = Inferred(tuple(node.shape or ()), node.axis)


def add(network: Network, value: NodeValue, name: str, sequences: bool) -> Node:
    """Add one node, without its inputs.

    Args:
        network: where to add it.
        value: what it is.
        name: its name there.
        sequences: whether the network has sequences.
    """
    cell = cell_of(value)
    cell.release()
    kind = INPUTS.get(value)
    if kind is not None:
        value.options["dynamicAxis"] = kind.axis if kind.sequence else ONE_STEP if sequences else ""
    if value.operation.name == "ToBatch":
        value.options["oneStep"] = sequences
    if value.operation.name in ("Placeholder", "Recipe"):
        raise UserError("NoNode", "a placeholder is left in the function; give it an input first")
    node = add_node(network, value, name, None)
    if kind is not None:
        node.dynamic_axes = 0 if kind.static else 2 if kind.sequence else 1
    if cell.value is not None:
        node.value, node.init = cell.value.astype(network.dtype, copy=False), None
        node.shape = tuple(reversed(cell.value.shape))
    if cell.frozen:
        node.learning_rate_multiplier = 0.0
    node.samples = cell.samples
    return node


_USERS = "_users"
"""The attribute of a parameter with sizes to be inferred, for the operations that it is an operand of."""


def note_user(operand: NodeValue, user: NodeValue) -> None:
    """Keep an operation that a parameter with sizes to be inferred is an operand of; it says these sizes."""
    if has_value(operand) and operand.shape is not None and 0 in operand.shape:
        vars(operand).setdefault(_USERS, []).append(ref(user))


def users_of(node: NodeValue) -> list[NodeValue]:
    """Return the operations that are left of those that a parameter with sizes to be inferred is an operand of."""
    users = [user() for user in vars(node).get(_USERS, ())]
    return [user for user in users if user is not None]


def has_value(node: NodeValue) -> bool:
    """Return whether it has a value of its own: a parameter or a constant."""
    return node.start is not None if node.stored is None else node.stored.is_parameter


def is_trained(node: NodeValue) -> bool:
    """Return whether training changes it."""
    if not has_value(node) or cell_of(node).frozen:
        return False
    return node.learning_rate_multiplier > 0


def is_of_layer(node: NodeValue) -> bool:
    """Return whether it is a parameter that the library has made, whose path has names."""
    return node.start is not None and node.stored is None and "." in node.origin.name


def is_loaded_input(node: NodeValue) -> bool:
    """Return whether it is an input of a network that was read."""
    return node.stored is not None and node.stored.kind.layout == "always"


def is_input(node: NodeValue) -> bool:
    """Return whether it is an input of data, of this program or of a network that was read."""
    return node in INPUTS or is_loaded_input(node)


def age(node: NodeValue) -> int:
    """Return a number that is larger for what was made later."""
    return int(node.origin.name.partition(MARK)[2].partition(".")[0] or 0)
