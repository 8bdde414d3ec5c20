"""The precisions of a network: how its parameters are kept, and in which type its products are computed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from networks.graph.node import Node

__all__ = ["PRECISIONS", "dtype_of", "known_precision", "short_nodes"]


class Precision(NamedTuple):
    """One precision.

    Attributes:
        dtype: numpy's type of parameters, data, statistics, criteria and gradients.
        short: name of the type of products and of what is computed of them; empty: `dtype`.
    """

    dtype: str
    short: str = ""


PRECISIONS = {
    "float": Precision("float32"),
    "double": Precision("float64"),
    "half": Precision("float32", "float16"),
    "bfloat16": Precision("float32", "bfloat16"),
}


def known_precision(precision: str) -> str:
    """The key of `PRECISIONS` that a name stands for, whose letter case does not count; "float" for any other."""
    name = precision.lower()
    return name if name in PRECISIONS else "float"


def dtype_of(precision: str) -> np.dtype:
    """The type in which the values of parameters are kept, as a numpy type."""
    return np.dtype(PRECISIONS[known_precision(precision)].dtype)


def short_nodes(order: Iterable[Node]) -> frozenset[Node]:
    """The nodes whose values a network of half precision keeps in the short type.

    These are products, and what is computed of at least one of them for each sample. Data, parameters, and values
    without minibatch data, as those of criteria, are not among them.

    Args:
        order: the nodes, operands before their users except in loops.
    """
    nodes = list(order)
    found: set[Node] = set()
    before = -1
    while len(found) > before:  # repeated for loops
        before = len(found)
        for node in nodes:
            if node.kind.short or (node.has_layout and any(operand in found for operand in node.connected)):
                found.add(node)
    return frozenset(found)
