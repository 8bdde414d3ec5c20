"""All rules of source by the operation, and the operations without one."""

from __future__ import annotations

from cntkpy.networks import nodes
from cntkpy.networks.nodes.source_support.dialect import Spellings
from cntkpy.networks.nodes.source_support.finder import LayerRule
from cntkpy.networks.nodes.source_support.use import Rule

RULES: dict[str, Rule] = nodes.tables("source_writing")

LAYERS: dict[str, LayerRule] = nodes.tables("source_layers", "LAYERS")
"""Rules for nodes that may begin a layer."""

REFUSED: dict[str, str] = nodes.tables("source_writing", "REFUSED")
"""Why an operation has no code."""

SPELLINGS: Spellings = nodes.tables("source_writing", "SPELLINGS")
"""The words of rules, as frameworks spell them."""

NUMBERS = frozenset(nodes.tables("source_writing", "NUMBERS"))
"""Operations whose rules take a constant of one element as a number."""
