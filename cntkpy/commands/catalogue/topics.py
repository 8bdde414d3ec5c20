"""Everything that has a name: sections with their parameters, functions of networks, commands of MEL, findings.

`cntkpy help`, `cntkpy list` and the reference pages are made from it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

from cntkpy.cntk_config.base.objects import load_object
from cntkpy.cntk_config.declare import Declared, Parameter
from cntkpy.cntk_config.entry import Entry, collect, find_entry
from cntkpy.commands.catalogue.dispatch import ACTIONS, action_names
from cntkpy.commands.context import root
from cntkpy.readers.entries import DESERIALIZER, READER, TRANSFORM, WRITER, Kind, entries, sections_of
from cntkpy.trainers import parameters as training


class Topic(NamedTuple):
    """A section that is declared, and the part of the reference where it stands."""

    entry: Entry
    kind: str

    @property
    def name(self) -> str:
        """The name that documents use."""
        return self.entry.name

    @property
    def declared(self) -> type[Declared]:
        """The declaration."""
        return load_object(self.entry.parameters)

    @property
    def meaning(self) -> str:
        """Summary in one line."""
        return self.entry.meaning

    @property
    def example(self) -> str:
        """A piece of configuration; empty if there is none."""
        return self.entry.example


def topics() -> list[Topic]:
    """Return all declared sections, in the order of the reference."""
    top, command, tracking = root.ENTRIES
    return [
        Topic(top, "top level"),
        Topic(tracking, "top level"),
        Topic(command, "every command"),
        *(Topic(action, "action") for action in ACTIONS if action.parameters),
        *(Topic(entry, "training") for entry in training.ENTRIES),
        *(Topic(action, "output") for action in collect("cntkpy.commands.actions") if action.kind == "section"),
        *(
            Topic(builder, "builder")
            for builder in collect("cntkpy.networks.builders", folders=True)
            if builder.parameters
        ),
        _every(READER),
        *_found(READER),
        _every(DESERIALIZER),
        *_found(DESERIALIZER),
        *_inside(READER, DESERIALIZER),
        *(Topic(entry, "section of transforms") for entry in entries(TRANSFORM)),
        *_inside(WRITER),
        _every(WRITER),
        *_found(WRITER),
    ]


def _every(kind: Kind) -> Topic:
    """Return the parameters shared by all sections of a kind."""
    return Topic(Entry("section", (kind.name,), parameters=kind.common), f"every {kind.name}")


def _found(kind: Kind) -> Iterator[Topic]:
    """Things of a kind with a declaration; other names of the same declaration are not repeated."""
    seen: set[str] = set()
    for entry in entries(kind):
        if entry.parameters and entry.parameters not in seen:
            seen.add(entry.parameters)
            yield Topic(entry, kind.name)


def _inside(*kinds: Kind) -> Iterator[Topic]:
    """Sections with names of the user's choice inside the sections of these kinds."""
    for kind in kinds:
        for entry in entries(kind):
            for section in sections_of(entry):
                yield Topic(section, f"section of {entry.name}")


def find_topics(name: str) -> list[Topic]:
    """Sections of that name, letter case aside. Other names of an action count."""
    action = find_entry(name, ACTIONS)
    path = action.parameters if action else None
    return [
        topic for topic in topics() if topic.name.lower() == name.lower() or (path and topic.entry.parameters == path)
    ]


def find_parameters(name: str) -> list[tuple[Topic, Parameter[Any]]]:
    """Return the declarations of a parameter; those that a section inherits are not repeated."""
    pairs: list[tuple[Topic, Parameter[Any]]] = []
    for topic in topics():
        parameter = topic.declared.parameter(name)
        if parameter is not None and all(parameter is not known for _, known in pairs):
            pairs.append((topic, parameter))
    return pairs


@cache
def homes() -> dict[str, tuple[str, ...]]:
    """Return the sections that declare a parameter, by its name in lower case."""
    result: dict[str, dict[str, None]] = {}
    for topic in topics():
        for parameter in topic.declared.parameters():
            result.setdefault(parameter.name.lower(), {})[topic.name] = None
    return {name: tuple(sections) for name, sections in result.items()}


def default_text(parameter: Parameter[Any]) -> str:
    """Return the default for a reader: `required`, `-` for none, else the text of it."""
    if parameter.required:
        return "required"
    if parameter.default is None:
        return "-"
    return parameter.default if parameter.default != "" else '""'


def installed(group: str) -> list[tuple[str, str]]:
    """Names that installed packages offer in a group, each with the package and its version."""
    from importlib.metadata import entry_points  # it is slow to import

    return [
        (point.name, f"{point.dist.name} {point.dist.version}" if point.dist else point.value)
        for point in sorted(entry_points(group=group))
    ]


def all_names() -> list[str]:
    """Return every name that `cntkpy help` knows."""
    from cntkpy.cntk_config.base.kinds import RULES
    from cntkpy.networks import nodes
    from cntkpy.networks.builders.brainscript.reference import documented
    from cntkpy.networks.mel.commands import COMMANDS

    names = [topic.name for topic in topics()] + action_names()
    names += [p.name for topic in topics() for p in topic.declared.parameters()]
    names += [name for kind in nodes.kinds() for name in kind.names]
    names += list(documented())
    names += [name for kind in COMMANDS for name in kind.names]
    return list(dict.fromkeys([*names, *(rule.code for rule in RULES)]))
