"""Attention as programs write it: nodes that see at each step of one sequence all steps of another one.

`sequence.unpack` makes one sample of the steps of a sequence, `sequence.broadcast_as` repeats it at each step of
another one. What is computed from it (products, a softmax, the weighted sum) has at each step as many elements as there
are steps. Such nodes are a group: they are computed in blocks of steps where they are large.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from cntkpy.networks.graph.axes import first_step_of, held
from cntkpy.networks.graph.node import Node
from cntkpy.networks.graph.order import is_loop

Component = list[Node]

PRODUCTS = ("Times", "TransposeTimes")
"""Operations whose left operand may be the same matrix at every step."""

_OF_ONE_STEP = frozenset({
    *PRODUCTS, "CosDistance", "Dropout", "Hardmax", "LogSoftmax", "NewReshape", "Pass", "ReduceElements", "Reshape",
    "RowSlice", "RowStack", "Slice", "Softmax", "SumColumnElements", "TopK", "TransposeDimensions",
})  # fmt: skip
"""Operations that use one time step only; elementwise operations are not listed."""


@dataclass
class StepGroup:
    """Nodes of one time axis that need only what is at their own step.

    Attributes:
        axis: the time axis.
        nodes: in the order of evaluation.
        repeated: by operand that is the same at every step of a sequence, the node with the one step.
        long: the nodes with as many elements as a sequence has steps.
    """

    axis: str | None
    nodes: list[Node] = field(default_factory=list[Node])
    repeated: dict[Node, Node] = field(default_factory=dict[Node, Node])
    long: set[Node] = field(default_factory=set[Node])


def grouped(components: Sequence[Component]) -> list[Component | StepGroup]:
    """Return the components of a plan in an order of evaluation, with the nodes of a group together."""
    lengths = {int(c[0].options["steps"]) for c in components if c[0].operation == "UnpackSequence"}
    return _Grouping(lengths).run(components) if lengths else list(components)


class _Grouping:
    """Groups under construction. Only the last one grows, so none depends on a later one.

    Args:
        lengths: how many steps unpacked sequences have.
    """

    def __init__(self, lengths: set[int]) -> None:
        self._lengths = lengths
        self._repeated: dict[Node, Node] = {}
        self._parts: list[Component | StepGroup] = []
        self._last: StepGroup | None = None
        self._behind: list[Component] = []
        self._after: set[Node] = set()
        """The last group, the components that depend on it, and their nodes."""

    def run(self, components: Sequence[Component]) -> list[Component | StepGroup]:
        """See `grouped`."""
        for component in components:
            self._note_repetition(component)
            if self._sees_all_steps(component):
                self._join(component[0])
            elif self._is_behind(component):
                self._behind.append(component)
                self._after.update(component)
            else:
                self._parts.append(component)
        self._close()
        return self._parts

    def _note_repetition(self, component: Component) -> None:
        repetition = held(component)
        first = None if repetition is None else first_step_of(repetition[2])
        if repetition is not None and first is not None and self._is_long(repetition[0]):
            self._repeated[repetition[0]] = first

    def _is_long(self, node: Node) -> bool:
        return any(size in self._lengths for size in node.shape or ())

    def _sees_all_steps(self, component: Component) -> bool:
        """Return whether a node computes, from nothing but its own step, with a value for each step of another
        sequence."""
        node = component[0]
        if is_loop(component) or not (node.kind.elementwise or node.operation in _OF_ONE_STEP):
            return False
        return any(i in self._repeated or (self._last and i in self._last.long) for i in node.connected)

    def _is_behind(self, component: Component) -> bool:
        """Return whether a component needs the last group."""
        members = set[Node]() if self._last is None else set(self._last.nodes)
        return any(i in members or i in self._after for node in component for i in node.connected)

    def _join(self, node: Node) -> None:
        """Add a node to the last group, or to a new one if it needs what depends on the last one."""
        if self._last is None or self._last.axis != node.axis or not self._after.isdisjoint(node.connected):
            self._close()
            self._last = StepGroup(node.axis)
        self._last.nodes.append(node)
        self._last.repeated.update({i: self._repeated[i] for i in node.connected if i in self._repeated})
        if self._is_long(node):
            self._last.long.add(node)

    def _close(self) -> None:
        self._parts += [*([] if self._last is None else [self._last]), *self._behind]
        self._last, self._behind, self._after = None, [], set()
