"""Writes classes: the modules in the constructor, the statements of `forward`, one step of a loop."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from cntkpy.networks.graph.axes import ONE
from cntkpy.networks.graph.node import Node
from cntkpy.networks.source import layout, recurrent
from cntkpy.networks.source.blocks import Block
from cntkpy.networks.source.body import Body
from cntkpy.networks.source.classes import Classes
from cntkpy.networks.source.graph import Graph
from cntkpy.networks.source.layers import Layer, Tensor, Unit
from cntkpy.networks.source.names import Names, class_name, given_name, snake
from cntkpy.networks.source.recognise import Recogniser
from cntkpy.networks.source.rules.table import REFUSED, RULES
from cntkpy.networks.source.use import Use
from cntkpy.networks.source.values import LONGEST_INLINE, NotExpressible, Value, dims_of, lead_of, number

NUMBERS = {
    *("Plus", "Minus", "ElementTimes", "ElementPower", "Clip", "If", "LogPlus", "RowStack", "ReconcileDynamicAxis"),
    *("Times", "Less", "LessEqual", "Greater", "GreaterEqual", "Equal", "NotEqual", "PastValue", "FutureValue"),
    *("ClassificationError", "CosDistanceWithNegativeSamples"),
}
"""Operations whose rules take a constant of one element as a number."""

MODULE_NAMES = {
    *("forward", "training", "step", "modules", "parameters", "train", "eval", "half", "double", "float", "type"),
    *("add_module", "bfloat16", "call_super_init", "dump_patches", "extra_repr", "get_buffer", "get_parameter"),
    *("get_submodule", "ipu", "load_state_dict", "mtia", "named_buffers", "named_children", "named_modules", "xpu"),
    *("named_parameters", "register_module", "register_parameter", "requires_grad_", "share_memory", "zero_grad"),
    *("get_extra_state", "set_extra_state", "set_submodule", "to_empty", "T_destination"),
    *("apply", "buffers", "children", "to", "cpu", "cuda", "register_buffer", "state_dict", "criteria", "compile"),
}
"""Names that a module has already, or gets."""


SHORT = 2
"""Characters of a name that says nothing of a recurrent layer."""


class Planner:
    """Makes units of the nodes of a graph.

    Args:
        graph: the graph.
        dropout: the rate of Dropout nodes that have none of their own.

    Attributes:
        refused: by node, why it has no code.
    """

    def __init__(self, graph: Graph, dropout: float) -> None:
        self.graph = graph
        self.find = Recogniser(graph, dropout)
        self.refused: dict[Node, str] = {}
        self.consumed: set[Node] = set()

    def units(self, components: Iterable[list[Node]]) -> list[Unit]:
        """Return the units that compute nodes and loops, operands before their users."""
        components = list(components)
        layers = {
            id(component): recurrent.recognised(self.graph, component)
            for component in components
            if _is_loop(component)
        }
        dead = self._dead([unit for unit in layers.values() if unit is not None])
        results = {unit.node: unit for unit in layers.values() if unit is not None}
        both = {
            component[0]: unit
            for component in components
            if not _is_loop(component)
            and (unit := recurrent.joined_directions(self.graph, component[0], results)) is not None
        }
        single = {item for node in both for item in self.graph.operands(node)}
        deferred: dict[Node, Unit] = {}
        result: list[Unit] = []
        for component in components:
            if _is_loop(component):
                unit = layers[id(component)] or self._loop(component)
                if unit is not None and unit.node not in single:
                    result.append(unit)
                continue
            node = component[0]
            if node in dead or self.graph.is_leaf(node) or node.kind.layout == "always" or node.kind.time.makes_axis:
                continue
            unit = both.get(node) or deferred.pop(node, None) or self._unit(node)
            if unit is None:
                continue
            if unit.node is not node:
                deferred[unit.node] = unit
            else:
                result.append(unit)
        return result

    def _dead(self, layers: list[Unit]) -> set[Node]:
        """The nodes that nothing reads any more, because recurrent layers compute what their users did."""
        absorbed = {node for unit in layers for node in unit.covered}
        read = {operand for unit in layers for operand in unit.operands}
        read |= {self.graph.canonical(node) for node in self.graph.outputs}
        result: set[Node] = set()
        for component in reversed(self.graph.components):
            for node in component:
                users = self.graph.users.get(node, [])
                if (
                    node not in absorbed
                    and node not in read
                    and users
                    and all(u in absorbed or u in result for u in users)
                ):
                    result.add(node)
        return result

    def _unit(self, node: Node) -> Unit | None:
        try:
            layer = self.find.layer(node)
        except NotExpressible as problem:
            self.refused[node] = str(problem)
            return None
        if layer is not None:
            return layer
        if node in self.graph.held:
            return Unit([node], self.graph.operands(node), _repeated)
        rule = RULES.get(node.operation)
        if rule is None:
            self.refused[node] = REFUSED.get(node.operation, "this operation has no code")
            return None

        def code(use: Use) -> list[Value]:
            result = rule(use)
            return [result if isinstance(result, Value) else use.value(result)]

        return Unit([node], self.graph.operands(node), code)

    def _loop(self, component: list[Node]) -> Unit | None:
        members = set(component)
        graph = self.graph
        outputs = [graph.canonical(node) for node in graph.outputs]
        wanted = [
            node for node in component if node in outputs or any(user not in members for user in graph.users[node])
        ]
        operands = list(
            dict.fromkeys(
                source
                for node in component
                for source in graph.operands(node)
                if source not in members and not self._inside(source, members)
            )
        )
        if not any(_is_sequence(source, component[0]) for source in operands):
            self.refused[component[0]] = "it is part of a loop that no data enter"
            return None
        return Unit(wanted, operands, lambda use: [], loop=component)

    def _inside(self, leaf: Node, members: set[Node]) -> bool:
        """Return whether a parameter belongs to a loop."""
        if not self.graph.is_leaf(leaf):
            return False
        return self.graph.number(leaf) is not None or all(user in members for user in self.graph.users[leaf])


def _repeated(use: Use) -> list[Value]:
    """The value of one step, at all steps."""
    source = use.values[0]
    first = f"{source.atom}[:, :1]" if source.lead == 2 else f"{source.atom}[:, None]"
    remainder = "".join(", -1" for _ in source.dims)
    return [use.finished(use.value(f"{first}.expand(-1, {use.mask()}.shape[1]{remainder})", source.dims))]


def kind_of(count: int) -> str:
    """Return the type of a number of results."""
    return "Tensor" if count == 1 else f"tuple[{', '.join('Tensor' for _ in range(count))}]"


def _is_loop(component: list[Node]) -> bool:
    return len(component) > 1 or component[0] in component[0].inputs


def _is_sequence(source: Node, member: Node) -> bool:
    return source.has_layout and not (source.axis == ONE and member.axis != ONE)


class _Operand(NamedTuple):
    """An argument of the class of a loop.

    Attributes:
        name: of the argument.
        of_step: what one step gets of it.
    """

    name: str
    of_step: str


class _State(NamedTuple):
    """The state that a delay in a loop reads.

    Attributes:
        delay: the node.
        name: of the value, or of a list of values where the delay is several steps long.
        start: the text of the value before the first step.
        steps: of the delay.
    """

    delay: Node
    name: str
    start: str
    steps: int

    @property
    def before(self) -> str:
        """The text of the value that a step reads."""
        return self.name if self.steps == 1 else f"{self.name}[0]"

    def after(self, new: str, backwards: bool) -> str:
        """Return the text of the state after a step; in the padding that of the start."""
        if backwards:
            axes = "".join(", None" for _ in dims_of(self.delay))
            beyond = f"{self.name}_start" if self.steps == 1 else f"{self.name}_start[0]"
            new = f"torch.where(inside[:{axes}], {new}, {beyond})"
        return new if self.steps == 1 else f"[*{self.name}[1:], {new}]"


class Writer:
    """Writes one class.

    Args:
        graph: the graph.
        planner: makes units of loops.
        classes: takes the classes of loops and blocks.
        helpers: takes the names of helpers.
        plain: whether names say what values are in any use of the class, not what they are in the network.
    """

    def __init__(
        self,
        graph: Graph,
        planner: Planner,
        classes: Classes,
        helpers: set[str],
        *,
        plain: bool = False,
        top: bool = False,
    ) -> None:
        self.graph, self.planner, self.classes = graph, planner, classes
        self.plain, self.top = plain, top
        self.body = Body(Names(), helpers)
        self.body.plain = plain
        self.init: list[str] = []
        self.tensors: dict[str, Tensor] = {}
        self.arguments: list[str] = []
        self.values: dict[Node, Value] = {}
        self.names = Names(set(MODULE_NAMES))
        self._uses: dict[Node, int] = {}
        self._outputs: set[Node] = set()
        self.along_time = graph.along_time
        self.notes: list[str] = []

    # ---- values

    def given(self, node: Node) -> str:
        """Return the name of a node in the network, as far as names of the network count here."""
        return "" if self.plain else given_name(node)

    def argument(self, node: Node, lead: int, hint: str = "") -> str:
        """Add an argument of the function."""
        name = self.body.names.take(self.given(node) or hint or "x")
        self.body.hold(name, node)
        self.values[node] = Value(name, lead, dims_of(node), axis=node.axis)
        self.arguments.append(name)
        return name

    def value(self, node: Node, user: Node | None = None) -> Value:
        """Return the value of a node, where an operand of `user` is read."""
        if node in self.values:
            return self.values[node]
        if not self.graph.is_leaf(node):
            raise NotExpressible(f"'{node.name}' has no value")
        constant = self.graph.number(node)
        if constant is not None and user is not None and user.operation in NUMBERS:
            return Value(number(constant), 0, (), number=constant)
        name = self.names.take(self.given(node) or ("weight" if node.trainable else "constant"))
        dims = dims_of(node)
        sizes = ", ".join(f"«size={size}»" for size in dims)
        if node.trainable:
            self.init.append(f"self.{name} = nn.Parameter(torch.empty({sizes}))")
        else:
            self.init.append(f'self.register_buffer("{name}", torch.empty({sizes}))')
        source = node if node.is_parameter else None
        value, buffer = self.graph.value(node), not node.trainable
        self.tensors[name] = Tensor(value, source, lambda array: array.reshape(dims), buffer=buffer)
        self.values[node] = Value(f"self.{name}", 0, dims)
        return self.values[node]

    # ---- units

    def write(self, units: list[Unit], outputs: list[Node]) -> None:
        """Write the statements of units."""
        self._outputs = set(outputs)
        for unit in units:
            for operand in unit.operands:
                self._uses[operand] = self._uses.get(operand, 0) + 1
        for node in outputs:
            self._uses[node] = self._uses.get(node, 0) + 1
        self.body.count(dict(self._uses))
        for unit in units:
            try:
                self._unit(unit)
            except NotExpressible as problem:
                if not any(node in self.planner.refused for node in unit.operands):
                    self.planner.refused[unit.node] = str(problem)
                for node in unit.outputs:
                    self.planner.refused.setdefault(node, "")

    def _unit(self, unit: Unit) -> None:
        values = [self.value(operand, unit.node) for operand in unit.operands]
        use = Use(unit.node, values, self.body, lead_of(unit.node, self.along_time))
        for operand in unit.operands:
            self.body.read(operand)
        if unit.loop:
            results = self._loop(unit, values)
        else:
            if unit.layer is not None:
                use.layer = f"self.{self.layer(unit.layer, unit.node)}"
            results = unit.code(use)
        for operand in unit.operands:
            self.body.pending.pop(operand, None)
        for node, value in zip(unit.outputs, results, strict=True):
            self._keep(node, value)

    def layer(self, layer: Layer, node: Node) -> str:
        """Add a module; return its name."""
        name = self.names.take(self._layer_name(node, layer) or layer.hint)
        self.init.append(f"self.{name} = {layer.module if layer.module.startswith('⟦') else layer.text()}")
        for key, tensor in layer.tensors.items():
            self.tensors[f"{name}.{key}"] = tensor
        if layer.note:
            self.notes.append(f"`{name}`: {layer.note}")
        return name

    def _layer_name(self, node: Node, layer: Layer) -> str:
        name = self.given(node)
        if layer.recurrent and len(name) <= SHORT:
            return ""
        while not name and not self.plain:
            users = self.graph.users.get(node, [])
            if len(users) != 1 or not (users[0].kind.pointwise and len(users[0].inputs) == 1):
                break
            node = users[0]
            name = self.given(node)
        return name

    def _keep(self, node: Node, value: Value) -> None:
        value = value._replace(axis=node.axis)
        once = self._uses.get(node, 0) <= 1 and node not in self._outputs
        if value.is_name:
            self.body.hold(value.text, node)
        elif once and not self.given(node) and len(value.text) <= LONGEST_INLINE:
            self.body.pending[node] = value
        else:
            name = self.body.name_for(node)
            self.body.line(f"{name} = {value.text}" + self._comment(name, value))
            value = value._replace(text=name, level=3)
        self.values[node] = value

    def _comment(self, name: str, value: Value) -> str:
        if not self.top:
            return ""
        lead = ("batch", "steps")[: value.lead]
        sizes = ", ".join((*lead, *map(str, value.dims)))
        return f"  # ({sizes}{',' if len(lead) + len(value.dims) == 1 else ''})"

    # ---- blocks

    def write_blocks(self, parts: list[Unit | Block], outputs: list[Node]) -> None:
        """Write the statements of units, and of repeated blocks as the uses of classes."""
        self.write([part if isinstance(part, Unit) else self._use(part) for part in parts], outputs)

    def _use(self, block: Block) -> Unit:
        """Return a unit that calls the class of a block."""
        inner = Writer(self.graph, self.planner, self.classes, self.body.helpers, plain=True)
        for operand in block.operands:
            inner.argument(operand, lead_of(operand, self.along_time))
        inner.write(block.units, [block.output])
        inner.body.end_with([inner.value(block.output).text])
        shortcut = sum(unit.layer is not None and unit.layer.hint == "conv" for unit in block.units) > 2
        hint = ("ShortcutBlock" if shortcut else "ResidualBlock") if block.residual else "Block"
        asked = dict(inner.body.asked)
        names = inner.arguments
        forward = layout.method("forward", [*names, *asked.values()], inner.body.lines, "Return its value.", "Tensor")
        text = layout.class_text("A block of layers.", inner.init, [forward])
        mark = self.classes.add(hint, text)
        layer = Layer(snake(hint), mark, [], inner.tensors)

        def code(use: Use) -> list[Value]:
            passed = [value.text for value in use.values] + [self.body.mask(axis) for axis in asked]
            return [use.value(f"{use.layer}({', '.join(passed)})")]

        return Unit([block.output], block.operands, code, layer)

    # ---- loops

    def _loop(self, unit: Unit, values: list[Value]) -> list[Value]:
        inner = Writer(self.graph, self.planner, self.classes, self.body.helpers)
        text, asked = inner.loop_class(unit)
        hint = next((given_name(node) for node in unit.outputs if given_name(node)), "") or "recurrence"
        name = self.names.take(hint)
        self.init.append(f"self.{name} = {self.classes.add(class_name(hint), text)}")
        for key, tensor in inner.tensors.items():
            self.tensors[f"{name}.{key}"] = tensor
        arguments = [value.text for value in values] + [self.body.mask(axis) for axis in asked]
        call = f"self.{name}({', '.join(arguments)})"
        leads = [lead_of(node, self.along_time) for node in unit.outputs]
        if len(unit.outputs) == 1:
            return [Value(call, leads[0], dims_of(unit.node), axis=unit.node.axis)]
        names = [self.body.name_for(node) for node in unit.outputs]
        self.body.line(f"{', '.join(names)} = {call}")
        return [
            Value(each, lead, dims_of(node), axis=node.axis)
            for each, lead, node in zip(names, leads, unit.outputs, strict=True)
        ]

    def loop_class(self, unit: Unit) -> tuple[str, list[str]]:
        """Return the text of the class of a loop, and the time axes whose masks it takes."""
        graph, body = self.graph, self.body
        delays = [node for node in unit.loop if node.kind.time.delay]
        self.along_time = False
        operands = self._loop_operands(unit)
        first = next(item.name for item in operands if item.of_step != item.name)
        states = [self._state(delay, first) for delay in delays]
        sources = [graph.canonical(delay.input(0)) for delay in delays]
        results = list(dict.fromkeys([*sources, *unit.outputs]))
        self.write(self.planner.units([[node] for node in unit.loop if not node.kind.time.delay]), results)
        body.end_with([self.values[node].text for node in results if node in self.values])
        step_lines, masks = body.lines, list(body.asked.values())
        arguments = [*(item.name for item in operands), *(state.name for state in states), *masks]
        step = layout.method("step", arguments, step_lines, "Return the values of one step.", kind_of(len(results)))
        body.lines = []
        passed = [*(item.of_step for item in operands), *(state.before for state in states), *masks]
        self._steps(unit, first, states, sources, results, passed)
        forward = layout.method(
            "forward",
            [*(item.name for item in operands), *body.asked.values()],
            body.lines,
            "Return the values of all steps (batch, steps, ...).",
            kind_of(len(unit.outputs)),
        )
        return layout.class_text("A recurrence: one step after the other.", self.init, [step, forward]), list(
            body.asked
        )

    def _loop_operands(self, unit: Unit) -> list[_Operand]:
        """The arguments of the class of a loop."""
        whole = {node.input(index) for node in unit.loop for index in node.kind.time.whole}
        result: list[_Operand] = []
        for operand in unit.operands:
            if operand not in whole and _is_sequence(operand, unit.loop[0]):
                name = self.argument(operand, 1)
                result.append(_Operand(name, f"{name}[:, t]"))
            else:
                name = self.argument(operand, 2 if operand in whole else lead_of(operand, False))
                result.append(_Operand(name, name))
        return result

    def _state(self, delay: Node, first: str) -> _State:
        """The state that a delay reads."""
        start, source = self._start(delay, first), given_name(delay.input(0))
        name = self.body.names.take(given_name(delay) or (f"{source}_before" if source else "h"))
        self.body.hold(name, delay)
        self.values[delay] = Value(name, 1, dims_of(delay), axis=delay.axis)
        return _State(delay, name, start, int(delay.options["timeStep"]))

    def _steps(
        self,
        unit: Unit,
        first: str,
        states: list[_State],
        sources: list[Node],
        results: list[Node],
        passed: list[str],
    ) -> None:
        """Write the statements that call `step` for each step."""
        body, backwards = self.body, states[0].delay.kind.time.delay > 0
        mask = body.mask(unit.loop[0].axis) if backwards else ""
        for state in states:
            body.line(f"{state.name} = {state.start if state.steps == 1 else f'[{state.start}] * {state.steps}'}")
        if backwards:
            for state in states:
                body.line(f"{state.name}_start = {state.name}")
        local = self._local(results, [state.name for state in states])
        kept = [f"{local[node]}_steps" for node in unit.outputs]
        body.line(f"{', '.join(kept)} = {', '.join('[]' for _ in kept)}")
        span = f"range({first}.shape[1])"
        body.line(f"for t in {f'reversed({span})' if backwards else span}:")
        body.line(f"    {', '.join(local[node] for node in results)} = self.step({', '.join(passed)})")
        for node, name in zip(unit.outputs, kept, strict=True):
            body.line(f"    {name}.append({local[node]})")
        if backwards:
            body.line(f"    inside = {mask}[:, t]")
        for state, source in zip(states, sources, strict=True):
            after = state.after(local[source], backwards)
            if after != state.name:
                body.line(f"    {state.name} = {after}")
        order = "[::-1]" if backwards else ""
        body.line("return " + ", ".join(f"torch.stack({name}{order}, dim=1)" for name in kept))

    @staticmethod
    def _local(results: list[Node], states: list[str]) -> dict[Node, str]:
        """Return names for the results of a step, outside of it."""
        names = Names({*states, "t", "inside"})
        return {node: names.take(given_name(node) or "new") for node in results}

    def _start(self, delay: Node, first: str) -> str:
        """Return the text of a state before the first step."""
        sizes = ", ".join(f"«size={size}»" for size in dims_of(delay))
        if len(delay.inputs) == 1:
            start = float(delay.options["defaultHiddenActivity"])
            if start == 0:
                return f"{first}.new_zeros(len({first}), {sizes})"
            return f"{first}.new_full((len({first}), {sizes}), {number(start)})"
        initial = self.graph.canonical(delay.input(1))
        constant = self.graph.number(initial)
        if constant is not None:
            return f"{first}.new_full((len({first}), {sizes}), {number(constant)})"
        value = self.value(initial)
        if value.lead:
            return value.text
        return f"{value.atom}.expand(len({first}), {sizes})"
