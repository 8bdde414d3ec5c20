"""Values of a network as this package computes them, for what is written into a model and for what checks it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from networks.arrays.batch import Batch, Grid
from networks.compile.evaluate import compile_network
from networks.graph.axes import main_axis, separate_slots
from networks.graph.network import ValidatedNetwork


def values(network: ValidatedNetwork, names: Iterable[str], batch: Batch) -> dict[str, np.ndarray]:
    """The values of nodes, `(T, S, ...)` where they depend on data."""
    names = list(names)
    found, _ = compile_network(network, names)({}, {}, batch)  # parameters are read from the nodes
    return {name: np.asarray(found[name]) for name in names}


def constants(network: ValidatedNetwork, names: list[str]) -> Mapping[str, np.ndarray]:
    """The values of nodes that do not depend on data."""
    return values(network, names, Batch({}))


def minibatch(network: ValidatedNetwork, names: Iterable[str], data: Mapping[str, np.ndarray]) -> Batch:
    """A minibatch of sequences that all have as many steps as the data.

    Args:
        network: the network.
        names: of nodes that will be computed.
        data: by name of the input, `(T, S, ...)`.
    """
    roots = [network.find(name) for name in names]
    nodes = network.below(roots)
    grids = {node.axis: _grid(*data[node.name].shape[:2]) for node in nodes if node.name in data and node.axis}
    if not separate_slots(nodes):
        grid = next(iter(grids.values()))
        return Batch(data, *grid)
    return Batch(data, *grids[main_axis(nodes, roots)], axes=grids)


def _grid(steps: int, slots: int) -> Grid:
    start = np.broadcast_to(np.arange(steps, dtype=np.int32)[:, None], (steps, slots))
    return Grid(np.ones((steps, slots), bool), start, np.ascontiguousarray(start[::-1]))
