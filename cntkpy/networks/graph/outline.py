"""A network as plain data: names, operations, inputs, shapes and numbers of parameters, for events and reports."""

from __future__ import annotations

import math
from typing import Any

from cntkpy.networks.graph.network import GROUPS, Network, Node


def outline(network: Network) -> dict[str, Any]:
    """Return a JSON-able outline of a network.

    Returns:
        `precision`; `nodes`, a list of objects with `name`, `operation`, `inputs` (names), `shape` (a list of sizes, in
        CNTK's order), and where it is true `minibatch` (it has a value per sample) and `delay` (its input is of another
        step); of parameters also `parameters` (the number of elements) and `learningRateMultiplier`; `groups`, the
        names of nodes by group; `parameters` and `trainable`, the elements of all, and of those that are trained.
    """
    nodes = [_node(node) for node in network.nodes.values()]
    return {
        "precision": network.precision,
        "nodes": nodes,
        "groups": {group: [node.name for node in network.groups[group]] for group in GROUPS},
        "parameters": sum(node.get("parameters", 0) for node in nodes),
        "trainable": sum(node.get("parameters", 0) for node in nodes if node.get("learningRateMultiplier", 0) > 0),
    }


def _node(node: Node) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "name": node.name,
        "operation": node.operation,
        "inputs": [source.name for source in node.connected],
        "shape": list(node.shape or ()),
    }
    if node.has_layout:
        entry["minibatch"] = True
    if node.kind.time.delay:
        entry["delay"] = True
    if node.is_parameter:
        entry["parameters"] = math.prod(node.shape or ())
        entry["learningRateMultiplier"] = node.learning_rate_multiplier
    return entry
