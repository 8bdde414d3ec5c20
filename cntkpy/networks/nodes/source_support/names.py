"""Names in the code: those of the network, as Python writes names; where it has none, what a value is."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Iterable

from cntkpy.networks.graph.node import Node

_GENERATED = re.compile(r"(?i)^(autoname|unnamed|node|_)?\d*$|args\[\d+\]$|[*+]")
"""Names that nobody has given: of SimpleNetworkBuilder, of NDL, of operands in BrainScript."""

_EMPTY = re.compile(r"^(_+|x|y|z?_|arrayOfFunctions\[\d+\]|value|result|apply|out)$")
"""Parts of a name of BrainScript that say nothing."""

_OF_LIBRARY = re.compile(r"^(h|z|node|input|cond|data\d*|dataPadded|elseVal|onesLikeIn|isLast|x0|r|p|v)$")
"""Parts of a name inside of functions of BrainScript's library that say less than the parts before them."""

_PYTHON = (
    *("elementdivide", "splice", "reducemean", "reducesum", "relu", "sigmoid", "tanh", "minus", "plus", "times"),
    *("dense", "embedding", "dropout", "maxpooling", "averagepooling"),
)
"""Names, in lower case, that functions and layers of Python give their results."""

MEANINGFUL = 2
"""Parts of a name that somebody has given in a network: the variable, and one inside of it."""

RESERVED = {*keyword.kwlist, *dir(builtins), "self", "math", "mask", "t", "l"}
"""Names that no value can have."""


def snake(text: str) -> str:
    """Return a text as a name of Python in lower case; empty if nothing of it is left."""
    text = re.sub(r"[^0-9A-Za-z_]+", "_", text)
    text = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", text)
    text = re.sub(r"_+", "_", text).strip("_").lower()
    if text[:1].isdigit():
        text = f"x{text}"
    return f"{text}_" if text in RESERVED else text


def given_name(node: Node) -> str:
    """Return the name that somebody gave a node, as Python writes it; empty if nobody did."""
    if _GENERATED.search(node.name.rsplit(".", 1)[-1]) or (node.inputs and _is_operation(node)):
        return ""
    if "." not in node.name:
        return snake(node.name)
    parts = [part for part in node.name.split(".") if not _EMPTY.match(part) and not _GENERATED.search(part)]
    if not parts:
        return ""
    if _EMPTY.match(node.name.rsplit(".", 1)[-1]):
        return ""  # a step on the way to something with a name
    while len(parts) > MEANINGFUL and _OF_LIBRARY.match(parts[-1]):
        parts.pop()
    return snake(re.sub(r"\[\d+\]$", "", parts[-1]))


def _is_operation(node: Node) -> bool:
    """Return whether a name is that of the operation, perhaps with a number, as functions of Python have it."""
    name = node.name.rstrip("_0123456789").lower()
    return name in (node.operation.lower(), *(alias.lower() for alias in node.kind.names), *_PYTHON)


def class_name(text: str) -> str:
    """Return a text as the name of a class."""
    return "".join(part.capitalize() for part in snake(text).split("_") if part) or "Network"


class Names:
    """Names of one scope; each is given once.

    Args:
        taken: names of the scope.
        reserved: names of the file.
    """

    def __init__(self, taken: Iterable[str] = (), reserved: Iterable[str] = ()) -> None:
        self.taken, self._reserved = set(taken), RESERVED.union(reserved)

    def take(self, hint: str) -> str:
        """Return the hint, with a number behind it if it is taken."""
        hint = hint if hint and hint not in self._reserved else f"{hint or 'x'}_"
        name, count = hint, 2
        while name in self.taken:
            name, count = f"{hint}{'_' if hint[-1].isdigit() else ''}{count}", count + 1
        self.taken.add(name)
        return name

    def take_exactly(self, name: str) -> str:
        """Return a name that is reserved for this use, with a number behind it if it is taken."""
        result, count = name, 2
        while result in self.taken:
            result, count = f"{name}_{count}", count + 1
        self.taken.add(result)
        return result
