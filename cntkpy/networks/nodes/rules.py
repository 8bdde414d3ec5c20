"""Shape rules shared by several families."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cntkpy.networks.graph import shapes
from cntkpy.networks.graph.axes import EVERYWHERE
from cntkpy.networks.graph.shapes import Shape, ShapeProblem

if TYPE_CHECKING:
    from cntkpy.networks.graph.network import Node


def same(node: Node) -> Shape | None:
    """Return the shape of the first input."""
    return node.input(0).shape


def scalar(node: Node) -> Shape | None:
    """`[1]`."""
    return (1,)


def carrying_data(*nodes: Node) -> None:
    """Refuse operands without minibatch axis."""
    for node in nodes:
        if not node.has_layout:
            raise ShapeProblem(f"'{node.name}' carries no minibatch data", EVERYWHERE)


def constants(*nodes: Node) -> None:
    """Refuse operands with minibatch axis."""
    for node in nodes:
        if node.has_layout:
            raise ShapeProblem(f"'{node.name}' must not carry minibatch data")


def infer(node: Node, offered: Shape) -> None:
    """Complete the 0 axes of a parameter from the shape it is combined with."""
    if node.is_parameter and node.value is None and node.shape is not None and 0 in node.shape:
        node.shape = shapes.fill_in(node.shape, offered)


def elementwise(node: Node) -> Shape | None:
    """Left-aligned broadcast of all inputs; parameters with 0 axes take them from the others."""
    operands = node.connected
    for operand in operands:
        if operand.shape is not None and 0 in operand.shape:
            partner_shapes = [
                o.shape for o in operands if o is not operand and o.shape is not None and 0 not in o.shape
            ]
            if partner_shapes:
                infer(operand, shapes.broadcast(partner_shapes))
    known = [o.shape for o in operands if o.shape is not None]
    if len(known) < len(operands) or any(0 in s for s in known):
        return None if not known else _partial(known)
    return shapes.broadcast(known)


def _partial(known: list[Shape]) -> Shape | None:
    complete = [s for s in known if 0 not in s]
    return shapes.broadcast(complete) if complete else None


def equal_shapes(node: Node) -> Shape | None:
    """Check that the first two inputs agree up to trailing axes of 1, then `[1]` (criteria).

    Further axes of one of them are refused by `cntkpy.networks.graph.validate.check_operands`.
    """
    a, b = node.input(0), node.input(1)
    carrying_data(a, b)
    if a.shape is not None and b.shape is not None:
        left, right = shapes.trimmed(a.shape), shapes.trimmed(b.shape)
        common = min(len(left), len(right))
        if left[:common] != right[:common]:
            raise ShapeProblem("the two must have the same shape")
    return (1,)
