"""The lines of a function that is written: names, helpers, masks."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from cntkpy.networks.graph.axes import DEFAULT, ONE
from cntkpy.networks.graph.node import Node
from cntkpy.networks.nodes.source_support.dialect import Dialect
from cntkpy.networks.nodes.source_support.names import Names, given_name, snake
from cntkpy.networks.nodes.source_support.values import NotExpressible, Value

if TYPE_CHECKING:
    from collections.abc import Iterable

_PLAIN = ("x", "y", "u", "v")
"""Names of values without one."""


class Body:
    """Lines of one function.

    Args:
        dialect: the framework.
        names: of the function.
        helpers: names of helpers that the file needs; more are added.

    Attributes:
        plain: whether names of the network do not count.
        reserved: names that are kept for nodes.
        lines: the statements.
        masks: by time axis, the name of its mask; those that are asked for become arguments.
        asked: the time axes whose masks are arguments.
        mask_names: names of masks by time axis, where there are several axes.
        extras: other arguments that the function needs: `training`, `key`.
        draws: how many keys of random numbers were made.
        key_name: what these are made of.
        must_draw: whether the function cannot do without a key.
    """

    def __init__(self, dialect: Dialect, names: Names, helpers: set[str]) -> None:
        self.dialect, self.names, self.helpers = dialect, names, helpers
        self.plain = False
        self.lines: list[str] = []
        self.masks: dict[str, str] = {}
        self.mask_names: dict[str, str] = {}
        self.asked: dict[str, str] = {}
        self.extras: set[str] = set()
        self.draws, self.key_name, self.must_draw = 0, "key", False
        self.pending: dict[Node, Value] = {}
        self.reserved: dict[Node, str] = {}
        self._holders: dict[str, set[Node]] = {}
        self._left: dict[Node, int] = {}

    def count(self, uses: dict[Node, int]) -> None:
        """Set the numbers of remaining reads of values of nodes."""
        self._left = uses

    def read(self, node: Node) -> None:
        """Note that the code of a node's user is written."""
        if node in self._left:
            self._left[node] -= 1

    def line(self, text: str) -> None:
        """Add a statement."""
        self.lines.append(text)

    def name_for(self, hint: str | Node) -> str:
        """Return a new name; one without meaning may be that of a value which nobody reads any more."""
        if isinstance(hint, str):
            return self.names.take(hint)
        if hint in self.reserved:
            name = self.reserved[hint]
            self._holders[name] = {hint}
            return name
        stated = "" if self.plain else given_name(hint)
        if stated:
            name = self.names.take(stated)
        else:
            name = next((item for item in _PLAIN if self._free(item)), "") or self.names.take(_PLAIN[0])
            self.names.taken.add(name)
        self._holders[name] = {hint}
        return name

    def reserve(self, nodes: Iterable[Node]) -> None:
        """Keep the names of nodes for them."""
        for node in nodes:
            if node not in self.reserved and given_name(node):
                self.reserved[node] = self.names.take(given_name(node))

    def hold(self, name: str, node: Node) -> None:
        """Note another node whose value a name stands for: a node that changes nothing has the name of its operand."""
        self._holders.setdefault(name, set()).add(node)

    def _free(self, name: str) -> bool:
        if name not in self.names.taken:
            return True
        holders = self._holders.get(name)
        if not holders or any(self._left.get(node, 1) > 0 for node in holders):
            return False
        return not any(re.search(rf"(?<![\w.]){name}\b", value.text) for value in self.pending.values())

    def assign(self, text: str, hint: str | Node) -> str:
        """Add a statement that gives an expression a name; return the name."""
        name = self.name_for(hint)
        self.line(f"{name} = {text}")
        return name

    def assign_once(self, text: str, hint: str) -> str:
        """As `assign`; where a statement gives the same expression a name, return that name."""
        for line in self.lines:
            name, sign, value = line.partition(" = ")
            if sign and value == text and not mentioned_any(_PLAIN, text):
                return name
        return self.assign(text, hint)

    def drop_unused(self, names: Iterable[str]) -> None:
        """Leave out statements that give such names to values, where nothing else mentions the name."""
        for name in names:
            statement = next((line for line in self.lines if line.startswith(f"{name} = ")), None)
            if statement is not None and not mentioned(name, (line for line in self.lines if line is not statement)):
                self.lines.remove(statement)

    def bound(self, value: Value) -> Value:
        """Return a value that is a name."""
        if value.is_name:
            return value
        name = self.assign(value.text, "part")
        for node, pending in self.pending.items():
            if pending == value:
                self.pending[node] = value._replace(text=name, level=3)
        return value._replace(text=name, level=3)

    def pair(self, text: str, first: str, second: str) -> tuple[str, str]:
        """Add a statement that gives two results names."""
        names = self.names.take(first), self.names.take(second)
        self.line(f"{names[0]}, {names[1]} = {text}")
        return names

    def end_with(self, texts: list[str]) -> None:
        """Add the statement that ends the function; a value that only it reads has no name."""
        if len(texts) == 1 and self.lines and self.lines[-1].startswith(f"{texts[0]} = "):
            texts = [self.lines.pop().split(" = ", 1)[1]]
        self.line(f"return {', '.join(texts)}")

    def helper(self, name: str) -> str:
        """Note that the file needs a helper; return its name."""
        self.helpers.add(name)
        return name

    def extra(self, name: str) -> str:
        """Note that the function needs another argument; return its name."""
        self.extras.add(name)
        return name

    def key(self) -> str:
        """Return the text of a key of random numbers, another one each time."""
        self.draws += 1
        self.extra("key")
        return f"{self.helper('fold')}({self.key_name}, {self.draws})"

    def mask(self, axis: str | None) -> str:
        """Return the name of the mask of a time axis."""
        if axis in (None, ONE):
            raise NotExpressible("it looks at the steps of a sequence that has one")
        axis = str(axis)
        if axis not in self.masks:
            name = self.mask_names.get(axis) or ("mask" if axis == DEFAULT or not self.masks else f"{snake(axis)}_mask")
            self.masks[axis] = self.names.take_exactly(name)
            self.asked[axis] = self.masks[axis]
        return self.masks[axis]


def mentioned_any(names: Iterable[str], text: str) -> bool:
    """Return whether any of some names stands in a text."""
    return any(mentioned(name, [text]) for name in names)


def mentioned(name: str, texts: Iterable[str]) -> bool:
    """Return whether a name stands in any of some texts."""
    return any(re.search(rf"(?<![\w.]){re.escape(name)}\b", text) for text in texts)
