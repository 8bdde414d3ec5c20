"""Values of a network as this package computes them, for what is written into a model and for what checks it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from cntkpy.networks.arrays.batch import Batch, Grid
from cntkpy.networks.arrays.lazy import jax
from cntkpy.networks.compile.evaluate import compile_network, network_parameters, network_state, own_mask
from cntkpy.networks.graph.axes import main_axis, separate_slots
from cntkpy.networks.graph.network import ValidatedNetwork
from cntkpy.networks.onnx.package import require_jax


def values(network: ValidatedNetwork, names: Iterable[str], batch: Batch) -> dict[str, np.ndarray]:
    """Return the values of nodes, `(T, S, ...)` where they depend on data."""
    return {name: value for name, (value, _) in masked_values(network, names, batch).items()}


def masked_values(
    network: ValidatedNetwork, names: Iterable[str], batch: Batch
) -> dict[str, tuple[np.ndarray, np.ndarray | None]]:
    """As `values`, with where the sequences have steps, booleans `(T, S)`; None: everywhere."""
    require_jax()
    names = list(names)
    function = jax.jit(compile_network(network, names))  # one program compiles faster than one for each operation
    computed, _ = function(network_parameters(network), network_state(network), batch)
    masks = {name: own_mask(network.find(name), computed[name], batch, computed) for name in names}
    return {name: (np.asarray(computed[name]), None if (m := masks[name]) is None else np.asarray(m)) for name in names}


def constants(network: ValidatedNetwork, names: list[str]) -> Mapping[str, np.ndarray]:
    """Return the values of nodes that do not depend on data."""
    return values(network, names, Batch({}))


def minibatch(
    network: ValidatedNetwork,
    names: Iterable[str],
    data: Mapping[str, np.ndarray],
    lengths: Mapping[str, np.ndarray] | None = None,
) -> Batch:
    """Return a minibatch with each sequence in a slot of its own.

    Args:
        network: the network.
        names: of nodes that will be computed.
        data: by name of the input, `(T, S, ...)`.
        lengths: by time axis, how many steps the sequences have; without them, as many as the data.
    """
    roots, lengths = [network.find(name) for name in names], lengths or {}
    nodes = network.below(roots)
    grids: dict[str, Grid] = {}
    for node in nodes:
        if node.name in data and node.axis:
            steps, slots = data[node.name].shape[:2]
            grids[node.axis] = _grid(steps, slots, lengths.get(node.axis))
    if not separate_slots(nodes):
        grid = next(iter(grids.values()))
        return Batch(data, *grid)
    return Batch(data, *grids[main_axis(nodes, roots)], axes=grids)


def _grid(steps: int, slots: int, lengths: np.ndarray | None) -> Grid:
    step = np.broadcast_to(np.arange(steps, dtype=np.int32)[:, None], (steps, slots))
    ends = np.full(slots, steps, np.int32) if lengths is None else lengths.astype(np.int32)
    mask = step < ends
    return Grid(mask, np.where(mask, step, -1), np.where(mask, ends - 1 - step, -1))
