"""Nodes as sums of matrix products: what gates of recurrent cells are made of."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

import numpy as np

from cntkpy.networks.graph import shapes
from cntkpy.networks.graph.node import Node
from cntkpy.networks.nodes.onnx_support.graph import NotExpressible
from cntkpy.networks.nodes.shape.axes import slice_range
from cntkpy.networks.nodes.shape.kinds import row_range

WIDEST = 1 << 13
"""Elements of a node that is a sum of itself alone, at most: its matrix has the square of them."""


class Affine(NamedTuple):
    """The elements of a node as a function of those of others, `sum of matrix * other + bias`.

    Attributes:
        matrices: by the other node, `(elements, elements of the other)`.
        bias: `(elements,)`.
        constants: the nodes whose values are in them.
    """

    matrices: dict[Node, np.ndarray]
    bias: np.ndarray
    constants: frozenset[Node] = frozenset()

    def times(self, matrix: np.ndarray, constants: Collection[Node] = ()) -> Affine:
        """Return the product of a matrix and this."""
        matrices = {node: matrix @ block for node, block in self.matrices.items()}
        return Affine(matrices, matrix @ self.bias, self.constants | frozenset(constants))

    def rows(self, begin: int, end: int) -> Affine:
        """Return some elements."""
        return Affine(
            {node: block[begin:end] for node, block in self.matrices.items()}, self.bias[begin:end], self.constants
        )

    def plus(self, addend: Affine) -> Affine:
        """Return the sum of this and another one of as many elements."""
        matrices = dict(self.matrices)
        for node, block in addend.matrices.items():
            matrices[node] = matrices[node] + block if node in matrices else block
        return Affine(matrices, self.bias + addend.bias, self.constants | addend.constants)


class Scope(NamedTuple):
    """Nodes that are looked into, and those that are not.

    Attributes:
        loop: the nodes of a loop. Operands of products are looked into if they are among them.
        closed: nodes that are not looked into.
        constants: the values of nodes that do not depend on data, in the order of memory.
    """

    loop: Collection[Node]
    closed: Collection[Node]
    constants: Mapping[Node, np.ndarray]


def affine(node: Node, scope: Scope) -> Affine:
    """Return a node as a sum of products; what is not made in that way is a sum of itself alone.

    Args:
        node: the node.
        scope: how far it is looked into.

    Raises:
        NotExpressible: such a node is too wide.
    """
    size = shapes.size(node.shape or ())
    if node in scope.constants:
        return Affine({}, scope.constants[node].reshape(-1), frozenset([node]))
    known = None if node in scope.closed else _known(node, size, scope)
    if known is not None:
        return known
    if size > WIDEST:
        raise NotExpressible(f"'{node.name}' has {size} elements")
    return Affine({node: np.eye(size)}, np.zeros(size))


def _known(node: Node, size: int, scope: Scope) -> Affine | None:
    kind = node.operation
    if kind not in ("Plus", "Times", "ElementTimes", "DiagTimes", "RowSlice", "Slice", "RowStack", "NewReshape"):
        return None
    if kind in ("Times", "ElementTimes", "DiagTimes"):
        return _product(node, size, scope)
    parts = [affine(node, scope) for node in node.connected]
    sizes = [len(part.bias) for part in parts]
    if kind == "Plus":
        return parts[0].plus(parts[1]) if sizes == [size, size] else None
    if kind == "NewReshape":
        return parts[0] if sizes == [size] else None
    if any(
        shapes.trimmed(operand.shape or ()) not in ((count,), ())
        for operand, count in zip(node.connected, sizes, strict=True)
    ):
        return None  # rows of a matrix do not follow each other in memory
    if kind == "RowStack":
        return _stacked(parts) if sum(sizes) == size else None
    if kind == "Slice" and int(node.options["axis"]) != 1:
        return None
    begin, end = row_range(node, sizes[0]) if kind == "RowSlice" else slice_range(node, sizes[0])
    return parts[0].rows(begin, end)


def _product(node: Node, size: int, scope: Scope) -> Affine | None:
    """Return a product with a constant."""
    first, second = node.connected
    constants = scope.constants
    if first not in constants and node.operation == "ElementTimes":
        first, second = second, first
    if first not in constants or second in constants:
        return None
    value, count = constants[first], shapes.size(second.shape or ())
    if node.operation == "Times":
        if int(node.options.get("outputRank", 1)) != 1 or value.size != size * count:
            return None
        matrix = value.reshape(count, size).T
    elif count == size and value.size in (1, size):
        matrix = np.diag(np.broadcast_to(value.reshape(-1), (size,)))
    else:
        return None
    if second not in scope.loop:
        return Affine({second: matrix}, np.zeros(size), frozenset([first]))
    return affine(second, scope).times(matrix, [first])


def _stacked(parts: list[Affine]) -> Affine:
    total, begin = sum(len(part.bias) for part in parts), 0
    stacked = Affine({}, np.zeros(total))
    for part in parts:
        place = np.eye(total)[:, begin : begin + len(part.bias)]
        stacked, begin = stacked.plus(part.times(place)), begin + len(part.bias)
    return stacked
