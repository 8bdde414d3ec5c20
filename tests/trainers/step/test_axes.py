"""Minibatches of networks with several time axes: sequences share slots, and numbers do not depend on that."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cntkpy.cntk_config import parse
from cntkpy.networks.arrays.batch import Grid, PackedGrid
from cntkpy.networks.builders.build import build_network
from cntkpy.networks.compile.evaluate import Settings
from cntkpy.networks.graph.initialize import SeedCounter
from cntkpy.networks.graph.network import Node, ValidatedNetwork
from cntkpy.readers.minibatch import Layout, Minibatch
from cntkpy.trainers.rules.updates import momentum
from cntkpy.trainers.step import feed
from cntkpy.trainers.step.axes import Placed, put_dense
from cntkpy.trainers.step.buckets import Buckets
from cntkpy.trainers.step.feed import Batcher
from cntkpy.trainers.step.state import EpochSettings
from cntkpy.trainers.step.step import CompiledStep

SCRIPT = """
t = DynamicAxis {}
x = INPUT {4, dynamicAxis=t}
d = Input {2}
W = ParameterTensor {(3:4)} ; R = ParameterTensor {(3:3)} ; V = ParameterTensor {(3:2)}
h = Tanh (W * x + R * PastValue (3, h))
g = Tanh (V * d + R * PastValue (3, g, initialState=BS.Sequences.Last (h)))
ce = SquareError (d, Slice (0, 2, g))
criterionNodes = (ce)
"""
LENGTHS = [([5, 2, 3, 1, 2], [1, 4, 2, 3, 2]), ([6, 6, 1, 2, 2], [3, 1, 1, 3, 1])]


@pytest.fixture(autouse=True)
def small_networks_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sequences share slots in networks of any size."""
    monkeypatch.setattr(feed, "PACKED_WEIGHTS", 0)


def network(sparse: bool = False) -> ValidatedNetwork:
    text = SCRIPT.replace("INPUT", "SparseInput" if sparse else "Input")
    return build_network(parse(f"BrainScriptNetworkBuilder = {{ {text} }}"), "double", SeedCounter())


def minibatches(sparse: bool = False) -> list[Minibatch]:
    """Each sequence in a slot of its own, as a reader may give them."""
    import scipy.sparse

    random, found = np.random.default_rng(1), list[Minibatch]()
    for pair in LENGTHS:
        streams: dict[str, Any] = {}
        layouts: dict[str, Layout] = {}
        for name, lengths, size in zip("xd", pair, (4, 2), strict=True):
            slots = np.arange(len(lengths))
            layouts[name] = Layout(max(lengths), len(lengths), np.stack([slots, slots, 0 * slots, lengths], 1))
            values = random.normal(size=(max(lengths), len(lengths), size)) * layouts[name].mask[..., None]
            streams[name] = scipy.sparse.csr_matrix(values.reshape(-1, size)) if sparse and name == "x" else values
        found.append(Minibatch(streams, layouts))
    return found


def trained(net: ValidatedNetwork, batcher: Batcher, given: list[Minibatch], pieces: int = 1) -> Any:
    """The totals and the parameters after training, and the batch that was trained on."""
    step = CompiledStep(net, [net["ce"]], momentum())
    (stack,) = list(batcher.stacks(iter(given), lambda number: False))
    totals = np.asarray(step.run(stack, EpochSettings(0.1, 0.9, Settings(), 1, pieces=pieces), 0))[: len(given)]
    values = step.trained_values()
    return totals, {node.name: np.array(values[node.name]) for node in net.parameters()}, stack.batch


@pytest.mark.thorough
@pytest.mark.parametrize(("sparse", "pieces"), [(False, 2), (True, 1)])
def test_training_does_not_depend_on_shared_slots(sparse: bool, pieces: int) -> None:
    own, shared = network(sparse), network(sparse)
    together = CompiledStep(shared, [shared["ce"]], momentum()).batcher(11)
    apart = replace(together, padding=together.padding.with_own_slots(), buckets=Buckets())
    one, weights, of_own = trained(own, apart, minibatches(sparse))
    other, same, of_shared = trained(shared, together, minibatches(sparse), pieces)
    np.testing.assert_allclose(other, one, rtol=1e-12)
    for name, value in weights.items():
        np.testing.assert_allclose(same[name], value, rtol=1e-11, err_msg=name)
    assert all(isinstance(grid, Grid) for grid in of_own.axes.values())
    assert all(isinstance(grid, PackedGrid) for grid in of_shared.axes.values())
    slots = {axis: grid.mask.shape[2] for axis, grid in of_shared.axes.items()}
    assert slots == {"t": 3, "*": 3}  # instead of 5


@given(st.lists(st.integers(1, 9), min_size=1, max_size=12), st.integers(0, 9))
def test_every_sequence_has_its_own_cells(lengths: list[int], more: int) -> None:
    given, count = np.array(lengths), max(lengths) + more
    placed = Placed({"t": given}, {}, {}, 0).packed({"t": max(lengths)})
    longer = placed.packed({"t": count})
    for one in (placed, longer):
        layout = one.layouts["t"]
        assert count >= layout.T and layout.sequences[:, 3].max() <= layout.T
        step, slot, owner = layout.cells
        assert len(set(zip(step.tolist(), slot.tolist(), strict=True))) == given.sum()
        assert np.bincount(owner).tolist() == lengths
        assert sorted(set(slot.tolist())) == list(range(layout.S))
    assert longer.layouts["t"].S <= placed.layouts["t"].S <= len(lengths)


def test_sequences_of_small_networks_have_slots_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed, "PACKED_WEIGHTS", 1000)
    net = network()
    (stack,) = CompiledStep(net, [net["ce"]], momentum()).batcher(6).stacks(iter(minibatches()), lambda number: False)
    assert all(isinstance(grid, Grid) for grid in stack.batch.axes.values())


def test_a_bucket_has_the_slots_that_are_needed_when_they_are_as_long_as_it() -> None:
    """The second minibatch needs two slots of three steps, but one of six, which the first one has."""
    net = network()
    batcher = CompiledStep(net, [net["ce"]], momentum()).batcher(6)
    given = minibatches()
    for one, lengths in zip(given, ([6], [3, 3]), strict=True):
        slots = np.arange(len(lengths))
        layout = Layout(max(lengths), len(lengths), np.stack([slots, slots, 0 * slots, lengths], 1))
        one.layouts.update(x=layout, d=layout)
        one.streams.update({name: np.ones((layout.T, layout.S, size)) for name, size in (("x", 4), ("d", 2))})
    (stack,) = list(batcher.stacks(iter(given), lambda number: False))
    assert stack.batch.axes["t"].mask.shape[1:] == (6, 1)
    assert stack.batch.axes["t"].first[:2].tolist() == [[0, 0], [0, 3]]


def test_little_of_the_work_is_padding() -> None:
    """32 sequences of 10 to 50 steps on each axis: a slot for each of them would be 1.7 times their samples."""
    random, given, samples = np.random.default_rng(0), list[Minibatch](), 0
    for _ in range(40):
        streams: dict[str, Any] = {}
        layouts: dict[str, Layout] = {}
        for name, size in (("x", 4), ("d", 2)):
            lengths, slots = random.integers(10, 51, 32), np.arange(32)
            layouts[name] = Layout(int(lengths.max()), 32, np.stack([slots, slots, 0 * slots, lengths], 1))
            streams[name] = np.zeros((layouts[name].T, 32, size))
            samples += int(lengths.sum())
        given.append(Minibatch(streams, layouts))
    net = network()
    step = CompiledStep(net, [net["ce"]], momentum())
    stacks = list(step.batcher(960).stacks(iter(given), lambda number: False))
    (bucket,) = step.buckets.chosen[960]
    assert len(stacks) == 1
    assert 40 * bucket.cells < 1.4 * samples
    assert Buckets.from_json(step.buckets.to_json()) == step.buckets


@given(st.integers(1, 9), st.integers(0, 3), st.integers(0, 2))
def test_the_samples_of_one_sequence(steps: int, before: int, after: int) -> None:
    """They are copied as they lie, also where the layout of the reader begins before them."""
    values = np.random.default_rng(steps).normal(size=(before + steps + after, 1, 4))
    placed = Placed({"t": np.array([steps])}, {"x": before + np.arange(steps)}, {}, 0)
    target = np.zeros((steps + after, 1, 4))
    put_dense(target, values, placed, cast("Node", SimpleNamespace(name="x", axis="t")))
    assert np.array_equal(target[:steps, 0], values[before : before + steps, 0])
    assert not target[steps:].any()
