"""SimpleNetworkBuilder: networks from a list of layer sizes (specification: networks, section D)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from cntk_config.diagnostics import UserError, suggestion
from networks import nodes
from networks.initialize import SeedCounter
from networks.network import Network, Node

TRAINING_CRITERIA = {
    "crossentropywithsoftmax": ("CrossEntropyWithSoftmax", "CrossEntropyWithSoftmax"),
    "squareerror": ("SquareError", "SquareError"),
    "logistic": ("Logistic", "Logistic"),
    "classcrossentropywithsoftmax": ("ClassBasedCrossEntropyWithSoftmax", "ClassCrossEntropyWithSoftmax"),
    "noisecontrastiveestimation": ("NoiseContrastiveEstimation", "NoiseContrastiveEstimationNode"),
}
EVALUATION_CRITERIA = {
    **TRAINING_CRITERIA,
    "classificationerror": ("ClassificationError", "EvalClassificationError"),
    "errorprediction": ("ClassificationError", "EvalClassificationError"),
}
NONLINEARITIES = ("Sigmoid", "RectifiedLinear", "Tanh", "None")


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
    recurrent_layer: Sequence[int] = field(default_factory=tuple)
    default_hidden_activity: float = 0.1


class Builder:
    """A network under construction: short names for the few operations that the kinds are made of.

    Args:
        settings: the builder's parameters.
        precision: "float" or "double".
        seeds: where random parameters take their seeds; a fresh counter by default.
    """

    def __init__(self, settings: Settings, precision: str = "float", seeds: SeedCounter | None = None) -> None:
        self.settings = settings
        self.network = Network(precision)
        self.seeds = seeds or SeedCounter()
        if len(settings.layer_sizes) < 2:
            raise UserError("layerSizes needs at least two entries: the input and the output dimension")
        for word in settings.layer_types:
            if word not in (*NONLINEARITIES, "none", ""):
                raise UserError(
                    f"unknown nonlinearity '{word}' in layerTypes",
                    hint=suggestion(word, NONLINEARITIES) or "use one of " + ", ".join(NONLINEARITIES),
                )

    def node(self, operation: str, name: str, *inputs: Node, **options: object) -> Node:
        """A node of a function of the network language."""
        return nodes.create(self.network, operation, name, inputs, options)

    def input(self, name: str, *dims: int, group: str | None = None) -> Node:
        """An input, put into a group."""
        node = self.node("InputValue", name, dims=dims)
        if group:
            self.network.add_to_group(group, node)
        return node

    def weights(self, name: str, *dims: int) -> Node:
        """A random parameter."""
        kind = "uniform" if self.settings.uniform_init else "gaussian"
        return self._parameter(name, dims, init=kind, initValueScale=self.settings.init_value_scale)

    def constant(self, name: str, *dims: int, value: float = 0.0) -> Node:
        """A parameter of equal start values."""
        return self._parameter(name, dims, init="fixedValue", value=value)

    def _parameter(self, name: str, dims: tuple[int, ...], **options: object) -> Node:
        node = self.node("LearnableParameter", name, dims=dims, **options)
        self.network.initialize(node, self.seeds)
        return node

    def nonlinearity(self, layer: int, x: Node, name: str) -> Node:
        """Apply the nonlinearity of a hidden layer (from 0); for a linear one the node itself is renamed."""
        types = self.settings.layer_types or ("Sigmoid",)
        word = types[min(layer, len(types) - 1)]
        if word in ("None", "none", ""):
            self.network.rename(x.name, name)
            return x
        return self.node(word, name, x)

    def criteria(self, labels: Node, prediction: Node) -> None:
        """The training criterion and the evaluation node; one node in both groups if they are of the same kind."""
        operation, name = self._criterion("trainingCriterion", self.settings.training_criterion, TRAINING_CRITERIA)
        training = self.node(operation, name, labels, prediction)
        self.network.add_to_group("criterion", training)
        eval_operation, eval_name = self._criterion("evalCriterion", self.settings.eval_criterion, EVALUATION_CRITERIA)
        same = eval_operation == operation
        self.network.add_to_group(
            "evaluation", training if same else self.node(eval_operation, eval_name, labels, prediction)
        )

    def _criterion(self, key: str, word: str, table: dict[str, tuple[str, str]]) -> tuple[str, str]:
        found = table.get(word.lower())
        if found is None:
            raise UserError(
                f"unknown {key} '{word}'", hint="use one of " + ", ".join(name for _, name in table.values())
            )
        if found[0] in ("ClassBasedCrossEntropyWithSoftmax", "NoiseContrastiveEstimation"):
            raise UserError(f"{key} = {word} does not fit this kind of network (rnnType)")
        return found


def simple_network(settings: Settings, precision: str = "float", seeds: SeedCounter | None = None) -> Network:
    """A feed-forward network (`rnnType = SIMPLENET`) with the original's node names.

    Args:
        settings: the builder's parameters.
        precision: "float" or "double".
        seeds: seed counter; starts at 1 by default.

    Returns:
        A validated network with its groups.
    """
    build = Builder(settings, precision, seeds)
    network, sizes = build.network, list(settings.layer_sizes)
    hidden = len(sizes) - 2
    features = layer = build.input("features", sizes[0], group="feature")
    if settings.apply_mean_var_norm:
        mean = build.node("Mean", "MeanOfFeatures", features)
        scale = build.node("InvStdDev", "InvStdOfFeatures", features)
        layer = build.node("PerDimMeanVarNormalization", "MVNormalizedFeatures", features, mean, scale)
    for i in range(hidden):
        weights = build.weights(f"W{i}", sizes[i + 1], sizes[i])
        bias = build.constant(f"B{i}", sizes[i + 1], 1)
        product = f"W{i}*H{i}" if i else "W0*features"
        times = build.node("Times", product, weights, layer)
        total = build.node("Plus", f"{product}+B{i}", times, bias)
        layer = build.nonlinearity(i, total, f"H{i + 1}")
        if settings.add_dropout_nodes:
            layer = build.node("Dropout", f"DropH{i + 1}", layer)
    weights = build.weights(f"W{hidden}", sizes[-1], sizes[-2])
    bias = build.constant(f"B{hidden}", sizes[-1], 1)
    times = build.node("Times", f"W{hidden}*H{hidden - 1}", weights, layer)
    last = build.node("Plus", "HLast", times, bias)
    labels = build.input("labels", sizes[-1], group="label")
    build.criteria(labels, last)
    output = last
    if settings.need_prior:
        prior = build.node("Mean", "Prior", labels)
        logarithm = build.node("Log", "LogOfPrior", prior)
        output = build.node("Minus", "ScaledLogLikelihood", last, logarithm)
    network.add_to_group("output", output)
    build.node("Softmax", "PosteriorProb", last)
    network.validate()
    return network
