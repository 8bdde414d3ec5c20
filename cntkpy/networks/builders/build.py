"""Which builder makes the network of a command section, and making it (docs/specification/networks.md A.1)."""

from __future__ import annotations

from cntkpy.cntk_config.base.diagnostics import UserError, suggestion
from cntkpy.cntk_config.declare import SECTION
from cntkpy.cntk_config.parameters import ConfigParameters, ConfigValue
from cntkpy.networks.builders.parameters import OutputParameters, builder_of, entry_of
from cntkpy.networks.graph.initialize import SeedCounter
from cntkpy.networks.graph.network import Network, ValidatedNetwork


def has_builder(section: ConfigParameters) -> bool:
    """Return whether a network can be built from `section`, rather than loaded."""
    return builder_of(section) is not None


def build_network(section: ConfigParameters, precision: str, seeds: SeedCounter) -> ValidatedNetwork:
    """Build the network that a command section describes.

    Args:
        section: the command's `ConfigParameters`.
        precision: a key of `cntkpy.networks.graph.precision.PRECISIONS`.
        seeds: the process-wide seed counter of the network description language.

    Raises:
        UserError: there is no builder, or its description is wrong.
    """
    builder = builder_of(section)
    if builder is None:
        raise UserError(
            "MissingParameter",
            "no network builder found",
            hint="give BrainScriptNetworkBuilder, NDLNetworkBuilder or SimpleNetworkBuilder",
        )
    entry = entry_of(builder)
    if entry.unsupported:
        value = builder.value(section)
        message = f"{entry.name}: whole programs in BrainScript are not supported"
        raise UserError("Unsupported", message, None if value is None else value.span, entry.unsupported)
    description = builder.read(section) if builder.type is SECTION else section.opaque(entry.name)
    network: ValidatedNetwork = entry.load()(description, precision, seeds)
    outputs = OutputParameters(section).outputs
    if outputs is not None:
        choose_outputs(network, outputs)
    return network


def choose_outputs(network: Network, names: list[ConfigValue]) -> None:
    """Replace the output group.

    Raises:
        ConfigError: the network has no node of a name, at the name.
    """
    network.groups["output"].clear()
    for name in names:
        if str(name) not in network:
            hint = suggestion(name, list(network.nodes))
            raise name.error("UnknownNode", f"the network has no node '{name}'", hint)
        network.add_to_group("output", network.find(str(name)))
