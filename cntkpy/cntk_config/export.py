"""The configuration written out: flat lines, JSON, YAML, or a config file again; with origins when asked for.

All forms are made from the same `nodes`: a text in `[ ]` is a section with nodes of its own, unless it is in another
language, everything else is its text, because only a reader could say whether `( )` or `{ }` is a list or a section.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from cntkpy.cntk_config.base.diagnostics import ConfigError, printable, printable_json, shorten
from cntkpy.cntk_config.base.lines import json_line
from cntkpy.cntk_config.base.source import Source
from cntkpy.cntk_config.definitions import Origin
from cntkpy.cntk_config.includes import INCLUDE
from cntkpy.cntk_config.parameters import ConfigParameters, ConfigValue
from cntkpy.cntk_config.parse import is_group, parse_set

OnError = Callable[[ConfigError], str]
"""Makes the text that is shown for an entry which cannot be read."""
_SIMPLE = re.compile(r"[A-Za-z0-9_./\\:*$%+-]+")
_YAML_WORDS = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"}


class Node(NamedTuple):
    """A name with its text, or with its section, or with the error that reading it gives."""

    name: str
    value: ConfigValue
    section: ConfigParameters | None = None
    error: ConfigError | None = None

    @property
    def is_default(self) -> bool:
        """True if the text is the word `default`, for which `value` is empty."""
        return self.value.entry is not None and self.value.entry.is_default

    @property
    def text(self) -> str:
        """The text as a configuration has it, after substitution."""
        return "default" if self.is_default else str(self.value)


def nodes(config: ConfigParameters, *, unresolved: bool = False) -> Iterator[Node]:
    """Yield the own entries of a set, in the order of first definition. With `unresolved`, `$name$` stays as
    written.
    """
    for name in config.names():
        try:
            value = config.stored(name, raw=unresolved, strict=False)
            if value.startswith("[") and is_set(value):
                node = Node(name, value, ConfigParameters.from_value(value))
            else:
                node = Node(name, config.stored(name, raw=unresolved))
        except ConfigError as error:
            node = Node(name, config.stored(name, raw=True), error=error)
        yield node


def is_set(value: ConfigValue) -> bool:
    """Return whether a text consists of brackets with nothing in them that a set has no place for.

    The body of a function in another language, `f(x) = g(x)`, is a value without a name: it would be lost.
    """
    for fragment in value.fragments:
        if not is_group(fragment) or any(record.kind == "unnamed" for record in parse_set(fragment)):
            return False
    return True


def select(config: ConfigParameters, path: str | None, *, unresolved: bool = False) -> ConfigParameters | Node:
    """Return the section or value at `path`, see `split_path`; names are searched as at run time.

    A path that ends at a text in `{ }` opens it as a section, too.
    """
    names = split_path(config, path)
    if not names:
        return config
    for name in names[:-1]:
        config = config.section(name)
    value = config.find(names[-1])
    if value is None:
        value = config(names[-1])  # raises the error with a suggestion
    if value.startswith(("[", "{")) and is_set(value):
        return ConfigParameters.from_value(value)
    holder, raw = config, unresolved
    while not holder.exists_current(names[-1]) and holder.parent is not None:
        holder = holder.parent
    return Node(names[-1], holder.stored(names[-1], raw=raw))


def flatten(chosen: ConfigParameters | Node, prefix: list[str], unresolved: bool) -> Iterator[tuple[str, Node]]:
    """Yield every value with its full name; a section only when it is empty."""
    if isinstance(chosen, Node):
        yield ":".join(prefix), chosen
        return
    for node in nodes(chosen, unresolved=unresolved):
        names = [*prefix, node.name]
        if node.section is not None and len(node.section):
            yield from flatten(node.section, names, unresolved)
        else:
            yield ":".join(names), node


def split_path(config: ConfigParameters, path: str | None) -> list[str]:
    """Return the names of a path, `train/SGD/maxEpochs`, with `/`, `:` or `.` between them; a name may have a point
    itself.
    """
    names = [name for name in re.split("[/:]", path or "") if name]
    if len(names) == 1 and "." in names[0] and not config.exists(names[0]):
        names = [name for name in names[0].split(".") if name]
    return names


@dataclass(frozen=True)
class Export:
    """A configuration, or the part of it at a path, to be written in one of several forms.

    Attributes:
        config: What is written.
        path: See `select`; None: all of it.
        unresolved: `$name$` stays as written.
        origins: Every value tells where it comes from.
        on_error: Makes the text for an entry which cannot be read; None: the first such entry raises.
    """

    config: ConfigParameters
    path: str | None = None
    unresolved: bool = False
    origins: bool = False
    on_error: OnError | None = None

    def tree(self) -> Any:
        """Nested dictionaries and texts."""
        return self._tree(self._chosen())

    def json(self) -> str:
        """Sections are objects, every other value is its text. With `origins`, one flat object of names."""
        tree = {name: self._row(node) for name, node in self._rows()} if self.origins else self.tree()
        return printable_json(json.dumps(tree, indent=2, ensure_ascii=False)) + "\n"

    def yaml(self) -> str:
        """YAML of the same shape as the JSON form; texts are always quoted. Origins are comments."""
        chosen = self._chosen()
        if isinstance(chosen, Node):
            return f"{_yaml_text(self._shown(chosen))}{self._comment(chosen)}\n"
        return "\n".join(self._yaml(chosen, "")) + "\n" if len(chosen) else "{}\n"

    def flat(self) -> str:
        """Return one line for every value, `train:SGD:maxEpochs=3`. A text that programs may cut in lines is a JSON
        string.
        """
        lines: list[str] = []
        for name, node in self._rows():
            text = "[]" if node.section is not None else self._shown(node)
            shown = json_line(text) if len((text + ".").splitlines()) > 1 else text
            lines.append(f"{name}={shown}{self._comment(node)}\n")
        return "".join(lines)

    def cntk(self) -> str:
        """Return a config file that reads as the same tree. The rare text that the language cannot express is a
        comment.
        """
        chosen = self._chosen()
        level = iter([chosen]) if isinstance(chosen, Node) else self._nodes(chosen)
        return "".join(line + "\n" for line in self._cntk(level, ""))

    def _chosen(self) -> ConfigParameters | Node:
        return select(self.config, self.path, unresolved=self.unresolved)

    def _nodes(self, config: ConfigParameters) -> Iterator[Node]:
        return nodes(config, unresolved=self.unresolved)

    def _rows(self) -> Iterator[tuple[str, Node]]:
        return flatten(self._chosen(), split_path(self.config, self.path), self.unresolved)

    def _tree(self, chosen: ConfigParameters | Node) -> Any:
        if isinstance(chosen, Node):
            return self._shown(chosen) if chosen.section is None else self._tree(chosen.section)
        return {node.name: self._tree(node) for node in self._nodes(chosen)}

    def _shown(self, node: Node) -> Any:
        if node.error is None:
            return node.text
        if self.on_error is None:
            raise node.error
        return self.on_error(node.error)

    def _comment(self, node: Node) -> str:
        """Describe the origin of a value in one line."""
        if not self.origins:
            return ""
        steps = [
            (f"{_VERBS[origin.kind].format(origin)} at " if origin.kind != "set" else "") + _place(origin)
            for origin in node.value.origins
        ]
        return "  # " + printable("; ".join(steps)).replace("\n", " ") if steps else ""

    def _row(self, node: Node) -> dict[str, Any]:
        """Return a value and where it comes from."""
        steps = [
            {"kind": origin.kind, "name": origin.name, "text": shorten(origin.text, 200), "at": _place(origin)}
            for origin in node.value.origins
        ]
        text = self._shown(node)
        return {"value": {} if node.section is not None else text, "origins": steps}

    def _yaml(self, chosen: ConfigParameters, indent: str) -> Iterator[str]:
        for node in self._nodes(chosen):
            simple = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", node.name) and node.name.lower() not in _YAML_WORDS
            name = node.name if simple else _yaml_text(node.name)
            head = f"{indent}{name}:" if len(name) < 1000 else f"{indent}? {name}\n{indent}:"
            if node.section is not None and len(node.section):
                yield f"{head}{self._comment(node)}"
                yield from self._yaml(node.section, indent + "  ")
            else:
                text = "{}" if node.section is not None else _yaml_text(self._shown(node))
                yield f"{head} {text}{self._comment(node)}"

    def _cntk(self, level: Iterator[Node], indent: str) -> Iterator[str]:
        for node in level:
            name = _written_name(node.name)
            if node.section is not None and name is not None:
                yield f"{indent}{name} = [{self._comment(node)}"
                yield from self._cntk(self._nodes(node.section), indent + "  ")
                yield f"{indent}]"
                continue
            text = self._shown(node)
            if name is not None and node.is_default:
                written = f"{name} = default"
            else:
                written = None if name is None or node.error else _written(name, text, node.value)
            if written is None:
                yield f"{indent}# {printable(shorten(node.name))}: this text cannot be written: {shorten(text)!r}"
            else:
                yield f"{indent}{written}{'' if chr(10) in written else self._comment(node)}"


def _place(origin: Origin) -> str:
    """Return the place of a step, and the include line that brought its file in."""
    source = origin.span.source if origin.span else None
    included = source.included_at if isinstance(source, Source) else None
    if included is None or (isinstance(included.source, Source) and included.source.argument is not None):
        return str(origin.span)
    return f"{origin.span}, included at {included}"


_VERBS = {"merged": "added to the section", "overridden": "overrides {0.short}", "variable": "${0.name}$"}


def _yaml_text(text: str) -> str:
    quoted = json.dumps(text, ensure_ascii=False)
    return re.sub("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]", lambda result: f"\\u{ord(result[0]):04x}", quoted)


def _written(name: str, text: str, value: ConfigValue) -> str | None:
    """Return the statement that gives `name` this text; the forms are tried on the parser itself."""
    if _SIMPLE.fullmatch(text) and text != "default":
        return f"{name} = {text}"
    body = text.removesuffix("\n")
    in_brackets = body.endswith((")", "}", "]"))  # a call in another language would be a text in quotes
    forms = [f'{name} = "{body}"'] if text[:1] not in ("(", "{", "[") and not in_brackets else []
    forms.append(f"{name} = {body}")
    if len(value.fragments) > 1:
        forms.append("\n".join(f"{name} = {fragment.string}" for fragment in value.fragments))
    forms.append(f'{name} = "{body}"')
    return next((form for form in forms if _reads_as(form, text)), None)


def _written_name(name: str) -> str | None:
    for form in (name, f'"{name}"'):
        if _reads_as(f"{form} = x", "x", name):
            return form
    return None


def _reads_as(statement: str, text: str, name: str | None = None) -> bool:
    """Does the statement, in a section of a file, give one entry with this text?"""
    if any(INCLUDE.match(line) for line in statement.split("\n")):
        return False
    config = ConfigParameters()
    try:
        config.insert(f"s=[\n{statement}\n]\n")
        section = config.section("s")
        names = section.names()
        return len(config) == len(names) == 1 and name in (None, names[0]) and section.stored(names[0]) == text
    except ConfigError:
        return False
