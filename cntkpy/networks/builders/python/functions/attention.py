"""The weights of attention, which `AttentionModel` of CNTK 2 has under a name."""

from __future__ import annotations

from collections.abc import Iterable

from cntkpy.networks.builders.brainscript.node_values import NodeValue
from cntkpy.networks.builders.python.functions import calls

NAME = "attention_weights"
"""Name of the weights of an `AttentionModel` in programs."""


def attention_weights(nodes: Iterable[NodeValue]) -> list[NodeValue]:
    """Return a node with the weights of each attention among some nodes.

    The fused attention has none; these are made when a program asks for them, and computed a second time.
    """
    weights_of_all: list[NodeValue] = []
    for node in nodes:
        if node.operation.name == "AdditiveAttention":
            weights, keys, _, query = calls.inputs_of(node)
            made = calls.call("_AttentionWeights", weights, keys, query, name=NAME)
            made.name = NAME
            weights_of_all.append(made)
    return weights_of_all
