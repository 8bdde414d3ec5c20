"""Copies of functions: `Function.clone` on nodes."""

# What programs give is of any type.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterable, Sequence

import numpy as np

from cntkpy.networks.builders.brainscript.node_values import NodeValue
from cntkpy.networks.builders.python.functions import calls, graph
from cntkpy.networks.builders.python.functions.blocks import keep_block
from cntkpy.networks.builders.python.functions.cells import Counter, cell_of
from cntkpy.networks.builders.python.functions.nodes import CASTS, INPUTS, has_value, is_input, ordered
from cntkpy.networks.builders.python.functions.per_sample import keep_criterion
from cntkpy.networks.builders.python.functions.recipes import Build, growing, is_recipe, keep_growing

_copies = itertools.count(1)


def copied_roots(
    roots: Sequence[NodeValue], order: Sequence[NodeValue], how: str, copies: dict[NodeValue, NodeValue]
) -> list[NodeValue]:
    """Copies of the roots of a function.

    Args:
        roots: The roots.
        order: What they depend on.
        how: "clone" copies parameters, "share" keeps them, "freeze" copies them and does not train them.
        copies: What is in the place of which nodes; the copies are added.
    """
    if how != "share":
        graph.give_seeds(roots, order)  # where shapes are not known, the same seeds
    grown = [node for node in order if growing(node) is not None]
    copies |= {node: _copied_parameter(node, True) for node in grown if node not in copies and has_value(node)}
    changed = _above(order, set(copies))
    for node in order:
        if node not in copies and (has_value(node) if how != "share" else False):
            copies[node] = _copied_parameter(node, how == "freeze")
    made: list[NodeValue] = []
    for node in order:
        if node in copies or has_value(node) or not (node in changed or how != "share"):
            continue
        if is_input(node) and how != "share":
            continue  # the copy has the same inputs
        copies[node] = _copied(node, how == "share")
        made.append(node)
        if is_recipe(node) and how != "share":
            copies[node].options["build"] = _of_copies(node.options["build"], copies, how == "freeze")
    for node in made:
        copies[node].inputs = tuple(copies.get(source, source) for source in calls.inputs_of(node))
        keep_criterion(copies[node], node, copies)
        keep_block(copies[node], node, copies)
    for node in filter(copies.__contains__, grown):
        keep_growing(copies[node], copies)
    return [copies.get(root, root) for root in roots]


def _above(order: Iterable[NodeValue], changed: set[NodeValue]) -> set[NodeValue]:
    """Return the changed nodes and all nodes of `order` that depend on them."""
    users: dict[NodeValue, list[NodeValue]] = {}
    for node in order if changed else ():
        for source in calls.inputs_of(node):
            users.setdefault(source, []).append(node)
    above = set(changed)
    waiting = list(above)
    while waiting:
        new = [user for user in users.get(waiting.pop(), ()) if user not in above]
        above.update(new)
        waiting += new
    return above


def _copied(node: NodeValue, shared: bool = False) -> NodeValue:
    """Return a copy of a node; `shared`: the running statistics of a batch normalisation are the same."""
    duplicate = copy.copy(node)
    duplicate.options = dict(node.options)
    if node in INPUTS:
        INPUTS[duplicate] = INPUTS[node]
    if node in CASTS:
        CASTS[duplicate] = CASTS[node]
    cell_of_node, cell = cell_of(node), cell_of(duplicate)
    cell_of_node.release()
    cell.dtype, cell.alone, cell.copy = cell_of_node.dtype, cell_of_node.alone, next(_copies)
    if shared:
        cell.use(cell_of_node.counter)
    else:
        cell.counter = Counter(cell_of_node.samples)
    return duplicate


def _copied_parameter(node: NodeValue, freeze: bool) -> NodeValue:
    duplicate = _copied(node)
    duplicate.start = copy.copy(node.start)
    cell, value = cell_of(duplicate), cell_of(node).current()
    cell.value, cell.frozen = None if value is None else np.array(value), freeze or cell_of(node).frozen
    cell.is_array = cell_of(node).is_array
    return duplicate


def _of_copies(build: Build, copies: dict[NodeValue, NodeValue], freeze: bool) -> Build:
    """Return a builder of the node of a recipe that copies the parameters which the recipe makes.

    Args:
        build: makes the node of the recipe that was copied.
        copies: the copies of nodes that were made so far; those of parameters are added.
        freeze: whether the copies are not trained.
    """

    def make(operands: tuple[NodeValue, ...]) -> NodeValue:
        made = build(operands)
        below = set(ordered(operands))
        inside = [node for node in ordered([made]) if node not in below]
        graph.give_seeds([made], inside)
        new = dict(copies)
        for node in inside:
            if node not in copies and has_value(node):
                new[node] = copies[node] = _copied_parameter(node, freeze)
                if node.start is not None and not cell_of(node).is_array:
                    cell_of(copies[node]).value = None  # the other may be trained by now
        inner = [node for node in inside if calls.inputs_of(node)]
        new |= {node: _copied(node) for node in inner}
        for node in inner:
            if is_recipe(node):
                new[node].options["build"] = _of_copies(node.options["build"], copies, freeze)
            new[node].inputs = tuple(new.get(source, source) for source in calls.inputs_of(node))
            keep_criterion(new[node], node, new)
            keep_block(new[node], node, new)
        return new.get(made, made)

    return make
