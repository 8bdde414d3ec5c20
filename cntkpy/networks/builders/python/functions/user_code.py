"""The Python code of user-defined functions that models name: it is registered, never stored."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from cntkpy.networks.builders.brainscript.node_values import NodeValue
from cntkpy.networks.nodes.host.kinds import HOST, HostFunction, StoredHost

Factory = Callable[[Sequence[Any], str, StoredHost], HostFunction]
"""Makes the code of a node of a model of its operands, its name, and what was stored."""

FACTORIES: dict[str, Factory] = {}
"""By the name of the operation."""


def revive(value: NodeValue, operands: Sequence[Any]) -> None:
    """Give a node of a model that was read its Python code, if that is registered."""
    host = value.options.get(HOST)
    if isinstance(host, StoredHost) and host.operation in FACTORIES:
        value.options[HOST] = FACTORIES[host.operation](operands, value.name, host)
