"""The sections that describe a network to be built. Declarations only: nothing heavy is imported."""

from __future__ import annotations

from typing import Any

from cntk_config.declare import SECTION, TEXT, Declared, Parameter, Type, array
from cntk_config.entry import Entry
from cntk_config.parameters import ConfigParameters
from networks.builders.registry import BRAIN_SCRIPT, CREATE_NETWORK, ENTRIES, EXPERIMENTAL, NDL, SIMPLE


def _of(entry: Entry, type_: Type[Any] = SECTION) -> Parameter[Any]:
    return Parameter(entry.name, type_, default=None, help=entry.help)


class BuilderParameters(Declared):
    """How a network is built."""

    create = _of(CREATE_NETWORK, TEXT)
    simple = _of(SIMPLE)
    ndl = _of(NDL)
    brain_script = _of(BRAIN_SCRIPT, TEXT)
    experimental = _of(EXPERIMENTAL, TEXT)


class OutputParameters(Declared):
    """What is asked of a network that is built."""

    outputs = Parameter("outputNodeNames", array(TEXT), default=None, help="The nodes that are outputs.")


BUILDERS = tuple(entry.name for entry in ENTRIES)
"""The builders in the order in which they are looked for."""


def builder_of(section: ConfigParameters) -> Parameter[Any] | None:
    """The builder that a section, or one around it, has."""
    return next((one for one in BuilderParameters.parameters() if is_given(section, one.name)), None)


def is_given(section: ConfigParameters, name: str) -> bool:
    """Whether a section, or one around it, has a builder; `default` in place of one removes it."""
    return section.exists(name) and not section.is_removed(name)
