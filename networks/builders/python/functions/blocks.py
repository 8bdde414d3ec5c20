"""Blocks: functions that count as one operation, as those of layers do, and the names of operations in CNTK 2."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple
from weakref import WeakKeyDictionary

from networks.builders.brainscript.node_values import NodeValue


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


BLOCKS: WeakKeyDictionary[NodeValue, Block] = WeakKeyDictionary()
"""The blocks, by the node that is their value."""

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
    if of in BLOCKS:
        block = BLOCKS[of]
        operands = tuple(replaced.get(one, one) for one in block.operands)
        BLOCKS[copy] = block._replace(operands=operands)


__all__ = ["BLOCKS", "OP_NAMES", "Block", "keep_block", "op_name_of"]
