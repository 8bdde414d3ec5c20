"""Nodes that look at the run as tensor code."""

from __future__ import annotations

from cntkpy.networks.nodes.source_support.use import Rule, Use
from cntkpy.networks.nodes.source_support.values import Value


def _environment(use: Use) -> Value:
    return use.value("torch.full((1,), float(self.training))", (1,))


RULES: dict[str, Rule] = {
    "EnvironmentInput": _environment,
    "Assign": lambda use: use.value(f"{use[1]}.detach()", use.values[1].dims),
    "Trace": lambda use: use.values[0],
}

REFUSED = {"EpochAccumulator": "it counts the samples of an epoch of training"}
