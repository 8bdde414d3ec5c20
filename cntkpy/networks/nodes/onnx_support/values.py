"""Values of an ONNX graph in a network.

A value that does not depend on the inputs is an array. The others are nodes; an axis that is one of a minibatch (batch
or time) has a word instead of a size. The other axes are those of the node's sample, in the order of memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from cntkpy.networks.graph.node import Node

Axis: TypeAlias = "int | str"
Axes: TypeAlias = "tuple[Axis, ...]"

VARYING = 1 << 52
"""From here on (negative), numbers stand for the sizes of axes of a minibatch: `int64` and `float64` have them."""

MOST_SIZES = 1 << 20
"""Sizes of axes of a minibatch and their products, at most."""


class Array(NamedTuple):
    """A value that is known.

    Attributes:
        value: the elements; sizes of axes of a minibatch are from `-VARYING` down, as int64 or float64.
        name: of the initialiser that it is; empty: it was computed, or is a constant.
        axes: sizes, or words for axes of a minibatch that it was expanded to, of which `value` has one element; empty:
            the sizes of `value`.
    """

    value: np.ndarray
    name: str = ""
    axes: Axes = ()


class Joined(str):
    """An axis that joins axes of a minibatch with each other or with some of a sample, the first one outermost.

    Attributes:
        atoms: words, and sizes of axes of the sample.
    """

    atoms: Axes

    def __new__(cls, atoms: Sequence[Axis]) -> Joined:
        """Join axes."""
        joined = super().__new__(cls, " x ".join(map(str, atoms)))
        joined.atoms = tuple(atoms)
        return joined


class Data(NamedTuple):
    """A value that depends on the inputs.

    Attributes:
        node: in the network.
        axes: sizes, or words for axes of a minibatch.
    """

    node: Node
    axes: Axes

    @property
    def dims(self) -> tuple[int, ...]:
        """The sizes of the sample's axes, in the order of memory."""
        parts = [axis.atoms if isinstance(axis, Joined) else (axis,) for axis in self.axes]
        return tuple(size for part in parts for size in part if isinstance(size, int))

    @property
    def words(self) -> tuple[str, ...]:
        """The axes of the minibatch."""
        return tuple(axis for axis in self.axes if isinstance(axis, str))

    def sample_axis(self, axis: int) -> int:
        """Return the axis of the sample, counted from 1 as networks do, that axis `axis` (or a negative one) is.

        Raises:
            Unusable: it is one of the minibatch.
        """
        index = axis + len(self.axes) if axis < 0 else axis
        if not 0 <= index < len(self.axes):
            raise Unusable(f"there is no axis {axis}")
        if isinstance(self.axes[index], str):
            raise Unusable(f"axis {axis} is '{self.axes[index]}', one of the minibatch")
        return sum(isinstance(axis, int) for axis in self.axes[index:])


class Longer(NamedTuple):
    """Data with further steps before or behind each sequence, of which a Slice takes as many away at the other end.

    Attributes:
        data: the value without them.
        edge: the further steps.
        steps: how many there are.
        before: whether they are before the sequence.
    """

    data: Data
    edge: Array
    steps: int
    before: bool


class Scores(NamedTuple):
    """Products of two values along time, or their softmax, which become nodes together with what follows.

    Attributes:
        query: (..., steps, elements).
        keys: (..., elements, steps).
        scale: of the products.
        shares: whether the softmax over the steps of the keys was taken.
    """

    query: Data
    keys: Data
    scale: float = 1.0
    shares: bool = False

    @property
    def axes(self) -> Axes:
        """Sizes, or words for axes of a minibatch."""
        return (*self.query.axes[:-1], self.keys.axes[-1])


class Sums(NamedTuple):
    """Sums of two values along time, or what follows of additive attention, which become a node together.

    Attributes:
        query: (steps, 1, batch, elements).
        keys: (1, steps, batch, elements).
        stage: the last operator: "sums", "tanh", "scores", "shares" or "weighted".
        weights: of the scores.
        values: (1, steps, batch, elements), whose mean is taken.
    """

    query: Data
    keys: Data
    stage: str = "sums"
    weights: Array | None = None
    values: Data | None = None

    @property
    def axes(self) -> Axes:
        """Sizes, or words for axes of a minibatch."""
        last = self.values.axes[3] if self.values else self.keys.axes[3] if self.stage in ("sums", "tanh") else 1
        return (self.query.axes[0], *self.keys.axes[1:3], last)


class Step(NamedTuple):
    """The number of the step in a loop over time.

    Attributes:
        offset: what was added to it.
        holds: whether it was compared with the number of steps: true at every step.
    """

    offset: int = 0
    holds: bool = False


Value: TypeAlias = "Array | Data | Longer | Scores | Step | Sums"


class Unusable(Exception):
    """Why an operator cannot become nodes."""


def varying(value: np.ndarray) -> bool:
    """Return whether some elements stand for sizes of axes of a minibatch."""
    return value.dtype.name in ("int64", "float64") and bool(
        np.any((value <= -VARYING) & (value > -VARYING - MOST_SIZES))
    )
