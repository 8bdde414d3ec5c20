"""Reading every value of a configuration, as a reader of it would: brackets and variables are looked at everywhere."""

from collections.abc import Iterator, Mapping

from cntkpy.cntk_config import ConfigError, ConfigParameters
from cntkpy.commands.catalogue.section_map import Use

MAX_DEPTH = 60
NETWORK_TEXTS = ("brainscriptnetworkbuilder", "experimentalnetworkbuilder", "createnetwork")
"""Entries, in lower case, that hold a description in another language."""


def value_problems(root: ConfigParameters, sections: Mapping[str, ConfigParameters] = {}) -> Iterator[ConfigError]:
    """Read every value of a configuration; yield what fails. `sections`: those of the top level that are known."""
    yield from _read_all(root, network_texts(root), 0, sections)


def open_values(root: ConfigParameters, top: Use) -> Iterator[ConfigError]:
    """Read every value of the sections that a plug-in reads, which tells nobody what it takes; yield what fails."""
    texts = network_texts(root)
    for use in top.parts:
        for inside in use.walk():
            if inside.open:
                yield from _read_all(inside.section, texts, 0)


def network_texts(root: ConfigParameters) -> frozenset[str]:
    """Return the names, in lower case, of entries which describe networks and are not sets of parameters."""
    names: set[str] = set(NETWORK_TEXTS)
    for section in _network_sections(root):
        try:
            builder = section.section("NDLNetworkBuilder")
            for key in ("run", "load"):
                if builder.exists(key):
                    names.update(str(name).lower() for name in builder.array(key))
        except ConfigError:
            continue
    return frozenset(names)


def looks_like_set(section: ConfigParameters, name: str) -> bool:
    """Return whether an entry is written as a set of parameters; `{ }` may be an array too."""
    entry = section.definition(name)
    return entry is not None and bool(entry.bracket) and (entry.bracket != "{" or "=" in entry.text)


def _network_sections(root: ConfigParameters) -> Iterator[ConfigParameters]:
    """Return the top level and the commands in which NDL is used."""
    if root.exists("NDLNetworkBuilder"):
        yield root
    for name in root.names():
        entry = root.definition(name)
        if entry is not None and looks_like_set(root, name) and "ndlnetworkbuilder" in entry.text.lower():
            try:
                yield root.section(name)
            except ConfigError:
                continue


def _read_all(
    section: ConfigParameters, texts: frozenset[str], depth: int, sections: Mapping[str, ConfigParameters] = {}
) -> Iterator[ConfigError]:
    for name in section.names():
        entry = section.definition(name)
        if entry is None or entry.is_default:
            continue
        try:
            if name.lower() in texts:
                section.opaque(name)
            elif looks_like_set(section, name) and depth < MAX_DEPTH:
                yield from _read_all(sections.get(name) or section.section(name), texts, depth + 1)
            elif entry.text.startswith("(") and "=" in entry.text:
                yield from _read_sets(section, name, texts, depth)
            else:
                section(name, "")
        except ConfigError as error:
            yield error


def _read_sets(section: ConfigParameters, name: str, texts: frozenset[str], depth: int) -> Iterator[ConfigError]:
    """Read an array, which may be one of sets."""
    elements = section.array(name)
    if elements and all(str(element).startswith(("[", "{")) for element in elements):
        for element in elements.sections():
            yield from _read_all(element, texts, depth + 1)
    else:
        section(name, "")
