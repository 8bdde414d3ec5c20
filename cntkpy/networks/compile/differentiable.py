"""Check a network before it is differentiated."""

from __future__ import annotations

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.networks.compile.plan import Plan
from cntkpy.networks.graph.network import Network, Node


def check_gradient(network: Network, root: Node) -> None:
    """Refuse to differentiate `root` if a trainable parameter lies below an operation that has no gradient."""
    below: dict[Node, bool] = {}
    order = network.below([root])
    for _ in range(2):  # twice, for loops
        for node in order:
            below[node] = node.trainable or (
                not node.kind.precompute and any(below.get(i, False) for i in node.connected)
            )
    for node in order:
        if not node.kind.differentiable and below[node]:
            raise UserError(
                "NoGradient",
                f"{node.operation} '{node.name}' has no gradient, but parameters below it are to be trained",
                span=node.span,
            )


def row_parameters(plan: Plan) -> dict[str, str]:
    """Parameters whose only use is a product with one and the same sparse input: name -> input's name."""
    result: dict[str, str] = {}
    for node in plan.nodes:
        if not node.trainable or node.shape is None or len(node.shape) != 2:
            continue
        uses = plan.users[node]
        if not uses or any(not u.kind.picks_rows or u.input(0) is not node for u in uses):
            continue
        if any(u.options.get("outputRank", 1) != 1 for u in uses):
            continue
        sources = {u.input(1) for u in uses}
        source = sources.pop()
        if (
            sources
            or not source.kind.sparse
            or source.kind.layout != "always"
            or source.shape is None
            or len(source.shape) != 1
        ):
            continue
        if source.shape[0] == node.shape[1]:
            result[node.name] = source.name
    return result
