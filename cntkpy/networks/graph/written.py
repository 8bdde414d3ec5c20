"""Names, order of operands and blocks that a program in Python gave to nodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, cast


class Written(NamedTuple):
    """Parts of a program that a model file keeps beside the operations; nothing is computed with them.

    Attributes:
        name: The name in the program, which several nodes may have; "" if there is none.
        operands: The names of the nodes that it was applied to, from left to right; () where their order is the node's.
        block: The number of the block in the network that it is a value of; None: of none.
        operation: The name of that block's operation.
        block_operands: The names of the nodes that the block was applied to.
        free: Which of its sizes only data say, as JSON; None: none.
        shown: The operation of CNTK 2 that it is the value of: `operation`, `attributes`, names of its `operands`;
            None: its own.
    """

    name: str = ""
    operands: tuple[str, ...] = ()
    block: int | None = None
    operation: str = ""
    block_operands: tuple[str, ...] = ()
    free: Mapping[str, Any] | None = None
    shown: Mapping[str, Any] | None = None

    def as_json(self) -> dict[str, Any]:
        """Return it as a model file has it, without what is empty."""
        entry: dict[str, Any] = {"name": self.name}
        if self.operands:
            entry["operands"] = list(self.operands)
        if self.free is not None:
            entry["free"] = dict(self.free)
        if self.shown is not None:
            entry["shown"] = dict(self.shown)
        if self.block is not None:
            entry["block"] = {"number": self.block, "operation": self.operation, "operands": list(self.block_operands)}
        return entry

    @classmethod
    def of_json(cls, entry: object) -> Written | None:
        """Return the entry of a model file; None if there is none.

        Raises:
            TypeError: It is something else.
            KeyError: A part of it is missing.
        """
        if entry is None:
            return None
        parts = _mapping(entry)
        name, operands = _text(parts.get("name", "")), _texts(parts.get("operands", []))
        free = _mapping(parts["free"]) if "free" in parts else None
        shown = None
        if "shown" in parts:
            shown = _mapping(parts["shown"])
            _ = _text(shown["operation"]), _mapping(shown["attributes"]), _texts(shown["operands"])
        written = cls(name, operands, free=free, shown=shown)
        if "block" not in parts:
            return written
        block = _mapping(parts["block"])
        return written._replace(
            block=int(block["number"]), operation=_text(block["operation"]), block_operands=_texts(block["operands"])
        )


def _mapping(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TypeError(f"{value!r} is not a mapping")
    return cast("dict[str, Any]", value)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a text")
    return value


def _texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise TypeError(f"{value!r} is not a list")
    return tuple(map(_text, cast("list[object]", value)))
