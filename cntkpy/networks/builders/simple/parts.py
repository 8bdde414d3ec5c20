"""Shared parts of the kinds of SimpleNetworkBuilder (docs/specification/networks.md D)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.networks import nodes
from cntkpy.networks.builders.simple.parameters import check_sizes, check_types, find_criterion
from cntkpy.networks.graph.initialize import SeedCounter
from cntkpy.networks.graph.network import Network, Node

CLASS_BASED = ("ClassBasedCrossEntropyWithSoftmax", "NoiseContrastiveEstimation")


@dataclass
class Settings:
    """The parameters of the builder, converted; see `SimpleNetworkBuilder` for their meaning."""

    layer_sizes: Sequence[int]
    training_criterion: str = "crossEntropyWithSoftmax"
    eval_criterion: str = "classificationError"
    layer_types: Sequence[str] = ("Sigmoid",)
    init_value_scale: float = 1.0
    uniform_init: bool = True
    apply_mean_var_norm: bool = False
    need_prior: bool = False
    add_dropout_nodes: bool = False
    recurrent_layer: Sequence[int] = ()
    default_hidden_activity: float = 0.1
    lookup_table_order: int = 0
    ma_order: int = 0
    const_input_gate: bool = False
    const_forget_gate: bool = False
    const_output_gate: bool = False
    input_gate_init: float = -1.0
    forget_gate_init: float = -1.0
    output_gate_init: float = -1.0
    sparse_input: bool = False
    vocab_size: int = -1
    classes: int = -1
    aux_dim: int = 20
    values: bool = True
    """True if parameters get their start values; names and shapes need none."""


class Builder:
    """A network under construction: short names for the few operations that the kinds are made of.

    Args:
        settings: the builder's parameters.
        precision: a key of `cntkpy.networks.graph.precision.PRECISIONS`.
        seeds: where random parameters take their seeds; a fresh counter by default.
    """

    def __init__(self, settings: Settings, precision: str = "float", seeds: SeedCounter | None = None) -> None:
        self.settings = settings
        self.network = Network(precision, settings.values)
        self.seeds = seeds or SeedCounter()
        self.unnamed = 0
        check_sizes(settings.layer_sizes)
        check_types(settings.layer_types)

    def node(self, operation: str, name: str | None, *inputs: Node, **options: object) -> Node:
        """Return a node of a function of the network language; without a name it gets an automatic one."""
        if name is None:
            name = f"AutoName{self.unnamed}"
            self.unnamed += 1
        return nodes.create(self.network, operation, name, inputs, options)

    def input(self, name: str, *dims: int, group: str | None = None, sparse: bool = False) -> Node:
        """Return an input, put into a group."""
        node = self.node("SparseInputValue" if sparse else "InputValue", name, dims=dims)
        if group:
            self.network.add_to_group(group, node)
        return node

    def times(self, name: str | None, weights: Node, x: Node) -> Node:
        """Matrix product."""
        return self.node("Times", name, weights, x)

    def plus(self, name: str | None, x: Node, y: Node) -> Node:
        """Sum."""
        return self.node("Plus", name, x, y)

    def past(self, x: Node, steps: int = 1) -> Node:
        """Return an unnamed PastValue; its input may be attached later."""
        return self.node(
            "PastValue", None, x, timeStep=steps, defaultHiddenActivity=self.settings.default_hidden_activity
        )

    def dropout(self, x: Node) -> Node:
        """Return an unnamed Dropout, if they are wanted."""
        return self.node("Dropout", None, x) if self.settings.add_dropout_nodes else x

    def normalised(self, x: Node, names: tuple[str | None, str | None, str | None] = (None, None, None)) -> Node:
        """Return the input normalised by its statistics, if that is wanted."""
        if not self.settings.apply_mean_var_norm:
            return x
        mean, scale = self.node("Mean", names[0], x), self.node("InvStdDev", names[1], x)
        return self.node("PerDimMeanVarNormalization", names[2], x, mean, scale)

    def weights(self, name: str, *dims: int) -> Node:
        """Return a random parameter."""
        kind = "uniform" if self.settings.uniform_init else "gaussian"
        return self._parameter(name, dims, init=kind, initValueScale=self.settings.init_value_scale)

    def constant(self, name: str, *dims: int, value: float = 0.0) -> Node:
        """Return a parameter of equal start values."""
        return self._parameter(name, dims, init="fixedValue", value=value)

    def _parameter(self, name: str, dims: tuple[int, ...], **options: object) -> Node:
        node = self.node("LearnableParameter", name, dims=dims, **options)
        self.network.initialize(node, self.seeds)
        return node

    def nonlinearity(self, layer: int, x: Node, name: str | None = None) -> Node:
        """Apply the nonlinearity of a hidden layer (from 0); for a linear one the node itself is renamed."""
        types = self.settings.layer_types or ("None",)
        word = types[min(layer, len(types) - 1)]
        if word in ("None", "none", ""):
            if name is not None:
                self.network.rename(x.name, name)
            return x
        return self.node(word, name, x)

    def criteria(self, labels: Node, prediction: Node, names: tuple[str | None, str | None] = (None, None)) -> None:
        """The training criterion and the evaluation node; one node in both groups if they are of the same kind."""
        settings = self.settings
        operation, name = find_criterion("trainingCriterion", settings.training_criterion)
        eval_operation, eval_name = find_criterion("evalCriterion", settings.eval_criterion)
        for key, word, used in (
            ("trainingCriterion", settings.training_criterion, operation),
            ("evalCriterion", settings.eval_criterion, eval_operation),
        ):
            if used in CLASS_BASED:
                raise UserError("BadChoice", f"{key} = {word} does not fit this kind of network (rnnType)")
        training = self.node(operation, names[0] or name, labels, prediction)
        self.network.add_to_group("criterion", training)
        same = eval_operation == operation
        evaluation = training if same else self.node(eval_operation, names[1] or eval_name, labels, prediction)
        self.network.add_to_group("evaluation", evaluation)
