"""Steps selected and put back, joined time axes, as tensor code.

The value of a `PackedIndex` is the number of a step, not that of a cell of a minibatch.
"""

from __future__ import annotations

from cntkpy.networks.graph.axes import ONE
from cntkpy.networks.nodes.source_support import steps
from cntkpy.networks.nodes.source_support.dialect import Spellings
from cntkpy.networks.nodes.source_support.use import Rule, Use
from cntkpy.networks.nodes.source_support.values import Value, aligned


def _where(use: Use) -> Value:
    condition = use.node.input(0)
    mask = use.mask(0)
    if steps.is_first(condition):
        return Value(use.say("zeros_of", f"{mask}[:, :1]"), 1, (1,), axis=ONE)
    if steps.is_last(condition):
        return Value(f"{use.say('Sum', mask, 1)} - 1", 1, (1,), level=1, axis=ONE)
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
    return use.values[0]


def index_of(use: Use, value: Value) -> str:
    """Return the numbers of steps as integers (batch, kept steps)."""
    text = value.text.removesuffix("[..., None]") if value.lead == 2 else value.text
    plain = Value(text, value.lead, value.dims, value.level if text == value.text else 3)
    if value.lead == 2 and text == value.text:
        return use.say("integers", f"{plain.atom}.squeeze(-1)")
    return plain.text


def _gathered(use: Use) -> Value:
    edge = steps.edge_of(use.node)
    source = use.values[-1]
    if edge:
        if source.lead != 2:
            return source
        if edge == "first":
            return use.value(f"{source.atom}[:, 0]", source.dims)
        return use.value(f"{use.helper('last_step')}({source.text}, {use.mask(1)})", source.dims)
    index = use.values[0]
    source_node = use.node.input(1)
    if not source_node.has_layout:
        columns = source if len(source_node.shape or ()) > 1 else use.reshaped(source, (*source.dims, 1))
        text = f"{columns.atom}[{use.say('integers', f'{index.atom}[..., 0]')}]"
        return use.finished(use.value(text, columns.dims[1:] or (1,)))
    if source.lead == 1:
        return source if use.node.axis == ONE else aligned(source, 2, len(source.dims))
    text = f"{use.helper('gather_steps')}({source.text}, {index_of(use, index)})"
    if use.node.axis == ONE:
        text += "[:, 0]"
    return use.value(text, source.dims)


def _scattered(use: Use) -> Value:
    index, source = use.values
    count = f"{use.mask(0)}.shape[1]"
    if not source.lead:
        remainder = ", ".join(map(str, source.dims))
        body = use.body.bound(index).text if index.is_name else index.atom
        source = Value(use.say("expand", source, f"*{body}.shape[:2], {remainder}"), 2, source.dims)
    kept = "" if index.lead == 1 else f", {use.mask(1)}"
    source = aligned(source, 2, len(source.dims))
    text = f"{use.helper('scatter_steps')}({source.text}, {index_of(use, index)}, {count}{kept})"
    return use.value(text, source.dims)


def _reconciled(use: Use) -> Value:
    data, like = use.values
    node, operand = use.node.connected
    if data.lead == 2 and like.lead == 2 and node.axis != operand.axis:
        return use.value(f"{use.helper('with_steps')}({data.text}, {use.mask(1)}.shape[1])", data.dims)
    if data.number is not None or data.lead < like.lead:
        name = use.body.bound(like).text
        remainder = ", ".join(map(str, data.dims))
        if data.lead == 1:
            return use.value(use.say("at_all_steps", f"{data.atom}[:, None]", f"{name}.shape[1]", remainder), data.dims)
        entry = data if data.number is None else use.say("tensor", data.text)
        return use.value(use.say("expand", entry, f"*{name}.shape[:{like.lead}], {remainder}"), data.dims)
    return data


def _to_sequence(use: Use) -> Value:
    """Return the first axis of a sample becomes that of the steps."""
    x = use.full(0)
    steps = x.dims[0]
    x = use.body.bound(x)
    text = use.say("counted", steps, x)
    mask = f"{text} < {use.values[1].atom}" if len(use.values) > 1 else use.say("all_true", x)
    use.body.masks[str(use.node.axis)] = use.body.assign(mask, "kept")
    return use.finished(use.value(x.text, x.dims[1:]))


def _zeroed(use: Use, x: Value, mask: str) -> str:
    """Padding is 0, so that shapes do not depend on the data."""
    return f"jnp.where({mask}[..., {', '.join('None' for _ in x.dims)}], {x.text}, 0)"


def _to_sequence_like(use: Use) -> Value:
    x = use.full(0)
    text = f"{use.helper('with_steps')}({x.text}, {use.mask(1)}.shape[1])"
    return use.finished(use.value(text, x.dims[1:]))


def _unpacked(use: Use) -> Value:
    """Return the steps of a sequence become the first axis of one sample."""
    count, mask, x = int(use.options["steps"]), use.mask(0), use.values[0]
    name = use.helper("with_steps")
    if use.options["mask"]:
        x = use.body.bound(x)
        return use.finished(use.value(use.say("cast", f"{name}({mask}, {count})", f"{x.text}.dtype"), (count,)))
    padding = float(use.options["padding"])
    behind = "".join(", None" for _ in x.dims)
    inside = use.say("filled", x, f"{mask}[:, :{behind}]", padding)
    extra = f", padding={padding}" if padding else ""
    return use.finished(use.value(f"{name}({inside}, {count}{extra})", (count, *x.dims)))


SPELLINGS: Spellings = {
    "real": ("{0.atom}[{1}]", _zeroed),
    "zeros_of": ("torch.zeros_like({0})", "jnp.zeros_like({0}, int)"),
    "integers": ("{0.atom}.long()", "{0.atom}.astype(int)"),
    "at_all_steps": ("{0.atom}.expand(-1, {1}, {2})", "jnp.repeat({0}, {1}, axis=1)"),
    "counted": ("torch.arange({0}, device={1}.device)", "jnp.arange({0})"),
    "all_true": ("torch.ones({0}.shape[:2], dtype=torch.bool, device={0}.device)", "jnp.ones({0}.shape[:2], bool)"),
    "filled": ("{0.atom}.masked_fill(~{1}, {2})", "jnp.where({1}, {0}, {2})"),
}

NUMBERS = dict.fromkeys(("ReconcileDynamicAxis",))
"""Operations whose constants of one element are numbers."""

RULES: dict[str, Rule] = {
    "ToSequence": _to_sequence,
    "ToSequenceLike": _to_sequence_like,
    "UnpackSequence": _unpacked,
    "Where": _where,
    "RepeatSteps": _repeated,
    "PackedIndex": _packed_index,
    "GatherPacked": _gathered,
    "ScatterPacked": _scattered,
    "ReconcileDynamicAxis": _reconciled,
}

REFUSED = {
    "SampleNumber": "it numbers the samples of a minibatch of CNTK, which is laid out in another way",
    "UnpackBatch": "its size is that of one minibatch",
    "ToBatch": "it makes samples of a minibatch of CNTK, which is laid out in another way",
}
