"""`cntkpy explain`: a value, its type and meaning, who reads it, where it comes from and what it overrode."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import click

from cntk_config import ConfigError, ConfigParameters, load
from cntk_config.base.diagnostics import UserError, shorten
from cntk_config.declare import Parameter
from cntk_config.export import nodes, select, split_path
from cntk_config.parameters import ConfigValue
from commands.catalogue.section_map import Use, section_map
from commands.catalogue.topics import default_text
from commands.words import sort_words
from networks.builders.registry import BRAIN_SCRIPT, EXPERIMENTAL

EXIT_ERROR = 2


def explain(words: list[str]) -> int:
    """Print what is known of the value that `words` name; return the exit status."""
    sorted_words = sort_words(words, files=1)
    if len(sorted_words.rest) != 1:
        raise click.UsageError("Name one value, for instance train/SGD/maxEpochs or train.SGD.maxEpochs.")
    try:
        root = load(sorted_words.configurations[0])
        sys.stdout.write("\n".join(explanation(root, sorted_words.rest[0])) + "\n")
    except UserError as error:
        print(error.diagnostic.render(), file=sys.stderr)
        return EXIT_ERROR
    return 0


def explanation(root: ConfigParameters, path: str) -> Iterator[str]:
    """The lines of an explanation."""
    names = split_path(root, path)
    if inside := _in_network(names):
        yield from _node(root, *inside)
        return
    top = section_map(root)
    section = root
    for name in names[:-1]:
        section = section.section(name)
    use = next((one for one in top.walk() if one.section.path.lower() == section.path.lower()), None)
    name = names[-1]
    parameter = use.parameter(name) if use else None
    value = section.find(name)
    if value is None and parameter is not None and parameter.find(section):
        value = parameter.value(section)
    full = ":".join(names)
    if value is None:
        if parameter is None:
            section(name)  # raises the error with a suggestion
        assert parameter is not None
        yield f"{full} is not given"
        yield from _meaning(parameter, use)
        return
    chosen = select(root, ":".join(names))
    if isinstance(chosen, ConfigParameters):
        yield f"{full} is a section: {', '.join(node.name for node in nodes(chosen)) or 'empty'}"
    else:
        yield f"{full} = {shorten(str(value), 200)}"
    if parameter is not None:
        yield from _meaning(parameter, use)
        try:
            parameter.read(section)
        except ConfigError as error:
            yield f"  wrong    {error}"
    yield from _readers(top, value)
    yield from _origins(value)


def _in_network(names: list[str]) -> tuple[str | None, str] | None:
    """The command and the node, if a path goes into a network in BrainScript: train/BrainScriptNetworkBuilder/z."""
    keys = (BRAIN_SCRIPT.name.lower(), EXPERIMENTAL.name.lower())
    at = next((index for index, name in enumerate(names) if name.lower() in keys), None)
    if at is None or at + 1 >= len(names):
        return None
    return names[at - 1] if at else None, ".".join(names[at + 1 :])


def _node(root: ConfigParameters, command: str | None, name: str) -> Iterator[str]:
    """The lines of an explanation of a node."""
    from commands.tools.network_of import describe_network
    from commands.tools.show_network import node_lines

    described = describe_network(root, command)
    yield from node_lines(described, described.network.find(name))


def _meaning(parameter: Parameter[Any], use: Use | None) -> Iterator[str]:
    yield f"  type     {parameter.type.name}"
    yield f"  default  {default_text(parameter)}"
    yield f"  meaning  {parameter.help}"
    if use is not None:
        where = f" of the command {use.command}" if use.command and not use.role.startswith("command") else ""
        yield f"  for      {use.role}{where}"


def _readers(top: Use, value: ConfigValue) -> Iterator[str]:
    """Which sections read this very value: those where it stands, and those inside that search further out."""
    readers: list[str] = []
    for use in top.walk():
        for one in use.parameters():
            try:
                found = one.value(use.section)
            except ConfigError:
                continue
            if found is not None and found.span == value.span and one.name.lower() == value.path.lower().split(":")[-1]:
                readers.append(use.section.path.partition(":")[2] or use.role)
    variables = _uses(top.section, value)
    if readers:
        yield f"  read by  {', '.join(dict.fromkeys(readers))}"
    elif not variables:
        yield "  read by  nothing that cntkpy knows"
    if variables:
        yield f"  used in  {', '.join(variables[:10])}" + (", ..." if len(variables) > 10 else "")


def _uses(root: ConfigParameters, value: ConfigValue) -> list[str]:
    """Entries of the top level in whose text the value stands as a variable."""
    name = value.path.split(":")[-1].lower()
    texts = ((other, root.definition(other)) for other in root.names())
    return [other for other, entry in texts if entry and f"${name}$" in entry.text.lower()]


def _origins(value: ConfigValue) -> Iterator[str]:
    words = {"set": "from", "merged": "added to", "overridden": "overrode", "variable": "variable"}
    for origin in value.origins:
        text = f"${origin.name}$ = {origin.short}" if origin.kind == "variable" else origin.short
        yield f"  {words[origin.kind]:8} {text} at {origin.span}"
