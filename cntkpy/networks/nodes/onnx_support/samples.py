"""Sums and rows of samples, for rules of several families."""

from __future__ import annotations

from cntkpy.networks.graph import shapes
from cntkpy.networks.nodes.onnx_support.graph import NotExpressible
from cntkpy.networks.nodes.onnx_support.lengths import kept
from cntkpy.networks.nodes.onnx_support.use import Use


def total(use: Use, cells: str, rank: int, index: int = 0) -> str:
    """Return the sum of all elements of `cells`, which has the leading axes of operand `index` and `rank` others."""
    cells = kept(use.emit, use.node.input(index), cells, rank, use.emit.real(0))
    return use.emit.reshape(use.emit.op("ReduceSum", cells, keepdims=0), 0, use.dims)


def require_whole(use: Use) -> None:
    """Refuse an operation that would take padding for samples."""
    if (use.node.input(0).axis or "") in use.emit.lengths:
        raise NotExpressible("it would compare samples with padding; export without --lengths")


def sample_rows(use: Use, index: int) -> str:
    """Return an operand as a matrix with a row for each sample of the minibatch."""
    size = shapes.size(use.operands[index].dims)
    return use.emit.op("Reshape", use.names[index], use.emit.integers([-1, size]))
