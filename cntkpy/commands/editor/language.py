"""Editor queries about a configuration: what a name means, where it is defined, which names may be here."""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

from cntkpy.cntk_config import ConfigError, ConfigParameters, parse
from cntkpy.cntk_config.base.diagnostics import Span
from cntkpy.cntk_config.base.source import VARIABLE
from cntkpy.cntk_config.command_line import load_with
from cntkpy.cntk_config.declare import Parameter
from cntkpy.commands.catalogue.section_map import Use, section_map
from cntkpy.commands.checks.findings import Finding
from cntkpy.commands.checks.scripts import is_script
from cntkpy.commands.checks.values import network_texts
from cntkpy.commands.editor import brainscript, ndl
from cntkpy.commands.editor.document_findings import DocumentFindings, is_toml
from cntkpy.commands.editor.values import value_at, values
from cntkpy.commands.projects.project import Run
from cntkpy.commands.tools.explain import as_text, explanation
from cntkpy.commands.words import same_directory
from cntkpy.networks.builders.brainscript.outline import Mention
from cntkpy.networks.builders.brainscript.reference import Documented

_BRACKET = re.compile(r"(?:(?<![A-Za-z0-9_])(?P<name>[A-Za-z_][A-Za-z0-9_]*+)\s*+=?\s*+)?(?P<opener>[\[({])|[\])}]")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
Stack = tuple[str, "Stack | None"]
"""The name of an open section, "" if it has none, and the sections around it."""


class Brackets:
    """The sections of a text that are open at each place.

    Args:
        lines: The lines of the text.
    """

    def __init__(self, lines: list[str]) -> None:
        self._places: list[tuple[int, int]] = []
        """The end of each bracket, line from 1 and column from 0."""
        self._stacks: list[Stack | None] = [None]
        """The sections that are open before the first bracket and after each."""
        for number, text in enumerate(lines, 1):
            for bracket in _BRACKET.finditer(re.sub(r"(^|\s)#.*", "", text)):
                around = self._stacks[-1]
                closed = around[1] if around is not None else None
                self._places.append((number, bracket.end()))
                self._stacks.append((bracket["name"] or "", around) if bracket["opener"] else closed)

    def enclosing(self, line: int, column: int) -> list[str]:
        """Return the names of the sections around a place, line and column from 1, the outermost first."""
        stack = self._stacks[bisect_right(self._places, (line, column - 1))]
        names: list[str] = []
        while stack is not None:
            name, stack = stack
            if name:
                names.append(name)
        return names[::-1]


class Analysis:
    """A text, and its configuration: that of the last state which could be read."""

    def __init__(self, text: str, name: str, previous: Analysis | None = None) -> None:
        self.text, self.name = text, name
        self.lines = text.split("\n")
        self.is_script = is_script(name)
        self.is_network = ndl.is_network(name)
        self.is_toml = is_toml(name)
        self.root: ConfigParameters | None = None
        self.checked = DocumentFindings(text, name)
        self._is_new = True
        self.scripts: list[brainscript.Script] = []
        try:
            if self.is_script:
                self.scripts = [brainscript.read_file(text, name)]
            elif not self.is_network and not self.is_toml:
                runs = self.checked.runs
                self.root = self._load(runs[0]) if runs else parse(text, name)
                self.scripts = list(brainscript.scripts_of(self.root))
        except ConfigError:
            self.root = previous.root if previous is not None else None
        if not self.scripts and previous is not None:
            self.scripts = previous.scripts
        self._earlier_networks = previous.networks if previous is not None and self.is_network else []

    @cached_property
    def networks(self) -> list[ndl.NetworkText]:
        """The networks in NDL; of a file in NDL, that of the last state which could be read."""
        if self.is_network:
            try:
                return [ndl.read_file(self.text, self.name)]
            except ConfigError:
                return self._earlier_networks
        return list(ndl.networks_of(self.root)) if self.root is not None else []

    @cached_property
    def network_texts(self) -> frozenset[str]:
        """The names, in lower case, of entries which describe networks."""
        return network_texts(self.root) if self.root is not None else frozenset()

    def network_at(self, line: int, column: int) -> tuple[ndl.NetworkText, ndl.Key] | None:
        """Return the network in NDL and the name in it at a place (both from 1); variables are the configuration's."""
        if self._variable_at(line, column):
            return None
        mentions = ((network, network.at(self.name, line, column)) for network in self.networks)
        return next(((network, key) for network, key in mentions if key is not None), None)

    def _load(self, run: Run) -> ConfigParameters:
        """Return the configuration of a run, with the text of the editor in place of the file."""
        with same_directory():
            return load_with(run.command_line(absolute=True), {os.path.realpath(self.name): self.text})

    def findings(self) -> list[Finding]:
        """Return the findings of `check` in the text; of a file of BrainScript or NDL, its syntax errors.

        Runs of the project are checked for some time; `checked` knows which are left.
        """
        if self._is_new:
            self._is_new = False
            self.checked.advance()
        return self.checked.findings()

    def hover(self, line: int, column: int) -> str | None:
        """Return the explanation of the name at a place (both from 1), as `cntkpy explain` gives it."""
        script = self.script_at(line, column)
        if script is not None:
            return script[0].hover(script[1])
        if self.root is None:
            return self._function_at(line, column) if self.is_network else None
        path = self._path_at(self.root, [], line, column)
        variable = self._variable_at(line, column)
        for words in ([variable] if variable else [], path or []):
            if words:
                try:
                    return as_text(list(explanation(self.root, ":".join(words)))).removesuffix("\n")
                except ConfigError:
                    continue
        return self._function_at(line, column)

    def definition(self, line: int, column: int) -> Span | None:
        """Return the definition of the variable or section that is named at a place."""
        script = self.script_at(line, column)
        if script is not None:
            return brainscript.definition_of(script[1])
        network = self.network_at(line, column)
        if network is not None:
            return network[0].definitions.get(network[1])
        if self.root is None:
            return None
        name = self._variable_at(line, column) or self._word_at(line, column)
        entry = self.root.definition(name) if name else None
        return entry.name_span if entry is not None else None

    def values(self, line: int, column: int) -> list[str] | None:
        """Return the values that may be at a place; None where no value is being written."""
        prefix = self.lines[line - 1][: column - 1]
        location = value_at(prefix)
        if location is None or self.is_script or self.root is None or prefix.count("$") % 2:
            return None
        enclosing = self.enclosing(line, column)
        if any(name.lower() in brainscript.KEYS for name in enclosing):
            return None
        root = section_map(self.root)
        return list(values(self.use(enclosing), root, *location, Path(self.name).parent))

    def completions(self, line: int, column: int) -> Iterator[tuple[str, Parameter[Any] | Documented | None]]:
        """Return the names that may be at a place: variables after a `$`, else parameters of the section.

        Inside a network in BrainScript: what can be seen there, and the options of the function that is called.
        """
        prefix = self.lines[line - 1][: column - 1]
        inside = self.is_script or any(name.lower() in brainscript.KEYS for name in self.enclosing(line, column))
        if inside and not prefix.count("$") % 2:
            text = "\n".join([*self.lines[: line - 1], prefix])
            yield from brainscript.completions(text, self.scripts)
            return
        if self.root is None:
            return
        if prefix.count("$") % 2:
            yield from ((name, None) for name in self.root.names())
            return
        use = self.use(self.enclosing(line, column))
        if use is not None:
            given_names = {name.lower() for name in use.section.names()}
            yield from (
                (parameter.name, parameter)
                for parameter in use.parameters()
                if parameter.name.lower() not in given_names
            )

    def script_at(self, line: int, column: int) -> tuple[brainscript.Script, Mention] | None:
        """Return the network in BrainScript and the name in it at a place; variables are the configuration's."""
        if self._variable_at(line, column):
            return None
        mentions = ((script, script.mention(self.name, line, column)) for script in self.scripts)
        return next(((script, mention) for script, mention in mentions if mention is not None), None)

    def use(self, names: list[str]) -> Use | None:
        """Return the section at a path, and who reads it."""
        if self.root is None:
            return None
        wanted = ":".join([self.root.path, *names]).lower()
        return next((use for use in section_map(self.root).walk() if use.section.path.lower() == wanted), None)

    def enclosing(self, line: int, column: int) -> list[str]:
        """Return the names of the sections around a place, from the brackets before it."""
        return self._brackets.enclosing(line, column)

    @cached_property
    def _brackets(self) -> Brackets:
        return Brackets(self.lines)

    def _path_at(self, section: ConfigParameters, names: list[str], line: int, column: int) -> list[str] | None:
        for name in section.names():
            entry = section.definition(name)
            span = entry.name_span if entry else None
            if entry is None or span is None or span.source.name != self.name:
                continue
            if span.line == line and span.column <= column <= span.column + len(name):
                return [*names, name]
            if entry.bracket and len(names) < 20:
                try:
                    inside = ConfigParameters.from_value(section.stored(name, raw=True))
                except ConfigError:
                    continue
                path = self._path_at(inside, [*names, name], line, column)
                if path:
                    return path
        return None

    def _variable_at(self, line: int, column: int) -> str | None:
        for match in VARIABLE.finditer(self.lines[line - 1]):
            if match.start() < column <= match.end():
                return match["name"]
        return None

    def _word_at(self, line: int, column: int) -> str | None:
        for match in _WORD.finditer(self.lines[line - 1]):
            if match.start() < column <= match.end() + 1:
                return match[0]
        return None

    def _function_at(self, line: int, column: int) -> str | None:
        from cntkpy.networks import nodes

        word = self._word_at(line, column)
        kind = nodes.find(word) if word else None
        return None if kind is None else f"{kind.usage()}\n{kind.meaning or kind.unsupported or ''}"
