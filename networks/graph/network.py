"""A computation network as data: named nodes, their inputs, groups.

What the network language creates, MEL edits and model files store. `networks.compile.evaluate` turns it into a
function.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from cntk_config.base.diagnostics import Span, UserError, suggestion
from networks.graph import shapes
from networks.graph.initialize import Initializer, SeedCounter, dtype_of
from networks.graph.shapes import Shape
from networks.nodes import operation
from networks.nodes.declare import NodeKind

GROUPS = ("feature", "label", "criterion", "evaluation", "output")


class Node:
    """One node.

    Attributes:
        name: full name, in the spelling of its creation.
        kind: its operation.
        inputs: input nodes in order; None where a link is empty (MEL).
        options: values of the operation's options.
        shape: sample shape (see `networks.graph.shapes`), None while unknown.
        value: array of the reversed shape, for parameters and pre-computed nodes.
        init: how a parameter gets its start value.
        learning_rate_multiplier: factor of the learning rate; 0 for everything that is not trained.
        has_layout: whether it carries minibatch data (set by `Network.validate`).
        computed: for pre-compute nodes, whether `value` is final.
        samples: for BatchNormalization, the number of samples seen in training.
        span: where it is defined.
    """

    def __init__(
        self,
        name: str,
        kind: NodeKind,
        inputs: Iterable[Node | None] = (),
        options: Mapping[str, Any] | None = None,
        shape: Shape | None = None,
        value: np.ndarray | None = None,
        span: Span | None = None,
    ) -> None:
        self.name = name
        self.kind = kind
        self.inputs: list[Node | None] = list(inputs)
        self.options: dict[str, Any] = dict(options or {})
        self.shape: Shape | None = tuple(shape) if shape is not None else None
        self.value = value
        self.init: Initializer | None = None
        self.learning_rate_multiplier = 0.0
        self.has_layout = kind.layout == "always"
        self.computed = False
        self.samples = 0
        self.span = span

    @property
    def operation(self) -> str:
        """Name of the operation."""
        return self.kind.name

    @property
    def is_parameter(self) -> bool:
        """Whether this is a LearnableParameter (constants included)."""
        return self.kind.name == "LearnableParameter"

    @property
    def trainable(self) -> bool:
        """Whether training changes it."""
        return self.is_parameter and self.learning_rate_multiplier > 0

    def input(self, index: int) -> Node:
        """Input `index`; an empty link is an error."""
        node = self.inputs[index]
        if node is None:
            raise UserError(
                "BadShape", f"{self.operation} '{self.name}': input {index} is not connected", span=self.span
            )
        return node

    @property
    def connected(self) -> list[Node]:
        """The inputs that are there."""
        return [node for node in self.inputs if node is not None]

    def reshape(self, shape: Shape) -> None:
        """Give a parameter another shape with the same elements in the same order."""
        self.shape = tuple(shape)
        if self.value is not None:
            self.value = self.value.reshape(tuple(reversed(self.shape)))

    def matrix(self) -> np.ndarray:
        """The value as the user knows it: an array of shape `self.shape`."""
        if self.value is None:
            raise UserError("NoValue", f"{self.operation} '{self.name}' has no value", span=self.span)
        return self.value.transpose()

    def describe(self) -> str:
        """As in logs: `Node 'B0' (LearnableParameter operation) : [6 x 1]`."""
        return f"Node '{self.name}' ({self.operation} operation) : {shapes.text(self.shape)}"

    def __repr__(self) -> str:
        return f"<{self.describe()}>"


class NodeTable(Mapping[str, Node]):
    """Nodes by name, ignoring case, in order of creation; iterates over the names as spelled."""

    def __init__(self) -> None:
        self._nodes: dict[str, Node] = {}

    def __getitem__(self, name: str) -> Node:
        return self._nodes[name.lower()]

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name.lower() in self._nodes

    def __iter__(self) -> Iterator[str]:
        return (node.name for node in self._nodes.values())

    def __len__(self) -> int:
        return len(self._nodes)

    def put(self, node: Node) -> None:
        """Add (or replace) a node under its name."""
        self._nodes[node.name.lower()] = node

    def drop(self, name: str) -> None:
        """Take a node out."""
        del self._nodes[name.lower()]

    def renamed(self, old: str, new: str) -> None:
        """Change a key and the node's name in place, keeping the order."""
        self._nodes = {(new.lower() if key == old.lower() else key): node for key, node in self._nodes.items()}
        self._nodes[new.lower()].name = new


class Network:
    """A mutable graph of named nodes.

    Args:
        precision: "float" or "double", the element type of all values.

    Attributes:
        nodes: all nodes (`NodeTable`).
        groups: for each of `GROUPS`, its nodes in order.
    """

    def __init__(self, precision: str = "float") -> None:
        self.precision = "double" if precision.lower() == "double" else "float"
        self.dtype = dtype_of(precision)
        self.nodes = NodeTable()
        self.groups: dict[str, list[Node]] = {group: [] for group in GROUPS}

    # ---- editing

    def add(
        self,
        name: str,
        kind: NodeKind | str,
        inputs: Iterable[Node | None] = (),
        options: Mapping[str, Any] | None = None,
        shape: Shape | None = None,
        value: np.ndarray | None = None,
        span: Span | None = None,
    ) -> Node:
        """Add a node; `nodes.create` is the friendlier way for functions of the network language.

        Raises:
            UserError: a node of that name exists.
        """
        if name in self.nodes:
            raise UserError(
                "NodeExists", f"duplicated name: the network already has a node '{self.nodes[name].name}'", span=span
            )
        kind = operation(kind) if isinstance(kind, str) else kind
        node = Node(name, kind, inputs, {**kind.defaults(), **(options or {})}, shape, value, span)
        self.nodes.put(node)
        return node

    def rename(self, old: str, new: str) -> None:
        """Change a node's name; links and groups stay."""
        node = self.find(old)
        if new in self.nodes and self.nodes[new] is not node:
            raise UserError(
                "NodeExists", f"cannot rename '{old}' to '{new}': the network already has a node of that name"
            )
        self.nodes.renamed(node.name, new)

    def remove(self, name: str) -> None:
        """Take a node out of the network and its groups; links to it become empty."""
        node = self.find(name)
        self.nodes.drop(node.name)
        for members in self.groups.values():
            if node in members:
                members.remove(node)
        for other in self.nodes.values():
            other.inputs = [None if i is node else i for i in other.inputs]

    def add_to_group(self, group: str, node: Node) -> None:
        """Put a node at the end of a group, once."""
        if node not in self.groups[group]:
            self.groups[group].append(node)

    def initialize(self, node: Node, seeds: SeedCounter) -> None:
        """Assign the seed of a parameter made by `nodes.create`, and its value if its shape is complete."""
        if node.init is None:
            return
        node.init.assign_seed(seeds, int(node.options.get("randomSeed", -1)))
        self._fill(node)

    def _fill(self, node: Node) -> None:
        if node.init is None or node.value is not None:
            return
        if node.shape is not None:
            node.shape = node.init.complete_shape(node.shape)
        if not shapes.incomplete(node.shape) and not (node.init.random and node.init.seed is None):
            assert node.shape is not None
            node.value = node.init.create(node.shape, self.dtype)

    # ---- looking

    def find(self, name: str) -> Node:
        """The node of that name (ignoring case).

        Raises:
            UserError: there is none, with a suggestion.
        """
        if name not in self.nodes:
            raise UserError("UnknownNode", f"the network has no node '{name}'", hint=suggestion(name, list(self.nodes)))
        return self.nodes[name]

    def __contains__(self, name: str) -> bool:
        return name in self.nodes

    def __getitem__(self, name: str) -> Node:
        return self.find(name)

    def parameters(self, roots: Iterable[Node] | None = None) -> list[Node]:
        """Trainable parameters, sorted by name (case-sensitive, ordinal); only those below `roots`, if given."""
        pool = self.nodes.values() if roots is None else self.below(roots)
        return sorted((node for node in pool if node.trainable), key=lambda node: node.name)

    def precompute_nodes(self, pending: bool = True) -> list[Node]:
        """Mean and InvStdDev nodes; only those not computed yet, if `pending`."""
        return [n for n in self.nodes.values() if n.kind.precompute and not (pending and n.computed)]

    def below(self, roots: Iterable[Node]) -> list[Node]:
        """`roots` and everything they depend on, inputs before their users (delay nodes apart, in loops).

        What was computed before training is constant: it depends on nothing.
        """
        return [node for component in self.components(roots) for node in component]

    def components(self, roots: Iterable[Node] | None = None) -> list[list[Node]]:
        """Strongly connected components in evaluation order.

        Inside a component of several nodes (a loop), nodes come in the order in which one time step evaluates them:
        delay nodes first.
        """
        pool = list(self.nodes.values()) if roots is None else list(roots)
        return [_step_order(component) for component in _tarjan(pool, roots is not None)]

    # ---- checking

    def validate(self) -> None:
        """Check links and loops, infer shapes and layouts, complete parameters.

        Raises:
            UserError: with the nodes, their shapes and the place in the script.
        """
        from networks.graph.validate import validate

        validate(self)
        for node in self.nodes.values():
            self._fill(node)


def is_loop(component: list[Node]) -> bool:
    """Whether a component is a loop (several nodes, or one that feeds itself)."""
    return len(component) > 1 or component[0] in component[0].inputs


def _tarjan(roots: list[Node], constants: bool) -> list[list[Node]]:
    """Strongly connected components of what lies below `roots`; each after the components it depends on.

    constants: nodes that were computed before training are taken for leaves.
    """

    def sources(node: Node) -> Iterator[Node]:
        return iter([] if constants and node.kind.precompute and node.computed else node.connected)

    index: dict[Node, int] = {}
    low: dict[Node, int] = {}
    stack: list[Node] = []
    on_stack: set[Node] = set()
    result: list[list[Node]] = []
    for root in roots:
        if root in index:
            continue
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        work = [(root, sources(root))]
        while work:
            node, inputs = work[-1]
            for child in inputs:
                if child not in index:
                    index[child] = low[child] = len(index)
                    stack.append(child)
                    on_stack.add(child)
                    work.append((child, sources(child)))
                    break
                if child in on_stack:
                    low[node] = min(low[node], index[child])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    component = []
                    while True:
                        member = stack.pop()
                        on_stack.discard(member)
                        component.append(member)
                        if member is node:
                            break
                    result.append(component)
    return result


def _step_order(component: list[Node]) -> list[Node]:
    """Order within one time step: delay nodes first, then inputs before users.

    Raises:
        UserError: a loop without delay node, or with delays in both directions.
    """
    if not is_loop(component):
        return component
    members = set(component)
    directions = {node.kind.delay for node in component if node.kind.delay}
    first = min(component, key=lambda node: node.name)
    names = ", ".join(f"'{node.name}'" for node in sorted(component, key=lambda node: node.name)[:6])
    if len(directions) > 1:
        raise UserError(
            "BadLoop",
            f"the loop through '{first.name}' has both PastValue and FutureValue nodes (loop: {names})",
            span=first.span,
        )
    order: list[Node] = [node for node in reversed(component) if node.kind.delay]
    done, path = set(order), set()
    for start in reversed(component):
        work = [(start, iter(start.connected))] if start not in done else []
        path.update(node for node, _ in work)
        while work:
            node, inputs = work[-1]
            for child in inputs:
                if child in path:
                    raise UserError(
                        "BadLoop",
                        f"the loop through '{child.name}' has no PastValue or FutureValue node (loop: {names})",
                        span=child.span,
                        hint="a loop needs a delay node, so that it can be evaluated time step by time step",
                    )
                if child in members and child not in done:
                    path.add(child)
                    work.append((child, iter(child.connected)))
                    break
            else:
                work.pop()
                path.discard(node)
                done.add(node)
                order.append(node)
    for node in order:
        if node.kind.reduces_time:
            raise UserError(
                "BadLoop",
                f"{node.operation} '{node.name}' reduces over time and cannot be part of a loop (loop: {names})",
                span=node.span,
            )
    return order
