"""Nodes in the log: their list, and the description of a network with `traceLevel = 3`."""

import logging
from collections.abc import Sequence

from cntkpy.networks.graph.network import Node, ValidatedNetwork

log = logging.getLogger("cntkpy.trainers")

SHAPES_LEVEL = 3
"""The `traceLevel` from which on the shapes of nodes and minibatches are logged."""


def prototype(node: Node) -> str:
    """Return a node as CNTK lists it: `z = Plus (t, b) : [3 x 1 x *], [3 x 1] -> [3 x 1 x *]`."""
    inputs = ", ".join(_shape(source) for source in node.connected)
    arguments = f" ({', '.join(source.name for source in node.connected)})" if node.connected else "()"
    return f"{node.name} = {node.operation}{arguments} : {inputs} -> {_shape(node)}"


def log_shapes(network: ValidatedNetwork, roots: Sequence[Node], trace_level: int) -> None:
    """List the nodes that are computed, in the order of the computation, if `trace_level` asks for it."""
    if trace_level < SHAPES_LEVEL:
        return
    log.info("")
    log.info("Nodes that are computed:")
    for node in network.below(roots):
        log.info("\t%s", prototype(node))


def _shape(node: Node) -> str:
    dims = [str(size) for size in node.shape or (1,)] + ([] if node.axis is None else [node.axis])
    return f"[{' x '.join(dims)}]"
