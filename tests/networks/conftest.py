"""Small helpers for tests of networks: a terse way to write a network, minibatches with gaps, central differences."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from cntkpy.networks import nodes
from cntkpy.networks.arrays.lazy import jax
from cntkpy.networks.compile.evaluate import Batch, compile_gradient, compile_network, network_parameters, network_state
from cntkpy.networks.graph.initialize import SeedCounter
from cntkpy.networks.graph.network import Network


@pytest.fixture
def on_cpu():
    """Compute on the CPU, also where there is a GPU: convolutions have other forms there."""
    device = jax.config.jax_default_device
    jax.config.update("jax_default_device", jax.devices("cpu")[0])
    yield
    jax.config.update("jax_default_device", device)


class Sketch:
    """A network under construction; nodes are named x0, x1, ... unless given a name."""

    def __init__(self, precision="double", seed=0):
        self.network = Network(precision)
        self.random = np.random.default_rng(seed)

    def __call__(self, kind, /, *inputs, name=None, **options):
        name = name or f"n{len(self.network.nodes)}"
        return nodes.create(self.network, kind, name, inputs, options)

    def input(self, name, *dims, sparse=False):
        return self("SparseInputValue" if sparse else "InputValue", name=name, dims=dims)

    def parameter(self, name, *dims, value=None, **options):
        node = self("LearnableParameter", name=name, dims=dims, init=options.pop("init", "fixedValue"), **options)
        self.network.initialize(node, SeedCounter())
        if value is not None:
            node.value = np.ascontiguousarray(np.asarray(value, self.network.dtype).T)
        elif not any(d == 0 for d in dims):
            node.value = self.random.normal(size=tuple(reversed(dims))).astype(self.network.dtype)
        return node

    def constant(self, value):
        node = self("Constant", value=value)
        self.network.initialize(node, SeedCounter())
        return node


def grid(lengths, slots=None, extra=0):
    """Mask and distances of sequences of the given lengths, one per slot (or several, as lists of lists)."""
    layout = [[n] if isinstance(n, int) else list(n) for n in lengths]
    T = max(sum(slot) for slot in layout) + extra
    mask = np.zeros((T, len(layout)), bool)
    start, end = np.full(mask.shape, -1, np.int32), np.full(mask.shape, -1, np.int32)
    for s, slot in enumerate(layout):
        t = 0
        for n in slot:
            mask[t : t + n, s] = True
            start[t : t + n, s] = np.arange(n)
            end[t : t + n, s] = np.arange(n)[::-1]
            t += n
    return mask, start, end


def run(network, names, batch, training=False, key=None):
    """Values by name as numpy arrays."""
    network.validate()
    function = jax.jit(compile_network(network, names, training))
    values, _ = function(network_parameters(network), network_state(network), batch, key)
    return {name: np.asarray(value) for name, value in values.items()}


_last: list[tuple[Network, str, Callable[..., Any]]] = []
"""The program that `gradients` compiled last, which `central_differences` needs once more."""


def gradients(network, criterion, batch):
    """(criterion's total, gradients by name) as numpy arrays; row gradients made dense."""
    network.validate()
    function = jax.jit(compile_gradient(network, criterion))
    _last[:] = [(network, criterion, function)]
    parameters = network_parameters(network)
    found, totals, _ = function(parameters, network_state(network), batch)
    dense = {k: np.asarray(g.dense(parameters[k]) if hasattr(g, "rows") else g) for k, g in found.items()}
    return float(totals[criterion]), dense


def central_differences(network, criterion, batch, step=1e-6, most=24):
    """Numeric gradients of the total that `gradients` has just given, by the same program, which takes long to compile.

    At up to `most` random elements of each parameter: name -> (indices, values).
    """
    ((known, of, function),) = _last
    assert (known, of) == (network, criterion)
    parameters, state = network_parameters(network), network_state(network)
    random = np.random.default_rng(1)
    result = {}
    for name, array in parameters.items():
        chosen = random.permutation(array.size)[:most]
        slopes = []
        for index in chosen:
            ends = []
            for sign in (1, -1):
                moved = array.copy()
                moved.reshape(-1)[index] += sign * step
                _, totals, _ = function({**parameters, name: moved}, state, batch)
                ends.append(float(totals[criterion]))
            slopes.append((ends[0] - ends[1]) / (2 * step))
        result[name] = chosen, np.array(slopes)
    return result


@pytest.fixture(scope="session")
def helpers():
    """All of the above as attributes."""

    class Helpers:
        pass

    for helper in (Sketch, grid, run, gradients, central_differences, Batch):
        setattr(Helpers, helper.__name__, staticmethod(helper))
    return Helpers


@pytest.fixture
def sketch():
    return Sketch()
