"""Writes functions: the statements that compute units, and the names of values."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from cntkpy.networks.graph.node import Node
from cntkpy.networks.nodes.source_support.body import Body
from cntkpy.networks.nodes.source_support.dialect import Dialect
from cntkpy.networks.nodes.source_support.layers import Layer, Tensor, Unit
from cntkpy.networks.nodes.source_support.names import Names, given_name
from cntkpy.networks.nodes.source_support.use import Use
from cntkpy.networks.nodes.source_support.values import LONGEST_INLINE, NotExpressible, Value, dims_of, lead_of, number
from cntkpy.networks.source.blocks import Block, chains
from cntkpy.networks.source.classes import Classes
from cntkpy.networks.source.planner import Planner
from cntkpy.networks.source.table import NUMBERS

SHORT = 2
"""Characters of a name that says nothing of a recurrent layer."""


def quoted(name: str) -> str:
    """Return a name of a file or node so that it ends neither a text of Python nor a line, and is no mark."""
    return "".join(letter if letter.isprintable() and letter not in '"\\«»⟦⟧' else "?" for letter in name)


class Doc(NamedTuple):
    """A docstring.

    Attributes:
        summary: its first line.
        arguments: a line for each argument.
    """

    summary: str
    arguments: list[str]


class Top(NamedTuple):
    """The function of a whole network.

    Attributes:
        title: what the model is called.
        arguments: names of inputs and masks.
        returned: the texts of the outputs.
        doc: of the function.
    """

    title: str
    arguments: list[str]
    returned: list[str]
    doc: Doc


class Written(NamedTuple):
    """A written file.

    Attributes:
        text: of the file.
        name: of its class or function.
        tensors: by name in the state of the module, or in the trees of the function.
        trees: arguments of the function in front of the inputs, in JAX.
        renews: whether the function gives a new state, too, in JAX.
        draws: whether the function needs a key of random numbers, in JAX.
    """

    text: str
    name: str
    tensors: dict[str, Tensor]
    trees: tuple[str, ...] = ()
    renews: bool = False
    draws: bool = False


class Form(Protocol):
    """Parameters, layers, blocks and loops, as a framework writes them.

    Attributes:
        dialect: the framework.
        taken: names that layers and parameters have already.
        reserved: names that no layer or parameter can have.
    """

    dialect: Dialect
    taken: frozenset[str]
    reserved: frozenset[str]

    def classes(self) -> Classes:
        """Return a place for the classes of a file."""
        ...

    def module(self, writer: Writer, top: Top) -> Written:
        """Return the file."""
        ...

    def parameter(self, writer: Writer, name: str, node: Node) -> str:
        """Declare a parameter or constant; return the text that reads it."""
        ...

    def layer(self, writer: Writer, layer: Layer, name: str, use: Use) -> None:
        """Declare a layer; say how a use calls it."""
        ...

    def block(self, writer: Writer, block: Block) -> Unit:
        """Write the class of a block; return a unit that calls it."""
        ...

    def chain(self, writer: Writer, blocks: list[Block]) -> list[Unit]:
        """Write the classes of blocks, each of which reads the one before alone; return units that call them."""
        ...

    def loop(self, writer: Writer, unit: Unit, values: list[Value]) -> list[Value]:
        """Write the class of a loop and a call of it; return the results."""
        ...


class Writer:
    """Writes one class.

    Args:
        planner: makes units of loops.
        form: how the framework writes layers, blocks and loops.
        classes: takes the classes of loops and blocks.
        helpers: takes the names of helpers.
        plain: whether names say what values are in any use of the class, not what they are in the network.
        top: whether comments say the sizes of values.

    Attributes:
        init: the lines of the constructor.
        tensors: by name in the class.
        state: the names of those that no training changes by gradients, in JAX.
        renews: whether the function gives a new state, too, in JAX.
        values: by node.
        notes: what the README says of layers.
    """

    def __init__(
        self,
        planner: Planner,
        form: Form,
        classes: Classes,
        helpers: set[str],
        *,
        plain: bool = False,
        top: bool = False,
    ) -> None:
        self.graph, self.planner, self.form, self.classes = planner.graph, planner, form, classes
        self.plain, self.top = plain, top
        self.body = Body(planner.dialect, Names(reserved=planner.dialect.reserved), helpers)
        self.body.plain = plain
        self.body.mask_names = {} if plain else planner.mask_names
        self.init: list[str] = []
        self.tensors: dict[str, Tensor] = {}
        self.state: set[str] = set()
        self.renews = False
        self.arguments: list[str] = []
        self.values: dict[Node, Value] = {}
        self.names = Names(form.taken, form.reserved)
        self._uses: dict[Node, int] = {}
        self._outputs: set[Node] = set()
        self.along_time = self.graph.along_time
        self.notes: list[str] = []

    # ---- values

    def given(self, node: Node) -> str:
        """Return the name of a node in the network, as far as names of the network count here."""
        return "" if self.plain else given_name(node)

    def argument(self, node: Node, lead: int, hint: str = "", kept: bool = False) -> str:
        """Add an argument of the function.

        Args:
            node: whose value it is.
            lead: how many leading axes it has.
            hint: a name, where the node has none.
            kept: whether no other value takes its name: all steps of a loop read it.
        """
        name = self.body.names.take(self.given(node) or hint or "x")
        if not kept:
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
        source = node if node.is_parameter else None
        value, buffer = self.graph.value(node), not node.trainable
        self.tensors[name] = Tensor(value, source, lambda array: array.reshape(dims), buffer=buffer)
        self.values[node] = Value(self.form.parameter(self, name, node), 0, dims)
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
        self.body.drop_unused(self.body.masks.values())

    def _unit(self, unit: Unit) -> None:
        values = [self.value(operand, unit.node) for operand in unit.operands]
        use = Use(unit.node, values, self.body, lead_of(unit.node, self.along_time))
        for operand in unit.operands:
            self.body.read(operand)
        if unit.loop:
            results = self.form.loop(self, unit, values)
        else:
            if unit.layer is not None:
                name = self.names.take(self._layer_name(unit.node, unit.layer) or unit.layer.hint)
                self.form.layer(self, unit.layer, name, use)
                if unit.layer.note:
                    self.notes.append(f"`{name}`: {unit.layer.note}")
            results = unit.code(use)
        for operand in unit.operands:
            self.body.pending.pop(operand, None)
        for node, value in zip(unit.outputs, results, strict=True):
            self._keep(node, value)

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

    def write_blocks(self, parts: list[Unit | Block], outputs: list[Node]) -> None:
        """Write the statements of units, and of repeated blocks as the uses of classes."""
        units: list[Unit] = []
        for part in chains(self.graph, parts):
            units += [part] if isinstance(part, Unit) else self.form.chain(self, part)
        self.write(units, outputs)

    def inner(self, *, plain: bool = False) -> Writer:
        """Return a writer of another class of the file."""
        return Writer(self.planner, self.form, self.classes, self.body.helpers, plain=plain)
