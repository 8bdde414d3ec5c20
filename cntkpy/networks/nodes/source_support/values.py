"""Values in the code that is written.

A value has `lead` leading axes: 2 are batch and steps, 1 is the batch, 0: it is the same for all samples. Behind them
come the axes of a sample in the reverse order of CNTK, which is the order of memory.
"""

from __future__ import annotations

import math
import re
from typing import NamedTuple

import numpy as np

from cntkpy.networks.graph.axes import ONE
from cntkpy.networks.graph.node import Node

Dims = tuple[int, ...]

CHOICE, SUM, PRODUCT, ATOM = range(4)
"""Levels of expressions, the loosest first: an operand of a product needs at least PRODUCT."""

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

    def __format__(self, spec: str) -> str:
        """Return the text."""
        return self.text

    @property
    def atom(self) -> str:
        """The text as something that a method can be called of."""
        return self.at(ATOM)

    @property
    def is_name(self) -> bool:
        """True if the text is a name, an attribute of `self`, or a parameter."""
        return re.fullmatch(r'(self\.)?\w+|(params|state)(\["\w+"\])+', self.text) is not None


def dims_of(node: Node) -> Dims:
    """Return the sizes of a node's sample axes in the code: a column of CNTK is a vector."""
    shape = node.shape or ()
    if len(shape) == 2 and shape[1] == 1:
        shape = shape[:1]
    return tuple(reversed(shape))


def lead_of(node: Node, along_time: bool) -> int:
    """Return the number of leading axes of a node's value."""
    if not node.has_layout:
        return 0
    return 2 if along_time and node.axis != ONE else 1


def number(value: float) -> str:
    """Return a number as Python writes it, without digits that single precision lacks."""
    if math.isinf(value) or math.isnan(value):
        return f'float("{value}")'
    single = np.float32(value)
    return str(single) if float(single) == value else repr(float(value))


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


def with_ones(value: Value, dims: Dims) -> str:
    """Return the text of a value with other sample axes that have one element more or less; empty: they differ."""
    lead, entry = value.lead, value.dims
    if lead and dims == (1,) * (len(dims) - len(entry)) + entry:
        return f"{value.atom}[{', '.join([':'] * lead + ['None'] * (len(dims) - len(entry)))}]"
    if lead and entry == (1,) * (len(entry) - len(dims)) + dims and len(entry) == len(dims) + 1:
        return f"{value.atom}.squeeze({lead})"
    return ""
