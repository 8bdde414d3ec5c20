"""`cntkpy explain`: a value, its type and meaning, who reads it, where it comes from and what it overrode."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

import click

from cntkpy.cntk_config import ConfigError, ConfigParameters, load
from cntkpy.cntk_config.base.diagnostics import UserError, printable, shorten
from cntkpy.cntk_config.declare import Parameter
from cntkpy.cntk_config.export import nodes, select, split_path
from cntkpy.cntk_config.parameters import ConfigValue
from cntkpy.commands.catalogue.section_map import Use, section_map
from cntkpy.commands.catalogue.topics import default_text
from cntkpy.commands.console import print_error
from cntkpy.commands.words import sort_words
from cntkpy.networks.builders.registry import BRAIN_SCRIPT, EXPERIMENTAL

EXIT_ERROR = 2
Fact = tuple[str, str]
"""One line of an explanation: what it is about, `type` for instance, and the text; the first is about nothing."""


def explain(words: list[str], form: str = "text") -> int:
    """Print the facts about the value that `words` name, as `text` or `json`; return the exit status."""
    sorted_words = sort_words(words, files=1)
    if len(sorted_words.rest) != 1:
        raise click.UsageError("Name one value, for instance train/SGD/maxEpochs or train.SGD.maxEpochs.")
    try:
        root = load(sorted_words.configurations[0])
        facts = list(explanation(root, sorted_words.rest[0]))
    except UserError as error:
        print_error(error)
        return EXIT_ERROR
    sys.stdout.write(as_json(facts) if form == "json" else printable(as_text(facts)))
    return 0


def as_text(facts: list[Fact]) -> str:
    """Return the first fact, then the others, a line each."""
    return "".join(f"  {about:8} {text}\n" if about else f"{text}\n" for about, text in facts)


def as_json(facts: list[Fact]) -> str:
    """`{"value": ..., "facts": [{"about": ..., "text": ...}, ...]}`: some, as `overrode`, occur more than once."""
    listed = [{"about": about, "text": text} for about, text in facts[1:]]
    return json.dumps({"version": 1, "value": facts[0][1], "facts": listed}, indent=2) + "\n"


def explanation(root: ConfigParameters, path: str) -> Iterator[Fact]:
    """Yield the facts of an explanation."""
    names = split_path(root, path)
    if inside := _in_network(names):
        yield from _node(root, *inside)
        return
    top = section_map(root)
    section = root
    for name in names[:-1]:
        section = section.section(name)
    use = next((use for use in top.walk() if use.section.path.lower() == section.path.lower()), None)
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
        yield "", f"{full} is not given"
        yield from _meaning(parameter, use)
        return
    chosen = select(root, ":".join(names))
    if isinstance(chosen, ConfigParameters):
        yield "", f"{full} is a section: {', '.join(node.name for node in nodes(chosen)) or 'empty'}"
    else:
        yield "", f"{full} = {shorten(str(value), 200)}"
    if parameter is not None:
        yield from _meaning(parameter, use)
        try:
            parameter.read(section)
        except ConfigError as error:
            yield "wrong", str(error)
    yield from _readers(top, value)
    yield from _origins(value)


def _in_network(names: list[str]) -> tuple[str | None, str] | None:
    """Return the command and the node, if a path goes into a network in BrainScript:
    train/BrainScriptNetworkBuilder/z.
    """
    keys = (BRAIN_SCRIPT.name.lower(), EXPERIMENTAL.name.lower())
    index = next((index for index, name in enumerate(names) if name.lower() in keys), None)
    if index is None or index + 1 >= len(names):
        return None
    return names[index - 1] if index else None, ".".join(names[index + 1 :])


def _node(root: ConfigParameters, command: str | None, name: str) -> Iterator[Fact]:
    """Yield the facts of an explanation of a node."""
    from cntkpy.commands.described_network import describe_network
    from cntkpy.commands.tools.show_network import node_facts

    described = describe_network(root, command)
    yield from node_facts(described, described.network.find(name))


def _meaning(parameter: Parameter[Any], use: Use | None) -> Iterator[Fact]:
    yield "type", parameter.type.name
    yield "default", default_text(parameter)
    yield "meaning", parameter.help
    if use is not None:
        where = f" of the command {use.command}" if use.command and not use.role.startswith("command") else ""
        yield "for", f"{use.role}{where}"


def _readers(top: Use, value: ConfigValue) -> Iterator[Fact]:
    """Which sections read this very value: those where it stands, and those inside that search further out."""
    readers: list[str] = []
    for use in top.walk():
        for parameter in use.parameters():
            result = use.value(parameter)
            if (
                result is not None
                and result.span == value.span
                and parameter.name.lower() == value.path.lower().split(":")[-1]
            ):
                readers.append(use.section.path.partition(":")[2] or use.role)
    variables = _uses(top.section, value)
    if readers:
        yield "read by", ", ".join(dict.fromkeys(readers))
    elif not variables:
        yield "read by", "nothing that cntkpy knows"
    if variables:
        yield "used in", f"{', '.join(variables[:10])}" + (", ..." if len(variables) > 10 else "")


def _uses(root: ConfigParameters, value: ConfigValue) -> list[str]:
    """Entries of the top level in whose text the value stands as a variable."""
    name = value.path.split(":")[-1].lower()
    texts = ((other_name, root.definition(other_name)) for other_name in root.names())
    return [second for second, entry in texts if entry and f"${name}$" in entry.text.lower()]


def _origins(value: ConfigValue) -> Iterator[Fact]:
    words = {"set": "from", "merged": "added to", "overridden": "overrode", "variable": "variable"}
    for origin in value.origins:
        text = f"${origin.name}$ = {origin.short}" if origin.kind == "variable" else origin.short
        yield words[origin.kind], f"{text} at {origin.span}"
