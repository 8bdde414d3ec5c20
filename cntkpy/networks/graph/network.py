"""A computation network as data: named nodes, their inputs, groups.

What the network language creates, MEL edits and model files store. `cntkpy.networks.compile.evaluate` turns it into a
function.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping, ValuesView
from typing import Any, NewType

from cntkpy.cntk_config.base.diagnostics import Span, UserError, suggestion
from cntkpy.cntk_config.base.lazy_modules import np
from cntkpy.networks.graph import order, shapes
from cntkpy.networks.graph.initialize import SeedCounter
from cntkpy.networks.graph.node import Node, NodeKind
from cntkpy.networks.graph.precision import dtype_of, known_precision
from cntkpy.networks.graph.shapes import Shape
from cntkpy.networks.graph.validate import infer, mistakes

__all__ = ["GROUPS", "Network", "Node", "NodeTable", "ValidatedNetwork"]

GROUPS = ("feature", "label", "criterion", "evaluation", "output")


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

    def values(self) -> ValuesView[Node]:
        """Return the nodes."""
        return self._nodes.values()

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


FORMER_NAMES = {"evalerrorprediction": "EvalClassificationError"}
"""Names of nodes, in lower case, that builders of earlier versions of CNTK gave, and those that they have now."""


class Network:
    """A mutable graph of named nodes.

    Args:
        precision: one of `cntkpy.networks.graph.precision.PRECISIONS`; any other word means "float".
        values: whether parameters get values; names and shapes need none.

    Attributes:
        nodes: all nodes (`NodeTable`).
        groups: for each of `GROUPS`, its nodes in order.
        changing: names of constants of one element whose value a program changes: it is an argument of compiled
            programs, while that of the others is a part of them.
        left_out: names that the file of the model has, but the network has not, and why.
    """

    def __init__(self, precision: str = "float", values: bool = True) -> None:
        self.precision = known_precision(precision)
        self.values = values
        self.nodes = NodeTable()
        self.groups: dict[str, list[Node]] = {group: [] for group in GROUPS}
        self.changing: set[str] = set()
        self.left_out: dict[str, str] = {}

    @property
    def dtype(self) -> np.dtype:
        """The element type of parameters, data and criteria."""
        return dtype_of(self.precision)

    def inlined(self) -> set[Node]:
        """Return the nodes whose value is a part of compiled programs: constants of one element that do not change."""
        updated = {user.inputs[index] for user in self.nodes.values() for index in user.kind.running}
        return {
            node
            for node in self.nodes.values()
            if node.is_parameter
            and not node.trainable
            and node.value is not None
            and node.value.size == 1
            and node.name not in self.changing
            and node not in updated
        }

    # ---- editing

    def add(
        self,
        name: str,
        kind: NodeKind,
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
        if node.kind.time.makes_axis:
            for member in self.nodes.values():
                if str(member.options.get("dynamicAxis", "")).lower() == node.name.lower():
                    member.options["dynamicAxis"] = new
        self.nodes.renamed(node.name, new)

    def remove(self, name: str) -> None:
        """Take a node out of the network and its groups; links to it become empty."""
        node = self.find(name)
        self.nodes.drop(node.name)
        for members in self.groups.values():
            if node in members:
                members.remove(node)
        for other_node in self.nodes.values():
            other_node.inputs = [None if i is node else i for i in other_node.inputs]

    def add_to_group(self, group: str, node: Node) -> None:
        """Put a node at the end of a group, once."""
        if node not in self.groups[group]:
            self.groups[group].append(node)

    def initialize(self, node: Node, seeds: SeedCounter) -> None:
        """Assign the seed of a parameter made by `nodes.create`, and its value if its shape is complete."""
        if node.init is None:
            return
        node.init.assign_seed(seeds, int(node.options.get("randomSeed", -1)))
        _fill(node, self)

    def copied(self) -> Network:
        """Return a copy with nodes of its own, which share values and options with these."""
        made, nodes = copy.copy(self), {node: copy.copy(node) for node in self.nodes.values()}
        made.nodes = NodeTable()
        for node in nodes.values():
            node.inputs = [None if source is None else nodes[source] for source in node.inputs]
            made.nodes.put(node)
        made.groups = {group: [nodes[node] for node in members] for group, members in self.groups.items()}
        return made

    # ---- looking

    def find(self, name: str) -> Node:
        """Return the node of that name (ignoring case), or of the name that it has had since.

        Raises:
            UserError: there is none, with a suggestion.
        """
        if name not in self.nodes:
            name = FORMER_NAMES.get(name.lower(), name)
        if name not in self.nodes and name in self.left_out:
            raise UserError("NotSupported", f"'{name}' could not be read from the model: it {self.left_out[name]}")
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

    def linked_below(self, roots: Iterable[Node]) -> list[Node]:
        """As `below`, with what nodes that were computed before training are linked to."""
        return [node for component in order.components(roots) for node in component]

    def components(self, roots: Iterable[Node] | None = None) -> list[list[Node]]:
        """Strongly connected components in evaluation order.

        Inside a component of several nodes (a loop), nodes come in the order in which one time step evaluates them:
        delay nodes first.
        """
        pool = list(self.nodes.values()) if roots is None else list(roots)
        return order.components(pool, precomputed_are_leaves=roots is not None)

    # ---- checking

    def validate(self, *, exact_axes: bool = False) -> ValidatedNetwork:
        """Check links and loops, infer shapes and layouts, complete parameters.

        Args:
            exact_axes: inputs are on the time axes that they name; otherwise one that meets a single step per sequence,
                as labels do, may have a single step, too.

        Returns:
            This network, as one that can be compiled. Whoever edits it afterwards validates it again.

        Raises:
            UserError: with the nodes, their shapes and the place in the script.
        """
        infer(list(self.nodes.values()), exact_axes)
        for node in self.nodes.values():
            _fill(node, self)
        return ValidatedNetwork(self)

    def mistakes(self, failed: Iterable[Node] = ()) -> list[tuple[Node, UserError]]:
        """Return all mistakes that `validate` would find one by one, with their nodes.

        A node that depends on a wrong one is not looked at. Without mistakes the network is as `validate` leaves it.

        Args:
            failed: Nodes whose mistakes are known already.
        """
        errors: list[tuple[Node, UserError]] = [
            (error.node, error) for error in mistakes(list(self.nodes.values()), failed)
        ]
        for node in self.nodes.values():
            try:
                _fill(node, self)
            except UserError as error:
                errors.append((node, error))
        return errors


def _fill(node: Node, network: Network) -> None:
    """Complete the shape of a parameter, and give it its value if it can have one."""
    if node.init is None or node.value is not None:
        return
    if node.shape is not None:
        node.shape = node.init.complete_shape(node.shape)
    if node.shape is None or shapes.incomplete(node.shape):
        return
    if not network.values:
        node.init.check(node.shape, network.precision)
    elif not node.init.random or node.init.seed is not None:
        try:
            node.value = node.init.create(node.shape, network.dtype)
        except MemoryError:
            message = f"there is not enough memory for the parameter '{node.name}' {shapes.text(node.shape)}"
            raise UserError("TooLarge", message, node.span) from None


ValidatedNetwork = NewType("ValidatedNetwork", Network)
"""A network whose links, shapes and layouts are known to be right: what `Network.validate` returns."""
