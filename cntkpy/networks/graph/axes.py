"""Time axes: along which sequences a node has its samples (docs/specification/brainscript-library.md 13).

An axis is part of a node's type, as its shape is. Inputs name theirs, all other nodes have that of their inputs.
`Where` makes a new one: the steps that it keeps. Inputs that meet a single step per sequence, as the labels of a
sequence classifier do, have a single step, too, if nothing looks along their axis. Sequences on different axes belong
together by their place in the minibatch.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from cntkpy.networks.graph.node import Node, NodeError

DEFAULT = "*"
"""The axis of inputs that name none."""

ONE = "#"
"""One step in each sequence: the labels of a sequence classifier, the last state of a recurrence."""

_KEPT = "/kept"
"""Ends the names of the axes that `Where` makes."""


def shown(axis: str) -> str:
    """Return an axis in messages."""
    if axis == DEFAULT:
        return "the default time axis"
    if axis == ONE:
        return "one step per sequence"
    if axis.endswith(_KEPT):
        return f"the steps kept by '{axis.partition(_KEPT)[0]}'"
    return f"the time axis '{axis}'"


EVERYWHERE = "ReconcileDynamicAxis (constant, x) has it at every step of x; in Python, sequence.broadcast_as"
"""Hint for a constant where minibatch data are needed."""


def is_of_python(node: Node) -> bool:
    """Return whether an input is one of a Python program, which says how many dynamic axes it has."""
    return node.dynamic_axes is not None


def own_axis(name: str, in_python: bool = False) -> str:
    """Return the hint for an input whose sequences have other lengths: the lines of the network that allow it.

    Args:
        name: of the input.
        in_python: whether the network is one of a Python program.
    """
    if in_python:
        return (
            f"give '{name}' a sequence axis of its own: sequence.input_variable(shape, sequence_axis=Axis('{name}')); "
            "an input_variable(shape) has one sample for each sequence"
        )
    return (
        f"give '{name}' a time axis of its own in the network: t = DynamicAxis () and "
        f"{name} = Input (..., dynamicAxis=t); dynamicAxis='#' where each sequence has one sample of it"
    )


def operating(node: Node) -> str | None:
    """Return the axis along which a node computes: its own, or that of its first operand with one (criteria have no
    own).
    """
    if node.kind.time.across:
        return node.axis
    return next((source.axis for source in node.connected if source.axis is not None), node.axis)


def axes_of(nodes: Iterable[Node]) -> list[str]:
    """Return the axes that nodes are on, in their order."""
    return list(dict.fromkeys(node.axis for node in nodes if node.axis is not None))


def main_axis(nodes: Iterable[Node], roots: Iterable[Node] = ()) -> str:
    """Return the axis whose samples are those of a minibatch.

    That is the default axis if an input is on it, as in CNTK. But where a root looks at inputs of one step per
    sequence, these count.

    Args:
        nodes: the nodes that are computed.
        roots: the ones among them that are asked for.
    """
    axes = axes_of(node for node in nodes if node.kind.layout == "always")
    wanted = [axis for axis in (summed_axis(root) for root in roots) if axis is not None]
    if ONE in axes and ONE in wanted[:1]:
        return ONE
    return next((axis for axis in (DEFAULT, *wanted, *axes) if axis in axes), DEFAULT)


def summed_axis(root: Node) -> str | None:
    """Return the axis of what a criterion sums up."""
    pending, seen = [root], {root}
    while pending:
        node = pending.pop(0)
        if (axis := operating(node)) is not None:
            return axis
        pending += [source for source in node.connected if source not in seen]
        seen.update(node.connected)
    return None


def is_kept(axis: str | None) -> bool:
    """Return whether the steps of an axis are known only when the condition of a `Where` node is computed."""
    return axis is not None and axis.endswith(_KEPT)


def separate_slots(nodes: Iterable[Node]) -> bool:
    """Return whether these nodes, on several time axes, need each sequence of a minibatch in a slot of its own."""
    nodes = list(nodes)
    return len(axes_of(nodes)) > 1 or any(node.kind.time.own_slots for node in nodes)


def _compared(node: Node) -> tuple[Node, Node] | None:
    """Operands on different axes whose sequences must have the same lengths."""
    pair = {"ReconcileDynamicAxis": (0, 1), "ScatterPacked": (2, 1)}.get(node.operation)
    if pair is None or repeated(node):
        return None
    data, like = node.input(pair[0]), node.input(pair[1])
    return (data, like) if data.has_layout and data.axis != like.axis else None


def repeated(node: Node) -> bool:
    """Return whether a ReconcileDynamicAxis repeats data of one step per sequence at every step of another axis."""
    if node.operation != "ReconcileDynamicAxis" or not node.options.get("broadcast"):
        return False
    return node.input(0).axis == ONE != node.input(1).axis


def equal_lengths(nodes: Iterable[Node]) -> list[tuple[Node, Node, Node]]:
    """Nodes with two operands whose sequences must have the same lengths, where these are known with the data."""
    pairs = [(node, _compared(node)) for node in nodes]
    return [
        (node, *pair) for node, pair in pairs if pair is not None and not any(is_kept(operand.axis) for operand in pair)
    ]


def fallible(node: Node) -> bool:
    """Return whether a node may find, when it is computed, that the sequences of a minibatch do not fit."""
    if node.operation == "Where":
        several = node.options.get("single") and kept_steps(node.input(0)) != 1
        return bool(several) or _edge(node.input(0)) is None
    if node.operation == "PackedIndex":
        source, index = node.input(0), node.input(1)
        return not (index.kind.time.keeps_steps and index.input(0).axis == source.axis)
    if node.operation == "GatherPacked":
        return not node.input(1).has_layout
    if node.operation in ("ForwardBackward", "ToBatch", "ToSequenceLike", "UnpackBatch", "UnpackSequence"):
        return True
    if node.operation == "ToSequence":
        return len(node.inputs) > 1
    pair = _compared(node) if node.kind.time.across else None
    return pair is not None and any(is_kept(operand.axis) for operand in pair)


# ---- inference


def infer_axes(order: list[Node], exact: bool = False) -> None:
    """Give every node its axis.

    Args:
        order: all nodes, inputs before their users but for delay nodes in loops.
        exact: inputs are on the axes that they name, whatever they meet.

    Raises:
        NodeError: operands are on different axes, or an input names no axis.
    """
    spread_axes(order, exact)
    if not exact:
        single = _single_steps(order)
        for node in order:
            node.axis = ONE if node.axis in single else node.axis
    for node in order:
        _check(node, exact)


def spread_axes(order: list[Node], exact: bool = False) -> None:
    """Give every node the axis that follows from its operands; operands on different axes are not refused."""
    for node in order:
        node.axis = _of_input(node, order, exact) if node.kind.layout == "always" else None
    conditions = _Conditions()
    _spread(order, conditions)
    for node in order:  # loops that nothing enters
        if node.kind.time.delay and node.axis is None and _in_loop(node):
            node.axis = DEFAULT
            _spread(order, conditions)


def single_beside_steps(node: Node) -> tuple[list[int], Node] | None:
    """Of an operator element by element, the operands of one step per sequence, where another has several steps.

    Returns:
        Their places, and the operand with several steps; None: all are on one axis, or several have steps.
    """
    if not (node.kind.pointwise or node.operation in ("Times", "TransposeTimes", "RowStack")):
        return None
    axes = axes_of(node.connected)
    longer = next((source for source in node.connected if source.axis not in (None, ONE)), None)
    if longer is None or set(axes) != {ONE, longer.axis}:
        return None
    return [index for index, source in enumerate(node.connected) if source.axis == ONE], longer


def _single_steps(order: list[Node]) -> set[str | None]:
    """Return the axes of inputs that meet one step per sequence, without anything that looks along them."""
    met: set[str | None] = set()
    along: set[str | None] = set()
    for node in order:
        axes = {source.axis for source in node.connected}
        if node.kind.time.delay or node.kind.time.whole or (node.kind.time.reduces_time and node.has_layout):
            along |= {node.axis, *axes}
        elif ONE in axes and not node.kind.time.across:
            met |= axes
    return met & {node.axis for node in order if node.kind.layout == "always"} - along


def _spread(order: list[Node], conditions: _Conditions) -> None:
    """Give nodes without axis that of their operands, until nothing changes."""
    changed = True
    while changed:
        changed = False
        for node in order:
            if node.axis is None and (axis := _inferred(node, conditions)) is not None:
                node.axis, changed = axis, True


def _in_loop(node: Node) -> bool:
    seen: set[Node] = set()
    pending = list(node.connected)
    while pending:
        current = pending.pop()
        if current is node:
            return True
        if current not in seen:
            seen.add(current)
            pending += current.connected
    return False


def _of_input(node: Node, order: list[Node], exact: bool) -> str:
    name = node.options.get("dynamicAxis") or DEFAULT
    if name in (DEFAULT, ONE):
        return name
    namesake = next((candidate for candidate in order if candidate.name.lower() == name.lower()), None)
    if namesake is not None and not namesake.kind.time.makes_axis:
        if exact or node.dynamic_axes is not None:  # in programs names of axes and those of nodes do not meet
            return name
        raise NodeError.at(
            node,
            "NoAxis",
            f"{node.operation} '{node.name}': dynamicAxis names '{namesake.name}', which is not a DynamicAxis but "
            f"{namesake.operation}",
            "name a DynamicAxis, or any other word, the same for all inputs whose sequences have equal lengths",
        )
    return name if namesake is None else namesake.name


def _inferred(node: Node, conditions: _Conditions) -> str | None:
    """Return the axis that follows from those of the operands, as far as they are known."""
    kind = node.kind
    if node.operation == "ToBatch":
        return ONE if node.options["oneStep"] else DEFAULT
    if kind.time.keeps_steps:
        return None if node.input(0).axis is None else conditions.made_axis(node)
    if kind.time.delay:
        return node.input(0).axis
    if kind.layout != "inputs":
        return None
    if kind.time.axis_from is not None:
        return node.input(kind.time.axis_from).axis
    return next((source.axis for source in node.connected if source.axis is not None), None)


def _check(node: Node, in_python: bool) -> None:
    """Refuse operands on different axes, and axes as operands."""
    for source in node.connected:
        if source.kind.time.makes_axis:
            raise NodeError.at(
                node,
                "AxisAsOperand",
                f"{node.operation} '{node.name}': '{source.name}' is a time axis, which has no values",
                f"give it to inputs, Input (..., dynamicAxis={source.name})",
            )
    if (node.kind.time.across and not node.kind.time.whole) or len(node.inputs) < 2:
        return
    if node.kind.time.delay and node.input(1).axis == ONE:
        return
    first: Node | None = None
    for source in [node.input(index) for index in node.kind.time.whole] or node.connected:
        if source.axis is None:
            continue
        if first is None:
            first = source
        elif source.axis != first.axis:
            raise mixed(node, first, source, in_python)


def mixed(node: Node, first: Node, second: Node, in_python: bool = False) -> NodeError:
    """Return the error for a node whose operands are on different axes; it names the inputs that these axes come
    from.
    """
    assert first.axis is not None and second.axis is not None
    sides = [f"'{operand.name}' has {shown(operand.axis or '')}{_from(operand)}" for operand in (first, second)]
    hint = (
        f"say how their steps correspond: ReconcileDynamicAxis ({second.name}, {first.name}) if the sequences "
        "have the same lengths; BS.Sequences.BroadcastSequenceAs for one step that goes with all; BS.Sequences.First, "
        "Last, Gather or Scatter to select steps"
    )
    if in_python:
        hint = (
            f"say how their steps correspond: reconcile_dynamic_axes({second.name}, {first.name}) if the sequences "
            "have the same lengths; sequence.broadcast_as for one step that goes with all; sequence.first, last, "
            "gather or scatter to select steps"
        )
        return _mixed(node, sides, hint)
    for left, right in ((first, second), (second, first)):
        if left.kind.layout == "always" and left.axis == DEFAULT and right.axis == ONE:
            hint = f"if each sequence has one sample of it: {left.name} = Input (..., dynamicAxis='#'); else {hint}"
    return _mixed(node, sides, hint)


def _mixed(node: Node, sides: list[str], hint: str) -> NodeError:
    message = f"{node.operation} '{node.name}' mixes two time axes: {sides[0]}, {sides[1]}"
    return NodeError.at(node, "MixedAxes", message, hint)


def _from(node: Node) -> str:
    """Return the input that an axis comes from, in parentheses, if the node is not that input itself."""
    seen: set[Node] = set()
    pending = [node]
    while pending:
        current = pending.pop(0)
        if current in seen:
            continue
        seen.add(current)
        if current.kind.layout == "always" and (current.axis == node.axis or current is not node):
            return "" if current is node else f" (from the input '{current.name}')"
        pending += [source for source in current.connected if source.axis == current.axis] or current.connected
    return ""


# ---- the steps that Where keeps


class _Conditions:
    """Expressions of the conditions of `Where` nodes: those that are written alike keep the same steps."""

    def __init__(self) -> None:
        self._numbers: dict[object, int] = {}
        self._known: dict[Node, int] = {}
        self._axes: dict[tuple[object, str | None], str] = {}

    def made_axis(self, node: Node) -> str:
        """Return the axis of the steps that a `Where` keeps, or that `RepeatSteps` and `ToSequence` make."""
        source = node.input(0)
        if node.operation == "ToSequence":
            return self._named(("steps of samples", node.name), node.name)
        if node.operation == "UnpackSequence":
            return ONE
        if node.operation == "RepeatSteps":
            return self._named((self._of(("repeated", node.options["factor"])), source.axis), node.name)
        if node.options.get("single") or kept_steps(source) == 1:
            return ONE
        return self._named((self._number(source), source.axis), source.name)

    def _named(self, key: tuple[object, str | None], name: str) -> str:
        """Return the axis of some steps; two different axes never have the same name.

        Args:
            key: what the steps are; the same key has the same axis.
            name: the node that names a new axis. Steps of samples and those that a condition keeps of them may be
                named after the same node.
        """
        if key not in self._axes:
            taken = set(self._axes.values())
            while name + _KEPT in taken:
                name += _KEPT
            self._axes[key] = name + _KEPT
        return self._axes[key]

    def _number(self, node: Node) -> int:
        """Return a number that nodes share which compute the same."""
        if node not in self._known:
            self._known[node] = self._of(node.name)  # in a loop, and for what is not looked into
            self._known[node] = self._of(self._description(node))
        return self._known[node]

    def _of(self, description: object) -> int:
        return self._numbers.setdefault(description, len(self._numbers))

    def _description(self, node: Node) -> object:
        edge = _edge(node)
        if edge is not None:
            return ("edge", *edge, node.input(0).axis)
        if node.inputs and not (node.kind.time.delay or node.kind.random or node.kind.precompute):
            parts = tuple(self._number(source) for source in node.connected)
            return (node.operation, repr(sorted(node.options.items())), parts)
        fixed = _fixed(node)
        return node.name if fixed is None else ("constant", node.shape, fixed)


def _fixed(node: Node) -> float | None:
    """Return the number that a constant is full of; None for anything else."""
    if not node.is_parameter or node.trainable:
        return None
    if node.value is not None:
        return float(node.value.flat[0]) if node.value.size and (node.value == node.value.flat[0]).all() else None
    return node.init.same() if node.init is not None else None


def _edge(node: Node) -> tuple[int, int] | None:
    """Direction and number of steps of a node that is 1 in the first or last steps of a sequence and 0 elsewhere."""
    while node.operation in ("NewReshape", "Pass"):
        node = node.input(0)
    if not node.kind.time.delay or len(node.inputs) != 1 or not zeros(node.input(0)):
        return None
    return (node.kind.time.delay, int(node.options["timeStep"])) if node.options["defaultHiddenActivity"] else None


def held(loop: Iterable[Node]) -> tuple[Node, Node, Node] | None:
    """Match a loop that repeats the first step of a sequence, as BroadcastSequenceAs: If (IsFirst, x, Previous (it)).

    Args:
        loop: its nodes.

    Returns:
        The If node, the delay node and x; None: it does something else.
    """
    nodes = list(loop)
    chosen = next((node for node in nodes if node.operation == "If"), None)
    if len(nodes) != 2 or chosen is None:
        return None
    condition, first, past = chosen.connected
    plain = past.kind.time.delay == -1 and len(past.inputs) == 1 and int(past.options.get("timeStep", 0)) == 1
    if not plain or past.input(0) is not chosen or _edge(condition) != (-1, 1):
        return None
    return (chosen, past, first) if condition.axis == first.axis == chosen.axis else None


def first_step_of(node: Node) -> Node | None:
    """Return the node of one step per sequence that is put at the first steps of the sequences of another axis.

    None: the node does something else. BroadcastSequenceAs has Scatter (IsFirst, x) before the loop.
    """
    if node.operation != "ScatterPacked":
        return None
    like, index, source = node.connected
    if index.operation != "PackedIndex" or source.axis != ONE or index.axis != ONE:
        return None
    steps = index.input(1)
    if steps.operation != "Where" or {operand.axis for operand in (index.input(0), steps.input(0), like)} != {
        node.axis
    }:
        return None
    return source if _edge(steps.input(0)) == (-1, 1) else None


def zeros(node: Node) -> bool:
    """Return whether a node with a time axis is always zero: multiplied by a constant 0, or less itself."""
    for _ in range(8):
        if node.operation in ("SumColumnElements", "Slice", "RowSlice", "Pass", "Negate") and node.inputs:
            node = node.input(0)
        elif node.operation == "ReconcileDynamicAxis" and _fixed(node.input(0)) is not None:
            return _fixed(node.input(0)) == 0
        elif node.operation in ("ElementTimes", "Times", "TransposeTimes"):
            return any(_fixed(source) == 0 for source in node.connected)
        elif node.operation == "Minus":
            return node.input(0) is node.input(1)
        else:
            return False
    return False


def kept_steps(condition: Node) -> int | None:
    """Return the number of steps of a sequence that a condition keeps at most; None: any number of them."""
    window = kept_window(condition)
    if window is not None and window.stop is not None:
        return max(0, window.stop - window.start)
    if condition.operation == "ElementTimes":
        counts = [most for most in (kept_steps(source) for source in condition.connected) if most is not None]
        return min(counts, default=None)
    return None


class Window(NamedTuple):
    """Steps that a condition keeps: from `start` up to `stop` (None: all that follow), counted in one direction.

    Attributes:
        direction: -1 counts from the first step, 1 from the last one backwards.
        start: the first step.
        stop: the step after the last one.
    """

    direction: int
    start: int
    stop: int | None


def kept_window(condition: Node) -> Window | None:
    """Return the steps that a slice along a sequence keeps, `x[begin:end]`; None: the condition is none of a slice."""
    edge = _edge(condition)
    if edge is not None:
        return Window(edge[0], 0, edge[1])
    if condition.operation == "Minus" and _fixed(condition.input(0)) == 1:
        edge = _edge(condition.input(1))
        return None if edge is None else Window(edge[0], edge[1], None)
    if condition.operation == "ElementTimes" and len(condition.inputs) == 2:
        left, right = (kept_window(source) for source in condition.connected)
        if left is None or right is None or left.direction != right.direction:
            return None
        stops = [window.stop for window in (left, right) if window.stop is not None]
        return Window(left.direction, max(left.start, right.start), min(stops, default=None))
    return None
