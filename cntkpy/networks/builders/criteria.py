"""Criteria that teach nothing, or something else than is meant: exchanged operands, one class, a second softmax."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from cntkpy.cntk_config.base.diagnostics import Diagnostic

if TYPE_CHECKING:
    from cntkpy.cntk_config.base.diagnostics import Span
    from cntkpy.networks.graph.network import Network, Node

LABELS_FIRST = ("CrossEntropyWithSoftmax", "CrossEntropy")
"""Operations that take labels and a prediction, and that give another value with the two exchanged."""
OVER_CLASSES = {
    "CrossEntropyWithSoftmax": "0",
    "ClassificationError": "0",
    "CrossEntropy": "minus the logarithm of one value",
    "Softmax": "1",
    "LogSoftmax": "0",
    "Hardmax": "1",
}
"""Operations over the elements of a sample, and what each gives for a single element."""


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


def idle_criteria(network: Network) -> Iterator[Diagnostic]:
    """Softmaxes and errors of classification over one class, and criteria with a second softmax."""
    computed = network.linked_below([*network.groups["criterion"], *network.groups["evaluation"]])
    for node in computed:
        if node.operation in OVER_CLASSES and node.connected:
            operand = node.connected[min(1, len(node.connected) - 1)]
            if operand.shape is not None and math.prod(operand.shape) == 1:
                yield one_class(node.operation, node.span)
        if node.operation == "ClassificationError" and (problem := _all_classes(node)) is not None:
            yield problem
        if node.operation == "CrossEntropyWithSoftmax" and len(node.connected) > 1:
            operand = _without_reshapes(node.connected[1])
            if operand.operation == "Softmax":
                yield _second_softmax(node, operand)


def one_class(operation: str, span: Span | None) -> Diagnostic:
    """Return the warning of an operation over one class.

    Args:
        operation: its name, one of `OVER_CLASSES`.
        span: its place.
    """
    message = f"{operation} is over one class, so it is always {OVER_CLASSES[operation]} and nothing is learned from it"
    if operation == "CrossEntropy":
        message = "CrossEntropy is over one class: every sample has the same label"
    hint = "use two classes with one-hot labels; for one label of 0 or 1, Logistic (label, Sigmoid (z))"
    return Diagnostic("OneClass", message, span, hint, severity="warning")


def _all_classes(node: Node) -> Diagnostic | None:
    """Return the warning of an error of classification whose `topN` is the number of classes or more."""
    if len(node.connected) < 3:
        return None
    shape, init = node.connected[1].shape, node.connected[2].init
    classes = 0 if shape is None else math.prod(shape)
    if init is None or init.kind != "fixedValue" or not 1 < classes <= init.value:
        return None
    message = f"ClassificationError is always 0: topN is {init.value:g}, and there are {classes} classes"
    return Diagnostic("OneClass", message, node.span, f"write a topN below {classes}", severity="warning")


def _second_softmax(node: Node, operand: Node) -> Diagnostic:
    """Return the warning of a criterion that takes the softmax of probabilities."""
    message = f"CrossEntropyWithSoftmax takes the softmax of '{operand.name}', which is a softmax already"
    operand_name = operand.connected[0].name if operand.connected else "z"
    labels = node.connected[0].name
    hint = f"write CrossEntropyWithSoftmax ({labels}, {operand_name}), or CrossEntropy ({labels}, {operand.name})"
    return Diagnostic("SecondSoftmax", message, node.span, hint, severity="warning")


def _without_reshapes(node: Node) -> Node:
    """Return the node from which others take the same values."""
    while node.operation in ("Pass", "Reshape") and node.connected:
        node = node.connected[0]
    return node


def _is_learned(network: Network, node: Node) -> bool:
    """Return whether a node depends on a parameter that is trained."""
    return any(source.is_parameter and source.trainable for source in network.linked_below([node]))
