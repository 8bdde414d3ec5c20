"""Which sequence has the steps of a placeholder: what is not known yet has no time axis of its own."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from cntkpy.networks import nodes
from cntkpy.networks.builders.brainscript.node_values import NodeValue
from cntkpy.networks.builders.python.functions import calls
from cntkpy.networks.builders.python.functions.cells import cell_of
from cntkpy.networks.builders.python.functions.function import Function, as_node, operator
from cntkpy.networks.builders.python.functions.graph import FROM_SAMPLES
from cntkpy.networks.builders.python.functions.nodes import INPUTS, has_value, is_trained, ordered
from cntkpy.networks.builders.python.functions.recipes import OpenShape, is_recipe

_LIKE: WeakKeyDictionary[NodeValue, NodeValue] = WeakKeyDictionary()


def remember(placeholder: Function, like: Function) -> None:
    """Let a placeholder have the steps of a function."""
    _LIKE[placeholder.root] = like.root


def steps_of(x: object) -> Function:
    """Return a function with the same steps that depends on no placeholder whose steps are known; mostly x itself.

    Of what is part of a loop it is an input, which is known before the loop.
    """
    function = as_node(x)
    waiting, seen = [function.root], {function.root}
    entering: NodeValue | None = None
    is_in_loop = False
    while waiting:
        node = waiting.pop()
        if node in _LIKE:
            return steps_of(Function(_LIKE[node]))
        if entering is None and _begins_axis(node):
            entering = node
        for source in _on_the_same_axis(node):
            is_in_loop |= source is function.root
            if source not in seen:
                seen.add(source)
                waiting.append(source)
    return function if entering is None or not is_in_loop else Function(entering)


def take_steps(function: Function, like: Function) -> None:
    """Let zeros for the steps of a placeholder be made of the function that has its steps.

    A model that was read makes them of its input, which a placeholder of a loop has replaced.

    Args:
        function: what depends on the placeholder.
        like: the function that has the placeholder's steps.
    """
    zeros: tuple[NodeValue, ...] | None = None
    for node in ordered(function.roots):
        if node.stored is None or node.operation.name != "SumColumnElements":
            continue
        factors = calls.inputs_of(calls.inputs_of(node)[0])
        if len(factors) == 2 and _is_zero(factors[1]) and steps_of(Function(node)).root is like.root:
            if zeros is None:
                zeros = calls.inputs_of(operator("BS.Constants.ZeroesLike", like).root)
            node.inputs = zeros


def _is_zero(node: NodeValue) -> bool:
    """Return whether a node is the number 0 of the library."""
    return has_value(node) and node.shape == (1,) and not is_trained(node) and cell_of(node).value == 0


def fixed_steps(x: Function) -> int | None:
    """Return the number of steps of all sequences of x where it is known: an axis of samples was made the sequence."""
    waiting, seen = [x.root], {x.root}
    while waiting:
        node = waiting.pop()
        if node.operation.name == "ToSequence":
            operands = calls.inputs_of(node)
            return _first_size(Function(operands[0])) if len(operands) == 1 else None
        new = [source for source in _on_the_same_axis(node) if source not in seen]
        seen.update(new)
        waiting.extend(new)
    return None


def _first_size(x: Function) -> int | None:
    """Return the size of the first axis of samples, if it is known."""
    try:
        shape = x.shape
    except OpenShape:
        return None
    return shape[0] if shape and shape[0] > 0 else None


def _begins_axis(node: NodeValue) -> bool:
    """Return whether a node has steps that no operand has: an input of sequences, or a sequence made of samples."""
    return INPUTS[node].sequence if node in INPUTS else node.operation.name in FROM_SAMPLES


def _on_the_same_axis(node: NodeValue) -> tuple[NodeValue, ...]:
    """Return the inputs that may have the steps of a node; those of a delay node that is being made are not known."""
    if not isinstance(node.inputs, tuple) or not node.inputs or node.operation.name == "Placeholder":
        return ()
    if node.operation.name in FROM_SAMPLES:
        return ()
    if is_recipe(node):
        return node.inputs
    kind = nodes.operation(node.operation.kind_name)
    if kind.time.keeps_steps:
        return ()
    return node.inputs if kind.time.axis_from is None else (node.inputs[kind.time.axis_from],)
