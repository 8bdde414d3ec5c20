"""The reference pages, written from the declarations of the program."""

from __future__ import annotations

from collections.abc import Iterable

from cntkpy.commands.catalogue.topics import Topic, default_text, topics
from tools.docs import python
from tools.docs.tables import ordered

HEAD = "<!-- Written by `python -m tools.docs`; do not edit. -->\n"
PAGES = {
    "top-level.md": ("The top level and every command", ("top level", "every command")),
    "actions.md": ("Actions", ("action", "output")),
    "training.md": ("Training: SGD and its sections", ("training",)),
    "builders.md": ("Network builders", ("builder",)),
    "readers.md": (
        "Readers, deserializers and writers",
        ("every reader", "reader", "every deserializer", "deserializer", "section", "every writer", "writer"),
    ),
}


def pages() -> dict[str, str]:
    """All pages by their file names."""
    by_kind = [(topic.kind.partition(" of ")[0], topic) for topic in topics()]
    made = {
        name: _sections(title, [topic for kind, topic in by_kind if kind in kinds])
        for name, (title, kinds) in PAGES.items()
    }
    made["functions.md"] = _functions()
    made["editing.md"] = _editing()
    made["python.md"] = HEAD + python.page()
    made["README.md"] = _index(made)
    return made


def _index(made: dict[str, str]) -> str:
    rows = [f"- [{text.split(chr(10))[1].removeprefix('# ')}]({name})\n" for name, text in made.items()]
    head = f"{HEAD}# Reference\nEvery parameter, written from the declarations that the program itself reads.\n\n"
    return head + "".join(rows)


def _sections(title: str, chosen: Iterable[Topic]) -> str:
    parts = [f"{HEAD}# {title}\n"]
    for topic in chosen:
        where = f" ({topic.kind})" if topic.kind.startswith("section of") else ""
        parts.append(f"\n## {topic.name}{where}\n{topic.meaning}\n")
        if topic.example:
            parts.append(f"\n```\n{topic.example}\n```\n")
        parts.append("\n| parameter | type | default | meaning |\n|---|---|---|---|\n")
        for one in ordered(topic.declared):
            names = ", ".join(f"`{name}`" for name in (one.name, *one.aliases))
            default = default_text(one)
            default = default if default in ("required", "-") else f"`{default}`"
            where = " Only in this very section." if one.own and topic.kind != "top level" else ""
            parts.append(f"| {names} | {_cell(one.type.name)} | {_cell(default)} | {_cell(one.help)}{where} |\n")
    return "".join(parts)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _functions() -> str:
    from cntkpy.networks import nodes
    from tools.docs.functions import EXAMPLES

    parts = [f"{HEAD}# Functions of networks\nWhat NDL scripts can call. {EXAMPLES}"]
    family = None
    for kind in nodes.kinds():
        if kind.unsupported:
            continue
        if nodes.heading(kind) != family:
            family = nodes.heading(kind)
            parts.append(f"\n## {family or 'Others'}\n")
        aliases = f" Also called {', '.join(f'`{name}`' for name in kind.aliases)}." if kind.aliases else ""
        formula = f" Formula: `{kind.formula}`." if kind.formula else ""
        parts.append(
            f"\n### {kind.name}\n`{kind.usage()}`\n\n{kind.meaning}{formula}{aliases}\n\n```\n{kind.example}\n```\n"
        )
    parts.append("\n## Not supported\n")
    parts += [f"- `{kind.name}`: {kind.unsupported}\n" for kind in nodes.kinds() if kind.unsupported]
    return "".join(parts)


def _editing() -> str:
    from cntkpy.networks.mel.commands import COMMANDS

    parts = [f"{HEAD}# Commands of the model editing language\n"]
    parts += [f"\n## {one.name}\n`{one.usage}`\n\n{one.meaning}\n\nExample: `{one.example}`\n" for one in COMMANDS]
    return "".join(parts)
