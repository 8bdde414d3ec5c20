"""The configuration written out: flat lines, JSON, YAML, or a config file again; with origins when asked for.

All forms are made from the same `nodes`: a text in `[ ]` is a section with nodes of its own, everything else is its
text, because only a reader could say whether `( )` or `{ }` is a list or a section.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from cntk_config.base.diagnostics import ConfigError, printable, shorten
from cntk_config.base.source import Source
from cntk_config.definitions import Origin
from cntk_config.includes import INCLUDE
from cntk_config.parameters import ConfigParameters, ConfigValue
from cntk_config.parse import is_group

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


def nodes(config: ConfigParameters, *, unresolved: bool = False) -> Iterator[Node]:
    """The own entries of a set, in the order of first definition. With `unresolved`, `$name$` stays as written."""
    for name in config.names():
        try:
            value = config.stored(name, raw=unresolved, strict=False)
            if value.startswith("[") and all(is_group(fragment) for fragment in value.fragments):
                node = Node(name, value, ConfigParameters.from_value(value))
            else:
                node = Node(name, config.stored(name, raw=unresolved))
        except ConfigError as error:
            node = Node(name, config.stored(name, raw=True), error=error)
        yield node


def select(config: ConfigParameters, path: str | None, *, unresolved: bool = False) -> ConfigParameters | Node:
    """What `path` names, for instance `train/SGD` or `train:SGD:maxEpochs`; names are searched as at run time.

    A path that ends at a text in `{ }` opens it as a section, too.
    """
    names = _names(path)
    if not names:
        return config
    for name in names[:-1]:
        config = config.section(name)
    value = config.find(names[-1])
    if value is None:
        value = config(names[-1])  # raises the error with a suggestion
    if value.startswith(("[", "{")) and all(is_group(fragment) for fragment in value.fragments):
        return ConfigParameters.from_value(value)
    holder, raw = config, unresolved
    while not holder.exists_current(names[-1]) and holder.parent is not None:
        holder = holder.parent
    return Node(names[-1], holder.stored(names[-1], raw=raw))


def to_tree(
    config: ConfigParameters, path: str | None = None, *, unresolved: bool = False, on_error: OnError | None = None
) -> Any:
    """The subtree as nested dictionaries and texts. Without `on_error` the first entry that cannot be read raises."""
    return _tree(select(config, path, unresolved=unresolved), unresolved, on_error)


def to_json(
    config: ConfigParameters,
    path: str | None = None,
    *,
    unresolved: bool = False,
    origins: bool = False,
    on_error: OnError | None = None,
) -> str:
    """JSON: sections are objects, every other value is its text. With `origins`, one flat object of names."""
    if not origins:
        tree = to_tree(config, path, unresolved=unresolved, on_error=on_error)
    else:
        rows = flatten(select(config, path, unresolved=unresolved), _names(path), unresolved)
        tree = {name: _origin_row(node, _shown(node, on_error)) for name, node in rows}
    return json.dumps(tree, indent=2, ensure_ascii=False) + "\n"


def to_yaml(
    config: ConfigParameters,
    path: str | None = None,
    *,
    unresolved: bool = False,
    origins: bool = False,
    on_error: OnError | None = None,
) -> str:
    """YAML of the same shape as the JSON form; texts are always quoted. Origins are comments."""
    chosen = select(config, path, unresolved=unresolved)
    if isinstance(chosen, Node):
        return f"{_yaml_text(_shown(chosen, on_error))}{_comment(chosen, origins)}\n"
    return "\n".join(_yaml(chosen, "", unresolved, origins, on_error)) + "\n" if len(chosen) else "{}\n"


def to_flat(
    config: ConfigParameters,
    path: str | None = None,
    *,
    unresolved: bool = False,
    origins: bool = False,
    on_error: OnError | None = None,
) -> str:
    """One line for every value, `train:SGD:maxEpochs=3`. A text of several lines is shown as a JSON string."""
    lines: list[str] = []
    for name, node in flatten(select(config, path, unresolved=unresolved), _names(path), unresolved):
        text = "[]" if node.section is not None else _shown(node, on_error)
        shown = json.dumps(text, ensure_ascii=False) if "\n" in text else text
        lines.append(f"{name}={shown}{_comment(node, origins)}\n")
    return "".join(lines)


def to_cntk(
    config: ConfigParameters,
    path: str | None = None,
    *,
    unresolved: bool = False,
    origins: bool = False,
    on_error: OnError | None = None,
) -> str:
    """A config file that reads as the same tree. The rare text that the language cannot express becomes a comment."""
    chosen = select(config, path, unresolved=unresolved)
    level = iter([chosen]) if isinstance(chosen, Node) else nodes(chosen, unresolved=unresolved)
    return "".join(line + "\n" for line in _cntk(level, "", unresolved, origins, on_error))


# ------------------------------------------------------------------------------------------------------ shared


def _names(path: str | None) -> list[str]:
    return [name for name in re.split("[/:]", path or "") if name]


def _tree(chosen: ConfigParameters | Node, unresolved: bool, on_error: OnError | None) -> Any:
    if isinstance(chosen, Node):
        return _shown(chosen, on_error)
    return {
        node.name: _shown(node, on_error) if node.section is None else _tree(node.section, unresolved, on_error)
        for node in nodes(chosen, unresolved=unresolved)
    }


def _shown(node: Node, on_error: OnError | None) -> Any:
    if node.error is None:
        return str(node.value)
    if on_error is None:
        raise node.error
    return on_error(node.error)


def flatten(chosen: ConfigParameters | Node, prefix: list[str], unresolved: bool) -> Iterator[tuple[str, Node]]:
    """Every value with its full name; a section only when it is empty."""
    if isinstance(chosen, Node):
        yield ":".join(prefix), chosen
        return
    for node in nodes(chosen, unresolved=unresolved):
        names = [*prefix, node.name]
        if node.section is not None and len(node.section):
            yield from flatten(node.section, names, unresolved)
        else:
            yield ":".join(names), node


def _comment(node: Node, wanted: bool) -> str:
    """Where a value comes from, in one line."""
    if not wanted:
        return ""
    steps = [
        (f"{_VERBS[origin.kind].format(origin)} at " if origin.kind != "set" else "") + _place(origin)
        for origin in node.value.origins
    ]
    return "  # " + printable("; ".join(steps)).replace("\n", " ") if steps else ""


def _place(origin: Origin) -> str:
    """The place of a step, and the include line that brought its file in."""
    source = origin.span.source if origin.span else None
    included = source.included_at if isinstance(source, Source) else None
    if included is None or (isinstance(included.source, Source) and included.source.argument is not None):
        return str(origin.span)
    return f"{origin.span}, included at {included}"


_VERBS = {"merged": "added to the section", "overridden": "overrides {0.short}", "variable": "${0.name}$"}


def _origin_row(node: Node, text: str) -> dict[str, Any]:
    steps = [
        {"kind": origin.kind, "name": origin.name, "text": shorten(origin.text, 200), "at": _place(origin)}
        for origin in node.value.origins
    ]
    return {"value": {} if node.section is not None else text, "origins": steps}


# -------------------------------------------------------------------------------------------------------- YAML


def _yaml(
    chosen: ConfigParameters, indent: str, unresolved: bool, origins: bool, on_error: OnError | None
) -> Iterator[str]:
    for node in nodes(chosen, unresolved=unresolved):
        simple = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", node.name) and node.name.lower() not in _YAML_WORDS
        name = node.name if simple else _yaml_text(node.name)
        head = f"{indent}{name}:" if len(name) < 1000 else f"{indent}? {name}\n{indent}:"
        if node.section is not None and len(node.section):
            yield f"{head}{_comment(node, origins)}"
            yield from _yaml(node.section, indent + "  ", unresolved, origins, on_error)
        else:
            text = "{}" if node.section is not None else _yaml_text(_shown(node, on_error))
            yield f"{head} {text}{_comment(node, origins)}"


def _yaml_text(text: str) -> str:
    quoted = json.dumps(text, ensure_ascii=False)
    return re.sub("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]", lambda found: f"\\u{ord(found[0]):04x}", quoted)


# -------------------------------------------------------------------------------------------------------- CNTK


def _cntk(
    level: Iterator[Node], indent: str, unresolved: bool, origins: bool, on_error: OnError | None
) -> Iterator[str]:
    for node in level:
        name = _written_name(node.name)
        if node.section is not None and name is not None:
            yield f"{indent}{name} = [{_comment(node, origins)}"
            yield from _cntk(nodes(node.section, unresolved=unresolved), indent + "  ", unresolved, origins, on_error)
            yield f"{indent}]"
            continue
        text = _shown(node, on_error)
        written = None if name is None or node.error else _written(name, text, node.value)
        if written is None:
            yield f"{indent}# {printable(shorten(node.name))}: this text cannot be written: {shorten(text)!r}"
        else:
            yield f"{indent}{written}{'' if chr(10) in written else _comment(node, origins)}"


def _written(name: str, text: str, value: ConfigValue) -> str | None:
    """The statement that gives `name` this text; the forms are tried on the parser itself."""
    if _SIMPLE.fullmatch(text) and text != "default":
        return f"{name} = {text}"
    body = text.removesuffix("\n")
    forms = [f'{name} = "{body}"'] if text[:1] not in ("(", "{", "[") else []
    forms.append(f"{name} = {body}")
    if len(value.fragments) > 1:
        forms.append("\n".join(f"{name} = {fragment.string}" for fragment in value.fragments))
    if text[:1] in ("(", "{", "["):
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
