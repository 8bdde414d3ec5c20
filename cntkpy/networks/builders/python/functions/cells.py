"""The values of parameters, which live as long as the functions that use them and belong to no network."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol
from weakref import ref

import numpy as np
from numpy.typing import NDArray

from cntkpy.networks.builders.brainscript.node_values import NodeValue


class Holder(Protocol):
    """An object that trains parameters and holds newer values of them than their cells."""

    def release(self) -> None:
        """Put the values into the cells."""
        ...


@dataclass
class Counter:
    """Sample count of the running statistics of a batch normalisation; copies that share the statistics share it.

    Attributes:
        samples: the number.
        users: the cells of the batch normalisations.
        constant: the constant whose value programs read; None before one does.
    """

    samples: int = 0
    users: list[Cell] = field(default_factory=list["Cell"])
    constant: NodeValue | None = None


@dataclass(eq=False)
class Cell:
    """The state of a node that training changes.

    Attributes:
        value: of a parameter, its array (of the reversed shape); None before its first use.
        counter: of batch normalisation, the samples seen in training.
        shows: of a constant, the counter whose number is its value.
        holder: what is training it.
        frozen: a parameter that is not trained any more.
        is_array: it started with an array that a program gave, so that its `Start` says nothing.
        dtype: of a leaf, the precision that it was made with; None: that of the network.
        alone: of a leaf without `dtype`, its precision in a network whose other leaves say nothing, either.
        copy: of a copy of a node, which has the path of that node, a number that no other copy has.
    """

    value: NDArray[Any] | None = None
    counter: Counter = field(default_factory=Counter)
    shows: Counter | None = None
    holder: Holder | None = None
    frozen: bool = False
    is_array: bool = False
    dtype: np.dtype[Any] | None = None
    alone: np.dtype[Any] | None = None
    copy: int = 0

    @property
    def samples(self) -> int:
        """Of batch normalisation, the samples seen in training."""
        return self.counter.samples

    @samples.setter
    def samples(self, number: int) -> None:
        self.counter.samples = number

    def use(self, counter: Counter) -> None:
        """Count samples together with other batch normalisations of the same running statistics."""
        self.counter = counter
        if self not in counter.users:
            counter.users.append(self)

    def show(self, counter: Counter, constant: NodeValue) -> None:
        """Have the number of a counter as value; it is the cell of this constant."""
        self.shows, counter.constant = counter, constant

    def start_with(self, array: NDArray[np.generic]) -> None:
        """Start with an array that a program gave."""
        self.value, self.is_array = array, True

    def current(self) -> NDArray[np.generic] | None:
        """Return the value, that of a training under way as well."""
        self.release()
        if self.shows is not None and self.value is not None:
            self.value = np.full_like(self.value, self.shows.samples)
        return self.value

    def release(self) -> None:
        """Take back from what is training it."""
        for cell in (self, *(self.shows.users if self.shows is not None else ())):
            if cell.holder is not None:
                cell.holder.release()

    def set_value(self, value: NDArray[np.generic]) -> None:
        """Give it another value; what is training it resumes from there."""
        self.release()
        self.holder = None
        self.value = np.array(value)
        if self.shows is not None:
            self.shows.samples = int(self.value.reshape(()))
            for cell in self.shows.users:
                cell.holder = None


@dataclass
class Changes:
    """Number of changes of options by programs; a model whose number is older reads the options again.

    Attributes:
        count: the number.
    """

    count: int = 0

    def add(self) -> None:
        """Count one change more."""
        self.count += 1


OPTIONS = Changes()

_CELL = "_cell"
"""The attribute of a node for its cell, and the node that it belongs to: a copy of the node has a cell of its own.

A dictionary with weak keys would keep nodes forever: their cells know what trains them, and that knows the nodes.
"""


def cell_of(node: NodeValue) -> Cell:
    """Return the cell of a node."""
    attributes = vars(node)
    owner, cell = attributes.get(_CELL, (None, None))
    if cell is None or owner() is not node:
        cell = Cell()
        attributes[_CELL] = ref(node), cell
    return cell
