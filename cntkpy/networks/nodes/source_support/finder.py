"""The view that rules for layers have of a graph."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol

import numpy as np

from cntkpy.networks.graph import shapes
from cntkpy.networks.graph.node import Node
from cntkpy.networks.nodes.source_support.dialect import Dialect
from cntkpy.networks.nodes.source_support.layers import Tensor, Unit
from cntkpy.networks.nodes.source_support.values import Dims, dims_of


class GraphView(Protocol):
    """The part of a graph that rules for layers read; see `cntkpy.networks.source.graph.Graph`."""

    outputs: list[Node]
    users: dict[Node, list[Node]]
    along_time: bool

    def canonical(self, node: Node) -> Node:
        """Return the node that computes the value of a node."""
        ...

    def operands(self, node: Node) -> list[Node]:
        """Return the operands of a node."""
        ...

    def is_leaf(self, node: Node) -> bool:
        """Return whether a node is a parameter or a constant."""
        ...

    def value(self, node: Node) -> np.ndarray:
        """Return the value of a parameter or constant."""
        ...

    def number(self, node: Node) -> float | None:
        """Return the value of a constant of one element."""
        ...


class Finder:
    """Finds the layers of a graph.

    Args:
        graph: the graph.
        dialect: the framework.
        dropout: the rate of Dropout nodes that have none of their own.
    """

    def __init__(self, graph: GraphView, dialect: Dialect, dropout: float) -> None:
        self.graph, self.dialect, self.dropout = graph, dialect, dropout

    def parameter(self, node: Node, *dims: int, order: tuple[int, ...] | None = None) -> Tensor:
        """Return a parameter with other axes, then in another order."""

        def arrange(array: np.ndarray) -> np.ndarray:
            shaped = array.reshape(dims)
            return np.ascontiguousarray(shaped if order is None else shaped.transpose(order))

        return Tensor(arrange(self.graph.value(node)), node if node.is_parameter else None, arrange)

    def own(self, node: Node) -> bool:
        """Return whether a node is a parameter with one user."""
        return self.graph.is_leaf(node) and len(self.graph.users.get(node, [])) == 1

    def inner(self, node: Node) -> bool:
        """Return whether a node has one user, and is no output."""
        users = self.graph.users.get(node, [])
        return len(users) == 1 and node not in map(self.graph.canonical, self.graph.outputs)

    def bias_of(self, node: Node, size: int, axis_dims: Dims) -> tuple[Node, Node] | None:
        """Return the sum that adds a bias to a node, and the bias; None: there is none."""
        if not self.inner(node):
            return None
        user = self.graph.users[node][0]
        if user.operation != "Plus" or user.axis != node.axis:
            return None
        operand = next((source for source in self.graph.operands(user) if source is not node), None)
        if operand is None or not self.own(operand) or self.graph.number(operand) is not None:
            return None
        if math.prod(dims_of(operand)) != size or dims_of(user) != dims_of(node):
            return None
        dims = dims_of(operand)
        return (user, operand) if (1,) * (len(axis_dims) - len(dims)) + dims == axis_dims else None

    def is_embedding(self, node: Node) -> bool:
        """Return whether a product picks rows of a table by the words of a sequence."""
        x = self.graph.operands(node)[1]
        if x.operation != "SparseInputValue" or not self.graph.along_time or len(x.shape or ()) != 1:
            return False
        return all(
            user.operation in ("Times", "LookupTable")
            and self.graph.operands(user)[1] is x
            and self.own(self.graph.operands(user)[0])
            and shapes.size((self.graph.operands(user)[0].shape or ())[1:]) == (x.shape or (0,))[0]
            for user in self.graph.users[x]
        )


LayerRule = Callable[[Finder, Node], Unit | None]
"""Returns the layer that begins with a node; None: it is plain code."""
