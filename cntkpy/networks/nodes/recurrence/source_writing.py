"""Delays outside of loops as tensor code."""

from __future__ import annotations

from cntkpy.networks.nodes.source_support.use import Rule, Use
from cntkpy.networks.nodes.source_support.values import Value, number


def initial_state(use: Use, index: int = 1) -> Value:
    """Return what a delay gives outside of the sequence."""
    if len(use.node.inputs) > index:
        return use.values[index]
    start = float(use.options["defaultHiddenActivity"])
    return Value(number(start), 0, (1,), number=start)


def _delay(use: Use) -> Value:
    count, start, x = int(use.options["timeStep"]), initial_state(use), use.values[0]
    arguments = [x.text]
    name = use.helper("past_value" if use.node.kind.time.delay < 0 else "future_value")
    if use.node.kind.time.delay > 0:
        arguments.append(use.mask())
    if count != 1:
        arguments.append(f"steps={count}")
    if start.number != 0:
        arguments.append(f"initial={start.text}")
    return use.value(f"{name}({', '.join(arguments)})", use.dims)


RULES: dict[str, Rule] = {"PastValue": _delay, "FutureValue": _delay}
