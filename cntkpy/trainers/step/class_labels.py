"""Checks the labels of class-based softmax before they are computed with: a wrong one gives no number."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.networks.graph import shapes
from cntkpy.networks.graph.network import Network, Node

KIND = "ClassBasedCrossEntropyWithSoftmax"


def labelled(network: Network, roots: Sequence[Node]) -> list[Node]:
    """Return the nodes of class-based softmax whose labels are dense data."""
    return [n for n in network.below(roots) if n.operation == KIND and n.input(0).operation == "InputValue"]


def class_label_check(network: Network, roots: Sequence[Node]) -> Callable[[Any], None]:
    """Return a function that checks a (stacked) `Batch`; it raises a `UserError` for the first wrong label.

    Labels of a sparse input are not checked.
    """
    nodes = labelled(network, roots)

    def check(batch: Any) -> None:
        for node in nodes:
            labels, axis = np.asarray(batch.inputs[node.input(0).name]), node.input(0).axis
            mask = batch.mask if batch.axes is None else batch.axes[axis].mask
            words = shapes.matrix(node.input(2).shape or (0, 0))[1]
            classes = shapes.size(node.input(3).shape or (0,))
            word, group, first, last = np.moveaxis(labels.reshape(*mask.shape, 4), -1, 0)
            good = (first >= 0) & (first <= word) & (word < last) & (last <= words) & (group >= 0) & (group < classes)
            if not (wrong := mask & ~good).any():
                continue
            w, c, f, e = (int(values[wrong][0]) for values in (word, group, first, last))
            raise UserError(
                "BadClassLabel",
                f"{KIND} '{node.name}': word {w} of class {c} is not among the words {f} to {e - 1} of its class, or "
                f"these are not among {classes} classes and {words} words",
                span=node.span,
                hint="labels are (word, class, first word of the class, one past its last), counted from 0; write the "
                "word and class files again with action=writeWordAndClass",
            )

    return check
