"""The network description language (NDL)."""

from cntkpy.cntk_config.entry import Entry

ENTRY = Entry(
    "builder",
    ("NDLNetworkBuilder",),
    parameters="cntkpy.networks.builders.ndl.source:NDLBuilderParameters",
    factory="cntkpy.networks.builders.ndl.front_end:build_ndl",
    sections=("NDLNetworkBuilder",),
    example="NDLNetworkBuilder = [ run = net ]",
)
