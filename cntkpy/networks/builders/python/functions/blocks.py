"""Blocks: functions that count as one operation, as those of layers do, and the names of operations in CNTK 2."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from cntkpy.networks.builders.brainscript.node_values import NodeValue


class Block(NamedTuple):
    """What is known of a block.

    **Fields:**

    - `op_name`: the name of its operation.
    - `operands`: what it was applied to.
    - `arguments`: for each operand, the placeholder that it took the place of, or the operand.
    """

    op_name: str
    operands: tuple[NodeValue, ...]
    arguments: tuple[NodeValue, ...]


_BLOCK = "_block"
"""The attribute of a node that is the value of a block. A dictionary with weak keys would keep nodes forever: operands
know their parameters, these what trains them, and that knows the node."""


def block_of(node: NodeValue) -> Block | None:
    """The block that a node is the value of."""
    return vars(node).get(_BLOCK)


def mark_block(node: NodeValue, block: Block) -> None:
    """Let a node be the value of a block."""
    vars(node)[_BLOCK] = block


OP_NAMES = {
    "Cosine": "Cos",
    "ElementPower": "Pow",
    "ErrorPrediction": "ClassificationError",
    "If": "Select",
    "LegacyReshape": "Reshape",
    "MaxUnpooling": "Unpooling",
    "NDCG1Eval": "NDCG",
    "RectifiedLinear": "ReLU",
    "RowStack": "Splice",
    "Sigmoid": "StableSigmoid",
    "SquareError": "SquaredError",
    "SumColumnElements": "ReduceElements",
    "SumElements": "ReduceElements",
    "TransposeDimensions": "TransposeAxes",
}
"""The names of operations in CNTK 2, where they differ (docs/specification/model-files.md 6)."""


def op_name_of(node: NodeValue) -> str:
    """The name of the operation of a node in CNTK 2."""
    name = node.operation.name
    if name == "ElementFunction":
        return str(node.options["function"]).capitalize()
    return OP_NAMES.get(name, name)


def keep_block(copy: NodeValue, of: NodeValue, replaced: Mapping[NodeValue, NodeValue]) -> None:
    """Let a copy of the value of a block be one, too, with other operands in the place of some."""
    block = block_of(of)
    if block is not None:
        mark_block(copy, block._replace(operands=tuple(replaced.get(one, one) for one in block.operands)))


__all__ = ["OP_NAMES", "Block", "block_of", "keep_block", "mark_block", "op_name_of"]
