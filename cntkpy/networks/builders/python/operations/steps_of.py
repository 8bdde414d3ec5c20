"""Which sequence has the steps of a placeholder: what is not known yet has no time axis of its own."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from cntkpy.networks import nodes
from cntkpy.networks.builders.brainscript.node_values import NodeValue
from cntkpy.networks.builders.python.functions.function import Function, as_node
from cntkpy.networks.builders.python.functions.nodes import INPUTS
from cntkpy.networks.builders.python.functions.recipes import is_recipe

_LIKE: WeakKeyDictionary[NodeValue, NodeValue] = WeakKeyDictionary()


def remember(placeholder: Function, like: Function) -> None:
    """Let a placeholder have the steps of a function."""
    _LIKE[placeholder.root] = like.root


def steps_of(x: object) -> Function:
    """A function with the same steps that depends on no placeholder whose steps are known; mostly x itself.

    Of what is part of a loop it is an input, which is known before the loop.
    """
    given = as_node(x)
    waiting, seen = [given.root], {given.root}
    entering: NodeValue | None = None
    is_in_loop = False
    while waiting:
        one = waiting.pop()
        if one in _LIKE:
            return Function(_LIKE[one])
        if entering is None and one in INPUTS and INPUTS[one].sequence:
            entering = one
        for source in _on_the_same_axis(one):
            is_in_loop |= source is given.root
            if source not in seen:
                seen.add(source)
                waiting.append(source)
    return given if entering is None or not is_in_loop else Function(entering)


def _on_the_same_axis(node: NodeValue) -> tuple[NodeValue, ...]:
    """The inputs that may have the steps of a node; those of a delay node that is being made are not known."""
    if not isinstance(node.inputs, tuple) or not node.inputs or node.operation.name == "Placeholder":
        return ()
    if is_recipe(node):
        return node.inputs
    kind = nodes.operation(node.operation.kind_name)
    if kind.time.keeps_steps:
        return ()
    return node.inputs if kind.time.axis_from is None else (node.inputs[kind.time.axis_from],)
