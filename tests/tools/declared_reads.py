"""Watches which names the program reads from configurations, and compares them with the declarations that `check` uses.

Every look-up of a parameter ends in `parameters._find` or `ConfigParameters.definition`. While a test runs, each one is
noted: the
section, the name, and the line of the program. Afterwards `section_map`, which `check`, `explain`, `show` and
completion look at, has to know the section and to have the name among its declared parameters. So neither a name that
no declaration has can be read, nor a declared one in a section where `check` does not expect it.
"""

from __future__ import annotations

import sys
from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from cntkpy.cntk_config import parameters
from cntkpy.cntk_config.base.diagnostics import ConfigError
from cntkpy.cntk_config.parameters import ConfigParameters, ConfigValue
from cntkpy.commands.catalogue.section_map import Use, command_use, section_map

ROOT = Path(__file__).resolve().parents[2] / "cntkpy"
READING = ("readers", "networks", "trainers", "commands")
LANGUAGE = str(ROOT / "cntk_config") + "/"
DECLARE, VARIABLES = LANGUAGE + "declare.py", LANGUAGE + "variables.py"
TOOLS = {
    f"commands/{name}.py"
    for name in (
        "checks/check", "checks/edits", "checks/files", "checks/look", "checks/names", "checks/networks",
        "checks/outlines", "checks/rules", "checks/values", "editor/completion", "editor/language", "tools/diff",
        "tools/explain", "tools/format", "described_network", "tools/show", "catalogue/section_map",
    )
}  # fmt: skip
"""Look at all names of a configuration; they do not run it."""


LOOK = str(ROOT / "commands/checks") + "/"


def _from_a_tool(frame: Any) -> bool:
    """Whether a check asks, through a function that others use as well: a run looks at its configuration first."""
    while frame is not None:
        if frame.f_code.co_filename.startswith(LOOK):
            return True
        frame = frame.f_back
    return False


class Read(NamedTuple):
    """One look-up."""

    root: ConfigParameters
    path: str
    name: str
    where: str
    probe: bool
    """Whether a declared parameter was only looked for, not read: it tells what a section is."""

    def __str__(self) -> str:
        return f"{self.where}: '{self.name}' of {self.path}"


class Watch:
    """The look-ups since it began."""

    def __init__(self) -> None:
        self.reads: dict[tuple[int, str, str, str], Read] = {}
        self._packages = tuple(str(ROOT / name) + "/" for name in READING)

    def start(self, patch: pytest.MonkeyPatch) -> None:
        """Note look-ups until the patch is undone."""
        for place, name in ((parameters, "_find"), (ConfigParameters, "definition")):
            patch.setattr(place, name, self._noting(getattr(place, name)))

    def _noting(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def noting(section: ConfigParameters, name: str) -> Any:
            self._note(section, name)
            return original(section, name)

        return noting

    def _note(self, section: ConfigParameters, name: str) -> None:
        if isinstance(name, ConfigValue) or not name:
            return  # the user's own name, that of a command for instance; or an error about the whole section
        frame: Any = sys._getframe(2)
        through: set[str] = set()
        while frame is not None and frame.f_code.co_filename.startswith(LANGUAGE):
            code = frame.f_code
            if code.co_name in ("inner", "_inner", "_find") or code.co_filename == VARIABLES:
                return  # all sections inside, whatever they are called; the user's own names; noted already
            if code.co_filename == DECLARE:
                through.add(code.co_name)
            frame = frame.f_back
        if frame is None or not frame.f_code.co_filename.startswith(self._packages):
            return
        file = frame.f_code.co_filename[len(str(ROOT)) + 1 :]
        if file in TOOLS or _from_a_tool(frame):
            return
        root = section
        while root.parent is not None:
            root = root.parent
        where = f"{file}:{frame.f_lineno}"
        probe = bool(through) and not through & {"read", "value"}
        read = Read(root, section.path, name, where, probe)
        self.reads.setdefault((id(root), section.path, name.lower(), where), read)

    def undeclared(self) -> list[str]:
        """The reads that no declaration in the place of the section knows."""
        maps: dict[int, dict[str, Use]] = {}
        reads = list(self.reads.values())  # making the maps reads as well
        for read in reads:
            if id(read.root) not in maps:
                maps[id(read.root)] = {use.section.path.lower(): use for use in _uses(read)}
        sections = {path: use for uses in maps.values() for path, use in uses.items()}  # those in lists have no root
        found: set[str] = set()
        for read in reads:
            if not read.path.startswith(read.root.path) or not (maps[id(read.root)] or ":" in read.root.path):
                continue  # a script, or a text of a test that is no configuration
            uses = ChainMap(maps[id(read.root)], sections)
            known = _knows(uses, read.path.lower(), read.name)
            if not known and not read.probe:
                found.add(f"{read}" + ("" if known is not None else " (no section that check knows)"))
        return sorted(found)


def _uses(read: Read) -> Iterator[Use]:
    """What `check` knows of the configuration; nothing of a section that a test reads by itself."""
    root = read.root
    try:
        if root.exists("command") or any(inside.exists_current("action") for _, inside in root.inner()):
            yield from section_map(root).walk()
        elif root.exists("action"):
            yield from command_use(root, root.path).walk()
    except ConfigError:
        return


def _knows(uses: Mapping[str, Use], path: str, name: str) -> bool | None:
    """Whether a section of this path has the name; None if it is not known."""
    use = uses.get(path)
    if use is not None:
        inside = any(part.section.path.lower() == f"{path}:{name}".lower() for part in use.parts)
        return inside or use.sets or use.open or use.parameter(name) is not None
    outer, _, own = path.rpartition(":")
    absent = uses[outer].parameter(own) if outer in uses else None  # a section that is not given has its defaults
    if absent is None or absent.type.declared is None:
        return None
    return absent.type.declared().parameter(name) is not None
