"""Which kinds of nodes can be exported, and why the others cannot."""

from __future__ import annotations

from cntkpy.networks import nodes
from cntkpy.networks.nodes.onnx_support.use import Rule, Use


def _rule(rule: str | Rule) -> Rule:
    """Return a kind's rule; the name of an operator is a rule of operands that are broadcast."""
    if not isinstance(rule, str):
        return rule

    def operator(use: Use) -> str:
        return use.emit.op(rule, *use.aligned())

    return operator


RULES: dict[str, Rule] = {
    **{kind.name: _rule(kind.onnx) for kind in nodes.kinds() if kind.onnx},
    **nodes.tables("onnx_writing"),
}
"""By operation: makes the ONNX operators of a node; from the kinds, and the rules of many lines."""

REFUSED = {kind.name: kind.not_exported for kind in nodes.kinds() if kind.not_exported}
"""By operation: why a node of it that depends on data has no equivalent."""
