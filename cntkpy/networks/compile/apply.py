"""One node: its inputs are brought into the form that its kind asks for, then comes its forward function."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from cntkpy.networks.arrays.images import ChannelsLast, as_given, is_image, plain
from cntkpy.networks.arrays.lazy import Array, jnp
from cntkpy.networks.arrays.sparse import is_sparse
from cntkpy.networks.graph.axes import operating
from cntkpy.networks.graph.node import Node
from cntkpy.networks.nodes.call import Call, Context, masked

if TYPE_CHECKING:
    from cntkpy.networks.arrays.images import Turned


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
    """Return the forward function of one node, with the treatment its kind asks for."""
    return plain(apply_to_images(node, arrays, context, order))


def apply_to_images(node: Node, arrays: Sequence[object], context: Context, order: int = 0) -> Array | Turned:
    """As `apply`; operands and the result may have their channels last."""
    return context.numbers.value(node, _computed(node, arrays, context.on(operating(node)), order))


def _computed(node: Node, arrays: Sequence[Any], context: Context, order: int) -> Array | Turned:
    """Return the result of the forward function."""
    kind = node.kind
    assert kind.forward is not None, kind.name
    call = Call(node, context, order)
    if not kind.sparse:
        arrays = [a.dense(i.shape) if is_sparse(a) else a for i, a in zip(node.connected, arrays, strict=True)]
    arrays = context.numbers.operands(node, arrays)
    if kind.images:
        return kind.forward(call, *arrays)
    if kind.pointwise and _are_images(node, arrays):
        rank = len(node.shape or ())
        operands = _aligned(node, _without_gaps(node, [as_given(a) for a in arrays], context))
        turned = [a if is_image(b) else jnp.moveaxis(a, -rank, -1) for a, b in zip(operands, arrays, strict=True)]
        return ChannelsLast(kind.forward(call, *turned))
    arrays = _without_gaps(node, [plain(a) for a in arrays], context)
    if kind.elementwise and len(arrays) > 1:
        arrays = _aligned(node, arrays)
    return kind.forward(call, *arrays)


def _are_images(node: Node, arrays: Sequence[object]) -> bool:
    """Return whether some operands have their channels last, all of them on the axes that the result has."""
    ranks = {len(i.shape or ()) for i, a in zip(node.connected, arrays, strict=True) if is_image(a)}
    return ranks == {len(node.shape or ())}


def _without_gaps(node: Node, arrays: Sequence[Array], context: Context) -> list[Array]:
    """Inputs with the value that their kind wants in gap cells."""
    gaps = node.kind.gaps
    if gaps is None or context.mask is None:
        return list(arrays)
    return [masked(a, context.mask, gaps) if i.has_layout else a for i, a in zip(node.connected, arrays, strict=True)]
