"""Arguments of a rule: a node, the values of its operands, and where to put operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from cntkpy.networks.graph import shapes
from cntkpy.networks.graph.node import Node
from cntkpy.networks.nodes.onnx_support.graph import Dims, Emitter

if TYPE_CHECKING:
    import numpy as np


class Operand(NamedTuple):
    """A value.

    Attributes:
        name: in the graph.
        lead: how many leading axes it has: 2 are time and batch, 1 is the batch, 0: it is the same for all samples.
        dims: the sizes of the other axes, those of the sample in reverse order.
        numbers: of one-hot vectors, the value with the numbers of their ones.
    """

    name: str
    lead: int
    dims: Dims
    numbers: str = ""


class Use:
    """One node that is exported.

    Args:
        node: the node.
        operands: the values of its inputs.
        emit: adds operators.
        lead: how many leading axes the result has.
        constants: the values of the inputs that do not depend on data, by position.

    Attributes:
        dims: the sizes of the result after the leading axes.
    """

    def __init__(
        self, node: Node, operands: list[Operand], emit: Emitter, lead: int, constants: dict[int, np.ndarray]
    ) -> None:
        self.node, self.operands, self.emit, self.lead, self.constants = node, operands, emit, lead, constants
        self.options = node.options
        self.dims: Dims = tuple(reversed(node.shape or ()))

    @property
    def names(self) -> list[str]:
        """The names of the operands."""
        return [operand.name for operand in self.operands]

    def shaped(self, name: str, dims: Dims) -> str:
        """Return a value of `lead` leading axes and `dims` with the sizes of the result."""
        return name if dims == self.dims else self.emit.reshape(name, self.lead, self.dims)

    def flat(self, index: int = 0) -> str:
        """Operand `index` with all its sample axes joined."""
        name, lead, dims, _ = self.operands[index]
        return name if len(dims) == 1 else self.emit.reshape(name, lead, (shapes.size(dims),))

    def row(self) -> tuple[str, Dims]:
        """Return the first operand with all its elements on the last axis, and its sizes then."""
        size = shapes.size(self.dims)
        return (self.names[0], self.dims) if self.dims[-1:] == (size,) else (self.flat(), (size,))

    def aligned(self, rank: int | None = None) -> list[str]:
        """Return the operands with as many sample axes as the one with most, new ones of 1 element in front."""
        rank = max((len(operand.dims) for operand in self.operands), default=0) if rank is None else rank
        return [self.ranked(operand, rank) for operand in self.operands]

    def ranked(self, operand: Operand, rank: int) -> str:
        """Return an operand with `rank` sample axes. One without leading axes stays: axes are matched from behind."""
        missing = rank - len(operand.dims)
        if not missing or not operand.lead:
            return operand.name
        return self.emit.reshape(operand.name, operand.lead, (*(1,) * missing, *operand.dims))

    def weights(self, index: int, dims: Dims, order: Dims | None = None) -> str:
        """Operand `index`, which is the same for all samples, in another shape, then with its axes in another order."""
        value = self.constants.get(index)
        if value is not None:
            array = value.reshape(dims) if order is None else value.reshape(dims).transpose(order)
            return self.emit.derived(self.operands[index].name, array)
        name, _, present, _ = self.operands[index]
        name = name if present == dims else self.emit.reshape(name, 0, dims)
        return name if order is None else self.emit.op("Transpose", name, perm=list(order))


Rule = Callable[[Use], str]
