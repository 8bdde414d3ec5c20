"""Nodes that are one call together: the last steps of sequences side by side, log(1 + exp(x))."""

from __future__ import annotations

import math
from typing import NamedTuple

from cntkpy.networks.graph.node import Node
from cntkpy.networks.nodes.source_support import steps
from cntkpy.networks.nodes.source_support.layers import Unit
from cntkpy.networks.nodes.source_support.use import Use
from cntkpy.networks.nodes.source_support.values import Value, dims_of, number
from cntkpy.networks.source.graph import Graph

FEWEST = 3
"""Steps of a window, at least."""


def together(graph: Graph, node: Node) -> Unit | None:
    """Return the unit of a node and those that only it reads, if they are one call; else None."""
    return window(graph, node) or _softplus(graph, node)


def _softplus(graph: Graph, node: Node) -> Unit | None:
    """Return the unit of log(1 + exp(x))."""
    total = _only(graph, node, 0, "Plus") if node.operation == "Log" else None
    if total is None:
        return None
    operands = graph.operands(total)
    exponential = next((item for item in operands if item.operation == "Exp" and graph.users[item] == [total]), None)
    if exponential is None or not any(graph.number(item) == 1 for item in operands):
        return None
    x = graph.operands(exponential)[0]
    covered = [total, exponential]
    if covered_outputs(graph, covered):
        return None
    return Unit(
        [node], [x], lambda use: [use.value(use.say("softplus", use.values[0]), use.values[0].dims)], covered=covered
    )


def _only(graph: Graph, node: Node, index: int, operation: str) -> Node | None:
    """Return an operand of this operation that nothing else reads."""
    operand = graph.operands(node)[index] if graph.operands(node) else None
    if operand is None or operand.operation != operation or graph.users.get(operand) != [node]:
        return None
    return operand


def covered_outputs(graph: Graph, nodes: list[Node]) -> bool:
    """Return whether some nodes are outputs of the network."""
    return bool(set(nodes).intersection(map(graph.canonical, graph.outputs)))


class _Step(NamedTuple):
    """A step before the end of a sequence.

    Attributes:
        source: the sequence.
        back: how many steps before the last one.
        initial: what stands before the start of the sequence; None: nothing is read there.
    """

    source: Node
    back: int
    initial: float | None


def window(graph: Graph, node: Node) -> Unit | None:
    """Return a unit that reads the last steps of sequences; None: a node does something else."""
    if node.operation != "RowStack" or len(node.connected) < FEWEST:
        return None
    edges = graph.operands(node)
    read = [_step(graph, edge, node) for edge in edges]
    known = [step for step in read if step is not None]
    if len(known) != len(read) or [step.back for step in known] != list(range(len(known))):
        return None
    starts = {step.initial for step in known if step.initial is not None}
    if len({step.source for step in known}) != 1 or len(starts) != 1:
        return None
    source, initial, count = known[0].source, starts.pop(), len(known)
    size = math.prod(source.shape or (1,))
    users = graph.users.get(node, [])
    reshaped = bool(users) and all(user.operation == "NewReshape" and dims_of(user) == (count, size) for user in users)

    def code(use: Use) -> list[Value]:
        value = use.reshaped(use.values[0], (size,))
        start = "" if initial == 0 else f", {number(initial)}"
        mask = use.body.mask(source.axis)
        text = f"{use.helper('last_steps')}({value.text}, {mask}, {count}{start})"
        result = use.value(text, (count, size))
        return [result if reshaped else use.finished(result)]

    return Unit([node], [source], code, covered=edges)


def _step(graph: Graph, edge: Node, node: Node) -> _Step | None:
    """Return the step that an operand of a row reads."""
    outputs = {graph.canonical(output) for output in graph.outputs}
    if edge.operation != "GatherPacked" or steps.edge_of(edge) != "last":
        return None
    if graph.users[edge] != [node] or edge in outputs:
        return None
    source = graph.operands(edge)[0]
    if source.operation != "PastValue":
        return _Step(source, 0, None)
    delay = int(source.options["timeStep"])
    initial = float(source.options["defaultHiddenActivity"])
    if len(source.inputs) > 1:
        value = graph.number(graph.canonical(source.input(1)))
        if value is None:
            return None
        initial = value
    return _Step(graph.canonical(source.input(0)), delay, initial)
