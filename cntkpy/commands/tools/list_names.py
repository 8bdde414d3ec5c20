"""`cntkpy list`: the actions, readers, deserializers and functions there are, and where they come from."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator

from cntkpy.commands.catalogue.dispatch import ENTRY_POINTS, action_names
from cntkpy.commands.catalogue.topics import installed
from cntkpy.commands.help_texts import GROUPS
from cntkpy.commands.tracking.tracker import BUILT_IN


def list_names(group: str | None = None, form: str = "text") -> int:
    """Print the names of a group, or of all of them, each with its origin, as `text` or `json`."""
    groups = GROUPS if group is None else (group,)
    if form == "json":
        result = {group: [{"name": name, "origin": origin} for name, origin in names(group)] for group in groups}
        print(json.dumps({"version": 1, **result}, indent=2))
        return 0
    for entry in groups:
        print(f"{entry}:")
        for name, origin in names(entry):
            sys.stdout.write(f"  {name:32} {origin}\n")
    return 0


def names(group: str) -> Iterator[tuple[str, str]]:
    """Yield the names of a group with their origins."""
    if group == "findings":
        from cntkpy.cntk_config.base.kinds import RULES

        yield from ((rule.code, f"{rule.severity}: {rule.title}") for rule in RULES)
        return
    if group == "functions":
        from cntkpy.networks import nodes

        yield from ((kind.name, "not supported" if kind.unsupported else "built in") for kind in nodes.kinds())
        return
    if group == "actions":
        yield from ((name, "built in") for name in action_names())
    elif group == "trackers":
        yield from ((name, "built in") for name in BUILT_IN)
    else:
        from cntkpy.readers import entries

        kind = next(kind for kind in entries.KINDS if f"{kind.name}s" == group)
        yield from ((name, "built in") for name in entries.names(kind))
    yield from installed(ENTRY_POINTS if group == "actions" else f"cntkpy.{group}")
