"""The precisions of a network: how its parameters are kept, and in which type its products are computed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from cntkpy.cntk_config.base.lazy_modules import np
from cntkpy.networks.graph.node import Node
from cntkpy.networks.graph.order import is_loop


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
    """Return the key of `PRECISIONS` that a name stands for, whose letter case does not count; "float" for any
    other.
    """
    name = precision.lower()
    return name if name in PRECISIONS else "float"


def dtype_of(precision: str) -> np.dtype:
    """Return the type in which the values of parameters are kept, as a numpy type."""
    return np.dtype(PRECISIONS[known_precision(precision)].dtype)


def short_nodes(components: Iterable[list[Node]]) -> frozenset[Node]:
    """Return the nodes whose values a network of half precision keeps in the short type.

    These are products, and what is computed of at least one of them for each sample. Data, parameters, numbers of
    steps, and values without minibatch data, as those of criteria, are not among them. Nor are the values of a loop
    without products, which counts or sums up: added to a large number of few digits, a small one is lost.

    Args:
        components: the nodes; loops as components of several nodes, operands before their users.
    """
    nodes: set[Node] = set()
    for component in components:
        products = {node for node in component if node.kind.width == "short"}
        nodes |= products
        if is_loop(component):
            if products:
                nodes.update(node for node in component if _follows(node))
        elif _follows(component[0]) and any(operand in nodes for operand in component[0].connected):
            nodes.add(component[0])
    return frozenset(nodes)


def _follows(node: Node) -> bool:
    return node.kind.width == "inputs" and node.has_layout
