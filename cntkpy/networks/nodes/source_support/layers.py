"""Layers: modules of PyTorch that nodes of a network are together, and the units that code is made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from cntkpy.networks.graph.node import Node
from cntkpy.networks.nodes.source_support.use import Use
from cntkpy.networks.nodes.source_support.values import Value

Arrange = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Joined:
    """A tensor whose elements are those of several parameters.

    Args:
        sources: the parameters.
        index: for each element of the tensor, its place among the elements of all parameters in the order of memory;
            -1: it is none of them.
    """

    sources: tuple[Node, ...]
    index: np.ndarray

    def arrange(self, arrays: Sequence[np.ndarray]) -> np.ndarray:
        """Return the tensor of the values of the parameters; 0 in the place of other elements."""
        every = np.concatenate([np.zeros(1), *(np.ravel(array) for array in arrays)])
        return every[self.index + 1]

    @property
    def known(self) -> np.ndarray:
        """Mask of the elements that are those of parameters."""
        return self.index >= 0


@dataclass(frozen=True)
class Tensor:
    """A parameter or buffer of the written module.

    Args:
        array: its value.
        source: the parameter of the network that it is; None: it is made of several.
        arrange: makes the tensor of that parameter's value, in the order of memory; it is linear.
        joined: what it is made of, if these are several parameters.
        buffer: whether it is a buffer of the module, which no training changes by a gradient.
    """

    array: np.ndarray
    source: Node | None = None
    arrange: Arrange | None = None
    joined: Joined | None = None
    buffer: bool = False


@dataclass
class Layer:
    """A module of PyTorch.

    Args:
        hint: what its name is made of where the network has none.
        module: the class.
        arguments: names and values of arguments; a name that is empty, or begins with `*`, is not written.
        tensors: by name in the module, its parameters and buffers.
        note: what the README says of it.
        recurrent: whether it looks along time.
        of_call: more names and values of arguments where layers are functions.
    """

    hint: str
    module: str
    arguments: list[tuple[str, str]]
    tensors: dict[str, Tensor] = field(default_factory=dict[str, Tensor])
    note: str = ""
    recurrent: bool = False
    of_call: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])

    @property
    def signature(self) -> tuple[str, tuple[str, ...]]:
        """Return the key that layers at the same place of equal blocks share."""
        return (self.module, tuple(name for name, _ in self.arguments))

    def text(self) -> str:
        """Return the call of the class, with marks around the sizes."""
        parts: list[str] = []
        for name, value in self.arguments:
            shown = f"«{name.lstrip('*')}={value}»"
            parts.append(shown if name.startswith("*") else f"{name}={shown}")
        return f"{self.module}({', '.join(parts)})"


@dataclass(frozen=True)
class State:
    """The state of a recurrent layer.

    Args:
        backwards: whether the layer runs from the last step to the first.
        size: elements of the state.
        initial: what each of its arrays is full of before the first step.
    """

    backwards: bool
    size: int
    initial: tuple[float, ...]


@dataclass
class Unit:
    """A part of the code: one or a few statements.

    Args:
        outputs: its results.
        operands: the nodes that it reads.
        code: writes it; one value for each output.
        layer: the module that it calls.
        loop: the nodes of a loop, whose class is written from them.
        covered: other nodes that are a part of it.
        state: of a recurrent layer.
    """

    outputs: list[Node]
    operands: list[Node]
    code: Callable[[Use], list[Value]]
    layer: Layer | None = None
    loop: list[Node] = field(default_factory=list[Node])
    covered: list[Node] = field(default_factory=list[Node])
    state: State | None = None

    @property
    def node(self) -> Node:
        """The first result."""
        return self.outputs[0]
