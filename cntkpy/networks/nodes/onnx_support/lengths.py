"""Sequences of different lengths: for each time axis, a value with the numbers of steps, if the user wants one."""

from __future__ import annotations

from cntkpy.networks.graph.node import Node
from cntkpy.networks.nodes.onnx_support.graph import Emitter


def steps_of_batch(emit: Emitter, value: str) -> str:
    """Return the numbers 0, 1, ... of the steps that a value has."""
    count = emit.squeeze(emit.op("Shape", value, start=0, end=1), 0)
    return emit.op("Range", emit.integer(0), count, emit.integer(1))


def within(emit: Emitter, node: Node, value: str, rank: int, later: int = 0) -> str | None:
    """Which steps of a node have one `later` steps after them: booleans (T, N, 1, ...).

    Args:
        emit: adds operators.
        node: the node.
        value: its value, or another one with as many steps.
        rank: how many axes of 1 element follow.
        later: how many steps.

    Returns:
        None: all sequences have equally many steps.
    """
    lengths = emit.lengths.get(node.axis or "")
    if lengths is None:
        return None
    steps = steps_of_batch(emit, value)
    steps = emit.op("Add", steps, emit.integer(later)) if later else steps
    inside = emit.op("Less", emit.unsqueeze(steps, 1), lengths)
    return emit.unsqueeze(inside, *range(2, 2 + rank)) if rank else inside


def kept(emit: Emitter, node: Node, value: str, rank: int, padding: str, later: int = 0) -> str:
    """Return a value where its sequences have steps, another one behind them."""
    inside = within(emit, node, value, rank, later)
    return value if inside is None else emit.op("Where", inside, value, padding)
