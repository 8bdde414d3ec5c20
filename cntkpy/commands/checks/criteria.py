"""Criteria whose operands have changed places: what is learned stands where the labels belong."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from cntkpy.cntk_config.base.diagnostics import Diagnostic

if TYPE_CHECKING:
    from cntkpy.networks.graph.network import Network, Node

LABELS_FIRST = ("CrossEntropyWithSoftmax", "CrossEntropy")
"""Operations that take labels and a prediction, and that give another value with the two exchanged."""


def swapped_operands(network: Network) -> Iterator[Diagnostic]:
    """Criteria whose first operand is learned, while the second is data from which nothing is learned."""
    for node in network.groups["criterion"]:
        if node.operation not in LABELS_FIRST or len(node.connected) < 2:
            continue
        first, second = node.connected[:2]
        if _is_learned(network, first) and not _is_learned(network, second):
            message = f"the operands of {node.operation} seem to be exchanged: '{first.name}' is learned, "
            message += f"'{second.name}' is not"
            hint = f"labels come first: {node.operation}({second.name}, {first.name})"
            yield Diagnostic("SwappedOperands", message, node.span, hint, severity="warning")


def _is_learned(network: Network, node: Node) -> bool:
    """Whether a node depends on a parameter that is trained."""
    return any(one.is_parameter and one.trainable for one in network.linked_below([node]))
