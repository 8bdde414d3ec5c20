"""The values of a configuration with their origins, for the first event of a run, and for runs of older logs."""

from __future__ import annotations

from typing import Any

from cntkpy.cntk_config import ConfigParameters
from cntkpy.cntk_config.base.diagnostics import shorten
from cntkpy.cntk_config.export import Node, flatten
from cntkpy.commands.runs.record import Setting, Step

MAX_TEXT = 20_000
"""Characters of a value that are kept; a network may have more."""


def settings_of(root: ConfigParameters) -> list[Setting]:
    """Return all values, in the order of their first definition; one that cannot be read is the text as it stands."""
    return [_setting(name, node) for name, node in flatten(root, [], unresolved=False)]


def _setting(name: str, node: Node) -> Setting:
    steps = tuple(
        Step(origin.kind, origin.name, shorten(origin.text, 200), str(origin.span) if origin.span else "")
        for origin in node.value.origins
    )
    return Setting(name, "[]" if node.section is not None else node.text[:MAX_TEXT], steps)


def as_json(setting: Setting) -> dict[str, Any]:
    """Return a value as events have it."""
    origins = [
        {"kind": origin.kind, "name": origin.name, "text": origin.text, "at": origin.at} for origin in setting.origins
    ]
    return {"name": setting.name, "value": setting.text, "origins": origins}
