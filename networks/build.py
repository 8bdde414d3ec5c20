"""Which builder makes the network of a command section, and making it (specification: networks A.1)."""

from __future__ import annotations

import logging
from typing import Any

from cntk_config.diagnostics import UserError, suggestion
from networks.initialize import SeedCounter
from networks.network import Network

log = logging.getLogger("cntkpy.networks")

#: the builders in the order in which they are looked for
BUILDERS = (
    "createNetwork",
    "SimpleNetworkBuilder",
    "NDLNetworkBuilder",
    "BrainScriptNetworkBuilder",
    "ExperimentalNetworkBuilder",
)


def builder_of(section: Any) -> str | None:
    """The builder that `section` (or an enclosing section) names, or None."""
    return next((name for name in BUILDERS if section.exists(name)), None)


def has_builder(section: Any) -> bool:
    """Whether a network can be built from `section`, rather than loaded."""
    return builder_of(section) is not None


def build_network(section: Any, precision: str, seeds: SeedCounter) -> Network:
    """Build the network that a command section describes.

    Args:
        section: the command's `ConfigParameters`.
        precision: "float" or "double".
        seeds: the process-wide seed counter of the network description language.

    Raises:
        UserError: there is no builder, or its description is wrong.
    """
    name = builder_of(section)
    if name == "SimpleNetworkBuilder":
        from networks.simple import build_simple

        network = build_simple(section.section(name), precision, seeds.constant)
    elif name == "NDLNetworkBuilder":
        from networks.ndl import build_ndl

        network = build_ndl(section.section(name), precision, seeds)
    elif name is None:
        raise UserError("no network builder found", hint="give SimpleNetworkBuilder or NDLNetworkBuilder")
    else:
        raise UserError(
            f"{name}: networks written in BrainScript are not supported",
            span=getattr(section(name), "span", None),
            hint="describe the network with NDLNetworkBuilder or SimpleNetworkBuilder",
        )
    if section.exists("outputNodeNames"):
        choose_outputs(network, [str(word) for word in section.array("outputNodeNames")])
    return network


def choose_outputs(network: Network, names: list[str]) -> None:
    """Replace the output group; unknown names are skipped with a warning."""
    network.groups["output"].clear()
    for name in names:
        if name in network:
            network.add_to_group("output", network.find(name))
        else:
            hint = suggestion(name, list(network.nodes))
            log.warning("outputNodeNames: the network has no node '%s'%s", name, f"; {hint}" if hint else "")
