"""Nodes that look at the run as tensor code."""

from __future__ import annotations

from cntkpy.networks.nodes.source_support.dialect import Spellings
from cntkpy.networks.nodes.source_support.use import Rule, Use
from cntkpy.networks.nodes.source_support.values import Value


def _environment(use: Use) -> Value:
    return use.value(use.say("training"), (1,))


def _jax_training(use: Use) -> str:
    return f"jnp.full((1,), float({use.body.extra('training')}))"


SPELLINGS: Spellings = {"training": ("torch.full((1,), float(self.training))", _jax_training)}

RULES: dict[str, Rule] = {
    "EnvironmentInput": _environment,
    "Assign": lambda use: use.value(use.say("detach", use.values[1]), use.values[1].dims),
    "Trace": lambda use: use.values[0],
}

REFUSED = {"EpochAccumulator": "it counts the samples of an epoch of training"}
