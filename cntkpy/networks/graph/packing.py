"""Time axes on which sequences may share a slot, in a network with several."""

from __future__ import annotations

from collections.abc import Iterable

from cntkpy.networks.graph.axes import ONE, axes_of, first_step_of, is_kept
from cntkpy.networks.graph.node import Node


def packed_axes(nodes: Iterable[Node]) -> frozenset[str]:
    """Return the time axes of inputs on which a minibatch may have several sequences after each other in one slot.

    Args:
        nodes: all that may be computed of a minibatch.
    """
    nodes = list(nodes)
    if any(node.kind.columns for node in nodes):  # they count cells, whatever their axis is
        return frozenset()
    axes = axes_of(node for node in nodes if node.kind.layout == "always")
    apart: set[str | None] = {ONE, *(node.axis for node in nodes if node.kind.time.keeps_steps)}
    for node in nodes:
        rule = node.kind.time
        needs_own = (rule.own_slots or rule.across or rule.whole) and not rule.packs
        if needs_own or not _are_of_one_axis(node):
            of_cells = [source.input(0) for source in node.connected if source.operation == "PackedIndex"]
            apart |= {node.axis, *(source.axis for source in (*node.connected, *of_cells))}
    if any(node.operation == "UnpackSequence" for node in nodes):  # repeated, it is what attention looks at in blocks
        apart |= {node.axis for node in nodes if first_step_of(node) is not None}
    return frozenset(axis for axis in axes if axis not in apart and not is_kept(axis))


def _are_of_one_axis(node: Node) -> bool:
    """Return whether a node takes cell numbers from PackedIndex only, as those of the axis that they are computed for.

    In slots of their own, the sequences of all axes have the same cells.
    """
    expected = {"GatherPacked": (0, 1), "ScatterPacked": (1, 0)}.get(node.operation)
    if expected is None:
        return all(source.operation != "PackedIndex" for source in node.connected)
    index, of = (node.input(k) for k in expected)
    if not of.has_layout:
        return index.operation != "PackedIndex"
    return index.operation == "PackedIndex" and index.input(0).axis == of.axis
