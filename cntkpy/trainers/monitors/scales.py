"""Inputs that nobody scaled: what a training says about them when it has read its first minibatch."""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from cntkpy.networks.graph.network import Node, ValidatedNetwork
from cntkpy.readers.minibatch import Minibatch

log = logging.getLogger("cntkpy.trainers")

LARGE_VALUE = 100.0
"""Values beyond this saturate layers whose weights are drawn for values about 1."""
LEARNED = frozenset(("Times", "TransposeTimes", "Plus", "Convolution"))
"""Operations that the values of an input enter as they are."""


def unscaled_inputs(network: ValidatedNetwork, criterion: Node) -> list[Node]:
    """Return the inputs below a criterion whose values enter a layer as they are, which no batch normalisation
    follows.
    """
    inputs: dict[str, Node] = {}
    nodes = network.below([criterion])
    users: dict[str, list[Node]] = {}
    for node in nodes:
        for source in node.connected:
            users.setdefault(source.name, []).append(node)
    for node in nodes:
        if node.operation in LEARNED and not _is_normalised(node, users, set()):
            inputs |= {
                source.name: source for source in node.inputs if source is not None and source.kind.layout == "always"
            }
    return list(inputs.values())


def _is_normalised(node: Node, users: Mapping[str, Sequence[Node]], seen: set[str]) -> bool:
    """Return whether all that a linear node goes to, through others of its kind, is normalised by minibatches."""
    seen.add(node.name)
    above = [user for user in users.get(node.name, ()) if user.name not in seen]
    return bool(above) and all(
        user.operation == "BatchNormalization" or (user.operation in LEARNED and _is_normalised(user, users, seen))
        for user in above
    )


def warned_of_scales(
    network: ValidatedNetwork, nodes: Sequence[Node], data: Iterable[Minibatch]
) -> Iterator[Minibatch]:
    """Yield the minibatches; with the first one, a warning for every dense input that is neither small nor scaled.

    Args:
        network: the network that is trained.
        nodes: its criterion first.
        data: the minibatches.
    """
    first = True
    for minibatch in data:
        if first:
            _warn(unscaled_inputs(network, nodes[0]), minibatch)
            first = False
        yield minibatch


def _warn(inputs: Sequence[Node], minibatch: Minibatch) -> None:
    streams = {name.lower(): values for name, values in minibatch.streams.items()}
    for node in inputs:
        values: Any = streams.get(node.name.lower())
        if not isinstance(values, np.ndarray) or not values.size:
            continue
        largest = float(np.abs(cast("NDArray[np.floating[Any]]", values)).max())
        if largest > LARGE_VALUE and np.isfinite(largest):
            log.warning(
                "WARNING: the values of the input '%s' reach %.4g and are not normalised: training may not learn from "
                "them. applyMeanVarNorm=true in the SimpleNetworkBuilder normalises them, "
                "PerDimMeanVarNormalization in a network of your own.",
                node.name,
                largest,
                extra={"plain": True},
            )
