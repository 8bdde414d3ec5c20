"""Networks in BrainScript that were found right before: many runs of a project describe the same one."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from cntkpy.cntk_config.base.diagnostics import Diagnostic, Span
    from cntkpy.networks.builders.brainscript.language.syntax import RecordLiteral
    from cntkpy.networks.graph.network import ValidatedNetwork

MAX_NODES = 50_000
"""Nodes of the networks that are kept, of about 1 kB each."""


class Description(NamedTuple):
    """A network, and how it is described.

    Attributes:
        network: The network, without start values.
        warnings: What was noticed.
        record: Its text, if that is a record.
        span: The place of its text.
    """

    network: ValidatedNetwork
    warnings: list[Diagnostic]
    record: RecordLiteral | None
    span: Span | None


class KnownNetworks:
    """Networks by all that they depend on; the one that was not asked for longest goes first.

    Args:
        max_nodes: Nodes of all networks together, at most.
    """

    def __init__(self, max_nodes: int = MAX_NODES) -> None:
        self._max_nodes = max_nodes
        self._nodes = 0
        self._descriptions: dict[Hashable, Description] = {}

    def get(self, key: Hashable) -> Description | None:
        """Return the network of a key, if it is kept."""
        description = self._descriptions.pop(key, None)
        if description is not None:
            self._descriptions[key] = description
        return description

    def keep(self, key: Hashable, description: Description) -> None:
        """Keep a network that is not kept yet, unless a file has a part in it, whose content may change."""
        nodes = description.network.nodes.values()
        if any(node.init is not None and node.init.kind == "fromFile" for node in nodes):
            return
        self._descriptions[key] = description
        self._nodes += len(nodes)
        while self._nodes > self._max_nodes:
            oldest = self._descriptions.pop(next(iter(self._descriptions)))
            self._nodes -= len(oldest.network.nodes)
