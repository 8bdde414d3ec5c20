"""The argument of rules: a node whose code is written."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping

from cntkpy.networks.graph.node import Node
from cntkpy.networks.nodes.source_support.body import Body
from cntkpy.networks.nodes.source_support.values import ATOM, Dims, Value, aligned, dims_of


class Use:
    """A node whose code is written.

    Args:
        node: the node.
        values: those of its operands.
        body: takes lines that come before, and names of helpers.
        lead: how many leading axes the result has.

    Attributes:
        dims: the sizes of the result after the leading axes.
        options: of the node.
        layer: the name of the module that the code calls, if it calls one.
        call: makes the text of its call of that of the operand.
    """

    def __init__(self, node: Node, values: list[Value], body: Body, lead: int) -> None:
        self.node, self.values, self.body, self.lead = node, values, body, lead
        self.layer = ""
        self.call: Callable[[str], str] = lambda text: f"{self.layer}({text})"
        self.dims, self.options = dims_of(node), node.options

    def __getitem__(self, index: int) -> str:
        """Return the text of an operand as something that a method can be called of."""
        return self.values[index].atom

    def bound(self, index: int) -> str:
        """Return a name for an operand that the code mentions several times."""
        self.values[index] = self.body.bound(self.values[index])
        return self.values[index].text

    def value(self, text: str, dims: Dims | None = None, level: int = ATOM, lead: int | None = None) -> Value:
        """Make a value on the node's axis."""
        dims = self.dims if dims is None else dims
        return Value(text, self.lead if lead is None else lead, dims, level, self.node.axis)

    def helper(self, name: str) -> str:
        """Ask for a helper function of the module; return its name."""
        return self.body.helper(name)

    def say(self, word: str, *operands: object) -> str:
        """Return the framework's spelling of an operation; texts among the operands hold together."""
        spelling = self.body.dialect.words[word]
        if not isinstance(spelling, str):
            return spelling(self, *operands)
        for name in _CALLED.findall(spelling):
            if name in self.body.dialect.helpers:
                self.helper(name)
        return spelling.format(*(Value(item, 0, ()) if isinstance(item, str) else item for item in operands))

    # ---- shapes

    def reshaped(self, value: Value, dims: Dims) -> Value:
        """Return a value with other sample axes of as many elements."""
        if value.dims == dims or value.number is not None:
            return value
        return value._replace(text=self.body.dialect.reshape(self.body.bound, value, dims), dims=dims, level=ATOM)

    def flat(self, index: int = 0) -> Value:
        """Return an operand with all its sample axes joined."""
        value = self.values[index]
        return self.reshaped(value, (math.prod(value.dims),))

    def full(self, index: int = 0) -> Value:
        """Return an operand with as many sample axes as the node has in CNTK."""
        source = self.node.input(index)
        return self.reshaped(self.values[index], tuple(reversed(source.shape or (1,))))

    def finished(self, value: Value) -> Value:
        """Return a value of the sizes of the node in CNTK with those that it has here."""
        return self.reshaped(value, self.dims)

    def aligned(self, rank: int | None = None) -> list[Value]:
        """Return the operands so that their axes meet when they are broadcast."""
        lead = max((value.lead for value in self.values), default=0)
        rank = max((len(value.dims) for value in self.values), default=0) if rank is None else rank
        return [aligned(value, lead, rank) for value in self.values]

    def broadcast(self, values: list[Value]) -> Dims:
        """Return the sample axes of the result of an elementwise function."""
        rank = max((len(value.dims) for value in values), default=0)
        padded = [(1,) * (rank - len(value.dims)) + value.dims for value in values]
        return tuple(max(sizes) for sizes in zip(*padded, strict=True))

    # ---- sequences

    def mask(self, index: int | None = None) -> str:
        """Return the name of the mask of the axis that the node, or an operand, is on."""
        return self.body.mask(self.node.axis if index is None else self.node.input(index).axis)

    def real(self, value: Value, source: Node) -> Value:
        """Return a value of which sums over all leading axes leave out the padding of sequences."""
        if value.lead != 2:
            return value
        return value._replace(text=self.say("real", value, self.body.mask(source.axis)), lead=1, level=ATOM)


_CALLED = re.compile(r"(?<![\w.])(\w+)\(")
"""Functions that a template calls."""

Rule = Callable[[Use], "Value | str"]
Rules = Mapping[str, Rule]
