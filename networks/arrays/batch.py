"""A minibatch as networks see it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class Batch(NamedTuple):
    """A minibatch on T time steps and S slots.

    Attributes:
        inputs: by name of the input node: array `(T, S, ...)` (trailing axes in the flat order of the sample, any
            grouping; gap cells finite, best zero) or `Sparse`.
        mask: bool `(T, S)`, False in gaps; None when every cell is real.
        to_start: int32 `(T, S)`, distance of a cell from the first step of its sequence, -1 in gaps. None: every
            cell is a sequence of its own.
        to_end: the same to the last step.
    """

    inputs: Mapping[str, Any]
    mask: Any = None
    to_start: Any = None
    to_end: Any = None
