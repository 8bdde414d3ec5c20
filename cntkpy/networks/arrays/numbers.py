"""The types of values: in a network of half precision some are kept in 16 bits."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from cntkpy.networks.arrays.images import is_turned
from cntkpy.networks.arrays.lazy import Array
from cntkpy.networks.arrays.sparse import Sparse, is_sparse
from cntkpy.networks.graph.node import Node

if TYPE_CHECKING:
    from jax.typing import DTypeLike


class Numbers(NamedTuple):
    """Which types the nodes of an evaluation have.

    A product takes operands of the short type and gives a value of it. Every other node takes operands of the long
    type, into which they are converted, and its value is converted back if the node is among `nodes`.

    Attributes:
        long: the type of data, parameters and criteria.
        short: the type of products; None: `long`.
        nodes: the nodes whose values are of the short type.
    """

    long: DTypeLike | None
    short: DTypeLike | None = None
    nodes: frozenset[Node] = frozenset()

    def of(self, node: Node) -> DTypeLike | None:
        """Return the type of the value of a node."""
        return self.short if node in self.nodes else self.long

    def operands(self, node: Node, arrays: Iterable[object]) -> list[Any]:
        """Return the operands of a node in the type in which it computes."""
        if self.short is None:
            return list(arrays)
        dtype = self.short if node.kind.width == "short" else self.long
        return [_converted(array, dtype) for array in arrays]

    def value(self, node: Node, array: object) -> Any:
        """Return the value of a node in the type in which it is kept."""
        return array if self.short is None else _converted(array, self.of(node))

    def factor(self, array: Array) -> Array:
        """Return an operand of a product, or what is added to it."""
        return array if self.short is None else array.astype(self.short)

    def given(self, array: Array) -> Array:
        """Return a value as it is given to others than nodes."""
        return array if self.short is None else array.astype(self.long)


def _converted(value: Any, dtype: DTypeLike | None) -> Any:
    if is_sparse(value):
        return Sparse(value.rows, value.index, value.values.astype(dtype))
    if is_turned(value):
        return value._replace(array=value.array.astype(dtype))
    return value.astype(dtype)
