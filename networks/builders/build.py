"""Which builder makes the network of a command section, and making it (docs/specification/networks.md A.1)."""

from __future__ import annotations

import logging
from typing import Any

from cntk_config.base.diagnostics import UserError, suggestion
from networks.builders.parameters import BuilderParameters, OutputParameters, builder_of
from networks.graph.initialize import SeedCounter
from networks.graph.network import Network

log = logging.getLogger("cntkpy.networks")


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
    builder = builder_of(section)
    if builder is not None and builder is BuilderParameters.simple:
        from networks.builders.simple.front_end import build_simple

        network = build_simple(builder.read(section), precision, seeds.constant)
    elif builder is not None and builder is BuilderParameters.ndl:
        from networks.builders.ndl.front_end import build_ndl

        network = build_ndl(builder.read(section), precision, seeds)
    elif builder is None:
        raise UserError(
            "MissingParameter", "no network builder found", hint="give SimpleNetworkBuilder or NDLNetworkBuilder"
        )
    else:
        raise UserError(
            "Unsupported",
            f"{builder.name}: networks written in BrainScript are not supported",
            span=getattr(builder.value(section), "span", None),
            hint="describe the network with NDLNetworkBuilder or SimpleNetworkBuilder",
        )
    outputs = OutputParameters(section).outputs
    if outputs is not None:
        choose_outputs(network, [str(word) for word in outputs])
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
