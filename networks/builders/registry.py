"""All builders: what makes networks from sections of the configuration. Nothing heavy is imported."""

from __future__ import annotations

from cntk_config.entry import Entry
from networks.builders.ndl.entries import NDL
from networks.builders.simple.entries import SIMPLE

_INSTEAD = "describe the network with NDLNetworkBuilder or SimpleNetworkBuilder"


def _brain_script(name: str) -> Entry:
    return Entry("builder", (name,), help="BrainScript: not supported.", sections=(name,), unsupported=_INSTEAD)


CREATE_NETWORK = _brain_script("createNetwork")
BRAIN_SCRIPT = _brain_script("BrainScriptNetworkBuilder")
EXPERIMENTAL = _brain_script("ExperimentalNetworkBuilder")

ENTRIES = (CREATE_NETWORK, SIMPLE, NDL, BRAIN_SCRIPT, EXPERIMENTAL)
"""The builders in the order in which they are looked for. Each is called with its section (`ConfigParameters`), the
precision and the counter of start values, and gives a `ValidatedNetwork`."""
