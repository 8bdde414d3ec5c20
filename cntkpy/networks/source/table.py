"""All rules of source by the operation, and the operations without one."""

from __future__ import annotations

from cntkpy.networks import nodes
from cntkpy.networks.nodes.source_support.use import Rule

RULES: dict[str, Rule] = nodes.tables("source_writing")

REFUSED: dict[str, str] = nodes.tables("source_writing", "REFUSED")
"""Why an operation has no code."""
