"""A network as source: the text of `model.py`, and its weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.networks.graph.network import Network, Node, ValidatedNetwork
from cntkpy.networks.nodes import heading
from cntkpy.networks.nodes.source_support.layers import Tensor
from cntkpy.networks.nodes.source_support.values import dims_of, lead_of
from cntkpy.networks.onnx.table import REFUSED as OF_TRAINING
from cntkpy.networks.source.blocks import find_blocks
from cntkpy.networks.source.graph import Evaluate, Graph, prediction_nodes
from cntkpy.networks.source.jax_form import JaxForm
from cntkpy.networks.source.planner import Planner
from cntkpy.networks.source.torch_form import TorchForm
from cntkpy.networks.source.writer import Doc, Form, Top, Writer, Written, quoted

FORMS: dict[str, Form] = {"pytorch": TorchForm(), "jax": JaxForm()}
"""Frameworks that a network can be written for."""

DEFAULT_DROPOUT = 0.5
"""The rate of Dropout nodes where no configuration says one."""


@dataclass(frozen=True)
class Settings:
    """Requests of an export.

    Args:
        outputs: names of nodes; none: the outputs of the network, else what its criteria look at.
        dropout: the rate of Dropout nodes; None: `DEFAULT_DROPOUT`.
        title: what the model is called.
        framework: a word of `FORMS`.
    """

    outputs: tuple[str, ...] = ()
    dropout: float | None = None
    title: str = "Model"
    framework: str = "pytorch"


@dataclass
class Source:
    """A module of PyTorch, or functions of JAX.

    Attributes:
        framework: a word of `FORMS`.
        title: what the model is called.
        file: the text of `model.py`, and what it needs.
        arguments: the nodes that `forward` takes, by name, in order.
        masks: by name of a mask, its time axis.
        indices: the inputs that are integers, the numbers of the ones of one-hot vectors.
        graph: what was written.
        notes: what the user should know.
        layers: what the README says of layers.
    """

    framework: str
    title: str
    file: Written
    arguments: dict[str, Node]
    masks: dict[str, str]
    indices: list[Node]
    graph: Graph
    notes: list[str] = field(default_factory=list[str])
    layers: list[str] = field(default_factory=list[str])

    @property
    def text(self) -> str:
        """The text of `model.py`."""
        return self.file.text

    @property
    def name(self) -> str:
        """The name of the class, or of the function."""
        return self.file.name

    @property
    def tensors(self) -> dict[str, Tensor]:
        """The tensors by name in the state of the module, or in the trees of the function."""
        return self.file.tensors

    @property
    def outputs(self) -> list[Node]:
        """The nodes that `forward` gives."""
        return self.graph.outputs

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the tensors by name, as arrays."""
        return {name: np.asarray(tensor.array, order="C") for name, tensor in self.tensors.items()}


def output_names(network: Network, asked: tuple[str, ...] = ()) -> list[str]:
    """Return the names of the nodes that are written.

    Raises:
        UserError: the network has no such node, or none that could be an output.
    """
    if asked:
        return list(dict.fromkeys(network.find(name).name for name in asked))
    outputs = [node for node in network.groups["output"] if not _of_training(node)]
    result = outputs or prediction_nodes(network)
    if not result:
        hint = "name one: --output NODE"
        raise UserError("UnknownNode", "the network has neither an output node nor a criterion", hint=hint)
    return [node.name for node in result]


def _of_training(node: Node) -> bool:
    return node.operation in OF_TRAINING or heading(node.kind) == "Criteria"


def export(network: ValidatedNetwork, evaluate: Evaluate, settings: Settings = Settings()) -> Source:
    """Write a network as a module of PyTorch, or as functions of JAX.

    Args:
        network: the network.
        evaluate: computes nodes that depend on parameters alone.
        settings: what is asked for.

    Returns:
        The text and the weights.

    Raises:
        UserError: nodes have no code; the error lists all of them.
    """
    graph = Graph(network, output_names(network, settings.outputs), evaluate)
    for node in graph.outputs:
        if node.kind.layout == "always":
            raise UserError("NotSupported", f"'{node.name}' cannot be an output: it is an input", span=node.span)
        if node.operation == "PackedIndex":
            message = f"'{node.name}' cannot be an output: it numbers the cells of a minibatch of CNTK"
            raise UserError("NotSupported", message, span=node.span)
    dropout = DEFAULT_DROPOUT if settings.dropout is None else settings.dropout
    form = FORMS[settings.framework]
    planner = Planner(graph, form.dialect, dropout)
    units = planner.units(graph.components)
    writer = Writer(planner, form, form.classes(), set[str](), top=True)
    arguments: dict[str, Node] = {}
    indices = [node for node in graph.inputs if _is_index(planner, node)]
    for node in graph.inputs:
        name = writer.argument(node, lead_of(node, graph.along_time), "x")
        if node in indices:
            writer.values[node] = writer.values[node]._replace(dims=())
        arguments[name] = node
    writer.body.reserve(graph.canonical(node) for node in graph.outputs)
    writer.write_blocks(find_blocks(graph, units), [graph.canonical(node) for node in graph.outputs])
    if any(planner.refused.values()):
        raise refusal(planner)
    masks = {mask: axis for axis, mask in writer.body.asked.items()}
    doc = _doc(graph, arguments, indices, masks)
    returned = [writer.value(graph.canonical(node)).text for node in graph.outputs]
    file = form.module(writer, Top(settings.title, [*arguments, *masks], returned, doc))
    return Source(
        settings.framework, settings.title, file, arguments, masks, indices, graph, _notes(graph, network), writer.notes
    )


def _is_index(planner: Planner, node: Node) -> bool:
    users = planner.graph.users.get(node, [])
    return (
        bool(users)
        and node.operation == "SparseInputValue"
        and all(user.operation in ("Times", "LookupTable") and planner.find.is_embedding(user) for user in users)
    )


def shape_text(node: Node, along_time: bool, index: bool = False) -> str:
    """Return the shape of a value as the code has it."""
    sizes = [*("batch", "steps")[: lead_of(node, along_time)], *map(str, () if index else dims_of(node))]
    return f"({', '.join(sizes)}{',' if len(sizes) == 1 else ''})"


def _doc(graph: Graph, arguments: dict[str, Node], indices: list[Node], masks: Mapping[str, str]) -> Doc:
    outputs = ", ".join(f"'{quoted(node.name)}'" for node in graph.outputs)
    lines: list[str] = []
    for name, node in arguments.items():
        kind = "integers " if node in indices else ""
        lines.append(f"{name}: {kind}{shape_text(node, graph.along_time, node in indices)}.")
    lines += [f"{mask}: booleans (batch, steps), False where a sequence has ended." for mask in masks]
    return Doc(f"Return {outputs}.", lines)


def refusal(planner: Planner) -> UserError:
    """Return the error that lists all nodes without code."""
    reasons = {node: why for node, why in planner.refused.items() if why}
    listed = "\n".join(f"  {node.operation} '{node.name}': {why}" for node, why in reasons.items())
    count = f"{len(reasons)} node" + "s" * (len(reasons) > 1)
    message = f"the network cannot be written as {planner.dialect.name} source, because of {count}:\n{listed}"
    hint = "write a part of it with --output NODE, or the whole as ONNX: cntkpy export MODEL OUT.onnx"
    return UserError("NotSupported", message, hint=hint)


def _notes(graph: Graph, network: Network) -> list[str]:
    notes: list[str] = []
    for node in graph.pending:
        notes.append(f"`{node.name}` is a statistic of the data that no training has computed yet")
    if network.precision == "half":
        notes.append("the network is of half precision; the source computes in single precision")
    return notes
