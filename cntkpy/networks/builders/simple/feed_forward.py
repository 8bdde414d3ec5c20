"""The feed-forward kind of SimpleNetworkBuilder (docs/specification/networks.md D.3)."""

from __future__ import annotations

from cntkpy.networks.builders.simple.parts import Builder, Settings
from cntkpy.networks.graph.initialize import SeedCounter
from cntkpy.networks.graph.network import ValidatedNetwork


def simple_network(settings: Settings, precision: str = "float", seeds: SeedCounter | None = None) -> ValidatedNetwork:
    """Return a feed-forward network (`rnnType = SIMPLENET`) with CNTK's node names.

    Args:
        settings: the builder's parameters.
        precision: a key of `cntkpy.networks.graph.precision.PRECISIONS`.
        seeds: seed counter; starts at 1 by default.

    Returns:
        A validated network with its groups.
    """
    build = Builder(settings, precision, seeds)
    network, sizes = build.network, list(settings.layer_sizes)
    hidden = len(sizes) - 2
    layer = build.input("features", sizes[0], group="feature")
    layer = build.normalised(layer, ("MeanOfFeatures", "InvStdOfFeatures", "MVNormalizedFeatures"))
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
    return network.validate()
