"""The order in which nodes are computed, and the loops among them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cntkpy.networks.graph.node import Node, NodeError


def components(roots: Iterable[Node], *, precomputed_are_leaves: bool = False) -> list[list[Node]]:
    """Strongly connected components of what lies below some nodes, in the order of evaluation.

    Inside a component of several nodes (a loop), nodes come in the order in which one time step evaluates them: delay
    nodes first.

    Args:
        roots: the nodes.
        precomputed_are_leaves: what was computed before training depends on nothing.

    Raises:
        NodeError: a loop without delay node, with delays in both directions, or with a node that reduces over time.
    """
    return [_step_order(component) for component in _tarjan(list(roots), precomputed_are_leaves)]


def is_loop(component: list[Node]) -> bool:
    """Return whether a component is a loop (several nodes, or one that feeds itself)."""
    return len(component) > 1 or component[0] in component[0].inputs


def _tarjan(roots: list[Node], constants: bool) -> list[list[Node]]:
    """Strongly connected components of what lies below `roots`; each after the components it depends on.

    constants: nodes that were computed before training are taken for leaves.
    """

    def sources(node: Node) -> Iterator[Node]:
        return iter([] if constants and node.kind.precompute and node.computed else node.connected)

    index: dict[Node, int] = {}
    low: dict[Node, int] = {}
    stack: list[Node] = []
    on_stack: set[Node] = set()
    result: list[list[Node]] = []
    for root in roots:
        if root in index:
            continue
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        work = [(root, sources(root))]
        while work:
            node, inputs = work[-1]
            for child in inputs:
                if child not in index:
                    index[child] = low[child] = len(index)
                    stack.append(child)
                    on_stack.add(child)
                    work.append((child, sources(child)))
                    break
                if child in on_stack:
                    low[node] = min(low[node], index[child])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    component: list[Node] = []
                    while True:
                        member = stack.pop()
                        on_stack.discard(member)
                        component.append(member)
                        if member is node:
                            break
                    result.append(component)
    return result


def _step_order(component: list[Node]) -> list[Node]:
    """Order within one time step: delay nodes first, then inputs before users.

    Raises:
        NodeError: a loop without delay node, or with delays in both directions.
    """
    if not is_loop(component):
        return component
    members = set(component)
    directions = {node.kind.time.delay for node in component if node.kind.time.delay}
    first = min(component, key=lambda node: node.name)
    names = ", ".join(f"'{node.name}'" for node in sorted(component, key=lambda node: node.name)[:6])
    if len(directions) > 1:
        message = f"the loop through '{first.name}' has both PastValue and FutureValue nodes (loop: {names})"
        raise NodeError.at(first, "BadLoop", message)
    order: list[Node] = [node for node in reversed(component) if node.kind.time.delay]
    done, path = set(order), set[Node]()
    for start in reversed(component):
        work = [(start, iter(start.connected))] if start not in done else []
        path.update(node for node, _ in work)
        while work:
            node, inputs = work[-1]
            for child in inputs:
                if child in path:
                    raise NodeError.at(
                        child,
                        "BadLoop",
                        f"the loop through '{child.name}' has no PastValue or FutureValue node (loop: {names})",
                        "a loop needs a delay node, so that it can be evaluated time step by time step",
                    )
                if child in members and child not in done:
                    path.add(child)
                    work.append((child, iter(child.connected)))
                    break
            else:
                work.pop()
                path.discard(node)
                done.add(node)
                order.append(node)
    for node in order:
        if any(node.input(index) in members for index in node.kind.time.whole):
            source = next(node.input(index) for index in node.kind.time.whole if node.input(index) in members)
            raise NodeError.at(
                node,
                "BadLoop",
                f"{node.operation} '{node.name}' looks at whole sequences of '{source.name}', which is part of "
                f"the same loop (loop: {names})",
            )
        if node.kind.time.reduces_time:
            message = f"{node.operation} '{node.name}' reduces over time and cannot be part of a loop (loop: {names})"
            raise NodeError.at(node, "BadLoop", message)
    return order
