"""Functions of Python become a network: order, names, start values, the time axes of inputs."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cntkpy.cntk_config.base.diagnostics import CallError, UserError
from cntkpy.cntk_config.base.narrowing import is_several
from cntkpy.networks import nodes as kinds
from cntkpy.networks.builders.brainscript.node_values import NodeValue
from cntkpy.networks.builders.python.functions.axes import Axis
from cntkpy.networks.builders.python.functions.blocks import (
    block_of,
    leaves_in_order,
    name_in_program,
    shown_as,
    written_operands,
)
from cntkpy.networks.builders.python.functions.calls import MARK, UNSEEDED, inputs_of
from cntkpy.networks.builders.python.functions.cells import OPTIONS, Cell, cell_of
from cntkpy.networks.builders.python.functions.defaults import DOUBLE, HALF, SINGLE, kept_dtype
from cntkpy.networks.builders.python.functions.nodes import (
    CASTS,
    INPUTS,
    ONE_STEP,
    SETTLED,
    Inferred,
    add,
    add_settled,
    age,
    is_input,
    is_loaded_input,
    is_of_layer,
    ordered,
    settle,
)
from cntkpy.networks.builders.python.functions.per_sample import CRITERIA, per_sample
from cntkpy.networks.builders.python.functions.recipes import resolve
from cntkpy.networks.graph import shapes
from cntkpy.networks.graph.axes import EVERYWHERE, single_beside_steps, spread_axes
from cntkpy.networks.graph.initialize import SeedCounter
from cntkpy.networks.graph.network import Network, ValidatedNetwork
from cntkpy.networks.graph.node import Node, NodeError
from cntkpy.networks.graph.written import Written

if TYPE_CHECKING:
    from cntkpy.networks.arrays.lazy import Array

CHANGEABLE = ("rate", "seed", "customAttributes")
"""Options of operations that a program may change after they were made."""

SEEDS = SeedCounter()
"""The seeds of parameters whose initializer names none: 1, 2, 3, ... in the order of networks' parameters."""

NOISE_SEEDS, MASK_SEEDS, DRAW_SEEDS = SeedCounter(), SeedCounter(), SeedCounter()
"""The seeds of what draws numbers without a seed: the noise of learners, the masks of trainers, functions that are
evaluated."""


def set_seed(first: int) -> None:
    """Let the next random parameter have this seed, the one after it the next number, and so on; also what draws
    without a seed.
    """
    for counter in (SEEDS, NOISE_SEEDS, MASK_SEEDS, DRAW_SEEDS):
        counter.count = first - 1


def names_seed(roots: Iterable[NodeValue]) -> bool:
    """Return whether some nodes depend on one that draws with a seed of its own, whatever else draws."""
    return any(node.options.get("seed") for node in ordered(roots))


@dataclass
class Model:
    """A network with the values it is made of.

    Attributes:
        network: the network, validated.
        nodes: the node of each value, in the order of the network.
        version: how often `load` has found other values.
    """

    network: ValidatedNetwork
    nodes: dict[NodeValue, Node] = field(default_factory=dict[NodeValue, Node])
    version: int = 0
    _options: int = field(default_factory=lambda: OPTIONS.count)

    def load(self) -> None:
        """Take the values that parameters have now; programs compiled for other `network.changing` are outdated."""
        if self.has_old_options:
            self._take_options()
        for cell, node, inlined in self._cells:
            if cell.value is node.value is not None and cell.holder is cell.shows is None:
                continue  # most often; arrays of cells and nodes are replaced, never changed in place
            if not node.is_parameter:
                cell.release()
                self.version += node.samples != cell.samples
                node.samples = cell.samples
                continue
            current = cell.current()
            if current is None:
                continue
            array = current.astype(self.network.dtype, copy=False)
            if array is node.value:
                continue
            self.version += 1
            if inlined and not np.array_equal(array, np.asarray(node.value), equal_nan=True):
                self.network.changing.add(node.name)
            node.value = array

    @property
    def has_old_options(self) -> bool:
        """Return whether a program may have changed options of its operations."""
        return self._options != OPTIONS.count

    def _take_options(self) -> None:
        """Take the options that a program has changed; programs compiled for others are outdated."""
        self._options = OPTIONS.count
        for value, node in self.nodes.items():
            for key in CHANGEABLE:
                if key in value.options and node.options.get(key) != value.options[key]:
                    node.options[key] = value.options[key]
                    self.network.changing.add(f"{node.name}/{key}/{self._options}")

    @cached_property
    def _cells(self) -> list[tuple[Cell, Node, bool]]:
        """Nodes whose values change: cell, node, and whether compiled programs contain the value."""
        inlined = self.network.inlined()
        return [
            (cell_of(value), node, node in inlined)
            for value, node in self.nodes.items()
            if node.is_parameter or node.kind.running
        ]

    def keep(self, values: Mapping[str, np.ndarray | Array]) -> None:
        """Give parameters copies of values by the name of their nodes, and the network's own values to others."""
        for value, node in self.nodes.items():
            if node.is_parameter:
                known = values.get(node.name, node.value)
                array = None if known is None else np.array(known, self.network.dtype)
                if not _is_rounded(cell_of(value).value, array):
                    cell_of(value).value = array
                if value.stored is not None:
                    value.stored.value = array
            elif node.kind.running:
                cell_of(value).samples = int(values.get(f"{node.name}/samples", node.samples))


def _is_rounded(value: NDArray[np.generic] | None, rounded: NDArray[np.generic] | None) -> bool:
    """Return whether a network has the same value in a lower precision."""
    if value is None or rounded is None or value.dtype == rounded.dtype:
        return False
    return np.array_equal(value.astype(rounded.dtype).reshape(rounded.shape), rounded)


def make(roots: Sequence[NodeValue], groups: dict[str, Sequence[NodeValue]] | None = None) -> Model:
    """Return the network of some nodes and of all that they depend on.

    Args:
        roots: the nodes.
        groups: members of the groups of the network.

    Raises:
        UserError: shapes do not fit, or something is not connected.
    """
    order = resolve(roots)
    give_seeds(roots, order)
    names = names_of(order)
    inputs = [INPUTS[node] for node in order if node in INPUTS]
    dtype = precision(roots)
    network = Network(_computed_in(roots, dtype))
    sequences = any(kind.sequence for kind in inputs) or any(map(looks_along_time, order)) or makes_steps(order)
    made = {value: add(network, value, names[value], sequences) for value in _in_order_of_leaves(roots, order)}
    for value, node in made.items():
        node.inputs = [made[source] for source in inputs_of(value)]
    keep_written(made)
    if sequences:
        _broadcast(network)
    for group, members in (groups or {}).items():
        for member in members:
            network.add_to_group(group, made[member])
    _group_inputs(network, made)
    if not inputs:
        _check_enters(made)
    try:
        model = Model(network.validate(exact_axes=True), made)
    except UserError:
        _check_criteria(made)  # says more
        raise
    _check_criteria(made)
    if inputs:
        _check_steps(made, sequences)
    for value, node in made.items():
        cell = cell_of(value)
        if node.is_parameter and cell.value is None and node.value is not None:
            cell.value = node.value
    _decide(made, HALF if network.precision == "half" else dtype)
    return model


def make_outputs(roots: Sequence[NodeValue]) -> Model:
    """Return the network of a function; a criterion of a constant, which a file cannot have, is its formula there.

    Raises:
        UserError: see `make`.
    """
    try:
        return make(roots, {"output": roots})
    except NodeError as error:
        formulas = [per_sample(root) for root in roots]
        if error.hint != EVERYWHERE or formulas == list(roots):
            raise
        model = make(formulas, {"output": formulas})
    return Model(
        model.network, model.nodes | {root: model.nodes[made] for root, made in zip(roots, formulas, strict=True)}
    )


def inferred(root: NodeValue) -> Inferred:
    """Return shape and axis of a node; what lies below operations whose own are known is not looked at.

    Raises:
        UserError: shapes do not fit, or something is not connected.
    """
    known = SETTLED.get(root)
    if known is not None:
        return known
    order = resolve([root], SETTLED)
    if root in SETTLED:
        return SETTLED[root]
    if any(map(_looks_below, order)):
        order, add_node = ordered([root]), partial(add, sequences=True)
    else:
        add_node = add_settled
    give_seeds([root], order, SETTLED)
    network, names = Network("float", values=False), names_of(order)
    made = {value: add_node(network, value, names[value]) for value in order}
    for value, node in made.items():
        is_leaf = add_node is add_settled and value in SETTLED
        node.inputs = [] if is_leaf else [made[source] for source in inputs_of(value)]
    try:
        _broadcast(network)
        network.validate(exact_axes=True)
    except UserError:
        return _of_node(make([root], {"output": [root]}).nodes[root])  # knows all names for the message
    is_criterion = any(value in CRITERIA or node.kind.pairwise for value, node in made.items())
    if is_criterion or any(_looks_along_time(node) and not _has_steps(node) for node in made.values()):
        return _of_node(make([root], {"output": [root]}).nodes[root])  # refuses what does not fit
    for value, node in made.items():
        if node.is_parameter and value.shape is not None and 0 in value.shape:
            value.shape = node.shape
    settle(made)
    return _of_node(made[root])


def _looks_below(value: NodeValue) -> bool:
    """Return whether the type of a node depends on what made its operands."""
    kind = kinds.operation(value.operation.kind_name) if value.stored is None else value.stored.kind
    return kind.time.keeps_steps or kind.name == "Crop"


def _looks_along_time(node: Node) -> bool:
    return node.operation in (*DELAYS, "AdditiveAttention")


def _has_steps(node: Node) -> bool:
    """Return whether a node or an operand of it is on an axis of several steps."""
    return any(source.axis not in (None, ONE_STEP) for source in (node, *node.connected))


def _of_node(node: Node) -> Inferred:
    return Inferred(node.shape or (), node.axis)


def keep_written(made: Mapping[NodeValue, Node]) -> None:
    """Keep the program's names, orders of operands and blocks for model files."""
    numbers: dict[int, int] = {}
    for value, node in made.items():
        name = name_in_program(value)
        label = value.origin.name.rpartition(".")[2] if is_of_layer(value) else ""
        operands, block = written_operands(value), block_of(value)
        if block is not None and not all(operand in made for operand in block.operands):
            block = None
        known = operands if all(operand in made for operand in operands) else ()
        node.written = Written(
            (value.name or ("b" if label == "B" else label)) if name is None else name,
            tuple(made[operand].name for operand in known),
            None if block is None else numbers.setdefault(id(block), len(numbers)),
            "" if block is None else block.op_name,
            () if block is None else tuple(made[operand].name for operand in block.operands),
            shown=_shown_in_file(value, made),
        )


def _shown_in_file(value: NodeValue, made: Mapping[NodeValue, Node]) -> dict[str, Any] | None:
    """Return the operation of CNTK 2 that a node is the value of, as model files have it; None: there is none."""
    shown = shown_as(value)
    if shown is None or not all(operand in made for operand in shown.operands):
        return None
    attributes = {name: _plain(attribute) for name, attribute in shown.attributes.items()}
    operands = [made[operand].name for operand in shown.operands]
    return {"operation": shown.op_name, "attributes": attributes, "operands": operands}


def _plain(attribute: Any) -> Any:
    """Return an attribute as JSON has it: an axis is its number or its name."""
    if is_several(attribute):
        return [_plain(item) for item in attribute]
    if hasattr(attribute, "tolist"):
        return attribute.tolist()
    return attribute.of if isinstance(attribute, Axis) else attribute


def _broadcast(network: Network) -> None:
    """Let one step per sequence meet all steps of sequences in operators element by element, as CNTK 2 does."""
    changed = True
    while changed:
        changed = False
        nodes = list(network.nodes.values())
        if not any(node.axis == ONE_STEP or node.options.get("dynamicAxis") == ONE_STEP for node in nodes) and not any(
            node.kind.time.reduces_time or node.kind.time.keeps_steps for node in nodes
        ):
            return
        spread_axes(nodes, exact=True)
        for node in nodes:
            single = single_beside_steps(node)
            if single is None:
                continue
            for index in single[0]:
                name = f"{node.name}.broadcast{index}"
                spread = kinds.create(
                    network, "ReconcileDynamicAxis", name, [node.connected[index], single[1]], {"broadcast": True}
                )
                node.inputs[index] = spread
            changed = True
            break


def leaves(roots: Iterable[NodeValue], order: Sequence[NodeValue]) -> list[NodeValue]:
    """Return the leaves of some nodes in the order of a walk, see `leaves_in_order`.

    Those of a model that was read come in the order of the file in their places: it has no blocks and no operators.

    Args:
        roots: the nodes.
        order: all that they depend on.
    """
    in_walk = leaves_in_order(roots, set(order))
    stored = iter(sorted((node for node in in_walk if node.stored is not None), key=age))
    return [node if node.stored is None else next(stored) for node in in_walk]


def _in_order_of_leaves(roots: Sequence[NodeValue], order: Sequence[NodeValue]) -> list[NodeValue]:
    """Return the nodes, of which leaves come in the order of a walk: a model file keeps it for `arguments`,
    `parameters`.
    """
    in_walk = leaves(roots, order)
    places = set(in_walk)
    in_order = iter(in_walk)
    return [next(in_order) if node in places else node for node in order]


def _decide(made: dict[NodeValue, Node], dtype: np.dtype[np.generic]) -> None:
    """Parameters that adopt the precision of others keep it, once there is a leaf that says which."""
    if not any(cell_of(node).dtype or node in CASTS for node in made):
        return
    for value, node in made.items():
        cell = cell_of(value)
        if node.is_parameter and value.learning_rate_multiplier > 0 and cell.dtype is None:
            cell.dtype = dtype
            cell.value = None if cell.value is None else cell.value.astype(kept_dtype(dtype), copy=False)


def _computed_in(roots: Iterable[NodeValue], dtype: np.dtype[np.generic]) -> str:
    """Return the precision of a network: half where any part of it is, unless the result is in double precision."""
    if dtype == DOUBLE:
        return "double"
    halves = dtype == HALF or any(HALF in (CASTS.get(node), cell_of(node).dtype) for node in ordered(roots))
    return "half" if halves else "float"


def precision(roots: Iterable[NodeValue]) -> np.dtype[np.generic]:
    """Return the element type of a network: that of its leaves.

    Leaves that do not say adopt that of the others; a cast says it for all that lies below.

    Raises:
        UserError: leaves have different ones.
    """
    said: dict[np.dtype[Any], NodeValue] = {}
    alone = SINGLE
    for node in ordered(roots, CASTS):
        cell = cell_of(node)
        dtype = CASTS.get(node, cell.dtype)
        if dtype is not None:
            said.setdefault(dtype, node)
        elif cell.alone is not None:
            alone = cell.alone
    if len(said) > 1:
        both = " and ".join(f"{_described(value)} is {dtype.name}" for dtype, value in said.items())
        hint = (
            "give both the same dtype, such as dtype=numpy.float64 in default_options; cast(x, dtype) changes that of x"
        )
        raise CallError("WrongArguments", f"a network has one precision, {both}", hint=hint)
    return next(iter(said), alone)


def _described(node: NodeValue) -> str:
    """Return a leaf or a cast in a message."""
    kind = "input" if is_input(node) else "parameter"
    if node in CASTS:
        kind = "cast"
    elif kind == "parameter" and node.learning_rate_multiplier == 0:
        kind = "constant"
    name = node.name or re.sub(rf"{MARK}\d+", "", node.origin.name)
    return f"the {kind} '{name}'"


def _check_criteria(made: dict[NodeValue, Node]) -> None:
    """The operands of criteria have the same shape, also where a formula is in the place of a criterion.

    Labels of one element would fit a formula, which takes them for those of all classes.

    Raises:
        UserError: they do not fit.
    """
    for value, node in made.items():
        name, operands = node.operation, node.connected
        if value in CRITERIA:
            name, operands = CRITERIA[value].name, [made[operand] for operand in CRITERIA[value].operands]
        elif not node.kind.pairwise:
            continue
        operand_shapes = [operand.shape for operand in operands]
        if None in operand_shapes or any(
            operand.is_parameter and shapes.size(operand.shape or ()) == 1 for operand in operands[:2]
        ):
            continue
        labels, values, *remaining = [shapes.trimmed(operand or (1,)) for operand in operand_shapes]
        listed = ", ".join(f"'{operand.name}' {shapes.text(operand.shape)}" for operand in operands)
        if labels != values:
            classes = labels == (1,) and name in ("CrossEntropyWithSoftmax", "CrossEntropy", "ClassificationError")
            hint = f"labels are one-hot vectors: one_hot(labels, {shapes.size(values)})" if classes else ""
            raise UserError("BadShape", f"{name} of {listed}: the first two must have the same shape", hint=hint)
        if name == "Logistic" and remaining and shapes.size(remaining[0]) != 1:
            hint = "-(y * log(p) + (1 - y) * log(1 - p)) * weight has a weight for each element"
            raise UserError("BadShape", f"{name} of {listed}: the weight is one number for each sample", hint=hint)


def _check_enters(made: dict[NodeValue, Node]) -> None:
    """Something enters a recurrence, in a network without inputs of Python: else it has no sequence to go along.

    Raises:
        UserError: nothing does.
    """
    if any(is_loaded_input(node) for node in made):
        return
    for node in made.values():
        if node.operation in DELAYS:
            message = f"'{node.name}' is of a sequence or of a recurrence that depends on no input"
            hint = (
                "a constant c has the steps of an input x as sequence.broadcast_as(c, x); the step of a recurrence "
                "uses x, or it starts with initial_state=sequence.first(x)"
            )
            raise CallError("WrongArguments", message, hint=hint)


def _check_steps(made: dict[NodeValue, Node], sequences: bool) -> None:
    """Steps before or after others are those of sequences.

    Data without sequences would be computed as sequences of one step each, which nobody wants.

    Raises:
        UserError: an input of a recurrence, or of an operation on sequences, has no sequences.
    """
    if any(is_loaded_input(node) for node in made):
        return  # how long its sequences are is known by its data only
    for node in made.values():
        delays = node.operation in DELAYS
        if (not sequences and _looks_along_time(node)) or (delays and node.axis == ONE_STEP):
            names = [made[node].name for node in made if node in INPUTS and not INPUTS[node].sequence]
            subject = f"the input '{names[0]}'" if len(names) == 1 else "data"
            raise CallError(
                "WrongArguments",
                f"recurrences and operations on sequences need sequences, {subject} has none",
                hint="make it a sequence.input_variable (sequence_input of cntkpy.training)",
            )


DELAYS = ("PastValue", "FutureValue")
"""Operations that read other steps of a sequence."""

FROM_SAMPLES = ("ToSequence", "ToSequenceLike")
"""Operations that turn an axis of samples into steps of a sequence."""


def looks_along_time(value: NodeValue) -> bool:
    """Return whether a node of a model that was loaded needs sequences, so that the model's inputs have them."""
    return value.stored is not None and value.stored.operation in (*DELAYS, "Where", "OptimizedRNNStack", *FROM_SAMPLES)


def makes_steps(order: Iterable[NodeValue]) -> bool:
    """Return whether some nodes make sequences of samples, so that inputs have one sample for each sequence."""
    return any(node.operation.name in FROM_SAMPLES for node in order)


def _group_inputs(network: Network, made: dict[NodeValue, Node]) -> None:
    """Every input is a feature or a label: a label is what only criteria look at."""
    users: dict[Node, set[bool]] = {}
    for node in made.values():
        for source in node.connected:
            users.setdefault(source, set()).add(node in network.groups["criterion"] + network.groups["evaluation"])
    for node in made.values():
        if node.kind.layout == "always":
            network.add_to_group("label" if users.get(node) == {True} else "feature", node)


def give_seeds(roots: Iterable[NodeValue], order: Iterable[NodeValue], ends: Container[NodeValue] = ()) -> None:
    """Give random parameters their seeds in the order in which BrainScript evaluates them; none below `ends`."""
    seen: set[NodeValue] = set()

    def down(top: Iterable[NodeValue]) -> None:
        stack = [*reversed(list(top))]
        while stack:
            node = stack.pop()
            if node in seen:
                continue
            seen.add(node)
            if node.start is not None and node.start.seed == UNSEEDED:
                node.start.seed = SEEDS.next()
            if not node.operation.later and node not in ends:
                stack.extend(reversed(inputs_of(node)))

    down(roots)
    for node in order:
        if node.operation.later and node not in ends:
            down(inputs_of(node))


def names_of(order: Iterable[NodeValue]) -> dict[NodeValue, str]:
    """Return a name for each node, the same in every program that makes the same network; inputs keep theirs."""
    names: dict[NodeValue, str] = {}
    taken: dict[str, int] = {}
    taken_labels: dict[str, int] = {}
    labels: dict[str, str] = {}
    values = list(order)
    for value in sorted(values, key=lambda value: value not in INPUTS):
        if value.name:
            names[value] = _free(value.name, taken)
    for value in values:
        if value.name:
            continue
        first, dot, tail = value.origin.name.partition(".")
        if first not in labels:
            labels[first] = _free(first.partition(MARK)[0], taken_labels)
        names[value] = _free(_NUMBERED.sub("", labels[first] + dot + tail), taken)
    return names


_NUMBERED = re.compile(rf"{MARK}\d+")


def _free(name: str, taken: dict[str, int]) -> str:
    """Take a name, or the first of it with a number that is free.

    Args:
        name: the name.
        taken: by name in lower case, the last number that is known to be taken; it gets the name.
    """
    key = name.lower()
    if key not in taken:
        taken[key] = 1
        return name
    number = taken[key] + 1
    while (unused := f"{name}{number}").lower() in taken:
        number += 1
    taken[key], taken[unused.lower()] = number, 1
    return unused
