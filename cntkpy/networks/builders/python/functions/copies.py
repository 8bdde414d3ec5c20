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
from cntkpy.networks.builders.python.functions.recipes import Build, is_recipe

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
    changed = _above(order, set(copies))
    for one in order:
        if one not in copies and (has_value(one) if how != "share" else False):
            copies[one] = _copied_parameter(one, how == "freeze")
    made: list[NodeValue] = []
    for one in order:
        if one in copies or has_value(one) or not (one in changed or how != "share"):
            continue
        if is_input(one) and how != "share":
            continue  # the copy has the same inputs
        copies[one] = _copied(one, how == "share")
        made.append(one)
        if is_recipe(one) and how != "share":
            copies[one].options["build"] = _of_copies(one.options["build"], copies, how == "freeze")
    for one in made:
        copies[one].inputs = tuple(copies.get(source, source) for source in calls.inputs_of(one))
        keep_criterion(copies[one], one, copies)
        keep_block(copies[one], one, copies)
    return [copies.get(one, one) for one in roots]


def _above(order: Iterable[NodeValue], changed: set[NodeValue]) -> set[NodeValue]:
    """What depends on some nodes."""
    found = set(changed)
    nodes = list(order)
    growing = bool(found)
    while growing:
        growing = False
        for one in nodes:
            if one not in found and any(source in found for source in calls.inputs_of(one)):
                found.add(one)
                growing = True
    return found


def _copied(node: NodeValue, shared: bool = False) -> NodeValue:
    """A copy of a node; `shared`: the running statistics of a batch normalisation are the same."""
    found = copy.copy(node)
    found.options = dict(node.options)
    if node in INPUTS:
        INPUTS[found] = INPUTS[node]
    if node in CASTS:
        CASTS[found] = CASTS[node]
    own, cell = cell_of(node), cell_of(found)
    own.release()
    cell.dtype, cell.alone, cell.copy = own.dtype, own.alone, next(_copies)
    if shared:
        cell.use(own.counter)
    else:
        cell.counter = Counter(own.samples)
    return found


def _copied_parameter(node: NodeValue, freeze: bool) -> NodeValue:
    found = _copied(node)
    found.start = copy.copy(node.start)
    cell, value = cell_of(found), cell_of(node).current()
    cell.value, cell.frozen = None if value is None else np.array(value), freeze or cell_of(node).frozen
    cell.is_array = cell_of(node).is_array
    return found


def _of_copies(build: Build, copies: dict[NodeValue, NodeValue], freeze: bool) -> Build:
    """What makes the node of a recipe, with copies of the parameters that the recipe itself brings along.

    Args:
        build: makes the node of the recipe that was copied.
        copies: the copies of nodes that were made so far; those of parameters are added.
        freeze: whether the copies are not trained.
    """

    def make(operands: tuple[NodeValue, ...]) -> NodeValue:
        made = build(operands)
        below = set(ordered(operands))
        own = [one for one in ordered([made]) if one not in below]
        graph.give_seeds([made], own)
        new = dict(copies)
        for one in own:
            if one not in copies and has_value(one):
                new[one] = copies[one] = _copied_parameter(one, freeze)
                if one.start is not None and not cell_of(one).is_array:
                    cell_of(copies[one]).value = None  # the other may be trained by now
        inner = [one for one in own if calls.inputs_of(one)]
        new |= {one: _copied(one) for one in inner}
        for one in inner:
            if is_recipe(one):
                new[one].options["build"] = _of_copies(one.options["build"], copies, freeze)
            new[one].inputs = tuple(new.get(source, source) for source in calls.inputs_of(one))
            keep_criterion(new[one], one, new)
            keep_block(new[one], one, new)
        return new.get(made, made)

    return make
