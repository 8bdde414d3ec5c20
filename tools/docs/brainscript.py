"""The page of BrainScript's library, written from the library itself."""

from __future__ import annotations

from cntkpy.networks.builders.brainscript.reference import Documented, documented

HEADER = """\
# Functions of BrainScript
Written by `python -m tools.docs` from the library: `library.bs` of families in `cntkpy/networks/nodes`, and
`cntkpy/networks/builders/brainscript/library/core.bs`.

What has no default is passed by position, what has one by name. Braces and round brackets mean the same; the library
writes what makes parameters with braces. What the nodes compute is in [Functions](functions.md), the language in
[BrainScript](brainscript.md).
"""


def page() -> str:
    """The page as Markdown."""
    parts: dict[str, list[str]] = {}
    aliases: dict[str, list[str]] = {}
    for one in documented().values():
        if one.alias:
            aliases.setdefault(one.alias, []).append(one.name)
    for one in documented().values():
        if not one.alias and (one.usage or one.meaning):
            title = one.heading if one.heading.startswith(("BS.", "CNTK2")) else one.heading.capitalize()
            parts.setdefault(title, []).append(_entry(one, aliases.get(one.name, [])))
    return HEADER + "".join(f"\n## {title}\n" + "".join(entries) for title, entries in parts.items())


def _entry(one: Documented, aliases: list[str]) -> str:
    also = f" Also called {', '.join(f'`{name}`' for name in aliases)}." if aliases else ""
    return f"### {one.name}\n    {one.usage or one.name}\n\n{one.meaning}{also}\n\n"
