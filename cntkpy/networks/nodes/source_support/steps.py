"""Nodes that select the first or the last step of a sequence, and what they read."""

from __future__ import annotations

from cntkpy.networks.graph import axes
from cntkpy.networks.graph.axes import ONE
from cntkpy.networks.graph.node import Node


def is_first(condition: Node) -> bool:
    """Return whether a condition keeps the first step of a sequence."""
    return axes.kept_window(condition) == axes.Window(-1, 0, 1)


def is_last(condition: Node) -> bool:
    """Return whether a condition keeps the last step of a sequence."""
    return axes.kept_window(condition) == axes.Window(1, 0, 1)


def edge_of(node: Node) -> str:
    """Return "first" or "last" of a node that gathers this step of a sequence; empty: it does something else."""
    index, source = node.connected[:2]
    if node.operation != "GatherPacked" or index.operation != "PackedIndex" or node.axis != ONE:
        return ""
    where = index.input(1)
    if where.operation != "Where" or not source.has_layout or where.input(0).axis != source.axis:
        return ""
    return "first" if is_first(where.input(0)) else "last" if is_last(where.input(0)) else ""


def read(node: Node) -> list[Node]:
    """Return the operands whose values the code of a node reads; of others it needs the time axis at most."""
    if node.operation == "Where" and (is_first(node.input(0)) or is_last(node.input(0))):
        return []
    if node.operation == "PackedIndex":
        return [node.input(1)]
    if node.operation == "ScatterPacked":
        return node.connected[1:]
    if node.operation == "GatherPacked" and edge_of(node):
        return [node.input(1)]
    if node.operation == "RepeatSteps":
        return []
    return node.connected
