"""The form of JAX: functions of a tree of parameters."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from cntkpy.networks.graph.node import Node
from cntkpy.networks.nodes import tables
from cntkpy.networks.nodes.source_support.dialect import Dialect, Word
from cntkpy.networks.nodes.source_support.helpers import with_needs
from cntkpy.networks.nodes.source_support.layers import Arrange, Layer, Tensor, Unit
from cntkpy.networks.nodes.source_support.names import Names, given_name, snake
from cntkpy.networks.nodes.source_support.use import Use
from cntkpy.networks.nodes.source_support.values import Dims, Value, lead_of, with_ones
from cntkpy.networks.source import layout
from cntkpy.networks.source.blocks import Block, block_name
from cntkpy.networks.source.classes import Classes, plain
from cntkpy.networks.source.loops import Step, call_loop, write_step
from cntkpy.networks.source.table import SPELLINGS
from cntkpy.networks.source.writer import Top, Writer, Written, quoted

_WORDS: dict[str, Word] = {
    "zero_start": "jnp.zeros((len({0}), {1}), {0}.dtype)",
    "full_start": "jnp.full((len({0}), {1}), {2}, {0}.dtype)",
    "same_start": "jnp.broadcast_to({0}, (len({1}), {2}))",
}


def _reshape(bound: Callable[[Value], Value], value: Value, dims: Dims) -> str:
    """Return the text of a value with other sample axes of as many elements."""
    if short := with_ones(value, dims):
        return short
    sizes = ", ".join(map(str, dims))
    if value.lead == 0:
        return f"{value.atom}.reshape({sizes or '()'})"
    if value.lead == 1:
        return f"{value.atom}.reshape(-1{', ' * bool(dims)}{sizes})"
    name = bound(value).text
    return f"{name}.reshape(*{name}.shape[:2]{', ' * bool(dims)}{sizes})"


JAX = Dialect(
    name="JAX",
    words={**_WORDS, **{word: both[1] for word, both in SPELLINGS.items()}},
    helpers=tables("source_jax", "HELPERS"),
    names=frozenset(
        {
            *("jax", "jnp", "Array", "Params", "Any", "Callable", "params", "state", "new", "key", "training", "step"),
            *("states", "inputs", "load", "load_file", "apply", "inside"),
        }
    ),
    reshape=_reshape,
    static=True,
)

_STATE = {"running_mean": "mean", "running_var": "var"}
"""Names of what a batch normalisation keeps, in PyTorch and here."""

_OPTIONS = ("stride", "padding", "dilation", "groups", "time_constant", "eps")
"""Arguments of modules of PyTorch that calls have here."""


_OF_TREES = {
    "params": "params: what training changes, of `load`.",
    "state": "state: statistics and constants, of `load`.",
}

_OF_EXTRAS = {
    "training": "training: whether batches are normalised by their own statistics.",
    "key": "key: of random numbers.",
}

_LOAD = '''\
def load(path: str = "weights.safetensors") -> {type}:
    """Return the arrays of a file as nested dicts: the {arguments} of `apply`."""
    tree: Params = {{}}
    for name, array in load_file(path).items():
        *outer, last = name.split(".")
        inner = tree
        for key in outer:
            inner = inner.setdefault(key, {{}})
        inner[last] = jnp.asarray(array)
    return {value}'''
_LOADS = {
    1: _LOAD.format(type="Params", arguments="first argument", value="tree"),
    2: _LOAD.format(
        type="tuple[Params, Params]", arguments="first two arguments", value='tree["params"], tree["state"]'
    ),
}
"""The function that reads one tree, or both."""


def kind_of(count: int) -> str:
    """Return the type of a number of results."""
    return "Array" if count == 1 else f"tuple[{', '.join('Array' for _ in range(count))}]"


class JaxForm:
    """Functions of JAX."""

    dialect, taken, reserved = JAX, frozenset[str](), frozenset[str]()

    def classes(self) -> Classes:
        """Return a place for the functions of a file."""
        return Classes(functions=True)

    def module(self, writer: Writer, top: Top) -> Written:
        """Return the file."""
        title, body = quoted(top.title), writer.body
        taken = trees(writer)
        finish_top(writer, top.returned)
        summary = top.doc.summary.removesuffix(".") + (", and the new state." if writer.renews else ".")
        doc = [summary, "", "Args:", *(f"    {_OF_TREES[tree]}" for tree in taken)]
        doc += [f"    {line}" for line in top.doc.arguments]
        doc += [f"    {_OF_EXTRAS[extra]}" for extra in _extras(writer)]
        text = function(writer, "NAME", top.arguments, "\n".join(doc), kind_of(len(top.returned)))
        text = text.replace(", training: bool", ", training: bool = False", 1)
        text = text.replace(", key: Array | None", ", key: Array | None = None", 1)
        writer.classes.add("=apply", text)
        names = Names(body.names.taken | {"apply", "load"}, JAX.reserved)
        texts = writer.classes.resolve(names)
        helpers = [JAX.helpers[helper] for helper in with_needs(JAX.helpers, body.helpers)]
        parts = [*helpers, *texts[:-1], *([_LOADS[len(taken)]] if taken else []), texts[-1]]
        code = layout.laid_out(plain("\n\n\n".join(parts)))
        head = f'"""The model {title} as functions of JAX; its arrays are in weights.safetensors."""\n\n'
        tensors = {
            f"{'state' if name in writer.state else 'params'}.{name}" if writer.state else name: tensor
            for name, tensor in writer.tensors.items()
        }
        file = head + _imports(code) + "\n\n" + code + "\n"
        return Written(file, "apply", tensors, tuple(taken), writer.renews, body.must_draw)

    def parameter(self, writer: Writer, name: str, node: Node) -> str:
        """Return the text that reads a parameter or constant."""
        if node.trainable:
            return f'params["{name}"]'
        writer.state.add(name)
        return f'state["{name}"]'

    def layer(self, writer: Writer, layer: Layer, name: str, use: Use) -> None:
        """Write the call of a layer."""
        for key, (tensor, is_state) in _tensors(layer).items():
            full = f"{name}.{key}" if key else name
            writer.tensors[full] = tensor
            if is_state:
                writer.state.add(full)
        params, kind = f'params["{name}"]', layer.module.removeprefix("nn.").rstrip("123d")
        called = [*layer.arguments, *layer.of_call]
        options = "".join(f", {key}=«{key}={value}»" for key, value in called if key in _OPTIONS)
        use.layer = params
        if kind == "Linear":
            use.call = lambda text: f"{use.helper('linear')}({params}, {text})"
        elif kind == "Embedding":
            use.call = lambda text: f"{params}[{text}]"
        elif kind == "Conv":
            use.call = lambda text: f"{use.helper('conv')}({params}, {text}{options})"
        elif kind == "BatchNorm":
            use.call = lambda text: _batch_norm(writer, use, name, text, options)
        elif kind == "Dropout":
            rate = f"«rate={layer.arguments[0][1]}»"
            use.call = lambda text: f"{use.helper('dropout')}({text}, {rate}, {use.body.key()})"

    def chain(self, writer: Writer, blocks: list[Block]) -> list[Unit]:
        """Write the functions of blocks; return units that call them."""
        return [self.block(writer, block) for block in blocks]

    def block(self, writer: Writer, block: Block) -> Unit:
        """Write the function of a block; return a unit that calls it."""
        inner = writer.inner(plain=True)
        for operand in block.operands:
            inner.argument(operand, lead_of(operand, writer.along_time))
        inner.write(block.units, [block.output])
        hint, asked = snake(block_name(block)), dict(inner.body.asked)
        finish(inner, [inner.value(block.output).text])
        arguments = [*inner.arguments, *asked.values()]
        text = function(inner, "NAME", arguments, "Return the value of a block of layers.", "Array")
        mark = writer.classes.add(hint, text)

        def code(use: Use) -> list[Value]:
            passed = [value.text for value in use.values] + [use.body.mask(axis) for axis in asked]
            return [use.value(_call(writer, inner, mark, hint, passed, use.node))]

        return Unit([block.output], block.operands, code)

    def loop(self, writer: Writer, unit: Unit, values: list[Value]) -> list[Value]:
        """Write the function of a loop and a call of it; return the results."""
        inner = writer.inner()
        inner.body.key_name = "step_key"
        hint = next((given_name(node) for node in unit.outputs if given_name(node)), "")
        mark = writer.classes.add(f"scan_{hint}" if hint else "recurrence", _loop_function(write_step(inner, unit)))
        arguments = [value.text for value in values] + [writer.body.mask(axis) for axis in inner.body.asked]
        call = _call(writer, inner, mark, hint or "recurrence", arguments, unit.node)
        return call_loop(writer, unit, call, writer.along_time)


def _extras(writer: Writer) -> list[str]:
    """Return the last arguments of a function; a key that only dropout uses may be left out, and is the last."""
    order = ("key", "training") if writer.body.must_draw else ("training", "key")
    return [name for name in order if name in writer.body.extras]


def _imports(code: str) -> str:
    """Return the statements that code needs in front."""
    lines: list[str] = []
    if "math." in code:
        lines.append("import math")
    if "Callable" in code:
        lines.append("from collections.abc import Callable")
    if "Params" in code or "Any" in code:
        lines.append("from typing import Any")
    lines += [""] * bool(lines)
    if "jax." in code:
        lines.append("import jax")
    if "jnp." in code:
        lines.append("import jax.numpy as jnp")
    lines.append("from jax import Array")
    if "load_file(" in code:
        lines.append("from safetensors.numpy import load_file")
    lines += ["", "Params = dict[str, Any]"] if "Params" in code else []
    return "\n".join([*lines, ""])


def finish_top(writer: Writer, results: list[str]) -> None:
    """Add the statements that begin and end the function of the whole network."""
    if writer.renews:
        finish(writer, results)
    else:
        writer.body.line(f"return {', '.join(results)}")


def _tensors(layer: Layer) -> dict[str, tuple[Tensor, bool]]:
    """Return the arrays of a layer by name, and whether training does not change them; matrices are (inputs, outputs).

    An embedding is its table.
    """
    result: dict[str, tuple[Tensor, bool]] = {}
    for name, tensor in layer.tensors.items():
        if layer.module == "nn.Embedding":
            result[""] = (tensor, False)
        elif layer.recurrent:
            result[_place(layer, name)] = (_transposed(tensor), False)
        elif name != "num_batches_tracked":
            linear = layer.module == "nn.Linear"
            result[_STATE.get(name, name)] = (_transposed(tensor) if linear else tensor, name in _STATE)
    return result


def _transposed(tensor: Tensor) -> Tensor:
    """Return a tensor with its axes in the reverse order."""
    arrange = tensor.arrange

    def turned(array: np.ndarray) -> np.ndarray:
        assert arrange is not None
        return np.asarray(arrange(array).T, order="C")

    result: Arrange | None = None if arrange is None else turned
    joined = None if tensor.joined is None else replace(tensor.joined, index=tensor.joined.index.T)
    array = np.asarray(tensor.array.T, order="C")
    return replace(tensor, array=array, arrange=result, joined=joined)


def _place(layer: Layer, name: str) -> str:
    """Return the place of an array of a recurrent layer: its layer, its direction, its name."""
    parts = re.fullmatch(r"(\w+)_(l\d+)(_reverse)?", name)
    assert parts is not None
    options = dict(layer.arguments)
    way = ("back." if parts[3] else "ahead.") if "bidirectional" in options else ""
    return (f"{parts[2]}." if "num_layers" in options else "") + way + parts[1]


def _batch_norm(writer: Writer, use: Use, name: str, text: str, options: str) -> str:
    """Write the statement of a batch normalisation, which gives a state, too; return the name of its value."""
    call = f'{use.helper("batch_norm")}(params["{name}"], state["{name}"], {text}'
    writer.renews = True
    result = use.body.name_for(use.node)
    use.body.line(f'{result}, new["{name}"] = {call}, {use.body.extra("training")}{options})')
    return result


def _call(writer: Writer, inner: Writer, mark: str, hint: str, arguments: list[str], node: Node) -> str:
    """Return the call of a function of the file; one that gives a state is a statement.

    Args:
        writer: of the function that calls.
        inner: of the function that is called.
        mark: that of the function.
        hint: what its parameters are called.
        arguments: apart from those of all functions.
        node: what is computed.
    """
    name = writer.names.take(hint)
    for key, tensor in inner.tensors.items():
        writer.tensors[f"{name}.{key}"] = tensor
    writer.state |= {f"{name}.{key}" for key in inner.state}
    passed = [f'{tree}["{name}"]' for tree in trees(inner)] + arguments
    writer.body.extras |= inner.body.extras
    writer.body.must_draw |= inner.body.must_draw
    passed += [writer.body.key() if extra == "key" else extra for extra in _extras(inner)]
    text = f"{mark}({', '.join(passed)}{mark.replace('⟧', '+⟧')})"
    if not inner.renews:
        return text
    writer.renews = True
    result = writer.body.name_for(node)
    writer.body.line(f'{result}, new["{name}"] = {text}')
    return result


def trees(writer: Writer) -> list[str]:
    """Return the names of the trees of arrays that a function takes."""
    return ["params"] * (writer.tensors.keys() > writer.state) + ["state"] * bool(writer.state)


def finish(writer: Writer, results: list[str]) -> None:
    """Add the statements that begin and end a function."""
    body = writer.body
    if writer.renews:
        body.lines.insert(0, "new = dict(state)")
        body.line(f"return {_tuple(results)}, new")
    else:
        body.end_with(results)


def function(writer: Writer, name: str, arguments: list[str], doc: str, result: str) -> str:
    """Return the text of a function, with a mark for arguments that uses of it differ in."""
    typed = [f"{tree}: Params" for tree in trees(writer)] + [f"{argument}: Array" for argument in arguments]
    kinds = {"training": "bool", "key": "Array" if writer.body.must_draw else "Array | None"}
    typed += [f"{extra}: {kinds[extra]}" for extra in _extras(writer)]
    result = f"tuple[{result}, Params]" if writer.renews else result
    return layout.function(name, [*typed[:-1], f"{typed[-1]}ARGUMENTS"], writer.body.lines, doc, result)


def _loop_function(step: Step) -> str:
    """Return the text of the function of a loop."""
    writer, body = step.writer, step.writer.body
    sequences = [name for name, of_step in step.operands.items() if of_step]
    draws = "key" in body.extras
    head = _unpacked(step, sequences, draws)
    states = [_after(step, place) for place in range(len(step.states))]
    outputs = [_text(writer, node) for node in step.unit.outputs]
    lines = [*head, *body.lines, f"return {_tuple(states)}, {_tuple(outputs)}"]
    first = step.states[0].name if len(step.states) == 1 and step.states[0].steps == 1 else "states"
    second = sequences[0] if len(sequences) == 1 and not draws else "inputs"
    kinds = "Array" if first != "states" else "tuple", "Array" if second != "inputs" else "tuple"
    result = f"tuple[{kinds[0]}, {'Array' if len(step.unit.outputs) == 1 else 'tuple'}]"
    body.lines = [f"def step({first}: {kinds[0]}, {second}: {kinds[1]}) -> {result}:"]
    body.lines += [f"    {line}" for line in lines]
    starts = [f"({state.start},) * {state.steps}" if state.steps > 1 else state.start for state in step.states]
    body.line("")
    body.line(f"start = {_tuple(starts)}")
    passed = list(sequences)
    if draws:
        passed.append(f"jnp.broadcast_to(jnp.arange({step.first}.shape[1]), {step.first}.shape[:2])")
    inputs = passed[0] if second != "inputs" else f"({', '.join(passed)}{',' * (len(passed) == 1)})"
    options = f", {body.mask(step.unit.loop[0].axis)}, reverse=True" if step.backwards else ""
    body.line(f"return {body.helper('scan_steps')}(step, start, {inputs}{options})")
    arguments = [*step.operands, *body.asked.values()]
    doc = "Return the values of all steps (batch, steps, ...)."
    return function(writer, "NAME", arguments, doc, kind_of(len(step.unit.outputs)))


def _tuple(texts: list[str]) -> str:
    """Return values as one: a tuple where they are several."""
    return texts[0] if len(texts) == 1 else f"({', '.join(texts)})"


def _text(writer: Writer, node: Node) -> str:
    """Return the text of a value; one that was refused has none."""
    return writer.values[node].text if node in writer.values else "None"


def _unpacked(step: Step, sequences: list[str], draws: bool) -> list[str]:
    """Return the statements that name what a step reads."""
    lines: list[str] = []
    queues = [state.name if state.steps == 1 else f"{state.name}_queue" for state in step.states]
    if len(queues) > 1:
        lines.append(f"{', '.join(queues)} = states")
    elif step.states[0].steps > 1:
        lines.append(f"{queues[0]} = states")
    if len(sequences) > 1 or draws:
        lines.append(f"{', '.join([*sequences, *['t'] * draws])} = inputs")
    lines += [f"{state.name} = {state.name}_queue[0]" for state in step.states if state.steps > 1]
    if draws:
        lines.append(f"step_key = {step.writer.body.helper('fold')}(key, t[0])")
    return lines


def _after(step: Step, place: int) -> str:
    """Return the text of a state after a step."""
    state, new = step.states[place], _text(step.writer, step.sources[place])
    return new if state.steps == 1 else f"(*{state.name}_queue[1:], {new})"
