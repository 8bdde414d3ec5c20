"""A model of ONNX as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np


class Unreadable(NamedTuple):
    """An initialiser or attribute whose type is not supported; an operator that takes it is refused.

    Attributes:
        why: what its elements are.
    """

    why: str


@dataclass(frozen=True)
class Input:
    """An input of a graph.

    Attributes:
        name: of the value.
        sizes: a number, or a word where it varies; None: nothing is said about them.
        dtype: of its elements.
    """

    name: str
    sizes: tuple[int | str, ...] | None
    dtype: np.dtype[Any]

    @property
    def integer(self) -> bool:
        """Return whether its elements are integers."""
        return self.dtype.kind in "iu"


@dataclass
class Operator:
    """One operator.

    Attributes:
        kind: its name.
        domain: of the name; empty for those of ONNX.
        name: its own, for messages.
        inputs, outputs: names of values.
        attributes: numbers, texts, lists, arrays and graphs.
    """

    kind: str
    domain: str
    name: str
    inputs: list[str]
    outputs: list[str]
    attributes: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def key(self) -> str:
        """Its name, after that of its domain if it is none of ONNX itself."""
        return self.kind if self.domain in DEFAULT_DOMAINS else f"{self.domain}.{self.kind}"

    def shown(self) -> str:
        """Return the operator in a message."""
        return f"{self.key} '{self.name or next((output for output in self.outputs if output), '')}'"

    @property
    def bodies(self) -> list[Model]:
        """The graphs inside of it."""
        return [attribute for attribute in self.attributes.values() if isinstance(attribute, Model)]


@dataclass
class Model:
    """A graph with its initialisers.

    Attributes:
        inputs: those without an initialiser.
        outputs: names of values.
        operators: each after those whose results it takes.
        initialisers: by name.
        opset: the version of the operators of ONNX; 0: the file has none of them.
        metadata: texts by name.
        size: bytes of the file and of the initialisers beside it.
    """

    inputs: list[Input]
    outputs: list[str]
    operators: list[Operator]
    initialisers: dict[str, np.ndarray | Unreadable]
    opset: int = 0
    metadata: Mapping[str, str] = field(default_factory=dict[str, str])
    size: int = 0


DEFAULT_DOMAINS = ("", "ai.onnx")
