"""The form of PyTorch: modules with a constructor and `forward`."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from cntkpy.networks.graph.node import Node
from cntkpy.networks.nodes import tables
from cntkpy.networks.nodes.source_support.dialect import Dialect, Word
from cntkpy.networks.nodes.source_support.helpers import with_needs
from cntkpy.networks.nodes.source_support.layers import Layer, Tensor, Unit
from cntkpy.networks.nodes.source_support.names import Names, class_name, given_name, snake
from cntkpy.networks.nodes.source_support.use import Use
from cntkpy.networks.nodes.source_support.values import Dims, Value, dims_of, lead_of, with_ones
from cntkpy.networks.source import layout
from cntkpy.networks.source.blocks import Block, block_name
from cntkpy.networks.source.classes import Classes, plain
from cntkpy.networks.source.loops import State, Step, call_loop, write_step
from cntkpy.networks.source.table import SPELLINGS
from cntkpy.networks.source.writer import Top, Writer, Written, quoted

_MODULE_NAMES = {
    *("forward", "training", "step", "modules", "parameters", "train", "eval", "half", "double", "float", "type"),
    *("add_module", "bfloat16", "call_super_init", "dump_patches", "extra_repr", "get_buffer", "get_parameter"),
    *("get_submodule", "ipu", "load_state_dict", "mtia", "named_buffers", "named_children", "named_modules", "xpu"),
    *("named_parameters", "register_module", "register_parameter", "requires_grad_", "share_memory", "zero_grad"),
    *("get_extra_state", "set_extra_state", "set_submodule", "to_empty", "T_destination"),
    *("apply", "buffers", "children", "to", "cpu", "cuda", "register_buffer", "state_dict", "criteria", "compile"),
}
"""Names that a module has already, or gets."""

_WORDS: dict[str, Word] = {
    "zero_start": "{0}.new_zeros(len({0}), {1})",
    "full_start": "{0}.new_full((len({0}), {1}), {2})",
    "same_start": "{0}.expand(len({1}), {2})",
}


def _reshape(bound: Callable[[Value], Value], value: Value, dims: Dims) -> str:
    """Return the text of a value with other sample axes of as many elements."""
    lead, entry = value.lead, value.dims
    if lead and len(dims) == 1 and len(entry) > 1:
        return f"{value.atom}.flatten({lead})"
    if short := with_ones(value, dims):
        return short
    if len(entry) == 1 and len(dims) > 1 and lead:
        return f"{value.atom}.unflatten({lead}, {dims})"
    sizes = ", ".join(map(str, dims)) or "()"
    if lead == 0:
        return f"{value.atom}.reshape({sizes})"
    if lead == 1:
        return f"{value.atom}.reshape(-1, {sizes})"
    return f"{value.atom}.flatten(2).unflatten(2, {dims})" if len(entry) > 1 else f"{value.atom}.unflatten(2, {dims})"


TORCH = Dialect(
    name="PyTorch",
    words={**_WORDS, **{word: both[0] for word, both in SPELLINGS.items()}},
    helpers=tables("source_torch", "HELPERS"),
    names=frozenset({"torch", "nn", "F", "Tensor"}),
    reshape=_reshape,
)


def kind_of(count: int) -> str:
    """Return the type of a number of results."""
    return "Tensor" if count == 1 else f"tuple[{', '.join('Tensor' for _ in range(count))}]"


class _Written(NamedTuple):
    """The class of a block.

    Attributes:
        block: the block.
        hint: the name of the class.
        text: of the class, with marks.
        tensors: by name in the class.
        asked: the time axes whose masks it takes.
    """

    block: Block
    hint: str
    text: str
    tensors: dict[str, Tensor]
    asked: dict[str, str]


def _unit(writer: Writer, run: list[_Written]) -> Unit:
    """Return a unit that calls equal blocks, one after the other."""
    first = run[0]
    name, mark = snake(first.hint), writer.classes.add(first.hint, first.text)
    tensors = first.tensors
    if len(run) > 1:
        name = f"{name}s"
        every = f"{mark}, {mark}" if len(run) == 2 else f"*({mark} for _ in range({len(run)}))"
        mark = f"nn.Sequential({every})"
        tensors = {
            f"{place}.{key}": tensor for place, written in enumerate(run) for key, tensor in written.tensors.items()
        }
    layer = Layer(name, mark, [], tensors)

    def code(use: Use) -> list[Value]:
        passed = [value.text for value in use.values] + [use.body.mask(axis) for axis in first.asked]
        return [use.value(f"{use.layer}({', '.join(passed)})")]

    return Unit([run[-1].block.output], first.block.operands, code, layer)


class TorchForm:
    """Modules of PyTorch."""

    dialect, taken, reserved = TORCH, frozenset(_MODULE_NAMES), TORCH.reserved

    def classes(self) -> Classes:
        """Return a place for the classes of a file."""
        return Classes()

    def module(self, writer: Writer, top: Top) -> Written:
        """Return the file."""
        names = Names(TORCH.names, TORCH.reserved)
        name, title = names.take(class_name(top.title)), quoted(top.title)
        writer.body.line(f"return {', '.join(top.returned)}")
        doc = "\n".join([top.doc.summary, "", "Args:", *(f"    {line}" for line in top.doc.arguments)])
        forward = layout.method("forward", top.arguments, writer.body.lines, doc, kind_of(len(top.returned)))
        text = layout.class_text(f"The network of {title}.", writer.init, [forward])
        writer.classes.add(f"={name}", text)
        helpers = [TORCH.helpers[helper] for helper in with_needs(TORCH.helpers, writer.body.helpers)]
        body = layout.laid_out(plain("\n\n\n".join([*helpers, *writer.classes.resolve(names)])))
        imports = ["import math\n"] if "math." in body else []
        if "torch." in body:
            imports.append("import torch")
        if "F." in body:
            imports.append("import torch.nn.functional as F")
        imports.append("from torch import Tensor, nn")
        head = f'"""The model {title}; its weights are in weights.safetensors."""\n\n'
        return Written(head + "\n".join(imports) + "\n\n\n" + body + "\n", name, writer.tensors)

    def parameter(self, writer: Writer, name: str, node: Node) -> str:
        """Declare a parameter or constant; return the text that reads it."""
        sizes = ", ".join(f"«size={size}»" for size in dims_of(node)) or "()"
        if node.trainable:
            writer.init.append(f"self.{name} = nn.Parameter(torch.empty({sizes}))")
        else:
            writer.init.append(f'self.register_buffer("{name}", torch.empty({sizes}))')
        return f"self.{name}"

    def layer(self, writer: Writer, layer: Layer, name: str, use: Use) -> None:
        """Declare a module; say how a use calls it."""
        writer.init.append(f"self.{name} = {layer.module if '⟦' in layer.module else layer.text()}")
        for key, tensor in layer.tensors.items():
            writer.tensors[f"{name}.{key}"] = tensor
        use.layer = f"self.{name}"

    def chain(self, writer: Writer, blocks: list[Block]) -> list[Unit]:
        """Write the classes of blocks, equal ones after each other as one `nn.Sequential`."""
        runs: list[list[_Written]] = []
        for block in blocks:
            written = self._block(writer, block)
            same = runs and not written.asked and (written.hint, written.text) == (runs[-1][0].hint, runs[-1][0].text)
            if same:
                runs[-1].append(written)
            else:
                runs.append([written])
        return [_unit(writer, run) for run in runs]

    def block(self, writer: Writer, block: Block) -> Unit:
        """Write the class of a block; return a unit that calls it."""
        return _unit(writer, [self._block(writer, block)])

    def _block(self, writer: Writer, block: Block) -> _Written:
        """Return the class of a block."""
        inner = writer.inner(plain=True)
        for operand in block.operands:
            inner.argument(operand, lead_of(operand, writer.along_time))
        inner.write(block.units, [block.output])
        inner.body.end_with([inner.value(block.output).text])
        hint, asked = block_name(block), dict(inner.body.asked)
        names = inner.arguments
        forward = layout.method("forward", [*names, *asked.values()], inner.body.lines, "Return its value.", "Tensor")
        text = layout.class_text("A block of layers.", inner.init, [forward])
        return _Written(block, hint, text, inner.tensors, asked)

    def loop(self, writer: Writer, unit: Unit, values: list[Value]) -> list[Value]:
        """Write the class of a loop and a call of it; return the results."""
        inner = writer.inner()
        text = self._loop_class(write_step(inner, unit))
        hint = next((given_name(node) for node in unit.outputs if given_name(node)), "") or "recurrence"
        name = writer.names.take(hint)
        writer.init.append(f"self.{name} = {writer.classes.add(class_name(hint), text)}")
        for key, tensor in inner.tensors.items():
            writer.tensors[f"{name}.{key}"] = tensor
        arguments = [value.text for value in values] + [writer.body.mask(axis) for axis in inner.body.asked]
        return call_loop(writer, unit, f"self.{name}({', '.join(arguments)})", writer.along_time)

    def _loop_class(self, step: Step) -> str:
        """Return the text of the class of a loop."""
        writer, body = step.writer, step.writer.body
        body.end_with([writer.values[node].text for node in step.results if node in writer.values])
        masks, operands = list(body.asked.values()), list(step.operands)
        arguments = [*operands, *(state.name for state in step.states), *masks]
        method = layout.method(
            "step", arguments, body.lines, "Return the values of one step.", kind_of(len(step.results))
        )
        body.lines = []
        each = [f"{name}[:, t]" if of_step else name for name, of_step in step.operands.items()]
        self._steps(step, [*each, *(state.before for state in step.states), *masks])
        doc, kind = "Return the values of all steps (batch, steps, ...).", kind_of(len(step.unit.outputs))
        forward = layout.method("forward", [*operands, *body.asked.values()], body.lines, doc, kind)
        return layout.class_text("A recurrence: one step after the other.", writer.init, [method, forward])

    def _steps(self, step: Step, passed: list[str]) -> None:
        """Write the statements that call `step` for each step."""
        body, states, backwards = step.writer.body, step.states, step.backwards
        mask = body.mask(step.unit.loop[0].axis) if backwards else ""
        for state in states:
            body.line(f"{state.name} = {state.start if state.steps == 1 else f'[{state.start}] * {state.steps}'}")
        if backwards:
            for state in states:
                body.line(f"{state.name}_start = {state.name}")
        local = step.local()
        kept = [f"{local[node]}_steps" for node in step.unit.outputs]
        body.line(f"{', '.join(kept)} = {', '.join('[]' for _ in kept)}")
        span = f"range({step.first}.shape[1])"
        body.line(f"for t in {f'reversed({span})' if backwards else span}:")
        body.line(f"    {', '.join(local[node] for node in step.results)} = self.step({', '.join(passed)})")
        for node, name in zip(step.unit.outputs, kept, strict=True):
            body.line(f"    {name}.append({local[node]})")
        if backwards:
            body.line(f"    inside = {mask}[:, t]")
        for state, source in zip(states, step.sources, strict=True):
            after = _after(state, local[source], backwards)
            if after != state.name:
                body.line(f"    {state.name} = {after}")
        order = "[::-1]" if backwards else ""
        body.line("return " + ", ".join(f"torch.stack({name}{order}, dim=1)" for name in kept))


def _after(state: State, new: str, backwards: bool) -> str:
    """Return the text of a state after a step; in the padding that of the start."""
    if backwards:
        axes = "".join(", None" for _ in dims_of(state.delay))
        beyond = f"{state.name}_start" if state.steps == 1 else f"{state.name}_start[0]"
        new = f"torch.where(inside[:{axes}], {new}, {beyond})"
    return new if state.steps == 1 else f"[*{state.name}[1:], {new}]"
