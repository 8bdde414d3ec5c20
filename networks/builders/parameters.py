"""The sections that describe a network to be built. Declarations only: nothing heavy is imported."""

from __future__ import annotations

from cntk_config.declare import SECTION, TEXT, Declared, Parameter, array
from cntk_config.parameters import ConfigParameters


class BuilderParameters(Declared):
    """How a network is built."""

    create = Parameter("createNetwork", TEXT, default=None, help="BrainScript: not supported.")
    simple = Parameter("SimpleNetworkBuilder", SECTION, default=None, help="The sizes of the layers of a network.")
    ndl = Parameter("NDLNetworkBuilder", SECTION, default=None, help="A network in the network description language.")
    brain_script = Parameter("BrainScriptNetworkBuilder", TEXT, default=None, help="BrainScript: not supported.")
    experimental = Parameter("ExperimentalNetworkBuilder", TEXT, default=None, help="BrainScript: not supported.")


class OutputParameters(Declared):
    """What is asked of a network that is built."""

    outputs = Parameter("outputNodeNames", array(TEXT), default=None, help="The nodes that are outputs.")


BUILDERS = tuple(parameter.name for parameter in BuilderParameters.parameters())
"""The builders in the order in which they are looked for."""


def builder_of(section: ConfigParameters) -> Parameter | None:
    """The builder that a section, or one around it, has."""
    return next((one for one in BuilderParameters.parameters() if one.find(section)), None)
