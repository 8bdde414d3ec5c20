"""Entry of BrainScriptNetworkBuilder."""

from __future__ import annotations

from cntkpy.cntk_config.entry import Entry

_EXAMPLE = """\
BrainScriptNetworkBuilder = {
    features = Input {2}
    labels = Input {2}
    z = DenseLayer {2} (features)
    ce = CrossEntropyWithSoftmax (labels, z)
    featureNodes = (features) ; labelNodes = (labels) ; criterionNodes = (ce) ; outputNodes = (z)
}"""
_FACTORY = "cntkpy.networks.builders.brainscript.build:build_brainscript"
_CHECK = "cntkpy.networks.builders.brainscript.check:check_network"

BRAIN_SCRIPT = Entry(
    "builder",
    ("BrainScriptNetworkBuilder",),
    help="A network in BrainScript: a record of its members, or an expression in parentheses.",
    factory=_FACTORY,
    check=_CHECK,
    sections=("BrainScriptNetworkBuilder",),
    example=_EXAMPLE,
)
EXPERIMENTAL = Entry(
    "builder",
    ("ExperimentalNetworkBuilder",),
    help="The older name of BrainScriptNetworkBuilder.",
    factory=_FACTORY,
    check=_CHECK,
    sections=("ExperimentalNetworkBuilder",),
)
