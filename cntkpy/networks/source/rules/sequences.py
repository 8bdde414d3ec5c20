"""Delays outside of loops, steps selected and put back, joined time axes, as tensor code.

The value of a `PackedIndex` is the number of a step, not that of a cell of a minibatch.
"""

from __future__ import annotations

from cntkpy.networks.graph import axes
from cntkpy.networks.graph.axes import ONE
from cntkpy.networks.graph.node import Node
from cntkpy.networks.source.values import NotExpressible, Rule, Use, Value, aligned, number


def initial_state(use: Use, index: int = 1) -> Value:
    """Return what a delay gives outside of the sequence."""
    if len(use.node.inputs) > index:
        return use.values[index]
    start = float(use.options["defaultHiddenActivity"])
    return Value(number(start), 0, (1,), number=start)


def _delay(use: Use) -> Value:
    steps, start, x = int(use.options["timeStep"]), initial_state(use), use.values[0]
    arguments = [x.text]
    name = use.helper("past_value" if use.node.kind.time.delay < 0 else "future_value")
    if use.node.kind.time.delay > 0:
        arguments.append(use.mask())
    if steps != 1:
        arguments.append(f"steps={steps}")
    if start.number != 0:
        arguments.append(f"initial={start.text}")
    return use.value(f"{name}({', '.join(arguments)})", use.dims)


def first_step(node: Node) -> bool:
    """Return whether a condition keeps the first step of a sequence."""
    window = axes.kept_window(node)
    return window is not None and window == axes.Window(-1, 0, 1)


def last_step(node: Node) -> bool:
    """Return whether a condition keeps the last step of a sequence."""
    window = axes.kept_window(node)
    return window is not None and window == axes.Window(1, 0, 1)


def _where(use: Use) -> Value:
    condition = use.node.input(0)
    mask = use.mask(0)
    if first_step(condition):
        return Value(f"torch.zeros_like({mask}[:, :1])", 1, (1,), axis=ONE)
    if last_step(condition):
        return Value(f"{mask}.sum(1, keepdim=True) - 1", 1, (1,), level=1, axis=ONE)
    flags = use.flat()
    text = f"{use.helper('kept_steps')}({flags.atom}.squeeze(-1) != 0, {mask})"
    if use.node.axis == ONE:
        return Value(f"{text}[0][:, :1]", 1, (1,), axis=ONE)
    index, kept = use.body.pair(text, "index", "kept")
    use.body.masks[str(use.node.axis)] = kept
    return Value(f"{index}[..., None]", 2, (1,), axis=use.node.axis)


def _repeated(use: Use) -> Value:
    text = f"{use.helper('repeated_steps')}({use.mask(0)}, {float(use.options['factor'])})"
    index, kept = use.body.pair(text, "index", "kept")
    use.body.masks[str(use.node.axis)] = kept
    return Value(f"{index}[..., None]", 2, (1,), axis=use.node.axis)


def _packed_index(use: Use) -> Value:
    return use.values[1]


def index_of(value: Value) -> str:
    """Return the numbers of steps as integers (batch, kept steps)."""
    text = value.text.removesuffix("[..., None]") if value.lead == 2 else value.text
    plain = Value(text, value.lead, value.dims, value.level if text == value.text else 3)
    if value.lead == 2 and text == value.text:
        return f"{plain.atom}.squeeze(-1).long()"
    return plain.text


def _gathered(use: Use) -> Value:
    index, source = use.values
    source_node = use.node.input(1)
    if not source_node.has_layout:
        if index.lead == 0:
            raise NotExpressible("its index carries no data")
        columns = use.reshaped(source, tuple(reversed(source_node.shape or (1,))) if len(source_node.shape or ()) > 1 else (source.dims[0], 1))
        text = f"{columns.atom}[{index.atom}[..., 0].long()]"
        return use.finished(use.value(text, columns.dims[1:] or (1,)))
    cells = use.node.input(0)
    steps = cells.input(1) if cells.operation == "PackedIndex" else None
    condition = steps.input(0) if steps is not None and steps.operation == "Where" else None
    if steps is not None and condition is not None and use.node.axis == ONE and condition.axis == source_node.axis:
        if source.lead != 2:
            return source
        if first_step(condition):
            return use.value(f"{source.atom}[:, 0]", source.dims)
        if last_step(condition):
            return use.value(f"{use.helper('last_step')}({source.text}, {use.mask(1)})", source.dims)
    if source.lead == 1:
        return source._replace(axis=use.node.axis) if use.node.axis == ONE else aligned(source, 2, len(source.dims))
    text = f"{use.helper('gather_steps')}({source.text}, {index_of(index)})"
    if use.node.axis == ONE:
        text += "[:, 0]"
    return use.value(text, source.dims)


def _scattered(use: Use) -> Value:
    like, index, source = use.values
    steps = f"{use.mask(0)}.shape[1]"
    if not source.lead:
        rest = ", ".join(map(str, source.dims))
        body = use.body.bound(index).text if index.is_name else index.atom
        source = Value(f"{source.atom}.expand(*{body}.shape[:2], {rest})", 2, source.dims)
    kept = "" if index.lead == 1 else f", {use.mask(1)}"
    source = aligned(source, 2, len(source.dims))
    text = f"{use.helper('scatter_steps')}({source.text}, {index_of(index)}, {steps}{kept})"
    return use.value(text, source.dims)


def _reconciled(use: Use) -> Value:
    data, like = use.values
    node, other = use.node.connected
    if data.lead == 2 and like.lead == 2 and node.axis != other.axis:
        return use.value(f"{use.helper('with_steps')}({data.text}, {use.mask(1)}.shape[1])", data.dims)
    if data.number is not None or data.lead < like.lead:
        name = use.body.bound(like).text
        rest = ", ".join(map(str, data.dims))
        if data.lead == 1:
            return use.value(f"{data.atom}[:, None].expand(-1, {name}.shape[1], {rest})", data.dims)
        text = data.atom if data.number is None else f"torch.tensor({data.text})"
        return use.value(f"{text}.expand(*{name}.shape[:{like.lead}], {rest})", data.dims)
    return data


RULES: dict[str, Rule] = {
    "PastValue": _delay,
    "FutureValue": _delay,
    "Where": _where,
    "RepeatSteps": _repeated,
    "PackedIndex": _packed_index,
    "GatherPacked": _gathered,
    "ScatterPacked": _scattered,
    "ReconcileDynamicAxis": _reconciled,
}

REFUSED = {
    "ToSequence": "it makes sequences of samples, whose lengths a mask outside does not know",
    "ToSequenceLike": "it makes sequences of samples, whose lengths a mask outside does not know",
    "UnpackSequence": "its size is that of one minibatch",
    "SampleNumber": "it numbers the samples of a minibatch of CNTK, which is laid out in another way",
    "UnpackBatch": "its size is that of one minibatch",
    "ToBatch": "it makes samples of a minibatch of CNTK, which is laid out in another way",
}
