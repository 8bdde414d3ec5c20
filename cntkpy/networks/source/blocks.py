"""Repeated blocks: units that come several times in the same form become the uses of one class."""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple, cast

from cntkpy.networks.graph.node import Node
from cntkpy.networks.nodes.source_support.layers import Unit
from cntkpy.networks.nodes.source_support.values import dims_of
from cntkpy.networks.source.graph import Graph

Span = tuple[int, int]

LONGEST = 40
"""Units of a block, at most."""

SHORTEST = 3
"""Units of a block, at least."""

SAVED = 5
"""Units that a class must save."""

MOST_INPUTS = 3
"""Values that a block takes, at most."""


class Block(NamedTuple):
    """Units that are one use of a class.

    Attributes:
        units: in their order.
        operands: what they read from outside.
        output: the value that others read.
        residual: whether an operand is added to the result of layers.
    """

    units: list[Unit]
    operands: list[Node]
    output: Node
    residual: bool


Signature = tuple[Hashable, ...]
"""Description that equal blocks share."""


class _Places:
    """The units of a class, and how the nodes that they read are reached."""

    def __init__(self, graph: Graph, units: list[Unit]) -> None:
        self.graph, self.units = graph, units
        self.made = {node: place for place, unit in enumerate(units) for node in unit.outputs}
        self.outputs = {graph.canonical(node) for node in graph.outputs}
        self.last_use: dict[Node, int] = {}
        for place, unit in enumerate(units):
            for node in unit.operands:
                self.last_use[node] = place
        self.kinds = [_own_signature(graph, unit) for unit in units]

    def signature(self, begin: int, end: int) -> Signature | None:
        """Return the key that equal blocks share; None if these units are no block."""
        outside: dict[Node, int] = {}
        parts: list[Hashable] = []
        for place in range(begin, end):
            unit = self.units[place]
            if self.kinds[place] is None:
                return None
            reads: list[Hashable] = []
            for node in unit.operands:
                made = self.made.get(node)
                if made is not None and begin <= made < end:
                    reads.append(("made", made - begin))
                elif self.graph.is_leaf(node):
                    reads.append(("leaf", self.graph.number(node), len(dims_of(node)), node.trainable))
                    if self.graph.number(node) is None and len(self.graph.users[node]) > 1:
                        return None
                else:
                    reads.append(("outside", outside.setdefault(node, len(outside)), len(dims_of(node))))
            parts.append((self.kinds[place], tuple(reads)))
        if len(outside) > MOST_INPUTS or not any(unit.layer is not None for unit in self.units[begin:end]):
            return None
        seen_later = [
            node
            for unit in self.units[begin:end]
            for node in unit.outputs
            if node in self.outputs or self.last_use.get(node, -1) >= end
        ]
        if seen_later != self.units[end - 1].outputs[:1]:
            return None
        return (len(outside), *parts)


def _own_signature(graph: Graph, unit: Unit) -> Signature | None:
    """Return the key that units at the same place of equal blocks share; None if the unit is in no block."""
    if unit.loop or len(unit.outputs) > 1 or not unit.node.has_layout:
        return None
    node = unit.node
    rank = len(dims_of(node))
    if unit.layer is not None:
        return (node.operation, unit.layer.signature, rank)
    if node.kind.pointwise and all(len(dims_of(item)) == rank or graph.is_leaf(item) for item in unit.operands):
        return (node.operation, repr(sorted(node.options.items(), key=str)), rank)
    sizes = tuple(dims_of(item) for item in (*unit.operands, node))
    return (node.operation, repr(sorted(node.options.items(), key=str)), sizes)


def chains(graph: Graph, parts: list[Unit | Block]) -> list[Unit | list[Block]]:
    """Return units, and lists of blocks of which each reads nothing but the one before, which nothing else reads."""
    result: list[Unit | list[Block]] = []
    outputs = {graph.canonical(node) for node in graph.outputs}
    for part in parts:
        if isinstance(part, Unit):
            result.append(part)
            continue
        last = result[-1] if result else None
        if isinstance(last, list) and part.operands == [last[-1].output] and last[-1].output not in outputs:
            inside = {node for unit in part.units for node in (*unit.outputs, *unit.covered)}
            if all(user in inside for user in graph.users[last[-1].output]):
                last.append(part)
                continue
        result.append([part])
    return result


def find_blocks(graph: Graph, units: list[Unit]) -> list[Unit | Block]:
    """Return the units, those of repeated blocks together."""
    ends: dict[int, int] = {}  # the first place of a block -> the place behind it
    search = _Search(graph, units)
    while members := search.best():
        for begin, end in members:
            ends[begin] = end
            search.covered[begin:end] = [True] * (end - begin)
    result: list[Unit | Block] = []
    place = 0
    while place < len(units):
        end = ends.get(place, place)
        result.append(units[place] if end == place else _block(graph, units[place:end]))
        place = max(end, place + 1)
    return result


class _Search:
    """The search for blocks among units.

    Attributes:
        covered: by unit, whether a block has it.
    """

    def __init__(self, graph: Graph, units: list[Unit]) -> None:
        self._units, self._places = units, _Places(graph, units)
        self._signatures: dict[Span, Signature | None] = {}
        self.covered = [False] * len(units)

    def best(self) -> list[Span]:
        """Return the spans of the block whose class saves most units; none: no class saves enough."""
        quality: tuple[int, bool] = (SAVED, False)
        result: list[Span] = []
        for length in range(min(LONGEST, len(self._units) // 2), SHORTEST - 1, -1):
            for signature, members in self._groups(length).items():
                saved = (len(members) - 1) * length - 2 * cast("int", signature[0])
                entry = (saved, self._units[members[0][0]].layer is not None)
                if len(members) > 1 and saved >= SAVED and (not result or entry > quality):
                    quality, result = entry, members
        return result

    def _groups(self, length: int) -> dict[Signature, list[Span]]:
        """Return the spans of `length` units by their signatures; spans of one signature do not overlap."""
        groups: dict[Signature, list[Span]] = {}
        for begin in range(len(self._units) - length + 1):
            span = (begin, begin + length)
            if any(self.covered[begin : begin + length]):
                continue
            if span not in self._signatures:
                self._signatures[span] = self._places.signature(*span)
            signature = self._signatures[span]
            if signature is not None:
                members = groups.setdefault(signature, [])
                if not members or members[-1][1] <= begin:
                    members.append(span)
        return groups


def _block(graph: Graph, units: list[Unit]) -> Block:
    made = {node for unit in units for node in unit.outputs}
    read = dict.fromkeys(node for unit in units for node in unit.operands)
    operands = [node for node in read if node not in made and not graph.is_leaf(node)]
    residual = any(unit.node.operation == "Plus" and unit.layer is None for unit in units)
    return Block(units, operands, units[-1].node, residual)


def block_name(block: Block) -> str:
    """Return the class name of a block."""
    shortcut = sum(unit.layer is not None and unit.layer.hint == "conv" for unit in block.units) > 2
    return ("ShortcutBlock" if shortcut else "ResidualBlock") if block.residual else "Block"
