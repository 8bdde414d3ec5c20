"""The page of the functions of the network language, written from their declarations."""

from __future__ import annotations

import inspect

from cntkpy.networks import nodes
from cntkpy.networks.nodes.declare import EXAMPLE_NODES, NODE, Argument, NodeKind, Option, shown

EXAMPLES = f"The examples use these nodes:\n\n```\n{EXAMPLE_NODES}```\n"

HEADER = (
    """\
# Functions of the network description language
Written by `python -m tools.docs` from the declarations in `cntkpy/networks/nodes`.

Names ignore case. Arguments in *italics* are values (numbers, words, arrays `{1, 2}`), the others are nodes; options
are given by name, `name=value`, after them, and `tag=` with every function. Shapes are `[rows x columns x ...]` of one
sample.

"""
    + EXAMPLES
)


def page() -> str:
    """The page as Markdown."""
    families: dict[str, list[NodeKind]] = {}
    for kind in nodes.kinds():
        families.setdefault(nodes.heading(kind) if not kind.unsupported else "", []).append(kind)
    missing = families.pop("", [])
    parts = [HEADER]
    for family, kinds in families.items():
        parts.append(f"## {family}\n" + "\n".join(_entry(kind) for kind in kinds))
    rows = [
        f"| {', '.join(f'`{name}`' for name in kind.names)} | {_cell(kind.unsupported or '')} |" for kind in missing
    ]
    parts.append("## Not supported\n| function | instead |\n|---|---|\n" + "\n".join(rows) + "\n")
    return "\n".join(parts)


def _entry(kind: NodeKind) -> str:
    forms = " or ".join(f"{kind.name}({', '.join(map(_argument, signature))})" for signature in kind.signatures)
    lines = [f"### {kind.name}", kind.meaning, "", f"- call: {forms}"]
    if kind.aliases:
        lines.append("- also called: " + _names(kind.aliases))
    if kind.formula:
        lines.append(f"- formula: `{kind.formula}`")
    rule = inspect.getdoc(kind.shape) if kind.shape is not None else f"as of `{kind.makes}`."
    rule = (rule or "").splitlines()[0].removeprefix("Return ")
    lines.append(f"- shape: {rule[:1].upper()}{rule[1:]}")
    notes = _notes(kind)
    if notes:
        lines.append("- " + "; ".join(notes))
    lines += ["", "```", kind.example, "```"]
    if kind.options:
        lines += ["", "| option | type | default | meaning |", "|---|---|---|---|"]
        lines += [_option(option) for option in kind.options]
    return "\n".join(lines) + "\n"


def _argument(argument: Argument) -> str:
    text = argument.name if argument.type == NODE else f"*{argument.name}*"
    return text + (", ..." if argument.many else "")


def _notes(kind: NodeKind) -> list[str]:
    notes = []
    if not kind.differentiable:
        notes.append("has no gradient")
    if kind.sparse and kind.layout != "always":
        notes.append("takes sparse inputs without making them dense")
    if kind.time.reduces_time:
        notes.append("cannot be part of a recurrent loop")
    if kind.precompute:
        notes.append("computed over the training data before training")
    return notes


def _option(option: Option) -> str:
    names = _names((option.name, *option.aliases))
    kind = option.type if not option.choices else " \\| ".join(choice for choice in option.choices if choice)
    return f"| {names} | {kind} | `{shown(option.default)}` | {_cell(option.meaning)} |"


def _names(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
