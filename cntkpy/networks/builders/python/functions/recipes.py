"""Functions of what is not known yet.

An operator that needs the shapes of its operands cannot be made of a placeholder of unknown shape, nor of a state of a
recurrence whose step is being made. Its function is kept as a recipe then: a node with the operands as its inputs. It
becomes the operator's own node as soon as their shapes are known.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.networks.builders.brainscript.node_values import NodeValue, Shape
from cntkpy.networks.builders.brainscript.operations import OPERATIONS, Operation
from cntkpy.networks.builders.python.functions import calls
from cntkpy.networks.builders.python.functions.blocks import block_of, mark_block, mark_written, written_operands
from cntkpy.networks.builders.python.functions.nodes import INPUTS, add, known_inputs, ordered
from cntkpy.networks.builders.python.functions.per_sample import CRITERIA
from cntkpy.networks.graph.network import Network
from cntkpy.networks.graph.node import NodeKind
from cntkpy.networks.graph.validate import infer_known

Build = Callable[[tuple[NodeValue, ...]], NodeValue]

UNPACKED = {"UnpackBatch": "count", "UnpackSequence": "steps"}
"""The operations whose results have an axis of a size that only data say, and the options that hold that size."""

_RECIPE = Operation("Recipe")
_UNKNOWN = NodeKind("Unknown", layout="always")

_known: list[Mapping[NodeValue, Shape]] = []
"""Shapes that were inferred while recipes become nodes, the last ones last."""


class OpenShape(UserError):
    """The shape of a function is not known before its placeholders are replaced, or before there are data.

    Args:
        is_free: whether there are no placeholders, but sizes that data say.
    """

    def __init__(self, is_free: bool = False) -> None:
        message = "the shape is not known: a placeholder is left in the function"
        hint = "give it an input first (f(x), replace_placeholders), or the placeholder a shape: placeholder((3,))"
        if is_free:
            message = "the shape is not known: it depends on an axis whose size only data say (FreeDimension, unpack)"
            hint = "operators take it as it is; f.eval(data).shape is the shape for some data"
        super().__init__("NoNode", message, hint=hint)


def recipe(build: Build, operands: Iterable[NodeValue], name: str, closed: bool = False) -> NodeValue:
    """A node that becomes what `build` makes of the operands when their shapes are known.

    Args:
        build: makes the node.
        operands: its operands.
        name: begins the name of the node.
        closed: it also waits until no placeholder is left below it: it depends on what these are.
    """
    return NodeValue(_RECIPE, calls.origin(name), {"build": build, "closed": closed}, tuple(operands))


def is_recipe(node: NodeValue) -> bool:
    """Whether it waits for the shapes of its operands."""
    return node.operation is _RECIPE


def is_open(root: NodeValue) -> bool:
    """Whether a node depends on something that is not known yet: its shape may not be known either."""
    return any(_is_unknown(one) or one.operation.name == "Placeholder" for one in ordered([root]))


def has_placeholders(roots: Iterable[NodeValue]) -> bool:
    """Whether something that a program has yet to say is below some nodes."""
    return any(one.operation.name == "Placeholder" for one in ordered(roots))


def settled(root: NodeValue) -> bool:
    """Whether all is known that a node depends on, once its recipes have become nodes where that is possible."""
    if not is_open(root):
        return True
    if _known:  # a recipe is becoming a node now, with the shapes that are known
        return False
    resolve([root])
    return not is_open(root)


def shape_of(root: NodeValue) -> Shape:
    """The shape of a node that depends on something that is not known yet.

    Raises:
        OpenShape: it is not known.
    """
    for known in reversed(_known):
        if root in known:
            return known[root]
    found = _known_shapes([root], strict=True).get(root)
    if found is None:
        raise OpenShape(any(map(is_free, ordered([root]))) and not has_placeholders([root]))
    return found


def resolve(roots: Iterable[NodeValue]) -> list[NodeValue]:
    """Let recipes whose operands have known shapes become nodes.

    Returns:
        What the roots depend on, see `ordered`.
    """
    while True:
        order = ordered(roots)
        if calls.is_inside_step():
            return order
        recipes = [one for one in order if is_recipe(one)]
        if not recipes or not _resolve_some(order, recipes):
            return order


def _resolve_some(order: list[NodeValue], recipes: list[NodeValue]) -> bool:
    """Let the recipes become nodes whose operands have known shapes; whether there are such."""
    only_loops = not any(_is_unknown(one) and not is_recipe(one) for one in order)
    for strict in (True, False) if only_loops else (True,):
        known = _known_shapes(order, strict)
        ready = [one for one in recipes if all(source in known for source in known_inputs(one)) and not _waits(one)]
        if ready:
            with _knowing(known):
                for one in ready:
                    _become(one, one.options["build"](one.inputs))
            return True
    return False


def _waits(one: NodeValue) -> bool:
    """Whether a recipe waits for what placeholders stand for."""
    return one.options["closed"] and any(below.operation.name == "Placeholder" for below in ordered([one]))


@contextmanager
def _knowing(shapes: Mapping[NodeValue, Shape]) -> Generator[None]:
    _known.append(shapes)
    try:
        yield
    finally:
        _known.pop()


def _become(one: NodeValue, made: NodeValue) -> None:
    """Let a recipe be what was made of it; what is used elsewhere, too, is passed on."""
    operands = known_inputs(one)
    if made in operands or not calls.inputs_of(made) or _is_in_loop(made, operands):
        one.operation, one.options, one.inputs = OPERATIONS["Pass"], {}, (made,)
        return
    if made in CRITERIA:
        CRITERIA[one] = CRITERIA[made]
    if (block := block_of(made)) is not None and block_of(one) is None:
        mark_block(one, block)
    if not written_operands(one):
        mark_written(one, written_operands(made))
    one.operation, one.options, one.inputs, one.origin = made.operation, made.options, made.inputs, made.origin
    one.name = one.name or made.name


def _is_in_loop(made: NodeValue, below: Iterable[NodeValue]) -> bool:
    seen = set(below)
    waiting = [one for one in calls.inputs_of(made) if one not in seen]
    while waiting:
        one = waiting.pop()
        if one is made:
            return True
        if one not in seen:
            seen.add(one)
            waiting.extend(calls.inputs_of(one))
    return False


def is_free(node: NodeValue) -> bool:
    """Whether its shape is known only with data: an input with free dimensions, the unpacked steps of sequences."""
    if node in INPUTS:
        return node.shape is not None and 0 in node.shape
    if node.stored is not None or node.operation.name not in UNPACKED:
        return False
    return not node.options.get(UNPACKED[node.operation.name])


def _is_unknown(node: NodeValue) -> bool:
    """Whether nothing is known of a node: a placeholder without shape, a recipe, a state whose step is being made."""
    if node.operation.name == "Placeholder":
        return node.shape is None or 0 in node.shape
    return is_free(node) or is_recipe(node) or (node.operation.later and not known_inputs(node))


def _known_shapes(roots: Iterable[NodeValue], strict: bool) -> dict[NodeValue, Shape]:
    """The shapes of nodes as far as they are known; see `infer_known`."""
    network = Network("float")
    order = ordered(roots)
    made = {
        one: network.add(str(at), _UNKNOWN)
        if _is_unknown(one) or one.operation.name == "Placeholder"
        else add(network, one, str(at), True)
        for at, one in enumerate(order)
    }
    for one, node in made.items():
        if node.kind is not _UNKNOWN:
            node.inputs = [made[source] for source in known_inputs(one)]
        elif not _is_unknown(one):
            node.shape = one.shape
    infer_known(list(made.values()), strict)
    return {one: node.shape for one, node in made.items() if node.shape is not None and 0 not in node.shape}
