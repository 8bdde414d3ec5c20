"""Bodies of the nodes of CNTK's first binary format: what their readers share.

A body has no length, so every operation that a file may have has a reader, also those that have no counterpart here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cntkpy.networks.nodes.file_support.primitives import Reader
from cntkpy.networks.nodes.file_support.records import Axis, BadFile

Attributes = dict[str, Any]


SHAPE, VALUE = "shape", "value"
"""Keys of the attributes that become fields of the record."""


LAYOUTS = {0: "HWC", 1: "CHW"}


PRECISIONS = {"half": 2, "float": 4, "double": 8}
"""Bytes of an element."""


@dataclass
class Body:
    """One body to be read."""

    reader: Reader
    version: int
    size: int
    """Bytes of an element."""
    operation: str
    name: str

    def next_node_follows(self, ahead: int) -> bool:
        """Return whether what is `ahead` bytes after the position looks like the next node, or the end of the list."""
        return any(self.reader.sees(word, ahead) for word in (*PRECISIONS, "ENodeList"))

    def bad(self, message: str) -> BadFile:
        """Return an error of this body."""
        return BadFile(f"{message} ({self.operation} '{self.name}')", self.reader.position)


BodyReader = Callable[[Body], Attributes]


def static_axis(body: Body, number: int) -> Axis:
    """Return an axis that is counted from 1."""
    if number < 1:
        raise body.bad(f"the axis {number} is not one of the sample")
    return Axis("static", number - 1)


def layout_of(body: Body, number: int) -> str:
    """Return the word for the number of an image layout."""
    if number not in LAYOUTS:
        raise body.bad(f"the image layout is {number}")
    return LAYOUTS[number]


def text_body(key: str, since: int = 1) -> BodyReader:
    """Return a reader of one text, which is there since a version."""
    return lambda body: {key: body.reader.text() if body.version >= since else ""}


def random_state(body: Body) -> Attributes:
    """The seed has 8 bytes; in version 16 it has 4 where the program ran on Windows."""
    r = body.reader
    if body.version < 16:
        return {}
    narrow = body.version == 16 and not body.next_node_follows(16) and body.next_node_follows(12)
    return {"seed": r.u32() if narrow else r.u64(), "offset": r.u64()}


def no_attributes(body: Body) -> Attributes:
    """Return the attributes of a node that holds nothing but its inputs."""
    return {}


def without_body(*operations: str) -> dict[str, BodyReader]:
    """Return the readers of operations whose nodes hold nothing but their inputs."""
    return dict.fromkeys(operations, no_attributes)
