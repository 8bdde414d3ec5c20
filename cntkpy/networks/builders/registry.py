"""All builders: what makes networks from sections of the configuration. Nothing heavy is imported."""

from __future__ import annotations

from cntkpy.cntk_config.entry import Entry
from cntkpy.networks.builders.brainscript.entries import BRAIN_SCRIPT, EXPERIMENTAL
from cntkpy.networks.builders.ndl.entries import NDL
from cntkpy.networks.builders.simple.entries import SIMPLE

CREATE_NETWORK = Entry(
    "builder",
    ("createNetwork",),
    help="Whole programs in BrainScript: not supported.",
    sections=("createNetwork",),
    unsupported="give the network as BrainScriptNetworkBuilder",
)

ENTRIES = (CREATE_NETWORK, SIMPLE, NDL, BRAIN_SCRIPT, EXPERIMENTAL)
"""The builders in the order in which they are looked for. Each is called with its section (BrainScript: with its
text, a `ConfigValue`), the precision and the counter of start values, and gives a `ValidatedNetwork`."""
