"""One node: its inputs are brought into the form that its kind asks for, then comes its forward function."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from networks.arrays.sparse import is_sparse
from networks.graph.axes import operating
from networks.graph.node import Node
from networks.nodes.call import Call, Context, masked

Array = Any


def _aligned(node: Node, arrays: Sequence[Array]) -> list[Array]:
    """Inputs of an elementwise node with equal sample rank (axes of 1 put before the sample axes)."""
    rank = max(len(i.shape or ()) for i in node.connected)
    result: list[Array] = []
    for source, array in zip(node.connected, arrays, strict=True):
        lead = 2 if source.has_layout else 0
        missing = rank - (array.ndim - lead)
        result.append(array.reshape(*array.shape[:lead], *(1,) * missing, *array.shape[lead:]) if missing else array)
    return result


def apply(node: Node, arrays: Sequence[Array], context: Context, order: int = 0) -> Array:
    """The forward function of one node, with the treatment its kind asks for."""
    kind = node.kind
    context = context.on(operating(node))
    if not kind.sparse:
        arrays = [
            a.dense(*a.index.shape[:2], i.shape) if is_sparse(a) else a
            for i, a in zip(node.connected, arrays, strict=True)
        ]
    if kind.gaps is not None and context.mask is not None:
        arrays = [
            masked(a, context.mask, kind.gaps) if i.has_layout else a
            for i, a in zip(node.connected, arrays, strict=True)
        ]
    if kind.elementwise and len(arrays) > 1:
        arrays = _aligned(node, arrays)
    assert kind.forward is not None, kind.name
    return kind.forward(Call(node, context, order), *arrays)
