"""Declarations of names for users - an action, a reader, a node -, each an `Entry` in the file that implements it.

    ENTRY = Entry(
        "reader",
        ("UCIFastReader",),
        parameters="cntkpy.readers.formats.uci.parameters:UCIReaderParameters",
        factory="cntkpy.readers.formats.uci.reader:create_uci_reader",
        sections=("reader", "cvReader"),
        help="Reads tables of numbers and words.",
        example="reader = [ readerType = UCIFastReader ; file = t.txt ; features = [ dim = 2 ; start = 1 ] ]",
    )

`collect` finds the entries of a package, so that no table elsewhere repeats them. The section map of `check`, `list`,
`help`, completion and the reference pages are made from entries. This file imports nothing heavy, and an entry imports
its classes when they are asked for.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, cast

from cntkpy.cntk_config.base.objects import load_object

if TYPE_CHECKING:
    from cntkpy.cntk_config.declare import Declared

Kind = Literal[
    "action",
    "reader",
    "deserializer",
    "transform",
    "writer",
    "builder",
    "node",
    "command of MEL",
    "update rule",
    "section",
]
"""Kinds of entries. A `section` belongs to another entry: `SGD`, the streams of a reader."""


@dataclass(frozen=True)
class Entry:
    """One thing that users name."""

    kind: Kind
    names: tuple[str, ...]
    """The name that documents use, then its other names."""
    aliases: tuple[str, ...] = ()
    """Further names that are accepted and not listed."""
    help: str = ""
    """Description in one line; without it, the docstring of the class of parameters."""
    parameters: str = ""
    """The class that declares the parameters, as `"module:Class"`; empty: it declares none."""
    factory: str = ""
    """Function or class that makes or runs it, as `"module:name"`; empty: nothing does, see `unsupported`."""
    check: str = ""
    """Function that checks its section before a run, as `"module:name"`; see `networks.builders.check` for builders."""
    sections: tuple[str, ...] = ()
    """The parameters whose value is its section: `reader`, `cvReader`. Empty: as for all of its kind."""
    within: tuple[str, ...] = ()
    """The entries inside whose sections it stands; empty: wherever a parameter of `sections` is declared."""
    open: bool = False
    """True if its section has parameters that are not declared, as the arguments of a user's class."""
    traits: frozenset[str] = frozenset()
    """Properties that others know without importing it, in words that its kind defines."""
    example: str = ""
    """A piece of configuration."""
    unsupported: str = ""
    """CNTK has it and cntkpy does not: what to use instead."""

    @property
    def name(self) -> str:
        """The name that documents use."""
        return self.names[0]

    @functools.cached_property
    def spellings(self) -> frozenset[str]:
        """All its names, in lower case."""
        return frozenset(name.lower() for name in (*self.names, *self.aliases))

    @property
    def meaning(self) -> str:
        """Description in one line."""
        declared = None if self.help else self.declared()
        return self.help or " ".join(((declared and declared.__doc__) or "").split())

    def declared(self) -> type[Declared] | None:
        """Return the class that declares the parameters, imported now; None if there is none."""
        return load_object(self.parameters) if self.parameters else None

    def load(self) -> Any:
        """Import and return the function or class that makes or runs it."""
        return load_object(self.factory)

    def load_check(self) -> Any:
        """Import and return the check of its section; None if it has none."""
        return load_object(self.check) if self.check else None


@functools.cache
def collect(package: str, *, folders: bool = False) -> tuple[Entry, ...]:
    """Return the entries that the files and folders of a package declare at their top level, in the order of their
    names.

    Args:
        package: the name of the package; each of its files is imported, and the `__init__.py` of each of its folders.
        folders: look only at the folders.

    Returns:
        Each entry once.
    """
    entries: dict[int, Entry] = {}
    for module in pkgutil.iter_modules(importlib.import_module(package).__path__, f"{package}."):
        if folders and not module.ispkg:
            continue
        for value in vars(importlib.import_module(module.name)).values():
            for entry in cast("tuple[object, ...]", value if isinstance(value, tuple) else (value,)):
                if isinstance(entry, Entry):
                    entries[id(entry)] = entry
    return tuple(entries.values())


def find_entry(name: str, entries: Iterable[Entry], *, ignore_case: bool = True) -> Entry | None:
    """Return the entry with a name or another name of it; None if there is none."""
    wanted = name.lower()
    for entry in entries:
        if wanted in entry.spellings and (ignore_case or name in (*entry.names, *entry.aliases)):
            return entry
    return None
