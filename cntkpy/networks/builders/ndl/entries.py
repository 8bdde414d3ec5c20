"""The entry of NDLNetworkBuilder."""

from __future__ import annotations

from cntkpy.cntk_config.entry import Entry

NDL = Entry(
    "builder",
    ("NDLNetworkBuilder",),
    help="A network in the network description language.",
    parameters="cntkpy.networks.builders.ndl.source:NDLBuilderParameters",
    factory="cntkpy.networks.builders.ndl.front_end:build_ndl",
    check="cntkpy.networks.builders.ndl.check:check_ndl",
    sections=("NDLNetworkBuilder",),
    example="""\
NDLNetworkBuilder = [ run = network ]
network = [
    features = Input(2, tag=feature)
    labels = Input(2, tag=label)
    W = Parameter(2, 2)
    z = Times(W, features, tag=output)
    ce = CrossEntropyWithSoftmax(labels, z, tag=criterion)
]""",
)
