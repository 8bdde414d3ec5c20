"""Elements of HTML and SVG. Every text and every attribute is escaped here, and nowhere else."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator

HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufffe\uffff\ud800-\udfff]"
)
"""Characters that HTML does not have, that cannot be seen, or that change the order of others."""
NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9-]*")
VOID = frozenset({"input", "img", "meta", "link", "br", "col"})


class Markup(str):
    """A text that is markup already."""

    __slots__ = ()


Child = str | int | float | None | Iterable["Child"]
"""Content of an element: markup as it is, other texts escaped, numbers as they are written; None is nothing."""


def tag(name: str, /, *children: Child, **attributes: str | float | bool | None) -> Markup:
    """Return an element.

    Args:
        name: of the element.
        children: see `Child`.
        attributes: a trailing `_` of a name is dropped, another `_` is a hyphen; None and False: there is no such
            attribute; True: it has no value.
    """
    words = [name, *_attributes(attributes)]
    assert NAME.fullmatch(name)
    if name in VOID:
        return Markup(f"<{' '.join(words)}>")
    return Markup(f"<{' '.join(words)}>{join(children)}</{name}>")


def scrolled_table(rows: Iterable[Child], heads: Iterable[Child] = (), /, **attributes: str | None) -> Markup:
    """Return a table that scrolls.

    Args:
        rows: its rows.
        heads: the heads of its columns.
        attributes: those of the table.
    """
    columns = [tag("th", head, scope="col") for head in heads]
    head = tag("thead", tag("tr", columns)) if columns else None
    return tag("div", tag("table", head, tag("tbody", rows), **attributes), class_="scroll")


def headed_row(head: Child, *cells: Child) -> Markup:
    """Return a row of a table: its head, and its cells."""
    return tag("tr", tag("th", head, scope="row"), *cells)


def _attributes(attributes: dict[str, str | float | bool | None]) -> Iterator[str]:
    for key, value in attributes.items():
        name = key.rstrip("_").replace("_", "-")
        assert NAME.fullmatch(name)
        if value is True:
            yield name
        elif value is not None and value is not False:
            yield f'{name}="{text(str(value))}"'


def join(children: Iterable[Child]) -> Markup:
    """Children one after another."""
    return Markup("".join(_child(child) for child in children))


def _child(child: Child) -> str:
    if child is None:
        return ""
    if isinstance(child, Markup):
        return child
    if isinstance(child, str | int | float):
        return text(str(child))
    return join(child)


def text(value: str) -> Markup:
    """Return a text, escaped for elements and attributes in double quotes; invisible characters become boxes."""
    return Markup(html.escape(HIDDEN.sub("\ufffd", value), quote=True))
