"""Printed forms of values: `Print` and `Format`."""

from __future__ import annotations

from typing import Any

from cntkpy.networks.builders.brainscript.language.evaluate import MAX_TEXT, Evaluator, Step
from cntkpy.networks.builders.brainscript.language.values import (
    PENDING,
    Array,
    Delayed,
    Function,
    Object,
    Origin,
    Record,
    number_text,
)


def text_of(evaluator: Evaluator, value: object, origin: Origin) -> Step:
    """Return the text of a value.

    An array is `( a`, then each further element on a line of its own, indented by two, then ` )`. A record is `[`, its
    members in the order of their names, `]`. What a value of several lines is part of indents it by two more.
    """
    parts: list[str] = []
    length = 0
    # What is left to write, last first: texts (with the indent of their lines) and values.
    left: list[tuple[Any, int]] = [(value, 0)]
    while left:
        item, indent = left.pop()
        if type(item) is _Text:
            parts.append(item.text)
            length += len(item.text)
            if length > MAX_TEXT:
                message = f"the value has more than {MAX_TEXT} characters"
                raise evaluator.messages.error("TooMany", message, origin.place, origin.scope)
            continue
        if type(item) is Delayed:
            item = item.value if item.value is not PENDING else (yield evaluator.force(item, origin.place))
        left.extend(reversed(_pieces(item, indent)))
    return "".join(parts)


class _Text:
    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text


def _pieces(value: object, indent: int) -> list[tuple[object, int]]:
    """Return a value as texts and the values inside it."""
    line = "\n" + " " * indent
    if type(value) is Array:
        pieces: list[tuple[Any, int]] = [(_Text("( "), 0)]
        for index, item in enumerate(value.items):
            if index:
                pieces.append((_Text(line + "  "), 0))
            pieces.append((item, indent + 2))
        return [*pieces, (_Text(" )"), 0)]
    if type(value) is Record:
        pieces = [(_Text("["), 0)]
        if not value.names:
            pieces.append((_Text(f"{line}  "), 0))
        for name in sorted(value.names):
            pieces += [(_Text(f"{line}  {name} = "), 0), (value.names[name], indent + 2)]
        return [*pieces, (_Text(line + "]"), 0)]
    return [(_Text(line.join(_lines(value))), 0)]


def _lines(value: object) -> list[str]:
    if isinstance(value, bool):
        return ["true" if value else "false"]
    if isinstance(value, float):
        return [number_text(value)]
    if isinstance(value, str):
        return value.split("\n")
    if isinstance(value, Function):
        return ["function"]
    assert isinstance(value, Object)
    return value.lines()
