"""The reference page of the Python interfaces, written from docstrings and signatures."""

from __future__ import annotations

import enum
import importlib
import inspect
import re
from typing import Any

from tools.public_api import MODULES, members_of, names_of

INTRODUCTION = """\
The public names of the Python interfaces. [What stays](../stability.md) says what a version may change;
[Training from Python](../training-from-python.md) and [Data from Python](../python-data-api.md) show how they are used.
`help(NAME)` has arguments and errors of each.
"""
_OBJECT = re.compile(r"<[\w.]+ [^<>]*>")
"""The text of a default without a literal: `<object object>`."""


def page() -> str:
    """The page without its first line."""
    parts = ["# Python interfaces\n", INTRODUCTION]
    for name in MODULES:
        module = importlib.import_module(name)
        parts += [f"\n## {name}\n", _first_line(module.__doc__), *_names(module, sorted(module.__all__), name)]
    return "".join(parts)


def _names(module: Any, names: list[str], path: str) -> list[str]:
    """A table of functions and values, then a section for each class and each module with public names of its own."""
    simple: list[tuple[str, str]] = []
    sections: list[str] = []
    for name in names:
        value = getattr(module, name)
        if inspect.ismodule(value):
            inside = names_of(value)
            sections += [f"\n### {path}.{name}\n", _first_line(value.__doc__), *_flat(value, inside)]
        elif inspect.isclass(value):
            sections += _class(name, value)
        else:
            simple.append(_row(name, value))
    return [*_table(simple), *sections]


def _flat(module: Any, names: list[str]) -> list[str]:
    return _table([_row(name, getattr(module, name)) for name in names])


def _class(name: str, kind: type) -> list[str]:
    head = [f"\n### {name}\n", f"`{name}{_arguments(kind)}`\n\n", _first_line(kind.__doc__)]
    if issubclass(kind, enum.Enum):
        return [*head, f"\nValues: {', '.join(f'`{one.name}`' for one in kind)}.\n"]
    return [*head, *_table([_row(member, value) for member, value in members_of(kind) if _has_text(value)])]


def _has_text(member: Any) -> bool:
    """Whether a member is a method or a property; fields are arguments of the class."""
    return isinstance(member, property | staticmethod | classmethod) or callable(member)


def _row(name: str, value: Any) -> tuple[str, str]:
    if isinstance(value, staticmethod | classmethod):
        value = value.__func__
    called = callable(value) and not isinstance(value, property)
    text = _first_line(value.__doc__) if called or isinstance(value, property) else type(value).__name__
    return f"{name}{_arguments(value) if called else ''}", text


def _arguments(value: Any) -> str:
    """The signature without types, which differ in form between versions of Python."""
    if isinstance(value, type) and issubclass(value, enum.Enum):
        return ""
    try:
        found = inspect.signature(value)
    except (ValueError, TypeError):
        return "(...)"
    kept = [one for one in found.parameters.values() if one.name not in ("self", "cls")]
    plain = [one.replace(annotation=one.empty) for one in kept]
    text = str(found.replace(parameters=plain, return_annotation=found.empty))
    return _OBJECT.sub("...", text)


def _table(rows: list[tuple[str, str]]) -> list[str]:
    rows = [(name, text) for name, text in rows if text.strip()]  # what only refuses has no docstring
    if not rows:
        return []
    lines = (f"| `{name}` | {text.strip().replace('|', chr(92) + '|')} |\n" for name, text in rows)
    return ["\n| name | meaning |\n|---|---|\n", *lines]


def _first_line(text: str | None) -> str:
    """The first paragraph of a docstring, in one line."""
    return " ".join((text or "").strip().split("\n\n")[0].split()) + "\n"
