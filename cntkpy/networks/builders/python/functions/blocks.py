"""Blocks: functions that count as one operation, as those of layers do, and the names of operations in CNTK 2."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import Any, NamedTuple

from cntkpy.networks.builders.brainscript.node_values import NodeValue
from cntkpy.networks.builders.python.functions import calls


class Block(NamedTuple):
    """A block: its operation, its operands, and the placeholders that these replaced.

    **Fields:**

    - `op_name`: the name of its operation.
    - `operands`: what it was applied to.
    - `arguments`: for each operand, the placeholder that it took the place of, or the operand.
    - `inner`: the block inside of it that has the same value; None: there is none.
    - `inner_name`: the name of that value inside of it.
    """

    op_name: str
    operands: tuple[NodeValue, ...]
    arguments: tuple[NodeValue, ...]
    inner: Any = None
    inner_name: str = ""


_BLOCK = "_block"
"""The attribute of a node that is the value of a block. A dictionary with weak keys would keep nodes forever: operands
know their parameters, these what trains them, and that knows the node."""


def block_of(node: NodeValue) -> Block | None:
    """Return the block that a node is the value of."""
    return vars(node).get(_BLOCK)


def mark_block(node: NodeValue, block: Block) -> None:
    """Let a node be the value of a block."""
    vars(node)[_BLOCK] = block


class Shown(NamedTuple):
    """An operation of CNTK 2 that is several nodes here.

    **Fields:**

    - `op_name`: its name.
    - `attributes`: its attributes by CNTK's names.
    - `operands`: what it was applied to.
    """

    op_name: str
    attributes: Mapping[str, Any]
    operands: tuple[NodeValue, ...]


_SHOWN = "_shown"
"""The attribute of a node for the operation that it is the value of."""


def shown_as(node: NodeValue) -> Shown | None:
    """Return the operation of CNTK 2 that a node is the value of, where it is several nodes here."""
    return vars(node).get(_SHOWN)


def mark_shown(node: NodeValue, shown: Shown) -> None:
    """Let a node be the value of an operation of CNTK 2."""
    vars(node)[_SHOWN] = shown


_WRITTEN = "_written"
"""The attribute of a node for the operands that the program has written, from left to right."""


def mark_written(node: NodeValue, operands: Iterable[NodeValue]) -> None:
    """Keep the order in which a program wrote the operands of a node, or of several nodes that are one operation."""
    several = tuple(operand for operand in operands if operand is not node)
    if len(several) > 1:
        vars(node)[_WRITTEN] = several


def written_operands(node: NodeValue) -> tuple[NodeValue, ...]:
    """Return the operands of a node in the order in which the program wrote them; () where the node's own order is
    that.
    """
    return vars(node).get(_WRITTEN, ())


_SPARSE = "_sparse"
"""The attribute of a node whose value programs get as sparse matrices."""


def mark_sparse(node: NodeValue) -> None:
    """Let programs get the value of a node as sparse matrices."""
    vars(node)[_SPARSE] = True


def has_sparse_value(node: NodeValue) -> bool:
    """Return whether programs get the value of a node as sparse matrices."""
    return _SPARSE in vars(node)


_SPARSE_GRADIENT = "_sparse_gradient"
"""The attribute of a parameter whose gradient programs get as a sparse `Value`."""


def mark_sparse_gradient(node: NodeValue) -> None:
    """Let a `Value` of the gradient of a parameter be sparse."""
    vars(node)[_SPARSE_GRADIENT] = True


def has_sparse_gradient(node: NodeValue) -> bool:
    """Return whether a `Value` of the gradient of a parameter is sparse."""
    return _SPARSE_GRADIENT in vars(node)


_NAME = "_name_in_program"
"""The attribute of a node of a model file for the name that the program which made it gave."""


def mark_name(node: NodeValue, name: str) -> None:
    """Keep the name that a program gave a node that was read from a model file."""
    vars(node)[_NAME] = name


def name_in_program(node: NodeValue) -> str | None:
    """Return the name that `mark_name` kept; None: there is none."""
    return vars(node).get(_NAME)


def leaves_in_order(roots: Iterable[NodeValue], members: Container[NodeValue]) -> list[NodeValue]:
    """Return the leaves of a depth-first walk from the roots, operands from left to right as a program wrote them, each
    once.

    A block is one operation, whose parameters and constants come before what it was applied to.

    Args:
        roots: where the walk begins.
        members: the nodes that may be entered.
    """
    leaves: dict[NodeValue, None] = {}
    seen: set[tuple[NodeValue, bool]] = set()
    nothing: frozenset[NodeValue] = frozenset()
    waiting = [(root, nothing, False) for root in reversed(list(roots))]
    while waiting:
        node, ends, is_inside = waiting.pop()
        if (node, is_inside) in seen or node not in members or (node in ends and not is_inside):
            continue
        seen.add((node, is_inside))
        block = None if is_inside else block_of(node)
        if block is not None:
            waiting.extend((operand, ends, False) for operand in reversed(block.operands))
            waiting.append((node, ends.union(block.operands), True))
            continue
        sources = calls.inputs_of(node)
        if not sources:
            leaves[node] = None
        waiting.extend((operand, ends, False) for operand in reversed((*written_operands(node), *sources)))
    return list(leaves)


OP_NAMES = {
    "Cosine": "Cos",
    "ElementPower": "Pow",
    "ErrorPrediction": "ClassificationError",
    "If": "Select",
    "LegacyReshape": "Reshape",
    "MaxUnpooling": "Unpooling",
    "NDCG1Eval": "NDCG",
    "RectifiedLinear": "ReLU",
    "RandomLike": "RandomDistribution",
    "RowStack": "Splice",
    "Sigmoid": "StableSigmoid",
    "SquareError": "SquaredError",
    "SumColumnElements": "ReduceElements",
    "SumElements": "ReduceElements",
    "TransposeDimensions": "TransposeAxes",
}
"""The names of operations in CNTK 2, where they differ (docs/specification/model-files.md 6)."""


def op_name_of(node: NodeValue) -> str:
    """Return the name of the operation of a node in CNTK 2."""
    name = node.operation.name
    if name == "ElementFunction":
        return str(node.options["function"]).capitalize()
    return OP_NAMES.get(name, name)


def _block_of_copies(block: Block, replaced: Mapping[NodeValue, NodeValue]) -> Block:
    operands = tuple(replaced.get(operand, operand) for operand in block.operands)
    inner = None if block.inner is None else _block_of_copies(block.inner, replaced)
    return block._replace(operands=operands, inner=inner)


def keep_block(copy: NodeValue, of: NodeValue, replaced: Mapping[NodeValue, NodeValue]) -> None:
    """Let a copy of the value of a block be one, too, with other operands in the place of some; keep their order."""
    block = block_of(of)
    if block is not None:
        mark_block(copy, _block_of_copies(block, replaced))
    if (shown := shown_as(of)) is not None:
        operands = tuple(replaced.get(operand, operand) for operand in shown.operands)
        mark_shown(copy, shown._replace(operands=operands))
    mark_written(copy, (replaced.get(operand, operand) for operand in written_operands(of)))
