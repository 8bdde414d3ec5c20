"""Delays outside of loops, and calls of recurrent layers, as tensor code."""

from __future__ import annotations

from typing import NamedTuple

from cntkpy.networks.nodes.source_support.dialect import Spellings
from cntkpy.networks.nodes.source_support.use import Rule, Use
from cntkpy.networks.nodes.source_support.values import Value, number


def initial_state(use: Use, index: int = 1) -> Value:
    """Return the value of a delay outside of the sequence."""
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


class Run(NamedTuple):
    """The call of a recurrent layer.

    Attributes:
        cell: `lstm`, `gru`, `rnn` or `rnn_relu`.
        size: features of the result.
        depth: how many layers follow each other.
        both: whether the layer runs in both directions.
        backwards: whether the layer runs from the last step to the first.
        starts: what each array of the state is full of before the first step; none: zeros.
    """

    cell: str
    size: int
    depth: int = 1
    both: bool = False
    backwards: bool = False
    starts: tuple[float, ...] = ()


def run_layer(use: Use, x: Value, run: Run) -> Value:
    """Return the result of a recurrent layer for an input (batch, steps, features)."""
    return use.value(use.say("recurrent_layer", x, run), (run.size,))


def _torch_layer(use: Use, x: Value, run: Run) -> str:
    body, start = use.body, ""
    if run.starts:
        x = body.bound(x)
        names = {
            first: body.assign_once(f"{x.text}.new_full((1, len({x.text}), {run.size}), {number(first)})", "start")
            for first in dict.fromkeys(run.starts)
        }
        parts = [names[first] for first in run.starts]
        start = f", ({', '.join(parts)})" if len(parts) > 1 else f", {parts[0]}"
    if run.both:
        mask = use.mask()
        body.line("packed = nn.utils.rnn.pack_padded_sequence(")
        body.line(f"    {x.text}, {mask}.sum(1).cpu(), batch_first=True, enforce_sorted=False")
        body.line(")")
        unpack = f"nn.utils.rnn.pad_packed_sequence({use.layer}(packed{start})[0], batch_first=True"
        return body.assign(f"{unpack}, total_length={mask}.shape[1])[0]", use.node)
    if run.backwards:
        reverse = use.helper("reverse_steps")
        return f"{reverse}({use.layer}({reverse}({x.text}, {use.mask()}){start})[0], {use.mask()})"
    return body.assign(f"{use.layer}({x.text}{start})[0]", use.node)


def _torch_layer_of_sample(use: Use, text: str, run: Run) -> str:
    return f"{use.layer}({text})[0]"


def _jax_layer(use: Use, x: Value, run: Run) -> str:
    return _jax_cells(use, x.text, run, use.mask() if run.both or run.backwards else "")


def _jax_layer_of_sample(use: Use, text: str, run: Run) -> str:
    return _jax_cells(use, text, run, "")


def _jax_cells(use: Use, text: str, run: Run, mask: str) -> str:
    """Return a call for each layer of a stack."""
    options = f", start={_start(run.starts)}" if run.starts else ""
    options += f", mask={mask}" if mask else ""
    options += ", reverse=True" if run.backwards else ""
    for layer in range(run.depth):
        if layer:
            text = use.body.assign(text, "part")
        params = use.layer if run.depth == 1 else f'{use.layer}["l{layer}"]'
        if run.both:
            text = f"{use.helper('both_ways')}({use.helper(run.cell)}, {params}, {text}{options})"
        else:
            text = f"{use.helper(run.cell)}({params}, {text}{options})"
    return text


def _start(starts: tuple[float, ...]) -> str:
    return number(starts[0]) if len(starts) == 1 else f"({', '.join(map(number, starts))})"


SPELLINGS: Spellings = {
    "recurrent_layer": (_torch_layer, _jax_layer),
    "recurrent_layer_of_sample": (_torch_layer_of_sample, _jax_layer_of_sample),
}

NUMBERS = dict.fromkeys(("PastValue", "FutureValue"))
"""Operations whose constants of one element are numbers."""

RULES: dict[str, Rule] = {"PastValue": _delay, "FutureValue": _delay}
