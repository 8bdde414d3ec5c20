"""Records of a CNTK model file, as plain data.

Both formats (`v1`, `v2`) become the same records: operations have the names and the order of inputs of the first
format, axes and shapes one form. `build` turns records into a network.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from cntkpy.networks.graph.shapes import Shape

DEFAULT_AXIS, BATCH_AXIS = "defaultDynamicAxis", "batch"
"""The usual sequence axis of the later format, and what is for none."""
HALF_NOTE = "its values of half precision become single precision"
WITHOUT = "in CNTK, save a model without it: combine ([a function in front of it]).save (file)"
"""Advice for operations without a counterpart."""


class BadFile(Exception):
    """The bytes are not what they should be.

    Attributes:
        at: offset in the file.
    """

    def __init__(self, message: str, position: int) -> None:
        super().__init__(message)
        self.at = position


class NotSupported(Exception):
    """A part of a model that this library cannot represent."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class Axis(NamedTuple):
    """An axis of a sample, or a set of axes.

    Attributes:
        kind: "static", "all static", "all", "sequence", "batch" or "end" (one past the last static axis).
        number: of a static axis, counted from 0, or from the end if negative.
    """

    kind: str
    number: int = 0

    def __str__(self) -> str:
        if self.kind != "static":
            return {"all static": "all static axes", "all": "all axes", "end": "the end"}.get(self.kind, self.kind)
        return str(self.number + 1) if self.number >= 0 else f"{-self.number} from the end"


@dataclass(frozen=True)
class Record:
    """One node of a file.

    Attributes:
        name: its name in the network.
        operation: the name of its operation in the first format.
        inputs: names of its inputs, in the order of the first format.
        attributes: what the file says of it; the keys of an operation are those that `build`'s rules read.
        shape: of a leaf; of a delay, where the file says it.
        value: elements of a leaf, the first axis fastest; any array of as many elements as its shape has.
        at: byte offset of its description.
        id: its identifier in the file, if another than the name.
        block: the block it comes from, as `Dense 'fc1'`.
    """

    name: str
    operation: str
    inputs: tuple[str, ...] = ()
    attributes: Mapping[str, Any] = field(default_factory=dict[str, Any])
    shape: Shape | None = None
    value: np.ndarray | None = None
    at: int = 0
    id: str = ""
    block: str = ""


@dataclass
class Records:
    """A whole file.

    Attributes:
        form: the format, for messages.
        precision: "float" or "double".
        shared_padding: whether automatic padding shares what a step leaves over between both ends (programs since the
            end of 2016), see `cntkpy.networks.nodes.images.geometry`.
        exact_axes: see `Network.validate`.
        records: by name, in the order of the file.
        groups: names of nodes by group of `cntkpy.networks.graph.network.GROUPS`.
        notes: what the user should know of it.
    """

    form: str
    precision: str
    shared_padding: bool
    exact_axes: bool
    records: dict[str, Record] = field(default_factory=dict[str, "Record"])
    groups: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    notes: list[str] = field(default_factory=list[str])
