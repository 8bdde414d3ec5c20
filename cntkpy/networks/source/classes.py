"""Classes of the written file: text with marks around sizes, so that equal classes become one with arguments.

A mark `«name=value»` stands for a size, `⟦3⟧` for an instance of another class of the file. Of functions `⟦3⟧` stands
for the name, `⟦3+⟧` for the arguments that their uses differ in.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from cntkpy.networks.nodes.source_support.names import Names

MARK = re.compile(r"«(\w*)=([^»]*)»")
INSTANCE = re.compile(r"⟦(\d+)(\+?)⟧")


@dataclass
class ClassText:
    """One use of a class.

    Args:
        hint: the name of the class, if nothing else has it; behind `=`, its name in any case.
        text: the class, with `NAME` for its name, `ARGUMENTS` for the arguments of its constructor, and marks.
    """

    hint: str
    text: str


@dataclass
class Resolved:
    """A class that is written once.

    Attributes:
        name: of the class.
        text: of the class.
        varying: names of the arguments of the constructor.
        places: for each argument, the marks of a use that it is taken from.
    """

    name: str
    text: str
    varying: list[str] = field(default_factory=list[str])
    places: list[int] = field(default_factory=list[int])


class Classes:
    """The classes of a file, each use in the order in which it was written.

    Args:
        functions: whether they are functions.
    """

    def __init__(self, functions: bool = False) -> None:
        self._functions = functions
        self.uses: list[ClassText] = []

    def add(self, hint: str, text: str) -> str:
        """Add the use of a class; return the mark of an instance."""
        self.uses.append(ClassText(hint, text))
        return f"⟦{len(self.uses) - 1}⟧"

    def resolve(self, names: Names) -> list[str]:
        """Return the texts of all classes."""
        calls: dict[int, tuple[str, str]] = {}  # by the number of the use: the class, the arguments
        texts: list[str] = []
        waiting = dict(enumerate(self.uses))
        while waiting:
            ready = {
                number: use
                for number, use in waiting.items()
                if all(int(inner) in calls for inner, _ in INSTANCE.findall(use.text))
            }
            groups: dict[str, list[tuple[int, list[tuple[str, str]], str]]] = {}
            for number, use in ready.items():
                del waiting[number]
                text = INSTANCE.sub(lambda mark: self._call(*calls[int(mark[1])], mark[2]), use.text)
                groups.setdefault(MARK.sub("«»", text), []).append((number, MARK.findall(text), text))
            for members in groups.values():
                resolved = _resolved(
                    self.uses[members[0][0]].hint, [(marks, text) for _, marks, text in members], names, self._functions
                )
                texts.append(resolved.text)
                for number, marks, _ in members:
                    values = [f"«{marks[place][0]}={marks[place][1]}»" for place in resolved.places]
                    if self._functions:
                        values = [f", {name}={value}" for name, value in zip(resolved.varying, values, strict=True)]
                    calls[number] = resolved.name, ("" if self._functions else ", ").join(values)
        return texts

    def _call(self, name: str, arguments: str, behind: str) -> str:
        """Return the text of a mark."""
        if self._functions:
            return arguments if behind else name
        return f"{name}({arguments})"


def _resolved(hint: str, members: list[tuple[list[tuple[str, str]], str]], names: Names, is_function: bool) -> Resolved:
    name = hint[1:] if hint.startswith("=") else names.take(hint)
    first, text = members[0]
    columns = [tuple(marks[place][1] for marks, _ in members) for place in range(len(first))]
    arguments: dict[tuple[str, ...], str] = {}
    places: list[int] = []
    taken = Names(re.findall(r"\b\w+\b(?!=)", text) if is_function else {"self"})
    for place, column in enumerate(columns):
        if len(set(column)) > 1 and column not in arguments:
            keys = {first[operand][0] for operand, same in enumerate(columns) if same == column}
            key = first[place][0] or "size"
            arguments[column] = taken.take(key.split("_", 1)[-1] if len(keys) > 1 else key)
            places.append(place)
    count = iter(range(len(columns)))
    attributes: dict[str, None] = {}

    def shown(result: re.Match[str]) -> str:
        return arguments.get(columns[next(count)], result[2])

    def of_self(result: re.Match[str]) -> str:
        argument = arguments.get(columns[next(count)])
        if argument is None:
            return result[2]
        attributes[argument] = None
        return f"self.{argument}"

    declared = "".join(f", {argument}: {_kind(column)}" for column, argument in arguments.items())
    if is_function:
        text = MARK.sub(shown, text).replace("NAME", name, 1).replace("ARGUMENTS", declared, 1)
        return Resolved(name, text, list(arguments.values()), places)
    head, constructor, methods = text.split("\n\n", 2)
    constructor, methods = MARK.sub(shown, constructor), MARK.sub(of_self, methods)
    kept = "".join(f"\n        self.{argument} = {argument}" for argument in attributes)
    empty = constructor.endswith("ATTRIBUTES") and not kept
    constructor = constructor.replace("ARGUMENTS", declared).replace("ATTRIBUTES", kept)
    parts = [head.replace("NAME", name), *([] if empty else [constructor]), methods]
    return Resolved(name, "\n\n".join(parts), list(arguments.values()), places)


def _kind(column: tuple[str, ...]) -> str:
    if all(re.fullmatch(r"\d+", value) for value in column):
        return "int"
    return "float" if all(re.fullmatch(r"[\d.e-]+", value) for value in column) else "int | tuple[int, ...]"


def plain(text: str) -> str:
    """Return a text without marks."""
    return MARK.sub(r"\2", text)
