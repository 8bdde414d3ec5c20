"""Names for the nodes of CNTK's later format, where names may be missing or given more than once.

The rule: docs/specification/model-files.md 7.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import NamedTuple


class Named(NamedTuple):
    """Something that needs a name: its identifier, the name the user gave it, the names of the blocks around it."""

    uid: str
    name: str
    path: str


def assign_names(things: list[Named]) -> dict[str, str]:
    """By identifier, a name of its own (capital letters do not count).

    The given name, if it is the only one; else `<block path>.<name>`, if that is; else the name with the number of the
    identifier. What has no name is called by its identifier.
    """
    counter = Counter(thing.name.lower() for thing in things if thing.name)
    in_blocks = Counter(f"{thing.path}.{thing.name}".lower() for thing in things if thing.name and thing.path)
    used: set[str] = set()
    result: dict[str, str] = {}

    def take(thing: Named, name: str) -> None:
        free, number = name, 1
        while free.lower() in used:
            number += 1
            free = f"{name}_{number}"
        used.add(free.lower())
        result[thing.uid] = free

    for thing in things:
        if counter[thing.name.lower()] == 1 and thing.name:
            take(thing, thing.name)
    for thing in things:
        if thing.name and thing.uid not in result:
            nested = f"{thing.path}.{thing.name}"
            if thing.path and in_blocks[nested.lower()] == 1:
                take(thing, nested)
            else:
                digits = re.findall(r"\d+", thing.uid)
                take(thing, f"{thing.name}_{digits[-1]}" if digits else thing.name)
    for thing in things:
        if thing.uid not in result:
            take(thing, thing.uid)
    return result
