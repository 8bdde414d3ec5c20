"""Target of a rule: one record of a model file, and the network under construction."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cntkpy.networks import nodes
from cntkpy.networks.graph import shapes
from cntkpy.networks.graph.axes import DEFAULT
from cntkpy.networks.graph.network import Network, Node
from cntkpy.networks.graph.shapes import Shape, ShapeProblem
from cntkpy.networks.nodes.declare import NodeKind
from cntkpy.networks.nodes.file_support.records import BadFile, Record, Records


@dataclass
class Refusal:
    """A record that has no counterpart here.

    Attributes:
        record: which.
        why: what of it, if not all of it.
        hint: what to do instead.
        shape_missing: it may only be refused because another one was.
    """

    record: Record
    why: str = ""
    hint: str = ""
    shape_missing: bool = False


class Refused(Exception):
    """Raised by a rule."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.why)
        self.refusal = refusal


@dataclass
class Target:
    """Target of a rule: one record, and the network under construction."""

    record: Record
    builder: Builder

    @property
    def attributes(self) -> dict[str, Any]:
        """Attributes of the record in the file."""
        return dict(self.record.attributes)

    @property
    def shared_padding(self) -> bool:
        """See `Records`."""
        return self.builder.records.shared_padding

    def refuse(self, why: str = "", hint: str = "") -> Refused:
        """Return the error for what has no counterpart."""
        return Refused(Refusal(self.record, why, hint))

    def inputs(self, low: int, high: int | None = None) -> list[Node]:
        """Return the nodes of the inputs, whose number is checked."""
        count = len(self.record.inputs)
        if not low <= count <= (low if high is None else high):
            raise BadFile(f"{self.record.operation} '{self.record.name}' has {count} inputs", self.record.at)
        return [self.builder.made[name] for name in self.record.inputs]

    def input_record(self, index: int) -> Record:
        """Return the record of an input."""
        return self.builder.records.records[self.record.inputs[index]]

    def shape(self, node: Node) -> Shape:
        """Return the shape of a node, which must be known at this point."""
        if shapes.incomplete(node.shape):
            raise Refused(Refusal(self.record, "the shape of its operand is not known", shape_missing=True))
        assert node.shape is not None
        return node.shape

    def constant(self, index: int) -> float | None:
        """Return the value of an input that is one number which training does not change."""
        record = self.input_record(index)
        frozen = record.operation == "LearnableParameter" and record.attributes["learningRateMultiplier"] == 0
        if not frozen or record.value is None or record.value.size != 1:
            return None
        return float(record.value.reshape(()))

    def kind(self, name: str, *options: str, inputs: int = 0) -> NodeKind | None:
        """Return the node kind of that name, if it is here, has these options and takes so many inputs."""
        kind = nodes.find(name)
        if kind is None or kind.unsupported or kind.makes:
            return None
        keys = {option.name for option in kind.options}
        keys |= {argument.name for signature in kind.signatures for argument in signature}
        most = kind.arity()[1]
        return kind if keys.issuperset(options) and (most is None or most >= inputs) else None

    def needed(self, name: str, *options: str, inputs: int = 0, why: str = "") -> NodeKind:
        """Return the node kind of that name.

        Raises:
            Refused: it is not here, or not in the form needed; `why` tells what the form is.
        """
        kind = self.kind(name, *options, inputs=inputs)
        if kind is None:
            known = nodes.find(name)
            hint = known.unsupported if known is not None and known.unsupported and not why else ""
            raise self.refuse(why, hint or "")
        return kind

    def add(
        self,
        kind: NodeKind | str,
        /,
        inputs: Iterable[Node] = (),
        suffix: str = "",
        shape: Shape | None = None,
        **options: object,
    ) -> Node:
        """Make a node for the record; with a suffix a further one."""
        return self.builder.add(self.record.name + suffix, kind, inputs, options, shape)

    def number(self, value: float, suffix: str) -> Node:
        """Return a constant of one element."""
        return self.constants((1,), value, suffix)

    def constants(self, shape: Shape, value: float, suffix: str = "") -> Node:
        """Return a parameter of equal elements that training does not change."""
        node = self.add("LearnableParameter", suffix=suffix, shape=shape)
        with np.errstate(over="ignore"):
            node.value = np.full(tuple(reversed(shape)), value, self.builder.network.dtype)
        return node

    def use_up(self, index: int) -> None:
        """Say that an input went into the options: its node is left out if nobody else needs it."""
        self.builder.used_up.add(self.record.inputs[index])


@dataclass
class Builder:
    """The network while it is made."""

    records: Records
    network: Network
    made: dict[str, Node] = field(default_factory=dict[str, "Node"])
    later: list[tuple[Node, str]] = field(default_factory=list["tuple[Node, str]"])
    """Delay nodes, and the records of their inputs."""
    refusals: list[Refusal] = field(default_factory=list["Refusal"])
    used_up: set[str] = field(default_factory=set[str])

    def add(
        self, name: str, kind: NodeKind | str, inputs: Iterable[Node], options: dict[str, object], shape: Shape | None
    ) -> Node:
        """Return a node with its shape, as far as that is known."""
        kind = nodes.operation(kind) if isinstance(kind, str) else kind
        node = self.network.add(name, kind, inputs, options, shape)
        if node.kind.time.delay:
            node.axis = DEFAULT
            return node
        if node.kind.layout == "inputs":
            node.axis = next((i.axis for i in node.connected if i.axis is not None), None)
        if node.kind.shape is not None and node.inputs:
            low, high = node.kind.arity()
            if low <= len(node.inputs) <= (high if high is not None else len(node.inputs)):
                try:
                    node.shape = node.kind.shape(node)
                except ShapeProblem:
                    node.shape = None
        return node
