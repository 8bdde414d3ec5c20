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
    function = as_node(x)
    waiting, seen = [function.root], {function.root}
    entering: NodeValue | None = None
    is_in_loop = False
    while waiting:
        node = waiting.pop()
        if node in _LIKE:
            return Function(_LIKE[node])
        if entering is None and node in INPUTS and INPUTS[node].sequence:
            entering = node
        for source in _on_the_same_axis(node):
            is_in_loop |= source is function.root
            if source not in seen:
                seen.add(source)
                waiting.append(source)
    return function if entering is None or not is_in_loop else Function(entering)


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
