"""A network as a graph of ONNX operators.

Where no node looks along time, every frame is a sample, and values have one leading axis. Otherwise they have two, time
first, and all sequences of a minibatch have equally many steps. Parameters have none, and what depends on parameters
alone is computed at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.networks.compile.plan import Plan
from cntkpy.networks.graph.axes import DEFAULT, ONE, first_step_of, held
from cntkpy.networks.graph.network import Network, Node, ValidatedNetwork
from cntkpy.networks.graph.order import is_loop
from cntkpy.networks.nodes import create, heading
from cntkpy.networks.nodes.onnx_support.graph import Dims, Emitter, Graph, Names, NotExpressible, Port
from cntkpy.networks.nodes.onnx_support.use import Operand, Use
from cntkpy.networks.onnx import cells, loops
from cntkpy.networks.onnx.prune import prune
from cntkpy.networks.onnx.table import REFUSED, RULES

OPSET = 17
"""The version of the operators that is written by default."""

OPSETS = range(17, 28)

MOST_CANDIDATES = 8
"""Nodes that a message names, at most."""

Evaluate = Callable[[ValidatedNetwork, list[str]], Mapping[str, np.ndarray]]
"""Computes nodes that do not depend on data: `(network, names) -> values by name`."""


@dataclass(frozen=True)
class Settings:
    """Options of an export.

    Args:
        outputs: names of nodes; none: those of the group `output`.
        softmax: names of nodes whose softmax is an output, too.
        opset: the version of the operators.
        double: elements of 8 bytes; else of 4.
        batch_first: inputs and outputs have the batch before time.
        indices: names of inputs that are integers, the numbers of the ones of one-hot vectors.
        lengths: whether sequences may have different lengths, which further inputs say.
        means: by name of the input, what is subtracted from it first, in the order of memory.
    """

    outputs: tuple[str, ...] = ()
    softmax: tuple[str, ...] = ()
    opset: int = OPSET
    double: bool = False
    batch_first: bool = False
    indices: tuple[str, ...] = ()
    lengths: bool = False
    means: Mapping[str, np.ndarray] = field(default_factory=dict[str, np.ndarray])


@dataclass
class Exported:
    """A model before it becomes a file.

    Attributes:
        graph: the operators.
        constants: the initialisers.
        dtype: of the elements.
        opset: the version of the operators.
        axes: the leading axes of inputs and outputs, as words.
        inputs, outputs: nodes.
        unused: inputs whose values do not matter; they are not in the graph.
        network: what was exported.
        notes: what the user should know.
        indices: the inputs that are integers.
        lengths: by time axis, the inputs with the numbers of steps of sequences.
        means: by name of the input, what the model subtracts from it, and the network does not.
        joined: the names of initialisers that are made of several parameters which training changes.
    """

    graph: Graph
    constants: dict[str, np.ndarray]
    dtype: np.dtype[np.floating]
    opset: int
    axes: tuple[str, ...]
    inputs: list[Node]
    unused: list[Node]
    outputs: list[Node]
    network: ValidatedNetwork
    notes: list[str] = field(default_factory=list[str])
    indices: list[Node] = field(default_factory=list[Node])
    lengths: dict[str, str] = field(default_factory=dict[str, str])
    means: dict[str, np.ndarray] = field(default_factory=dict[str, np.ndarray])
    joined: list[str] = field(default_factory=list[str])


def export(network: Network, evaluate: Evaluate, settings: Settings = Settings(), name: str = "network") -> Exported:
    """Make a graph of ONNX operators of a network.

    Args:
        network: the network; a softmax that is asked for is added to it.
        evaluate: computes nodes that depend on parameters alone.
        settings: what is asked for.
        name: of the graph.

    Raises:
        UserError: nodes that have no equivalent, all of them with the reason; there is no such output.
    """
    if settings.opset not in OPSETS:
        message = f"opset {settings.opset} cannot be written; possible are {OPSETS[0]} to {OPSETS[-1]}"
        raise UserError("InvalidArgument", message)
    names = _outputs(network.validate(), settings)
    return _Export(network.validate(), names, evaluate, settings, name)()


def _outputs(network: Network, settings: Settings) -> list[str]:
    """Return the nodes that are exported, and those whose softmax was added."""
    names = [network.find(output).name for output in settings.outputs]
    for name in settings.softmax:
        source = network.find(name)
        posterior = f"{source.name}.softmax"
        if posterior not in network:
            create(network, "Softmax", posterior, [source])
        names.append(posterior)
    names = names or [node.name for node in network.groups["output"] if not _of_training(node)]
    if not names:
        message = "the network has no output node" + (" but criteria" if network.groups["output"] else "")
        listed = ", ".join(f"--output {candidate}" for candidate in _candidates(network)) or "there is none"
        raise UserError("UnknownNode", message, hint=f"name one: {listed}")
    return list(dict.fromkeys(names))


def _candidates(network: Network) -> list[str]:
    """Return the nodes that one may want to export: what criteria look at, else what nothing looks at."""
    nodes = [node for node in network.nodes.values() if node.has_layout and node.inputs and node.operation in RULES]
    below = {source for node in network.nodes.values() if _of_training(node) for source in node.connected}
    used = {source for node in network.nodes.values() for source in node.connected}
    candidates = [node for node in nodes if node in below] or [node for node in nodes if node not in used]
    return [node.name for node in candidates[-MOST_CANDIDATES:]]


def _of_training(node: Node) -> bool:
    """Return whether a node is an output only if it is asked for."""
    return node.operation in REFUSED or heading(node.kind) == "Criteria"


class _Export:
    """One export; called once."""

    def __init__(
        self, network: ValidatedNetwork, names: list[str], evaluate: Evaluate, settings: Settings, name: str
    ) -> None:
        self.network, self.settings = network, settings
        self.plan = Plan(network, names, training=False)
        needed = set(self.plan.inputs)
        self.inputs = [node for node in network.nodes.values() if node in needed]  # in the order of the network
        self.dtype = np.dtype(np.float64 if settings.double else np.float32)
        self.names = Names()
        for node in self.plan.nodes:
            self.names.take(node.name)
        self.emit = Emitter(Graph(name), self.names, {}, self.dtype, settings.opset)
        self.values: dict[Node, Operand] = {}
        self.refused: dict[Node, str] = {}
        self.fixed = fixed_nodes(self.plan.nodes)
        self.lead = 2 if along_time(self.plan.nodes) else 1
        self.folded = _folded(network, self.plan, self.fixed, evaluate, self.refused, self.dtype)
        self.indices = [_index(network, index) for index in settings.indices]
        self.means = _means(network, settings.means, self.dtype)

    def __call__(self) -> Exported:
        for node in self.plan.outputs:
            if node.is_parameter or node.kind.layout == "always":
                reason = "an input" if node.kind.layout == "always" else "the same whatever the data are"
                raise UserError("NotSupported", f"'{node.name}' cannot be an output: it is {reason}", span=node.span)
        inputs = [self._input(node) for node in self.inputs]
        if self.settings.lengths and self.lead == 2:
            inputs += self._lengths()
        lengths = dict(self.emit.lengths)
        for component in self.plan.components:
            if component[0] in self.fixed or component[0].kind.layout == "always":
                continue
            if is_loop(component):
                self._loop(component)
            else:
                self._node(component[0])
        if self.refused:
            raise _refusal(self.refused)
        self.emit.graph.inputs = inputs
        self.emit.graph.outputs = [self._output(node) for node in self.plan.outputs]
        prune(self.emit.graph, self.emit.constants, self.names.derived)
        used = {port.name for port in self.emit.graph.inputs}
        axes = self._axes(DEFAULT)
        return Exported(
            self.emit.graph,
            self.emit.constants,
            self.dtype,
            self.settings.opset,
            axes,
            [node for node in self.inputs if node.name in used],
            [node for node in self.inputs if node.name not in used],
            self.plan.outputs,
            self.network,
            _notes(self.plan, self.network.precision, self.settings.double),
            self.indices,
            {axis: name for axis, name in lengths.items() if name in used},
            {node.name: mean for node, mean in self.means.items() if node.name in used},
            sorted(self.names.trained.intersection(self.emit.constants)),
        )

    # ---- inputs and outputs

    def _axes(self, axis: str | None) -> tuple[str, ...]:
        """Return the leading axes of what is on a time axis, as users see them."""
        if self.lead == 1 or axis == ONE:
            return ("batch",)
        time = "sequence" if axis in (None, DEFAULT) else f"sequence_{axis}"
        return ("batch", time) if self.settings.batch_first else (time, "batch")

    def _port(self, node: Node) -> Port:
        axes = self._axes(node.axis) if node.has_layout else ()
        if node in self.indices:
            return Port(node.name, axes, "integer")
        if node.operation == "AttentionWeights":  # as many elements as the sequence of the keys has steps
            keys = next(axis for axis in self._axes(node.input(1).axis) if axis != "batch")
            return Port(node.name, (*axes, keys, 1))
        return Port(node.name, (*axes, *_reversed(node)))

    def _lengths(self) -> list[Port]:
        """Return the inputs with the numbers of steps of sequences, one for each time axis of inputs."""
        axes = dict.fromkeys(node.axis for node in self.inputs if node.axis not in (None, ONE))
        ports: list[Port] = []
        for axis in axes:
            name = self.names.take("lengths" if axis == DEFAULT else f"lengths_{axis}")
            self.emit.lengths[str(axis)] = name
            ports.append(Port(name, ("batch",), "integer"))
        return ports

    def _turned(self, name: str, node: Node, out: bool, dims: Dims | None = None) -> str:
        """Return a value as users see it (`out`), or the other way round: batch first, and one step without time.

        dims: the sizes after the leading axes, if they are not those of the node.
        """
        dims = _reversed(node) if dims is None else dims
        if self.lead == 1 or not node.has_layout:
            return name
        if node.axis == ONE:
            return self.emit.squeeze(name, 0) if out else self.emit.unsqueeze(name, 0)
        if not self.settings.batch_first:
            return name
        return self.emit.op("Transpose", name, perm=[1, 0, *range(2, 2 + len(dims))])

    def _input(self, node: Node) -> Port:
        self.emit.owner = node.name
        if node in self.indices:
            index = self._turned(node.name, node, False, ())
            depth, values = self.emit.integers(_reversed(node)), self.emit.constant(np.array([0, 1], self.dtype))
            one_hot = self.emit.op("OneHot", index, depth, values, axis=-1)
            self.values[node] = Operand(one_hot, self.lead, _reversed(node), index)
        else:
            value = self._turned(node.name, node, False)
            if node in self.means:
                mean = self.emit.constant(self.means[node], f"{node.name}/mean")
                value = self.emit.op("Sub", value, mean)
            self.values[node] = Operand(value, self.lead, _reversed(node))
        return self._port(node)

    def _output(self, node: Node) -> Port:
        value = self._value(node)
        self.emit.owner = node.name
        start = len(self.emit.graph.operators)
        result = self._turned(value.name, node, True)
        if result == node.name:
            return self._port(node)
        if result == value.name:
            result = self.emit.op("Identity", result)
        if value.name == node.name:  # the name goes to what users see
            self.emit.rename(node.name, self.names.take(f"{node.name}/inner"))
        self.emit.rename(result, node.name, start)
        return self._port(node)

    # ---- what is the same for all samples

    def _value(self, node: Node) -> Operand:
        """Return a value in the graph; that of a node that does not depend on data becomes an initialiser when it is
        used.
        """
        if node not in self.values and node in self.folded:
            self.emit.constants[node.name] = self.folded[node]
            self.values[node] = Operand(node.name, 0, _reversed(node))
        return self.values[node]

    # ---- nodes

    def _node(self, node: Node) -> None:
        if not all(node in self.values or node in self.folded for node in node.connected):
            if not any(node in self.refused for node in self.network.below([node])):
                self.refused[node] = "an operand has no value"
            return
        self.emit.owner = node.name
        start = len(self.emit.graph.operators)
        if node in self.plan.zeros:
            grid = next((self._value(i) for i in node.connected if i.axis == node.axis), None)
            if grid is None:
                self.refused[node] = "its operands carry no data"
                return
            leading = self.emit.leading(grid.name, self.lead)
            result = self.emit.expand(self.emit.real(0), leading, _reversed(node))
        else:
            try:
                result = self.rule(node, self.emit, [self._value(node) for node in node.connected], self.lead)
            except NotExpressible as problem:
                self.refused[node] = str(problem)
                return
        result = node.name if self.emit.rename(result, node.name, start) else result
        self.values[node] = Operand(result, self.lead if node.has_layout else 0, _reversed(node))

    def rule(self, node: Node, emit: Emitter, operands: list[Operand], lead: int) -> str:
        """Return the name of the value of a node, after its operators were added.

        Raises:
            NotExpressible: it has no equivalent.
        """
        rule = RULES.get(node.operation)
        if rule is None:
            raise NotExpressible(REFUSED.get(node.operation, "this operation has no equivalent"))
        constants = {k: self.folded[operand] for k, operand in enumerate(node.connected) if operand in self.folded}
        return rule(Use(node, operands, emit, lead if node.has_layout else 0, constants))

    def _in_every_step(self, node: Node, data: Operand) -> Operand:
        """Return data of one step per sequence at every step of the axis of a node."""
        like = next(n for n in self.network.below([node]) if n.axis == node.axis and n in self.values)
        self.emit.owner, start = node.name, len(self.emit.graph.operators)
        result = self.emit.expand(data.name, self.emit.leading(self.values[like].name, self.lead), data.dims)
        result = node.name if self.emit.rename(result, node.name, start) else result
        return Operand(result, self.lead, data.dims)

    def _loop(self, component: list[Node]) -> None:
        outside = {i for node in component for i in node.connected} - set(component)
        if not all(node in self.values or node in self.folded for node in outside):
            return
        loop = held(component)
        source = loop and first_step_of(loop[2])
        if loop and source and source in self.values:
            self.values[loop[0]] = self._in_every_step(loop[0], self.values[source])
            return
        if self.dtype == np.float32:  # runtimes have no LSTM and GRU of other numbers
            cell = cells.recognised(component, self.plan, self.folded)
            if cell is not None:
                self.values[cell.result] = cells.write(cell, self._value, self.folded, self.emit)
                return
        try:
            results = loops.scan(component, self.plan, self._value, self.emit, self.rule)
        except loops.Refused as problem:
            self.refused |= problem.reasons
            return
        self.values |= results


def _notes(plan: Plan, precision: str, double: bool) -> list[str]:
    """Return the notes about an export: parameters of another type, statistics that were never updated."""
    notes: list[str] = []
    if precision == "double" and not double:
        notes.append("the network is of precision double; its parameters are written as float (--double)")
    if precision == "half":
        notes.append("the network is of half precision; the model has its parameters, and computes, in float")
    never = [n.name for n in plan.nodes if n.kind.running and n.operation == "BatchNormalization" and not n.samples]
    if never:
        listed = ", ".join(f"'{name}'" for name in never[:5]) + (", ..." if len(never) > 5 else "")
        notes.append(f"the running statistics were never updated by a training here: {listed}")
    return notes


def _index(network: Network, name: str) -> Node:
    """Return an input of vectors that are given by the numbers of their ones."""
    node = network.find(name)
    if node.kind.layout != "always" or len(node.shape or ()) != 1:
        raise UserError("InvalidArgument", f"'{node.name}' is not an input of vectors, which indices can stand for")
    return node


def _refusal(refused: Mapping[Node, str]) -> UserError:
    """Return one error for all nodes that have no equivalent."""
    listed = "\n".join(f"  {node.operation} '{node.name}': {why}" for node, why in refused.items())
    count = f"{len(refused)} node" + "s" * (len(refused) > 1)
    message = f"the network cannot be written as ONNX, because of {count}:\n{listed}"
    hint = "export a part of it: --output NODE, in Python a function that it is made of"
    return UserError("NotSupported", message, hint=hint)


def _folded(
    network: ValidatedNetwork,
    plan: Plan,
    fixed: set[Node],
    evaluate: Evaluate,
    refused: dict[Node, str],
    dtype: np.dtype[np.floating],
) -> dict[Node, np.ndarray]:
    """Return the values of nodes that do not depend on data: outputs, and where they meet nodes that do."""
    wanted = {i for node in plan.nodes if node not in fixed for i in node.connected if i in fixed}
    wanted |= fixed.intersection(plan.outputs)
    folded: dict[Node, np.ndarray] = {}
    computed: list[Node] = []
    for node in (node for node in plan.nodes if node in wanted):
        if node.value is not None and (node.is_parameter or node.kind.precompute):
            folded[node] = node.value
        elif node.is_parameter:
            refused[node] = "it has no value"
        elif not node.kind.time.makes_axis:
            computed.append(node)
    if computed:
        values = evaluate(network, [node.name for node in computed])
        folded |= {node: np.asarray(values[node.name]) for node in computed}
    return {node: value.astype(dtype).reshape(_reversed(node)) for node, value in folded.items()}


def _reversed(node: Node) -> tuple[int, ...]:
    return tuple(reversed(node.shape or ()))


def _means(network: Network, means: Mapping[str, np.ndarray], dtype: np.dtype[np.floating]) -> dict[Node, np.ndarray]:
    """Return the arrays subtracted from inputs, in the shape of their samples.

    Raises:
        UserError: there is no such input, or it has another size.
    """
    constants: dict[Node, np.ndarray] = {}
    for name, mean in means.items():
        node = network.find(name)
        if node.kind.layout != "always" or mean.size != np.prod(_reversed(node), dtype=int):
            reason = f"of the shape {list(_reversed(node))}" if node.kind.layout == "always" else "no input"
            message = (
                f"a mean of the shape {list(mean.shape)} cannot be subtracted from '{node.name}', which is {reason}"
            )
            raise UserError("InvalidArgument", message)
        constants[node] = mean.astype(dtype).reshape(_reversed(node))
    return constants


def fixed_nodes(nodes: Iterable[Node]) -> set[Node]:
    """Return the nodes that do not depend on data."""
    constant_nodes: set[Node] = set()
    for node in nodes:  # inputs before their users
        known = node.kind.precompute and node.computed
        constant = (
            not node.has_layout and not node.kind.random and node.kind.layout != "always" and not node.kind.memory
        )
        if known or (constant and not node.kind.precompute and all(node in constant_nodes for node in node.connected)):
            constant_nodes.add(node)
    return constant_nodes


def along_time(nodes: list[Node]) -> bool:
    """Return whether nodes look along time, or are on several time axes."""
    axes = {node.axis for node in nodes if node.kind.layout == "always"}
    return len(axes) > 1 or any(
        node.kind.time.delay
        or node.kind.time.own_slots
        or node.kind.time.keeps_steps
        or (node.operation == "OptimizedRNNStack" and int(node.options["axis"]) != 2)
        or node.operation in ("GatherPacked", "ScatterPacked")
        for node in nodes
    )
