"""Time axes on which sequences may share a slot, in a network with several."""

from __future__ import annotations

from collections.abc import Iterable

from networks.graph.axes import ONE, axes_of, is_kept
from networks.graph.node import Node

__all__ = ["packed_axes"]


def packed_axes(nodes: Iterable[Node]) -> frozenset[str]:
    """The time axes of inputs on which a minibatch may have several sequences after each other in one slot.

    Args:
        nodes: all that may be computed of a minibatch.
    """
    nodes = list(nodes)
    given = axes_of(node for node in nodes if node.kind.layout == "always")
    apart: set[str | None] = {ONE}
    for node in nodes:
        if node.kind.columns:  # it counts cells, whatever its axis is
            return frozenset()
        if node.kind.time.keeps_steps:
            apart.add(node.axis)
        needs = node.kind.time.own_slots or node.kind.time.across or node.kind.time.whole
        if needs and not node.kind.time.packs:
            apart |= {node.axis, *(source.axis for source in node.connected)}
    return frozenset(axis for axis in given if axis not in apart and not is_kept(axis))
