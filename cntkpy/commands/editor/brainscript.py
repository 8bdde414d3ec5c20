"""Editor queries about BrainScript, inside a configuration or in a file of its own."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property

from cntkpy.cntk_config import ConfigError, ConfigParameters
from cntkpy.cntk_config.base.diagnostics import Span, UserError
from cntkpy.networks.builders.brainscript.language.parse import end_of, parse_members
from cntkpy.networks.builders.brainscript.language.source import text_of_string
from cntkpy.networks.builders.brainscript.language.syntax import Expression, Lambda, RecordLiteral
from cntkpy.networks.builders.brainscript.outline import Definition, Mention, Outline, outline_of
from cntkpy.networks.builders.brainscript.reference import Documented, documented, usage_of
from cntkpy.networks.builders.registry import BRAIN_SCRIPT, EXPERIMENTAL

KEYS = (BRAIN_SCRIPT.name.lower(), EXPERIMENTAL.name.lower())

_SELECTED = re.compile(r"(?<![\w.])([A-Za-z_][\w.]*)\.\w*$")
_CALLED = re.compile(r"(?<![\w.])([A-Za-z_][\w.]*)\s*$")


class Script:
    """A text of BrainScript with the names in it.

    Args:
        expression: what was read.
        section: the section of the command; None for a file of its own.
    """

    def __init__(self, expression: Expression, section: ConfigParameters | None) -> None:
        self.outline: Outline = outline_of(expression)
        self._section = section

    def mention(self, name: str, line: int, column: int) -> Mention | None:
        """Return the name at a place of the file `name`."""
        for mention in self.outline.mentions:
            span = mention.place.span
            if span.line == line and span.column <= column <= span.column + span.length and span.source.name == name:
                return mention
        return None

    def hover(self, mention: Mention) -> str | None:
        """Return the meaning of a name, in one to three lines."""
        if mention.library is not None:
            return explained(mention.library)
        definition = mention.definition
        if definition is None:
            return None
        lines = [_head(definition), f"defined at {definition.place}"]
        if self.outline.members.get(definition.name) is definition and definition.name in self._nodes:
            lines.append(self._nodes[definition.name])
        return "\n".join(lines)

    @cached_property
    def _nodes(self) -> dict[str, str]:
        """Of a network, each node's operation and shape by its name."""
        if self._section is None:
            return {}
        from cntkpy.networks.builders.brainscript.build import outline_brainscript
        from cntkpy.networks.graph import shapes

        key = BRAIN_SCRIPT.name if self._section.exists(BRAIN_SCRIPT.name) else EXPERIMENTAL.name
        try:
            built = outline_brainscript(self._section.opaque(key), str(self._section("precision", "float")))
        except UserError:
            return {}
        return {node.name: f"node: {node.operation} {shapes.text(node.shape)}" for node in built.network.nodes.values()}


def explained(entry: Documented) -> str:
    """Return a function of the library: how it is called, and what it does."""
    target = documented().get(entry.alias, entry)
    return "\n".join(line for line in (target.usage or target.name, target.meaning) if line)


def _head(definition: Definition) -> str:
    """Return the beginning of a definition."""
    value = definition.value
    if value is None:
        return f"{definition.name}: parameter"
    if isinstance(value, Lambda):
        return usage_of(definition.name, value)
    text = value.place.text.string
    end = text.find("\n", end_of(value))
    line = " ".join(text[definition.place.start : end if end >= 0 else len(text)].split())
    return line if len(line) <= 100 else line[:97] + "..."


def read_file(text: str, name: str) -> Script:
    """Return a file of members.

    Raises:
        ConfigError: what is wrong with it.
    """
    return Script(parse_members(text_of_string(text, name)), None)


def scripts_of(root: ConfigParameters) -> Iterator[Script]:
    """Return the networks in BrainScript of a configuration, but for those that cannot be read."""
    from cntkpy.networks.builders.brainscript.language.syntax import New
    from cntkpy.networks.builders.brainscript.source import program_of

    for section in _sections(root):
        for name in section.names():
            if name.lower() not in KEYS:
                continue
            try:
                expression = program_of(section.opaque(name)).expression
            except ConfigError:
                continue
            record = expression.record if isinstance(expression, New) else expression
            yield Script(record if isinstance(record, RecordLiteral) else expression, section)


def _sections(root: ConfigParameters) -> Iterator[ConfigParameters]:
    yield root
    for name in root.names():
        entry = root.definition(name)
        if entry is None or not entry.bracket or name.lower() in KEYS:
            continue
        try:
            yield root.section(name)
        except ConfigError:
            continue


def completions(text: str, scripts: list[Script]) -> Iterator[tuple[str, Documented | None]]:
    """Return the names that may follow a text: members of a record, options of a call, and whatever can be seen."""
    every = documented()
    selected = _SELECTED.search(text)
    if selected:
        prefix = selected[1] + "."
        for name, names_value in every.items():
            if name.startswith(prefix) and "." not in name[len(prefix) :]:
                yield name[len(prefix) :], names_value
        for script in scripts:
            yield from ((name, None) for name in _inside(script.outline, selected[1]))
        return
    called = _function_around(text)
    if called in every:
        target = every.get(every[called].alias, every[called])
        yield from ((f"{option}=", target) for option, _ in target.options)
    for script in scripts:
        yield from ((name, None) for name in script.outline.members)
    yield from ((name, value) for name, value in every.items() if "." not in name)


def _inside(outline: Outline, chain: str) -> list[str]:
    """Return the members of a record of the user's."""
    names = chain.split(".")
    member = outline.members.get(names[0])
    for name in names[1:]:
        member = member.members.own.get(name) if member is not None and member.members is not None else None
    return list(member.members.own) if member is not None and member.members is not None else []


def _function_around(prefix: str) -> str:
    """Return the name in front of the innermost bracket that is open at the end of a text; empty if there is none."""
    depth = 0
    for index in range(len(prefix) - 1, -1, -1):
        if prefix[index] in ")]}":
            depth += 1
        elif prefix[index] in "([{":
            if depth == 0:
                match = _CALLED.search(prefix, 0, index)
                return match[1] if match else ""
            depth -= 1
    return ""


def definition_of(mention: Mention) -> Span | None:
    """Return the place of the definition, if it is in a file of the user."""
    return mention.definition.place.span if mention.definition is not None else None
