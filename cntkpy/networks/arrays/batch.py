"""A minibatch as networks see it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from jaxtyping import Bool, Int32

Array = Any
"""NumPy's, JAX's, or one that is traced."""


class Grid(NamedTuple):
    """Layout of a minibatch's sequences on one time axis; the attributes are those of `Batch`."""

    mask: Bool[Array, "T S"]
    to_start: Int32[Array, "T S"] | None
    to_end: Int32[Array, "T S"] | None


class PackedGrid(NamedTuple):
    """Layout of N sequences on one of several time axes, with several sequences per slot.

    Attributes:
        mask, to_start, to_end: those of `Batch`.
        owner: the number of the sequence that a cell belongs to, 0 in gaps.
        first: the cell `t * S + s` of the first step of each sequence.
        lengths: the steps of each sequence; 0: there is no such sequence.
    """

    mask: Bool[Array, "T S"]
    to_start: Int32[Array, "T S"]
    to_end: Int32[Array, "T S"]
    owner: Int32[Array, "T S"]
    first: Int32[Array, " N"]
    lengths: Int32[Array, " N"]


class Batch(NamedTuple):
    """A minibatch on T time steps and S slots.

    In a network with several time axes T is another on each. Each sequence has a slot of its own, the same on all axes;
    on the axes that `cntkpy.networks.graph.packing` names, several sequences may lie after each other in a slot of
    their grid.

    Attributes:
        inputs: by name of the input node: array `(T, S, ...)` (trailing axes in the flat order of the sample, any
            grouping; gap cells finite, best zero) or `Sparse`.
        mask: bool `(T, S)`, False in gaps; None when every cell is real.
        to_start: int32 `(T, S)`, distance of a cell from the first step of its sequence, -1 in gaps. None: every
            cell is a sequence of its own.
        to_end: the same to the last step.
        axes: a `Grid` or `PackedGrid` for each time axis of the inputs, by its name; None: there is only one axis. The
            other attributes are then those of the axis whose samples count (see
            `cntkpy.networks.graph.axes.main_axis`).
    """

    inputs: Mapping[str, Any]
    mask: Bool[Array, "T S"] | None = None
    to_start: Int32[Array, "T S"] | None = None
    to_end: Int32[Array, "T S"] | None = None
    axes: Mapping[str, Grid | PackedGrid] | None = None
