"""Small parameters in one vector, so that a training changes all of them at once.

XLA compiles machine code for the update of each array, and code that takes gradients apart: for the small parameters of
a network that is a quarter of the time of compiling it. Weights that a loop multiplies side by side lie side by side.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from cntkpy.cntk_config.base.lazy_modules import np
from cntkpy.networks.arrays.lazy import Array, jnp
from cntkpy.networks.compile.differentiable import row_parameters
from cntkpy.networks.compile.plan import Plan
from cntkpy.networks.compile.recurrence import side_by_side
from cntkpy.networks.graph.network import Node, ValidatedNetwork
from cntkpy.networks.graph.order import is_loop

Names = tuple[str, ...]

MOST_ELEMENTS = 1 << 16
"""Parameters of at least so many elements stay alone, and so do those that together have as many and lie side by side:
copying them in every minibatch would take longer than it saves."""


@dataclass(frozen=True)
class Matrix:
    """Parameters that lie side by side.

    Attributes:
        names: of the parameters.
        shapes: of their arrays.
        widths: how many columns each has.
        rows: how many rows all of them have.
    """

    names: Names
    shapes: tuple[tuple[int, ...], ...]
    widths: tuple[int, ...]
    rows: int

    @property
    def size(self) -> int:
        """Number of elements."""
        return self.rows * sum(self.widths)


@dataclass(frozen=True)
class Flat:
    """A vector of parameters.

    Attributes:
        matrices: one after the other, each row by row.
    """

    matrices: tuple[Matrix, ...]

    @property
    def names(self) -> Names:
        """Names of the parameters."""
        return tuple(name for matrix in self.matrices for name in matrix.names)

    @property
    def key(self) -> str:
        """Key of the vector among arrays that are named by parameters."""
        return "\n".join(self.names)

    def join(self, arrays: Mapping[str, np.ndarray | Array]) -> np.ndarray:
        """Return the vector (NumPy) of arrays by name."""
        return np.concatenate(
            [
                np.concatenate([np.reshape(arrays[name], (matrix.rows, -1)) for name in matrix.names], axis=1).reshape(
                    -1
                )
                for matrix in self.matrices
            ]
        )

    def split(self, vector: Any) -> dict[str, np.ndarray]:
        """By name, the arrays of a vector of NumPy; copies, where parameters lie side by side."""
        values: dict[str, np.ndarray] = {}
        start = 0
        for matrix in self.matrices:
            columns = vector[start : start + matrix.size].reshape(matrix.rows, -1)
            parts = np.split(columns, _ends(matrix.widths), axis=1)
            for name, shape, part in zip(matrix.names, matrix.shapes, parts, strict=True):
                values[name] = np.ascontiguousarray(part).reshape(shape)
            start += matrix.size
        return values

    def traced(self, vector: Array) -> tuple[dict[str, Array], dict[Names, Array]]:
        """In a traced function, the arrays by name, and by their names the matrices of several parameters."""
        arrays: dict[str, Array] = {}
        matrices: dict[Names, Array] = {}
        for matrix_part, part in zip(
            self.matrices, jnp.split(vector, _ends([m.size for m in self.matrices])), strict=True
        ):
            if len(matrix_part.names) == 1:
                arrays[matrix_part.names[0]] = part.reshape(matrix_part.shapes[0])
                continue
            matrices[matrix_part.names] = matrix = part.reshape(matrix_part.rows, -1)
            columns = jnp.split(matrix, _ends(matrix_part.widths), axis=1)
            arrays |= {
                n: c.reshape(shape) for n, c, shape in zip(matrix_part.names, columns, matrix_part.shapes, strict=True)
            }
        return arrays, matrices


def _ends(sizes: Iterable[int]) -> list[int]:
    """Return the split points of the parts."""
    return list(itertools.accumulate(sizes))[:-1]


def flat_parameters(network: ValidatedNetwork, names: Iterable[str], shared: Mapping[str, Hashable]) -> list[Flat]:
    """Return the vectors in which parameters can lie.

    Args:
        network: the network.
        names: the nodes that are computed.
        shared: by name, what parameters of a vector must have in common; None: the parameter stays alone.
    """
    plan = Plan(network, names, training=True)
    if not any(map(is_loop, plan.components)):
        return []
    by_rows, read = row_parameters(plan), side_by_side(plan)
    small = {
        node: shared[node.name]
        for node in plan.nodes
        if node.is_parameter
        and shared.get(node.name) is not None
        and node.name not in by_rows
        and node not in plan.outputs
        # XLA sums up the gradient of a bias inside of its update: in a vector it would round in another place.
        and (read or _is_matrix(node))
        and 0 < math.prod(node.shape or (0,)) < MOST_ELEMENTS
    }
    groups: dict[Hashable, list[Matrix]] = {}
    taken: set[Node] = set()
    for width, nodes in read:
        kinds = {small.get(node) for node in nodes}
        if len(kinds) == 1 and None not in kinds and taken.isdisjoint(nodes):
            taken.update(nodes)
            matrix, kind = _matrix(nodes, width), kinds.pop()
            groups.setdefault(kind if matrix.size < MOST_ELEMENTS else (kind, matrix), []).append(matrix)
    for node, kind in small.items():
        if node not in taken:
            groups.setdefault(kind, []).append(_matrix([node], [math.prod(node.shape or ())]))
    return [Flat(tuple(group)) for group in groups.values() if sum(len(matrix.names) for matrix in group) > 1]


def _is_matrix(node: Node) -> bool:
    """Return whether a parameter has several elements along more than one axis."""
    return sum(size > 1 for size in node.shape or ()) > 1


def _matrix(nodes: list[Node], widths: list[int]) -> Matrix:
    shapes = [tuple(reversed(node.shape or ())) for node in nodes]
    return Matrix(tuple(n.name for n in nodes), tuple(shapes), tuple(widths), math.prod(shapes[0]) // widths[0])
