"""The sections that describe a network to be built. Declarations only: nothing heavy is imported."""

from __future__ import annotations

from typing import Any

from cntkpy.cntk_config.declare import SECTION, TEXT, Declared, Parameter, Type, array
from cntkpy.cntk_config.definitions import Definition
from cntkpy.cntk_config.entry import Entry
from cntkpy.cntk_config.parameters import ConfigParameters
from cntkpy.networks.builders.registry import BRAIN_SCRIPT, CREATE_NETWORK, ENTRIES, EXPERIMENTAL, NDL, SIMPLE


def _of(entry: Entry, type_: Type[Any] = SECTION) -> Parameter[Any]:
    return Parameter(entry.name, type_, default=None, help=entry.help)


class BuilderParameters(Declared):
    """Builders of a network."""

    create = _of(CREATE_NETWORK, TEXT)
    simple = _of(SIMPLE)
    ndl = _of(NDL)
    brain_script = _of(BRAIN_SCRIPT, TEXT)
    experimental = _of(EXPERIMENTAL, TEXT)


class OutputParameters(Declared):
    """Options of a network that is built."""

    outputs = Parameter("outputNodeNames", array(TEXT), default=None, help="The nodes that are outputs.")


BUILDERS = tuple(entry.name for entry in ENTRIES)
"""The builders in the order in which they are looked for."""


def builder_of(section: ConfigParameters) -> Parameter[object] | None:
    """Return the builder that a section, or one around it, has.

    Of several, the first in the order of `BUILDERS` counts, as in CNTK; but where a later layer (a further file, a word
    of the command line) has put another one into the same section, that one.
    """
    builders = builders_of(section)
    if len(builders) < 2:
        return builders[0] if builders else None
    holder: ConfigParameters | None = section
    while holder is not None and not holder.exists_current(builders[0].name):
        holder = holder.parent
    chosen = builders[0]
    for definition in builders[1:]:
        if holder is not None and _is_of_later_layer(
            holder.definition(definition.name), holder.definition(chosen.name)
        ):
            chosen = definition
    return chosen


def entry_of(builder: Parameter[object]) -> Entry:
    """Return the entry of a builder."""
    return next(entry for entry in ENTRIES if entry.name == builder.name)


def builders_of(section: ConfigParameters) -> list[Parameter[object]]:
    """Return all builders that a section, or one around it, has, in the order of `BUILDERS`."""
    return [parameter for parameter in BuilderParameters.parameters() if is_given(section, parameter.name)]


def _is_of_later_layer(first: Definition | None, second: Definition | None) -> bool:
    """Return whether another file or word than that of `second` set the text of `first` last, and after it."""
    if first is None or second is None:
        return False
    return first.span.source is not second.span.source and first.order > second.order


def is_given(section: ConfigParameters, name: str) -> bool:
    """Return whether a section, or one around it, has a builder; `default` in place of one removes it."""
    return section.exists(name) and not section.is_removed(name)
