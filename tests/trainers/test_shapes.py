"""Minibatches are padded to few shapes: a network is compiled at most 12 times, and little of the work is padding."""

import logging
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cntk_config import parse
from cntk_config.diagnostics import UserError
from networks import nodes
from networks.build import build_network
from networks.evaluate import Settings
from networks.initialize import SeedCounter
from networks.network import Network
from readers import create_reader
from readers.minibatch import Layout, Minibatch
from trainers.evaluate import minibatches
from trainers.shapes import Shape, bucket
from trainers.step import EpochSettings, Trainer
from trainers.updates import momentum

NDL = """run=n
n=[
x=Input(1)
y=Input(1)
p=PastValue(1, 1, h)
h=Tanh(Plus(x, p))
cost=SquareError(y, ElementTimes(Parameter(1, 1), h))
FeatureNodes=(x)
LabelNodes=(y)
CriterionNodes=(cost)
]"""


def _trainer(tmp_path, lengths, size, trace_level=2):
    (tmp_path / "n.ndl").write_text(NDL)
    with (tmp_path / "data.ctf").open("w") as file:
        for number, length in enumerate(lengths):
            file.write(f"{number} |x 0.5 |y 1\n" * length)
    section = parse(
        f'r=[readerType=CNTKTextFormatReader;file="{tmp_path}/data.ctf";input=[x=[dim=1;format=dense];y=[dim=1;format=dense]]]'
    )
    network = build_network(parse(f'NDLNetworkBuilder=[networkDescription="{tmp_path}/n.ndl"]'), "float", SeedCounter())
    trainer = Trainer(network, [network["cost"]], momentum(), trace_level=trace_level)
    return trainer, create_reader(section.section("r"))


@pytest.mark.parametrize("spread", ["even", "mostly short"])
@pytest.mark.parametrize("size", [1, 50, 200, 1000])
def test_a_corpus_of_all_lengths(size, spread, tmp_path):
    random = np.random.default_rng(size)
    lengths = np.concatenate([np.arange(1, 201), random.integers(1, 201, 400)])
    if spread == "mostly short":
        lengths = np.concatenate([np.arange(1, 201), np.exp(random.uniform(0, np.log(200), 600)).astype(int)])
    trainer, reader = _trainer(tmp_path, random.permutation(lengths), size)
    feeder = trainer.feeder(size)
    for epoch in range(2):
        for minibatch in minibatches(reader, size, epoch, None):
            prepared = feeder._prepare(minibatch)
            shape = feeder._shape(prepared)
            assert shape.steps >= prepared.layout.T and shape.slots >= prepared.layout.S
    assert len(trainer.shapes.known) <= 12


def test_compilations_are_counted_and_logged(tmp_path, caplog):
    trainer, reader = _trainer(tmp_path, np.arange(1, 201), 100)
    with caplog.at_level(logging.INFO, "cntkpy.trainers"):
        for group in trainer.feeder(100).groups(minibatches(reader, 100, 0, None), lambda number: False):
            np.asarray(trainer.run(group, EpochSettings(0.001, 0.9, Settings(), 0), 0))
    lines = [record.getMessage() for record in caplog.records if "Compiling" in record.getMessage()]
    assert trainer.compilations == len(trainer.shapes.known) == len(lines) <= 12
    assert lines[-1].endswith(f"(compilation {len(lines)}).")


@given(st.lists(st.tuples(st.integers(1, 200), st.integers(1, 64)), max_size=60))
@settings(max_examples=50, deadline=None)
def test_sizes_grow_by_little(pairs):
    for size, _ in pairs:
        assert size <= bucket(size) <= 1.5 * size and size <= bucket(size, 4) <= max(size, 1.25 * size + 1)
    shapes = [Shape(*pair) for pair in pairs]
    for shape in shapes:
        assert all(shape.joined(shapes).holds(other, np.inf) for other in shapes)


@pytest.mark.parametrize(
    "label", [(5, 0, 6, 9), (5, 0, 5, 5), (5, 2, 5, 6), (600, 0, 590, 601)], ids=["outside", "empty", "class", "word"]
)
def test_labels_of_classes_are_checked(label):
    network = Network("float")
    make = partial(nodes.create, network)
    inputs = [make("InputValue", name, (), {"dims": (size,)}) for name, size in (("l", 4), ("h", 3), ("s", 2))]
    weights = make("LearnableParameter", "w", (), {"dims": (3, 600)})
    network.initialize(weights, SeedCounter())
    cost = make("ClassBasedCrossEntropyWithSoftmax", "cost", (inputs[0], inputs[1], weights, inputs[2]))
    trainer = Trainer(network, [cost], momentum())
    layout = Layout(1, 2, np.array([[0, 0, 0, 1], [1, 1, 0, 1]]))
    for labels, good in (([(1, 0, 0, 2)] * 2, True), ([(1, 0, 0, 2), label], False)):
        streams = {
            "l": np.array([labels], np.float32),
            "h": np.zeros((1, 2, 3), np.float32),
            "s": np.zeros((1, 2, 2), np.float32),
        }
        minibatch = Minibatch(streams, dict.fromkeys(streams, layout))
        (group,) = trainer.feeder(2).groups(iter([minibatch]), lambda number: False)
        if good:
            assert np.isfinite(np.asarray(trainer.run(group, EpochSettings(0.1, 0, Settings(), 0), 0))[0, 0])
        else:
            with pytest.raises(UserError, match=f"word {label[0]} of class {label[1]}"):
                trainer.run(group, EpochSettings(0.1, 0, Settings(), 0), 0)
