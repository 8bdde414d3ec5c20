"""The actions by name: what `action = NAME` runs. Each is declared by the `ENTRY` of its file in
`cntkpy/commands/actions`."""

from __future__ import annotations

import functools
import sys
from types import FunctionType
from typing import TYPE_CHECKING

from cntkpy.cntk_config import ConfigError, ConfigParameters
from cntkpy.cntk_config.base.diagnostics import Span, suggestion
from cntkpy.cntk_config.entry import Entry, collect, find_entry

if TYPE_CHECKING:
    from cntkpy.cntk_config.declare import Declared
    from cntkpy.commands.context.run_context import RunContext

ENTRY_POINTS = "cntkpy.actions"

ACTIONS: tuple[Entry, ...] = tuple(entry for entry in collect("cntkpy.commands.actions") if entry.kind == "action")
"""The actions of cntkpy and those of CNTK that it does not have. Names are case-sensitive."""
BUILDS = "builds"
"""Trait of an action: it builds a new network if it sees a builder, and loads one otherwise."""
EVALUATES = "evaluates"
"""Trait of an action: it evaluates that network."""
WITHOUT_JAX = "without JAX"
"""Trait of an action: it computes no network, so that the extra `data` is enough; the others need `train`."""


def action_names() -> list[str]:
    """Return the names of the built-in actions, other names included."""
    return [name for entry in ACTIONS if not entry.unsupported for name in entry.names]


def names_of(name: str) -> tuple[str, ...]:
    """Return all names of a built-in action."""
    entry = find_entry(name, ACTIONS)
    return entry.names if entry is not None else (name,)


def has_trait(name: str, trait: str) -> bool:
    """Return whether the built-in action of a name has a trait."""
    entry = find_entry(name, ACTIONS, ignore_case=False)
    return entry is not None and trait in entry.traits


def plugin_actions() -> list[Entry]:
    """Return the actions of installed packages: entry points `cntkpy.actions`, each a function or an `Entry`."""
    return _plugin_actions(tuple(sys.path))


@functools.lru_cache(maxsize=1)
def _plugin_actions(_path: tuple[str, ...]) -> list[Entry]:
    """Return the actions found along `sys.path`: looking for packages takes a millisecond."""
    from importlib.metadata import entry_points

    return [Entry("action", (point.name,), factory=point.value) for point in entry_points(group=ENTRY_POINTS)]


def find_action(name: str, command: str, span: Span | None = None) -> Entry:
    """Return the action called `name`.

    Raises:
        ConfigError: there is none; located, with a suggestion.
    """
    entry = find_entry(name, ACTIONS, ignore_case=False)
    if entry is not None and entry.unsupported:
        message = f'action "{name}" is not supported  (command {command})'
        raise ConfigError("UnknownAction", message, span=span, hint=entry.unsupported)
    if entry is not None:
        return entry
    plugins = plugin_actions()
    entry = find_entry(name, plugins, ignore_case=False)
    if entry is not None:
        value = entry.load()
        return value if isinstance(value, Entry) else entry
    message = f"unknown action: {name}  in command set: {command}"
    known = [*action_names(), *(plugin.name for plugin in plugins)]
    raise ConfigError("UnknownAction", message, span=span, hint=lambda: suggestion(name, known))


def declaration(action: Entry) -> type[Declared] | None:
    """Return the class that declares the parameters of an action; a function of another package has it as
    `declared`.
    """
    if action.parameters:
        return action.declared()
    function = action.load()
    return function.__dict__.get("declared") if isinstance(function, FunctionType) else None


def run_action(action: Entry, section: ConfigParameters, context: RunContext) -> None:
    """Import the function of an action and run it on a section."""
    action.load()(section, context)
