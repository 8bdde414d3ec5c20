"""Words for declarations of node kinds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cntkpy.networks.graph.node import (
    BOOLEAN,
    BOOLEANS,
    INTEGER,
    INTEGERS,
    NODE,
    PATH,
    REAL,
    SECTION,
    TEXT,
    Argument,
    Forward,
    NodeKind,
    Option,
    RecordForm,
    ShapeRule,
    Signature,
    TimeRule,
    shown,
)

if TYPE_CHECKING:
    from cntkpy.networks.nodes.onnx_support.use import Use

__all__ = [
    "BOOLEAN", "BOOLEANS", "EXAMPLE_NODES", "INTEGER", "INTEGERS", "NODE", "PATH", "REAL", "SECTION", "TEXT",
    "Argument", "Forward", "NodeKind", "Option", "RecordForm", "ShapeRule", "Signature", "TimeRule", "inputs",
    "one_signature", "shown", "unchanged",
]  # fmt: skip

EXAMPLE_NODES = """\
x = Input(4, tag=feature)
y = Input(4)
labels = Input(3, tag=label)
words = SparseInput(10)
picture = ImageInput(8, 6, 3, imageLayout=CHW)
W = Parameter(3, 4)
b = Parameter(3, 1)
z = Plus(Times(W, x), b)
"""
"""The nodes that the examples of kinds name, in the network description language."""


def unchanged(use: Use) -> str:
    """Return the first operand itself: the rule of export of a node that changes nothing."""
    return use.names[0]


def one_signature(
    name: str,
    signature: Signature,
    meaning: str,
    formula: str,
    shape: ShapeRule | None,
    forward: Forward,
    **fields: Any,
) -> NodeKind:
    """Return a kind that is called in one way only; `fields`: the further ones of `NodeKind`."""
    return NodeKind(name, (signature,), meaning, formula, shape, forward, **fields)


def inputs(*names: str) -> Signature:
    """Return a signature of input nodes only."""
    return tuple(Argument(name) for name in names)
