"""Shape and layout inference and the checks of a whole network (docs/specification/networks.md B.1, A.10, A.11)."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.networks.graph import shapes
from cntkpy.networks.graph.axes import EVERYWHERE, infer_axes
from cntkpy.networks.graph.node import Node, NodeError
from cntkpy.networks.graph.order import components, is_loop
from cntkpy.networks.graph.shapes import ShapeProblem

MAX_MISTAKES = 50
"""Mistakes of one network that are looked for: after each, shapes are inferred once more."""
MAX_NODES = 200_000
"""Nodes whose shapes are inferred for it, but for a network that is larger."""


def infer(nodes: list[Node], exact_axes: bool = False) -> None:
    """Check the nodes of a network and infer their shapes and layouts; see `Network.validate`.

    Raises:
        NodeError: with the nodes, their shapes and the place in the script.
    """
    for node in nodes:
        _check_links(node)
    parts = components(nodes)
    order = [node for component in parts for node in component]
    _infer_layouts(order, exact_axes)
    _complete_parameters(order)
    # a loop has its shapes before what follows looks at them, to infer others
    for component in parts:
        if is_loop(component):
            _infer_shapes(component)
        else:
            _infer_shape(component[0], guess=False)
    _infer_shapes(order)
    for node in _mistakes_first(order):
        _final_check(node)


def mistakes(nodes: list[Node], failed: Iterable[Node] = (), exact_axes: bool = False) -> list[NodeError]:
    """Return the mistakes of a network, at most `MAX_MISTAKES`. What depends on a wrong node is not looked at.

    Shapes and axes that were inferred stay where there is no mistake.

    Args:
        nodes: All nodes of the network.
        failed: Nodes whose mistakes are known already.
        exact_axes: See `Network.validate`.
    """
    start = [(node, node.shape, node.axis) for node in nodes]
    errors: list[NodeError] = []
    wrong = set(failed)
    while True:
        unsure = above_nodes(wrong, nodes)
        sound = [node for node in nodes if node not in unsure]
        try:
            infer(sound, exact_axes)
        except NodeError as error:
            wrong.add(error.node)
            uncertain = unsure if error.unknown is not None else ()
            if not any(error.unknown in node.connected for node in uncertain):
                errors.append(error)
            if len(errors) >= max(5, min(MAX_MISTAKES, MAX_NODES // len(nodes))):
                return errors
            for node, shape, axis in start:
                node.shape, node.axis = shape, axis
        else:
            return errors


def _mistakes_first(order: list[Node]) -> list[Node]:
    """Return the nodes, a mistake before what cannot be inferred, or is inferred otherwise, because of it."""
    unknown = above_nodes([node for node in order if node.shape is None], order)

    def follows(node: Node) -> tuple[bool, bool]:
        operands = node.connected
        return any(operand in unknown for operand in operands), any(
            shapes.incomplete(operand.shape) for operand in operands
        )

    return sorted(order, key=follows)


def infer_known(nodes: list[Node], strict: bool) -> None:
    """Infer the shapes that are known in a network of which some nodes are not known yet; mistakes are not looked for.

    Args:
        nodes: the nodes; those that are not known have neither a shape nor a rule for it.
        strict: what depends on a node that is not known has no shape before all its operands have one. Else operands
            that are known count for those that are not, as in a loop.
    """
    try:
        parts = components(nodes)
    except UserError:
        parts = [[node] for node in nodes]
    order = [node for component in parts for node in component]
    with suppress(UserError):
        infer_axes(order, exact=True)
    _complete_parameters(order)
    unknown = [node for node in order if node.shape is None and node.kind.shape is None]
    waiting = above_nodes(unknown, order) if strict else set[Node]()
    for guess in (False, True) if strict else (False,):
        changed = True
        while changed:
            changed = False
            for node in order:
                if node not in waiting or (not guess and all(source.shape is not None for source in node.connected)):
                    changed |= _infer_shape(node, guess)


def above_nodes(nodes: Iterable[Node], order: Iterable[Node]) -> set[Node]:
    """Return some nodes, and the nodes of `order` that depend on them."""
    users: dict[Node, list[Node]] = {}
    for node in order:
        for source in node.connected:
            users.setdefault(source, []).append(node)
    reached = set(nodes)
    waiting = list(reached)
    while waiting:
        new = [user for user in users.get(waiting.pop(), ()) if user not in reached]
        reached.update(new)
        waiting += new
    return reached


def _complete_parameters(nodes: list[Node]) -> None:
    """The shapes of parameters whose start values say more about them."""
    for node in nodes:
        if node.init is not None and node.value is None and node.shape is not None:
            node.shape = node.init.complete_shape(node.shape)


def _check_links(node: Node) -> None:
    low, high = node.kind.arity()
    count = len(node.inputs)
    if count < low or (high is not None and count > high):
        expected = str(low) if low == high else f"{low} or more" if high is None else f"{low} to {high}"
        message = f"{node.operation} '{node.name}' expects {expected} inputs, {count} given"
        raise NodeError.at(node, "FunctionArguments", message, node.kind.usage())
    for index in range(count):
        node.input(index)


def _infer_layouts(order: list[Node], exact_axes: bool) -> None:
    infer_axes(order, exact_axes)
    for node in order:
        if node.kind.time.delay and not node.input(0).has_layout:
            message = f"{node.operation} '{node.name}': its input '{node.input(0).name}' carries no minibatch data"
            raise NodeError.at(node, "BadShape", message, EVERYWHERE)


def _infer_shapes(nodes: list[Node]) -> None:
    """Infer until nothing changes any more; with guesses where it cannot be done without."""
    for guess in (False, True):
        for _ in range(len(nodes) + 2):
            changes = [_infer_shape(node, guess) for node in nodes]
            if not any(changes):
                break
        if all(node.shape is not None for node in nodes):
            break


def _infer_shape(node: Node, guess: bool) -> bool:
    """Return one inference step; whether the shape of the node or of an input changed.

    Args:
        node: the node.
        guess: take a single element for the shape of something that is computed element by element, when an operand is
            not known yet: in a loop of single elements nothing else makes it known.
    """
    shapes_before = (node.shape, [i.shape for i in node.connected])
    if node.kind.shape is not None:
        try:
            provisional = node.kind.shape(node)
        except ShapeProblem as problem:
            provisional = problem.provisional
        if not guess and node.shape is None and provisional is not None and _is_guess(node, provisional):
            provisional = None
        if provisional is not None:
            node.shape = tuple(provisional)
    return shapes_before != (node.shape, [i.shape for i in node.connected])


def _is_guess(node: Node, shape: shapes.Shape) -> bool:
    """Return whether an operand that is not known yet may make a shape of one element larger."""
    return node.kind.elementwise and set(shape) <= {1} and any(operand.shape is None for operand in node.connected)


def _final_check(node: Node) -> None:
    try:
        shape = node.kind.shape(node) if node.kind.shape is not None else node.shape
    except ShapeProblem as problem:
        raise NodeError.at(node, "BadShape", f"{_where(node)}: {problem}", problem.hint) from None
    for operand in node.connected:
        if operand.operation == "AttentionWeights":
            raise NodeError.at(
                node,
                "BadShape",
                f"{_where(node)}: '{operand.name}' has as many elements as a sequence has steps, "
                "so nothing is computed from it",
                "evaluate it by itself, and compute with what eval gives",
            )
        if shapes.incomplete(operand.shape):
            message = f"the dimensions of '{operand.name}' {shapes.text(operand.shape)} cannot be inferred"
            raise NodeError.at(node, "BadShape", f"{_where(node)}: {message}", unknown=operand)
    if shape is None:
        raise NodeError.at(node, "BadShape", f"{_where(node)}: its shape cannot be inferred")
    if shapes.incomplete(shape):
        if node.is_parameter:
            return  # an error only where it is used; see evaluate
        raise NodeError.at(node, "BadShape", f"{_where(node)}: the result has no elements: {shapes.text(shape)}")


def check_operands(nodes: Iterable[Node]) -> None:
    """Refuse criteria, among nodes that are computed, whose operands have different shapes.

    Raises:
        NodeError: with the nodes, their shapes and the place in the script.
    """
    for node in nodes:
        if node.kind.pairwise:
            first_shape, second_shape = (shapes.trimmed(node.input(index).shape or (1,)) for index in (0, 1))
            if first_shape != second_shape:
                message = f"{_where(node)}: the two must have the same shape"
                raise NodeError.at(node, "BadShape", message)


def _where(node: Node) -> str:
    if not node.inputs:
        return f"{node.operation} '{node.name}'"
    listed = ", ".join(f"'{i.name}' {shapes.text(i.shape)}" for i in node.connected)
    return f"{node.operation} '{node.name}' of {listed}"
