"""`cntkpy diff A B`: two configurations, resolved and compared by meaning: `0.10` is `1e-1`, and `T` is `true`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, cast

import click

from cntkpy.cntk_config import ConfigError, ConfigParameters, load
from cntkpy.cntk_config.arrays import PerEpoch
from cntkpy.cntk_config.base.diagnostics import shorten
from cntkpy.cntk_config.declare import Declared
from cntkpy.cntk_config.export import Node, is_set, nodes
from cntkpy.cntk_config.parameters import ConfigValue
from cntkpy.commands.catalogue.section_map import Use, section_map
from cntkpy.commands.checks.values import network_texts
from cntkpy.commands.words import OPEN, same_directory, sort_words

EXIT_DIFFERENT, EXIT_ERROR = 1, 2


class Value(NamedTuple):
    """A value of a configuration: its full name, its text, what it means where that is declared, and its place."""

    name: str
    text: str
    meaning: Any
    place: str


def diff(words: list[str], origins: bool = False, open_: bool = False, form: str = "text") -> int:
    """Print the differences of two configurations; return 0 if there are none, 1 if there are, 2 with errors.

    As `text` they are lines with `-` and `+`, as `json` an object with both values and their places.

    Values that cannot be read are compared as they are written, and explained on standard error; with `open_`, a
    variable that is not given is no error.
    """
    configurations = sort_words(words).configurations
    if len(configurations) != 2:
        raise click.UsageError("Two configurations are compared: cntkpy diff A.cntk B.cntk [NAME=VALUE...]")
    sides: list[dict[str, Value]] = []
    errors: list[ConfigError] = []
    for line in configurations:
        with same_directory():
            sides.append(values(load(line), errors))
    different = list(pairs(*sides))
    if form == "json":
        data = [_as_data(*pair) for pair in different]
        print(json.dumps({"version": 1, "differences": data}, indent=2))
    else:
        sys.stdout.write("".join(line + "\n" for line in lines_of(different, origins)))
    sys.stdout.flush()
    errors = [error for error in errors if not (open_ and error.kind in OPEN)]
    for error in errors:
        print(error.diagnostic.one_line(), file=sys.stderr)
    if errors:
        return EXIT_ERROR
    return EXIT_DIFFERENT if different else 0


def values(root: ConfigParameters, errors: list[ConfigError]) -> dict[str, Value]:
    """Return all values by their full names in lower case; the errors of those that cannot be read are appended."""
    uses = {use.section.path.partition(":")[2].lower(): use for use in section_map(root).walk()}
    result: dict[str, Value] = {}
    for name, node in _all_values(root, [], network_texts(root)):
        if node.error is not None:
            errors.append(node.error)
        section, _, key = name.rpartition(":")
        text = "[]" if node.section is not None else node.text
        meaning = _meaning(uses.get(section.lower()), key, node.value, text)
        result[name.lower()] = Value(name, text, meaning, str(node.value.span or ""))
    return result


def _all_values(section: ConfigParameters, prefix: list[str], texts: frozenset[str]) -> Iterator[tuple[str, Node]]:
    """Yield every value with its full name, those in sections of any bracket too; a section only when it is empty."""
    for node in nodes(section):
        names = [*prefix, node.name]
        if node.is_default and not (section.parent is not None and section.parent.exists(node.name)):
            continue  # it hides nothing: the same as no entry
        inside = node.section or (_opened(section, node) if node.name.lower() not in texts else None)
        if inside is not None and len(inside):
            yield from _all_values(inside, names, texts)
        else:
            yield ":".join(names), node


def _opened(section: ConfigParameters, node: Node) -> ConfigParameters | None:
    """Return the section that a text in `{ }` or `( )` is; None if it is a list, a network, or anything else."""
    entry = section.definition(node.name)
    if entry is None or not entry.begins_with_name or not is_set(node.value):
        return None
    try:
        return ConfigParameters.from_value(node.value)
    except ConfigError:
        return None  # another language


def _meaning(use: Use | None, name: str, value: ConfigValue, text: str) -> Any:
    parameter = use.parameter(name) if use is not None and text != "default" else None
    if parameter is not None and not parameter.type.is_section:
        try:
            read = parameter.type.convert(value)
            if isinstance(read, PerEpoch):
                read = list(cast("PerEpoch[Any]", read))
                while len(read) > 1 and read[-1] == read[-2]:
                    read.pop()  # the last value repeats anyway
            if not isinstance(read, (ConfigParameters, Declared)):
                return read
        except ConfigError:
            pass
    return " ".join(text.split())


Pair = tuple[Value | None, Value | None]


def pairs(old: dict[str, Value], new: dict[str, Value]) -> Iterator[Pair]:
    """Yield the values that are not the same, in the order of the first configuration, what is new at the end."""
    for key in dict.fromkeys([*old, *new]):
        previous_value, after = old.get(key), new.get(key)
        if previous_value is None or after is None or previous_value.meaning != after.meaning:
            yield previous_value, after


def lines_of(different: Iterable[Pair], origins: bool = False) -> Iterator[str]:
    """Lines `- name=text` and `+ name=text`."""
    for pair in different:
        for sign, value in zip("-+", pair, strict=True):
            if value is not None:
                yield f"{sign} {value.name}={shorten(value.text, 200)}" + (f"  # {value.place}" if origins else "")


def _as_data(old: Value | None, new: Value | None) -> dict[str, Any]:
    name = next(value.name for value in (old, new) if value is not None)
    return {"name": name, "old": _side(old), "new": _side(new)}


def _side(value: Value | None) -> dict[str, str] | None:
    return None if value is None else {"text": value.text, "place": value.place}
