"""Values in the code that is written, and what a rule gets to write the code of a node.

A value has `lead` leading axes: 2 are batch and steps, 1 is the batch, 0: it is the same for all samples. Behind them
come the axes of a sample in the reverse order of CNTK, which is the order of memory.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cntkpy.networks.graph.axes import ONE
from cntkpy.networks.graph.node import Node

if TYPE_CHECKING:
    from cntkpy.networks.source.body import Body

Dims = tuple[int, ...]

CHOICE, SUM, PRODUCT, ATOM = range(4)
"""How tightly the parts of an expression hold together: an operand of a product needs at least PRODUCT."""

LONGEST_INLINE = 56
"""Characters of an expression that stands inside of another one, at most."""

class NotExpressible(Exception):
    """A node has no code; the message says why."""


class Value(NamedTuple):
    """A value.

    Attributes:
        text: the expression.
        lead: how many leading axes it has.
        dims: the sizes of the other axes.
        level: how tightly the expression holds together.
        axis: the time axis it is on.
        number: of a constant of one element, its value.
    """

    text: str
    lead: int
    dims: Dims
    level: int = ATOM
    axis: str | None = None
    number: float | None = None

    def at(self, level: int) -> str:
        """Return the text, in parentheses if it holds together less tightly than `level`."""
        return self.text if self.level >= level else f"({self.text})"

    @property
    def atom(self) -> str:
        """The text as something that a method can be called of."""
        return self.at(ATOM)

    @property
    def is_name(self) -> bool:
        """Whether the text is a name or an attribute of `self`."""
        return re.fullmatch(r"(self\.)?\w+", self.text) is not None


def dims_of(node: Node) -> Dims:
    """Return the sizes of a node's sample axes in the code: a column of CNTK is a vector."""
    shape = node.shape or ()
    if len(shape) == 2 and shape[1] == 1:
        shape = shape[:1]
    return tuple(reversed(shape))


def lead_of(node: Node, along_time: bool) -> int:
    """Return how many leading axes the value of a node has."""
    if not node.has_layout:
        return 0
    return 2 if along_time and node.axis != ONE else 1


def number(value: float) -> str:
    """Return a number as Python writes it, without digits that single precision lacks."""
    if math.isinf(value) or math.isnan(value):
        return f'float("{value}")'
    short = str(np.float32(value))
    return short if np.float32(value) == value else repr(float(value))


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
    """

    def __init__(self, node: Node, values: list[Value], body: Body, lead: int) -> None:
        self.node, self.values, self.body, self.lead = node, values, body, lead
        self.layer = ""
        self.dims, self.options = dims_of(node), node.options

    def __getitem__(self, index: int) -> str:
        """The text of an operand as something that a method can be called of."""
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

    # ---- shapes

    def reshaped(self, value: Value, dims: Dims) -> Value:
        """Return a value with other sample axes of as many elements."""
        if value.dims == dims or value.number is not None:
            return value
        return value._replace(text=_reshape(value, dims), dims=dims, level=ATOM)

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
        """Return a value with one leading axis: all frames, or all steps of all sequences that are no padding."""
        if value.lead != 2:
            return value
        return value._replace(text=f"{value.atom}[{self.body.mask(source.axis)}]", lead=1, level=ATOM)


def aligned(value: Value, lead: int, rank: int) -> Value:
    """Return a value whose axes meet those of one with `lead` leading axes and `rank` others."""
    missing = rank - len(value.dims)
    if value.number is not None or not value.lead or (value.lead == lead and missing <= 0):
        return value
    dims = (1,) * missing + value.dims
    if value.lead == lead and value.dims == (1,) * len(value.dims):
        pass  # one element is put behind as well as in front
    index = [":"] * value.lead + ["None"] * (lead - value.lead + max(missing, 0))
    return value._replace(text=f"{value.atom}[{', '.join(index)}]", lead=lead, dims=dims, level=ATOM)


def _reshape(value: Value, dims: Dims) -> str:
    lead, own = value.lead, value.dims
    size = math.prod(own)
    if lead and dims == (size,) and len(own) > 1:
        return f"{value.atom}.flatten({lead})"
    if lead and dims == (1,) * (len(dims) - len(own)) + own:
        return f"{value.atom}[{', '.join([':'] * lead + ['None'] * (len(dims) - len(own)))}]"
    if lead and own == (1,) * (len(own) - len(dims)) + dims and len(own) == len(dims) + 1:
        return f"{value.atom}.squeeze({lead})"
    if len(own) == 1 and len(dims) > 1 and lead:
        return f"{value.atom}.unflatten({lead}, {dims})"
    sizes = ", ".join(map(str, dims)) or "()"
    if lead == 0:
        return f"{value.atom}.reshape({sizes})"
    if lead == 1:
        return f"{value.atom}.reshape(-1, {sizes})"
    return f"{value.atom}.flatten(2).unflatten(2, {dims})" if len(own) > 1 else f"{value.atom}.unflatten(2, {dims})"


Rule = Callable[[Use], "Value | str"]
Rules = Mapping[str, Rule]


def along(value: Value, axis: int) -> int:
    """Return the dimension of the tensor that is axis `axis` of CNTK, counted from 1: counted from the end."""
    if axis > len(value.dims):
        raise NotExpressible(f"axis {axis} does not exist")
    return -axis


