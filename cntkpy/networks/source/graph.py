"""The part of a validated network that is written: copies of nodes joined, constants computed, users counted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.networks.compile.plan import Plan
from cntkpy.networks.graph import axes
from cntkpy.networks.graph.network import Network, Node, ValidatedNetwork
from cntkpy.networks.graph.order import is_loop
from cntkpy.networks.nodes.source_support import steps
from cntkpy.networks.nodes.source_support.values import dims_of
from cntkpy.networks.onnx.export import along_time, fixed_nodes

Evaluate = Callable[[ValidatedNetwork, list[str]], Mapping[str, np.ndarray]]

TRANSPARENT = ("Pass", "Trace")
"""Operations whose result is their operand."""

_STATISTICS = {"Mean": 0.0, "InvStdDev": 1.0}
"""Values in the place of statistics that no training has computed yet."""


class Graph:
    """The part of a network that is written.

    Args:
        network: the network.
        names: of the nodes that are asked for.
        evaluate: computes nodes that do not depend on data.

    Attributes:
        original: the network.
        network: a copy in which nodes that compute the same are one.
        outputs: the nodes of these names, in the copy.
        inputs: nodes with data, in the order of the network.
        components: nodes and loops, operands before their users.
        users: by node, the nodes that have it as an operand, once for each place.
        held: nodes that repeat one step at all steps, and the node with that step.
        constants: the values of nodes that neither data nor training change.
        pending: statistics that no training has computed yet.
        along_time: whether nodes look along time.
    """

    def __init__(self, network: ValidatedNetwork, names: Iterable[str], evaluate: Evaluate) -> None:
        self.original = network
        self.network = network = ValidatedNetwork(network.copied())
        plan = Plan(network, names, training=False)
        self.plan = plan
        self.outputs = plan.outputs
        self.along_time = along_time(plan.nodes)
        self.fixed = fixed_nodes(plan.nodes)
        self.pending = [node for node in plan.nodes if node.kind.precompute and not node.computed]
        self.constants = self._constants(evaluate)
        self._same: dict[Node, Node] = {}
        self.held: dict[Node, Node] = {}
        components = self._without_holding(plan.components)
        self._join(components)
        wanted = self._needed()
        order = {node: place for place, node in enumerate(network.nodes.values())}
        self.inputs = sorted((node for node in wanted if node.kind.layout == "always"), key=order.__getitem__)
        self.components = [
            kept
            for component in components
            if (kept := [node for node in component if node in wanted and self.canonical(node) is node])
        ]
        self.users: dict[Node, list[Node]] = {node: [] for component in self.components for node in component}
        for node in list(self.users):
            for source in self.operands(node):
                self.users.setdefault(source, []).append(node)

    def canonical(self, node: Node) -> Node:
        """Return the node that computes the value of a node."""
        while node in self._same:
            node = self._same[node]
        return node

    def operands(self, node: Node) -> list[Node]:
        """Return the operands of a node; a constant has none."""
        if node in self.constants or node.kind.precompute:
            return []
        if node in self.held:
            return [self.canonical(self.held[node])]
        return [self.canonical(source) for source in steps.read(node)]

    def is_leaf(self, node: Node) -> bool:
        """Return whether a node is a parameter or a constant."""
        return node.is_parameter or node in self.constants

    def value(self, node: Node) -> np.ndarray:
        """Return the value of a parameter or constant, with the axes that it has in the code."""
        value = self.constants.get(node, node.value)
        if value is None:
            raise UserError("NoValue", f"{node.operation} '{node.name}' has no value", span=node.span)
        return np.asarray(value, np.float64 if self.network.precision == "double" else np.float32).reshape(
            dims_of(node)
        )

    def number(self, node: Node) -> float | None:
        """Return the value of a constant of one element; None for anything else."""
        if node not in self.constants or self.constants[node].size != 1 or node in self._updated():
            return None
        return float(self.constants[node].reshape(()))

    def filled(self) -> ValidatedNetwork:
        """Return the network as it was given, with the statistics and the precision that the source has."""
        network = ValidatedNetwork(self.original.copied())
        if network.precision == "half":
            network.precision = "float"
            for node in network.nodes.values():
                node.value = None if node.value is None else node.value.astype(network.dtype)
        for node in self.pending:
            entry = network.find(node.name)
            entry.value, entry.computed = self.constants[node].astype(network.dtype), True
        return network

    def _updated(self) -> set[Node | None]:
        return {user.inputs[index] for user in self.plan.nodes for index in user.kind.running}

    def _constants(self, evaluate: Evaluate) -> dict[Node, np.ndarray]:
        result: dict[Node, np.ndarray] = {}
        computed: list[Node] = []
        for node in self.plan.nodes:
            if node in self.pending:
                prior = node.operation == "Mean" and node.input(0) in self.network.groups["label"]
                fill = 1 / max(1, int(np.prod(node.shape or (1,)))) if prior else _STATISTICS[node.operation]
                result[node] = np.full(tuple(reversed(node.shape or ())), fill)
            elif node.kind.precompute or (node.is_parameter and not node.trainable):
                if node.value is not None:
                    result[node] = node.value
            elif node in self.fixed and not node.is_parameter and not node.kind.time.makes_axis:
                computed.append(node)
        changed = {node for node in self.plan.nodes if node.is_parameter and node.trainable} | set(self.pending)
        pure: set[Node] = set(result) - set(self.pending)
        for node in computed:
            if all(source in pure for source in node.connected) and not changed.intersection(node.connected):
                pure.add(node)
        needed = [node for node in computed if node in pure and any(user not in pure for user in self.plan.users[node])]
        if needed:
            values = evaluate(self.network, [node.name for node in needed])
            result |= {node: np.asarray(values[node.name]) for node in needed}
        return result

    def _without_holding(self, components: list[list[Node]]) -> list[list[Node]]:
        """Return components in which a loop that repeats one step of a sequence is a node that reads this step."""
        result: list[list[Node]] = []
        for component in components:
            repeated = axes.held(component) if is_loop(component) else None
            if repeated is not None:
                chosen, _, first = repeated
                self.held[chosen] = axes.first_step_of(first) or first
                component = [chosen]
            result.append(component)
        return result

    def _join(self, components: list[list[Node]]) -> None:
        """Join nodes that compute the same, and leave out those whose result is their operand."""
        known: dict[object, Node] = {}
        for component in components:
            loop = is_loop(component)
            for node in component:
                if node in self.constants:
                    continue
                source = self._transparent(node)
                if source is not None and source is not node:
                    self._same[node] = source
                elif node.inputs and not loop and not node.kind.random and not node.kind.memory:
                    operands = tuple(id(self.canonical(source)) for source in node.connected)
                    key = (node.operation, _options(node), operands, node.shape, node.axis)
                    first = known.setdefault(key, node)
                    if first is not node:
                        self._same[node] = first
                elif loop and node.kind.time.delay:
                    operands = tuple(id(self.canonical(source)) for source in node.connected)
                    key = (node.operation, _options(node), operands, node.shape)
                    first = known.setdefault(key, node)
                    if first is not node:
                        self._same[node] = first
        for node in self.plan.nodes:
            node.inputs = [None if source is None else self.canonical(source) for source in node.inputs]

    def _transparent(self, node: Node) -> Node | None:
        """Return the operand that the result of a node is; None: it is none of them."""
        if node.operation in TRANSPARENT:
            return node.input(0)
        if node.operation not in ("ElementTimes", "Times") or len(node.connected) != 2:
            return None
        for item, operand in (node.connected, node.connected[::-1]):
            number = self.number(item)
            if number == 1 and dims_of(node) == dims_of(operand) and node.axis == operand.axis:
                return operand
        return None

    def _needed(self) -> set[Node]:
        """Return the nodes that outputs depend on."""
        result: set[Node] = set()
        waiting = [self.canonical(node) for node in self.outputs]
        while waiting:
            node = waiting.pop()
            if node not in result:
                result.add(node)
                waiting += self.operands(node)
        return result


def _options(node: Node) -> str:
    return repr(sorted(node.options.items(), key=str))


def prediction_nodes(network: Network, roots: Iterable[Node] | None = None) -> list[Node]:
    """Return the nodes that criteria compare with inputs.

    Args:
        network: the network.
        roots: the criteria; None: all of the network.
    """
    if roots is None:
        roots = [*network.groups["criterion"], *network.groups["evaluation"]]
    result: dict[Node, None] = {}
    for root in roots:
        for node in root.connected:
            while node.operation in TRANSPARENT:
                node = node.input(0)
            if node.has_layout and node.kind.layout != "always":
                result[node] = None
    return list(result)
