"""Copying and renaming nodes (docs/specification/networks.md E.4)."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable
from dataclasses import dataclass

from cntkpy.cntk_config.base.lazy_modules import np
from cntkpy.networks.builders.ndl.text import Place, error
from cntkpy.networks.graph.network import Network, Node
from cntkpy.networks.mel.models import Reference

NODE_NAME = re.compile(r"[\w.\-]+(\[[0-9]+\][\w.\-]*)*")
"""Node names of NDL and of BrainScript: `z.x.PlusArgs[0]`."""


@dataclass(frozen=True)
class Pair:
    """A node and the name that its copy, or itself, is to get in a network."""

    source: Node
    network: Network
    name: str

    @property
    def target(self) -> Node | None:
        """The node that has this name already."""
        return self.network.nodes.get(self.name)


def pairs(source: Reference, target: Reference, place: Place) -> list[Pair]:
    """Return the names that the nodes of `source` get by `target`: the text that the `*` stands for is kept."""
    matches = source.matches()
    if not matches:
        raise source.unknown()
    network = target.model.network
    if target.wild and not source.wild:
        existing = target.matches()
        if not existing:
            raise target.unknown()
        return [Pair(matches[0], network, node.name) for node in existing if node is not matches[0]]
    if not source.wild:
        result = [Pair(matches[0], network, target.pattern)]
    else:
        ends, new_ends = source.ends, target.ends if target.wild else None
        if new_ends is None or any(bool(a) != bool(b) for a, b in zip(ends, new_ends, strict=True)):
            message = (
                f"the patterns '{source.word.text}' and '{target.word.text}' do not agree: both must have a '*', "
                "and text on the same sides of it"
            )
            raise error("BadPattern", message, target.word.place)
        head, tail = new_ends
        result = [Pair(node, network, f"{head}{source.middle(node)}{tail}") for node in matches]
    for pair in result:
        if not NODE_NAME.fullmatch(pair.name) and pair.target is None:
            raise error("InvalidName", f"'{pair.name}' cannot be the name of a node", target.word.place)
    _check_distinct(result, place)
    return result


def copy_nodes(wanted: list[Pair], values_only: bool, place: Place) -> None:
    """Copy nodes.

    Args:
        wanted: what to copy where. A target that exists must have the same operation; it is overwritten.
        values_only: targets must exist and keep their inputs. Otherwise new nodes are made as needed, and the inputs of
            each copy are the copies of the inputs made by the same command; other inputs are left empty.
        place: the command, for messages.
    """
    _check_distinct(wanted, place)
    for pair in wanted:
        target = pair.target
        if target is pair.source:
            raise error("BadCopy", f"'{pair.source.name}' cannot be copied onto itself", place)
        if target is not None and target.kind is not pair.source.kind:
            message = (
                f"{pair.source.operation} '{pair.source.name}' cannot be copied to {target.operation} "
                f"'{target.name}': the operations differ"
            )
            raise error("OperationMismatch", message, place)
        if target is None and values_only:
            message = f"there is no node '{pair.name}' to which the value of '{pair.source.name}' could be copied"
            raise error("UnknownNode", message, place, hint="copy=all makes new nodes")
    states = [_state(pair.source) for pair in wanted]
    links = [list(pair.source.inputs) for pair in wanted]
    copies: dict[Node, Node] = {}
    made: list[Node] = []
    for pair, state in zip(wanted, states, strict=True):
        node = pair.target
        if node is None:
            node = pair.network.add(pair.name, pair.source.kind, span=pair.source.span)
        elif not values_only and node.name != pair.name:
            pair.network.rename(node.name, pair.name)
        for name, value in state.items():
            setattr(node, name, value)
        made.append(node)
        copies.setdefault(pair.source, node)
    if not values_only:
        for node, inputs in zip(made, links, strict=True):
            node.inputs = [copies.get(i) if i is not None else None for i in inputs]


def rename_nodes(wanted: list[Pair], place: Place) -> None:
    """Give nodes new names; links and groups stay."""
    for pair in wanted:
        target = pair.target
        if target is not None and target is not pair.source:
            message = f"cannot rename '{pair.source.name}' to '{pair.name}': the model already has a node of that name"
            raise error("NodeExists", message, place)
    for pair in wanted:
        pair.network.rename(pair.source.name, pair.name)


def _check_distinct(wanted: Iterable[Pair], place: Place) -> None:
    taken: dict[str, Node] = {}
    for pair in wanted:
        other_node = taken.setdefault(pair.name.lower(), pair.source)
        if other_node is not pair.source:
            message = f"'{other_node.name}' and '{pair.source.name}' would both become '{pair.name}'"
            raise error("NodeExists", message, place)


def _state(node: Node) -> dict[str, object]:
    """Everything of a node that is neither its name nor a link, as a copy."""
    return {
        "options": copy.deepcopy(node.options),
        "shape": node.shape,
        "value": None if node.value is None else np.array(node.value),
        "init": copy.copy(node.init),
        "learning_rate_multiplier": node.learning_rate_multiplier,
        "computed": node.computed,
        "samples": node.samples,
    }
