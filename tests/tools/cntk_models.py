"""Evaluates networks of CNTK's model files in tests: many files in one compiled program."""

import numpy as np

from cntkpy.networks.arrays.lazy import jax
from cntkpy.networks.compile.evaluate import Batch, compile_network, network_parameters, network_state
from cntkpy.networks.files.cntk_binary.load import read_cntk


def evaluate_all(contents, inputs, name="z"):
    """The values of a node in each of the files, as users see them: (cells, *shape), or an array without cells.

    Args:
        contents: of the files; all take the same inputs.
        inputs: by name, cells of one sequence, (cells, *shape).
        name: the node.
    """
    return evaluate_networks([read_cntk(content, precision="double") for content in contents], inputs, name)


def evaluate_networks(networks, inputs, name="z"):
    """The same for networks."""
    count = len(next(iter(inputs.values())))
    steps = np.arange(count, dtype=np.int32)[:, None]
    arrays = {key: np.stack([np.asarray(cell).T for cell in cells])[:, None] for key, cells in inputs.items()}
    batch = Batch(arrays, np.ones((count, 1), bool), steps, count - 1 - steps)
    functions = [compile_network(network.validate(), [name]) for network in networks]
    states = [(network_parameters(network), network_state(network)) for network in networks]

    def together(states):
        return [f(p, s, batch)[0][name] for f, (p, s) in zip(functions, states, strict=True)]

    results = []
    for network, found in zip(networks, jax.jit(together)(states), strict=True):
        found = np.asarray(found)
        if not network[name].has_layout:
            results.append(found.T)
            continue
        cells = np.stack([cell.T for cell in found[:, 0]])
        assert cells.shape[1:] == network[name].shape
        results.append(cells)
    return results


def assert_all_close(contents, inputs, expected, name="z", rtol=1e-9, atol=1e-13):
    """The node has the expected values in each of the files."""
    for found in evaluate_all(contents, inputs, name):
        np.testing.assert_allclose(found, expected, rtol=rtol, atol=atol)
