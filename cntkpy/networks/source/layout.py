"""The form of the written file: methods, classes, lines of at most 100 characters."""

from __future__ import annotations

import re
from collections.abc import Iterator

WIDTH = 100


def method(name: str, arguments: list[str], lines: list[str], doc: str, result: str = "", kind: str = "Tensor") -> str:
    """Return a method of a class.

    Args:
        name: of the method.
        arguments: after `self`.
        lines: its statements.
        doc: the docstring, without indentation.
        result: the type of the result.
        kind: the type of the arguments.
    """
    typed = ", ".join(["self", *(f"{each}: {kind}" if ":" not in each else each for each in arguments)])
    head = f"    def {name}({typed}){f' -> {result}' if result else ''}:"
    text = [head, indented(docstring(doc), 8)]
    text += [f"        {line}" for line in lines]
    return "\n".join(text)


def function(name: str, arguments: list[str], lines: list[str], doc: str, result: str) -> str:
    """Return a function.

    Args:
        name: of the function.
        arguments: with their types.
        lines: its statements; a blank one is a blank line.
        doc: the docstring, without indentation.
        result: the type of the result.
    """
    text = [f"def {name}({', '.join(arguments)}) -> {result}:", indented(docstring(doc), 4)]
    if lines[0].startswith("def "):
        text.append("")
    return "\n".join([*text, *(f"    {line}" if line else "" for line in lines)])


def docstring(doc: str) -> str:
    """Return a text as a docstring."""
    return f'"""{doc}"""' if "\n" not in doc else f'"""{doc}\n"""'


def indented(text: str, count: int) -> str:
    """Return a text with spaces in front of its lines."""
    return "\n".join(" " * count + line if line else line for line in text.split("\n"))


def class_text(doc: str, init: list[str], methods: list[str]) -> str:
    """Return a class with marks for its name and the arguments of its constructor."""
    head = f"class NAME(nn.Module):\n{indented(docstring(doc), 4)}"
    lines = ["    def __init__(selfARGUMENTS) -> None:", "        super().__init__()ATTRIBUTES"]
    constructor = "\n".join([*lines, *(f"        {line}" for line in init)])
    return "\n\n".join([head, constructor, *methods])


def wrapped(line: str) -> str:
    """Return a statement on lines of at most `WIDTH` characters, broken as formatters break them."""
    if len(line) <= WIDTH:
        return line
    code, comment = line, ""
    if "  # " in line:
        code, _, comment = line.rpartition("  # ")
        if len(code) <= WIDTH:
            return code if len(code) + len(comment) + 4 > WIDTH else line
    place = _outer_brackets(code)
    if place is None:
        return code
    begin, end = place
    indent = " " * (len(code) - len(code.lstrip()))
    if rows := _sum_rows(code):
        return "\n".join(rows)
    inside = code[begin + 1 : end]
    head, tail = code[: begin + 1], code[end:]
    one_line = f"{indent}    {inside}"
    parts = _split(inside)
    if (len(one_line) <= WIDTH and len(parts) != 1) or (len(parts) == 1 and len(one_line) <= WIDTH):
        return f"{head}\n{one_line}\n{indent}{tail}"
    rows = [wrapped(f"{indent}    {part.strip()},") for part in parts]
    return "\n".join([head, *rows, f"{indent}{tail}"])


def _sum_rows(code: str) -> list[str]:
    """Return a statement with parentheses around its value, which has operators outside of brackets; else none."""
    head, sign, value = code.partition(" = ")
    if not sign:
        head, sign, value = code.partition("return ")
    indent = " " * (len(code) - len(code.lstrip()))
    for operators in ((" + ", " - "), (" * ", " / ", " @ ")):
        places = [place for place in _outside(value) if value[place : place + 3] in operators]
        if places and sign:
            begin = f"{head}{sign}("
            if len(indent) + 4 + len(value) <= WIDTH:
                return [begin, f"{indent}    {value}", f"{indent})"]
            parts = [value[i:j] for i, j in zip([0, *places], [*places, len(value)], strict=True)]
            rows = [wrapped(f"{indent}    {part.strip()}") for part in parts]
            return [begin, *rows, f"{indent})"]
    return []


def _outside(text: str) -> list[int]:
    """Return the positions of the characters that are in no brackets and no quoted text."""
    return [position for position, character, depth in _depths(text) if not depth and character not in "([{)]}"]


def _depths(text: str) -> Iterator[tuple[int, str, int]]:
    """Iterate over positions, characters and the number of brackets around them, without quoted texts."""
    depth, quote = 0, ""
    for position, character in enumerate(text):
        if quote:
            quote = "" if character == quote else quote
            continue
        if character in "\"'":
            quote = character
            continue
        depth -= character in ")]}"
        yield position, character, depth
        depth += character in "([{"


_METHOD = re.compile(r"( *)(\w+) = (.+)\.(\w+\([^()]+\))")
"""A statement whose value ends with the call of a method that has arguments."""


def _in_two(line: str) -> list[str]:
    """Return a long statement as two, if its value ends with the call of a method."""
    code, sign, comment = line.partition("  # ")
    parts = _METHOD.fullmatch(code)
    if len(code) <= WIDTH or parts is None:
        return [line]
    indent, name, value, method = parts.groups()
    if value[-1] not in ")]" or value.count("(") != value.count(")") or value.count("[") != value.count("]"):
        return [line]
    has_operator = value[0] in "-~" or any(value[place] == " " for place in _outside(value))
    if has_operator or re.search(rf"\b{name}\b", method):
        return [line]  # the method is that of the last operand alone, or reads the value of before
    if value.startswith("(") and _outer_brackets(value) == (0, len(value) - 1):
        value = value[1:-1]
    return [f"{indent}{name} = {value}", f"{indent}{name} = {name}.{method}{sign}{comment}"]


def laid_out(text: str) -> str:
    """Return a text with its long lines broken."""
    lines = [part for line in text.split("\n") for part in _in_two(line)]
    return "\n".join(wrapped(line).rstrip() for line in lines)


def _outer_brackets(text: str) -> tuple[int, int] | None:
    """Return the last pair of brackets that no other is around, and that holds most of the text."""
    begin, pairs = 0, list[tuple[int, int]]()
    for position, character, depth in _depths(text):
        if character in "([{" and not depth:
            begin = position
        elif character in ")]}" and not depth:
            pairs.append((begin, position))
    return max(pairs, key=lambda pair: pair[1] - pair[0], default=None)


def _split(text: str) -> list[str]:
    """Return the parts between commas that are in no brackets and no quoted text."""
    begin, parts = 0, list[str]()
    for position in _outside(text):
        if text[position] == ",":
            parts.append(text[begin:position])
            begin = position + 1
    return [*parts, text[begin:]] if text[begin:].strip() else parts
