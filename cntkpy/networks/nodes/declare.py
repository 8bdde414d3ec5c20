"""What the declarations of node kinds are written with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from cntkpy.networks.graph.node import (
    BOOLEAN,
    BOOLEANS,
    INTEGER,
    INTEGERS,
    NODE,
    PATH,
    REAL,
    SECTION,
    TEXT,
    Argument,
    NodeKind,
    Option,
    RecordForm,
    Signature,
    TimeRule,
    shown,
)

__all__ = [
    "BOOLEAN",
    "BOOLEANS",
    "EXAMPLE_NODES",
    "INTEGER",
    "INTEGERS",
    "NODE",
    "PATH",
    "REAL",
    "SECTION",
    "TEXT",
    "Argument",
    "NodeKind",
    "Operators",
    "Option",
    "RecordForm",
    "Signature",
    "TimeRule",
    "Use",
    "inputs",
    "shown",
    "unchanged",
]

EXAMPLE_NODES = """\
x = Input(4, tag=feature)
y = Input(4)
labels = Input(3, tag=label)
words = SparseInput(10)
picture = ImageInput(8, 6, 3, imageLayout=CHW)
W = Parameter(3, 4)
b = Parameter(3, 1)
z = Plus(Times(W, x), b)
"""
"""The nodes that the examples of kinds name, in the network description language."""


class Operators(Protocol):
    """The graph of ONNX that a rule of export adds operators to; each method returns the name of a value."""

    def op(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """Add an operator with one result."""
        ...

    def cast(self, value: str) -> str:
        """Convert a value to the element type of the model."""
        ...

    def real(self, value: float) -> str:
        """Add a number of the element type of the model."""
        ...


class Use(Protocol):
    """A node to be exported: `cntkpy.networks.onnx.use.Use`, as far as rules in this package need it."""

    @property
    def emit(self) -> Operators:
        """The graph."""
        ...

    @property
    def options(self) -> Mapping[str, Any]:
        """The node's options."""
        ...

    @property
    def names(self) -> list[str]:
        """The names of the operands."""
        ...

    def aligned(self) -> list[str]:
        """Return the names of the operands with equal numbers of axes."""
        ...

    def row(self) -> tuple[str, tuple[int, ...]]:
        """Return the first operand with all its elements on the last axis, and its sizes then."""
        ...

    def shaped(self, name: str, dims: tuple[int, ...]) -> str:
        """Give a value of sizes `dims` the sizes of the result."""
        ...


def unchanged(use: Use) -> str:
    """Return the first operand itself: the rule of export of a node that changes nothing."""
    return use.names[0]


def inputs(*names: str) -> Signature:
    """A signature of input nodes only."""
    return tuple(Argument(name) for name in names)
