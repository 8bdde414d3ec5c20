"""The network description language (NDL)."""

from cntk_config.entry import Entry

ENTRY = Entry(
    "builder",
    ("NDLNetworkBuilder",),
    parameters="networks.builders.ndl.source:NDLBuilderParameters",
    factory="networks.builders.ndl.front_end:build_ndl",
    sections=("NDLNetworkBuilder",),
    example="NDLNetworkBuilder = [ run = net ]",
)
