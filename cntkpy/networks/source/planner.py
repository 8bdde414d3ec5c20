"""Makes units of the nodes of a graph: layers, loops, nodes with a rule."""

from __future__ import annotations

from collections.abc import Iterable

from cntkpy.networks.graph.axes import ONE
from cntkpy.networks.graph.node import Node
from cntkpy.networks.graph.order import is_loop
from cntkpy.networks.nodes.source_support.dialect import Dialect
from cntkpy.networks.nodes.source_support.finder import Finder
from cntkpy.networks.nodes.source_support.layers import Unit
from cntkpy.networks.nodes.source_support.names import given_name
from cntkpy.networks.nodes.source_support.use import Use
from cntkpy.networks.nodes.source_support.values import NotExpressible, Value
from cntkpy.networks.source import recurrent
from cntkpy.networks.source.graph import Graph
from cntkpy.networks.source.table import LAYERS, REFUSED, RULES
from cntkpy.networks.source.windows import together


class Planner:
    """Makes units of the nodes of a graph.

    Args:
        graph: the graph.
        dialect: the framework.
        dropout: the rate of Dropout nodes that have none of their own.

    Attributes:
        refused: by node, why it has no code.
        mask_names: of time axes, where there are several.
    """

    def __init__(self, graph: Graph, dialect: Dialect, dropout: float) -> None:
        self.graph = graph
        self.dialect = dialect
        self.find = Finder(graph, dialect, dropout)
        self.refused: dict[Node, str] = {}
        self.mask_names = _mask_names(graph)

    def units(self, components: Iterable[list[Node]]) -> list[Unit]:
        """Return the units that compute nodes and loops, operands before their users."""
        components = list(components)
        layers = {
            id(component): recurrent.recognised(self.graph, component) for component in components if is_loop(component)
        }
        rows = {
            component[0]: unit
            for component in components
            if not is_loop(component) and (unit := together(self.graph, component[0])) is not None
        }
        dead = self._dead([*(unit for unit in layers.values() if unit is not None), *rows.values()])
        dead |= {node for unit in rows.values() for node in unit.covered}
        results = {unit.node: unit for unit in layers.values() if unit is not None}
        both = {
            component[0]: unit
            for component in components
            if not is_loop(component)
            and (unit := recurrent.joined_directions(self.graph, component[0], results)) is not None
        }
        single = {item for node in both for item in self.graph.operands(node)}
        deferred: dict[Node, Unit] = {}
        result: list[Unit] = []
        for component in components:
            if is_loop(component):
                unit = layers[id(component)] or self._loop(component)
                if unit is not None and unit.node not in single:
                    result.append(unit)
                continue
            node = component[0]
            if node in dead or self.graph.is_leaf(node) or node.kind.layout == "always" or node.kind.time.makes_axis:
                continue
            unit = both.get(node) or rows.get(node) or deferred.pop(node, None) or self._unit(node)
            if unit is None:
                continue
            if unit.node is not node:
                deferred[unit.node] = unit
            else:
                result.append(unit)
        return result

    def _dead(self, layers: list[Unit]) -> set[Node]:
        """Return the nodes that nothing reads any more, because recurrent layers compute what their users did."""
        absorbed = {node for unit in layers for node in unit.covered}
        read = {operand for unit in layers for operand in unit.operands}
        read |= {self.graph.canonical(node) for node in self.graph.outputs}
        result: set[Node] = set()
        for component in reversed(self.graph.components):
            for node in component:
                users = self.graph.users.get(node, [])
                if (
                    node not in absorbed
                    and node not in read
                    and users
                    and all(u in absorbed or u in result for u in users)
                ):
                    result.add(node)
        return result

    def _unit(self, node: Node) -> Unit | None:
        try:
            finder = LAYERS.get(node.operation)
            layer = None if finder is None else finder(self.find, node)
        except NotExpressible as problem:
            self.refused[node] = str(problem)
            return None
        if layer is not None:
            return layer
        if node in self.graph.held:
            return Unit([node], self.graph.operands(node), _repeated)
        rule = RULES.get(node.operation)
        if rule is None:
            self.refused[node] = REFUSED.get(node.operation, "this operation has no code")
            return None

        def code(use: Use) -> list[Value]:
            result = rule(use)
            return [result if isinstance(result, Value) else use.value(result)]

        return Unit([node], self.graph.operands(node), code)

    def _loop(self, component: list[Node]) -> Unit | None:
        members = set(component)
        graph = self.graph
        outputs = [graph.canonical(node) for node in graph.outputs]
        wanted = [
            node for node in component if node in outputs or any(user not in members for user in graph.users[node])
        ]
        operands = list(
            dict.fromkeys(
                source
                for node in component
                for source in graph.operands(node)
                if source not in members and not self._inside(source, members)
            )
        )
        if not any(is_sequence(source, component[0]) for source in operands):
            self.refused[component[0]] = "it is part of a loop that no data enter"
            return None
        return Unit(wanted, operands, lambda use: [], loop=component)

    def _inside(self, leaf: Node, members: set[Node]) -> bool:
        """Return whether a parameter belongs to a loop."""
        if not self.graph.is_leaf(leaf):
            return False
        return self.graph.number(leaf) is not None or all(user in members for user in self.graph.users[leaf])


def _mask_names(graph: Graph) -> dict[str, str]:
    """Return names of masks that say which inputs they are of; one time axis has `mask`."""
    names: dict[str, str] = {}
    for node in graph.inputs:
        if node.axis not in (None, ONE):
            names.setdefault(str(node.axis), f"{given_name(node) or 'x'}_mask")
    return names if len(names) > 1 else {}


def _repeated(use: Use) -> list[Value]:
    """Return the value of one step, at all steps."""
    source = use.values[0]
    first = f"{source.atom}[:, :1]" if source.lead == 2 else f"{source.atom}[:, None]"
    remainder = ", ".join("-1" for _ in source.dims)
    return [use.finished(use.value(use.say("at_all_steps", first, f"{use.mask()}.shape[1]", remainder), source.dims))]


def is_sequence(source: Node, member: Node) -> bool:
    """Return whether a loop reads a step of a node at a time."""
    return source.has_layout and not (source.axis == ONE and member.axis != ONE)
