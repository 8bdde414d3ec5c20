"""Minibatches are padded to few shapes: a network is compiled at most 4 times, and little of the work is padding."""

import json
import logging
import tracemalloc
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cntkpy.cntk_config import parse
from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.networks import nodes
from cntkpy.networks.builders.build import build_network
from cntkpy.networks.compile.evaluate import Settings
from cntkpy.networks.graph.initialize import SeedCounter
from cntkpy.networks.graph.network import Network
from cntkpy.readers import create_reader
from cntkpy.readers.minibatch import Layout, Minibatch
from cntkpy.trainers.evaluation.evaluate import minibatches
from cntkpy.trainers.evaluation.evaluator import Evaluator
from cntkpy.trainers.rules.updates import momentum
from cntkpy.trainers.step.buckets import Buckets, choose_buckets
from cntkpy.trainers.step.class_labels import class_label_check
from cntkpy.trainers.step.savings import FIXED_WEIGHTS, MANY_BUCKETS, PROGRAM_WORK
from cntkpy.trainers.step.shape import Shape, round_to
from cntkpy.trainers.step.state import EpochSettings
from cntkpy.trainers.step.step import CompiledStep

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
    trainer = CompiledStep(network, [network["cost"]], momentum(), trace_level=trace_level)
    return trainer, create_reader(section.section("r"))


LENGTHS = {
    "even": lambda random: np.concatenate([np.arange(1, 201), random.integers(1, 201, 400)]),
    "mostly short": lambda random: np.concatenate(
        [np.arange(1, 201), np.exp(random.uniform(0, np.log(200), 600)).astype(int)]
    ),
}


def _lengths(spread, order):
    random = np.random.default_rng(1)
    lengths = LENGTHS[spread](random)
    if order == "random":
        return random.permutation(lengths)
    return np.sort(lengths) if order == "ascending" else np.sort(lengths)[::-1]


def _padded(batcher, reader, size, epochs):
    """Cells with padding, by cells without, of every epoch; no minibatch is lost, or out of order."""
    share = []
    for epoch in range(epochs):
        source = list(minibatches(reader, size, epoch, None))
        shapes, found = [], []
        for stack in batcher.stacks(iter(source), lambda number: number % 7 == 0):
            found += stack.minibatches
            shapes += [stack.batch.mask.shape[1:]] * len(stack.minibatches)
        assert all(one is other for one, other in zip(found, source, strict=True))
        cells = sum(one.layout.T * one.layout.S for one in source)
        share.append(sum(steps * slots for steps, slots in shapes) / cells)
    return share


@pytest.mark.thorough
@pytest.mark.parametrize("spread", LENGTHS)
@pytest.mark.parametrize("size", [1, 50, 200, 1000])
def test_a_corpus_of_all_lengths(size, spread, tmp_path):
    trainer, reader = _trainer(tmp_path, _lengths(spread, "random"), size)
    share = _padded(trainer.batcher(size), reader, size, 3)
    assert len(trainer.buckets.used) <= 4 and max(share) < 2.8
    evaluator = Evaluator(trainer.network, trainer.nodes)
    _padded(evaluator.batcher(size), reader, size, 1)
    assert len(evaluator.buckets.used) <= 3


@pytest.mark.parametrize("order", ["ascending", pytest.param("descending", marks=pytest.mark.thorough)])
def test_a_corpus_in_order_of_lengths(order, tmp_path):
    """However the lengths change, enough is read ahead."""
    trainer, reader = _trainer(tmp_path, _lengths("mostly short", "random"), 50)
    source = sorted(minibatches(reader, 50, 0, None), key=lambda one: one.layout.T, reverse=order == "descending")
    stacks = list(trainer.batcher(50).stacks(iter(source), lambda number: False))
    assert sum(len(stack.minibatches) for stack in stacks) == len(source)
    assert len(trainer.buckets.used) <= 4


@pytest.mark.parametrize("order", ["random", "ascending", "descending"])
@pytest.mark.parametrize(
    "size", [pytest.param(size, marks=[pytest.mark.thorough] * (size != 200)) for size in (1, 50, 200)]
)
def test_minibatches_one_by_one(size, order, tmp_path):
    """Where nothing is read ahead: more shapes, but few."""
    trainer, reader = _trainer(tmp_path, _lengths("mostly short", "random"), size)
    batcher = trainer.batcher(size, chosen=0)
    source = sorted(minibatches(reader, size, 0, None), key=lambda one: one.layout.T)
    if order == "random":
        source = [source[k] for k in np.random.default_rng(2).permutation(len(source))]
    for minibatch in source[:: -1 if order == "descending" else 1]:
        prepared = batcher.prepared(minibatch)
        shape = batcher.shape(prepared)
        assert shape.steps >= prepared.layout.T and shape.slots >= prepared.layout.S
    assert len(trainer.buckets.known) <= 20


@pytest.mark.thorough
def test_compilations_are_counted_and_logged(tmp_path, caplog):
    trainer, reader = _trainer(tmp_path, np.arange(1, 201), 100)
    with caplog.at_level(logging.INFO, "cntkpy.trainers"):
        for group in trainer.batcher(100).stacks(minibatches(reader, 100, 0, None), lambda number: False):
            np.asarray(trainer.run(group, EpochSettings(0.001, 0.9, Settings(), 0), 0))
    lines = [record.getMessage() for record in caplog.records if "Compiling" in record.getMessage()]
    assert trainer.compilations == len(trainer.buckets.used) == len(lines) <= 4
    assert lines[-1].endswith(f"(compilation {len(lines)}).")


@pytest.mark.thorough
@pytest.mark.parametrize("summed", [True, False], ids=["evaluation", "write"])
def test_evaluation_is_compiled_as_rarely(summed, tmp_path, caplog):
    trainer, reader = _trainer(tmp_path, np.arange(1, 201), 100)
    evaluator = Evaluator(trainer.network, trainer.nodes, summed, trace_level=2)
    with caplog.at_level(logging.INFO, "cntkpy.trainers"):
        for _ in range(2):
            evaluator.load()
            for group in evaluator.batcher(100).stacks(minibatches(reader, 100, 0, None), lambda number: False):
                evaluator.run(group)
    lines = [record.getMessage() for record in caplog.records if "Compiling" in record.getMessage()]
    assert evaluator.compilations == len(evaluator.buckets.used) == len(lines) <= 2


SIZES = st.tuples(st.integers(1, 60), st.integers(1, 40), st.integers(1, 99), st.integers(1, 9), st.integers(1, 30))


def _shape(steps, slots, distinct, entries, other):
    return Shape(steps, slots, ((distinct, entries),), (other,))


@given(st.lists(SIZES, min_size=1, max_size=30), st.lists(SIZES, max_size=20), st.integers(1, 4), st.booleans())
@settings(max_examples=25)
def test_chosen_buckets_hold_everything(first, later, count, slots_stay):
    """What they were chosen for, and what comes later; that makes few buckets more."""
    if slots_stay:
        first, later = ([(t, 1 + s % 3, *more) for t, s, *more in sizes] for sizes in (first, later))
    shapes = Buckets()
    every = [_shape(*sizes) for sizes in first]
    shapes.choose(every, 1000, slots_stay=slots_stay, most=count)
    assert len(shapes.known) <= (3 + count if slots_stay else count)
    for one in [*every, *(_shape(*sizes) for sizes in later)]:
        padded = shapes.fit(one, 1000, slots_stay=slots_stay)
        assert padded.holds(one, np.inf) and (padded.slots == one.slots or not slots_stay)
    assert len(shapes.known) <= count + 8 or slots_stay
    saved = Buckets.from_json(json.loads(json.dumps(shapes.to_json())))
    assert saved == shapes and saved.fit(every[0], 1000, slots_stay=slots_stay) == shapes.fit(
        every[0], 1000, slots_stay=slots_stay
    )


def test_many_different_shapes_take_little_memory():
    """Minibatches in order of length, as many as are ever read ahead."""
    tracemalloc.start()
    every = [Shape(1 + n // 8, 1 + n % 8, ((1 + n, 1 + n % 3),)) for n in range(4096)]
    chosen = choose_buckets(every, 3)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(chosen) == 3 and all(any(one.holds(shape) for one in chosen) for shape in every)
    assert peak < 32 << 20


def test_equal_minibatches_get_one_shape():
    shapes = Buckets()
    shapes.choose([Shape(20, 8)] * 300 + [Shape(19, 8)], 160)
    assert shapes.known == [Shape(20, 8)]


def test_shapes_of_other_inputs_are_forgotten():
    """Such as those in a checkpoint of a configuration that was changed."""
    shapes = Buckets()
    shapes.choose([Shape(20, 8, ((3, 1),))], 160)
    shapes.keep(1, 0)
    assert len(shapes.known) == 1
    shapes.keep(2, 0)
    assert shapes == Buckets()


@pytest.mark.parametrize("order", ["random", "ascending", "descending"])
@pytest.mark.parametrize("slots", [1, 10, 50])
@pytest.mark.parametrize("cut", [0, 20], ids=["whole", "cut"])
@pytest.mark.parametrize("weights", [0, 1e5, 1e7])
@pytest.mark.sampled
def test_a_language_model_with_sentences_side_by_side(order, slots, cut, weights):
    """Sentences of equal length, as many as there are and `slots` at most; longer ones than `cut` continue.

    Padding takes as long as the programs that are made, and a quarter more than the closest shapes of two per doubling.
    """
    random = np.random.default_rng(slots)
    lengths = np.concatenate([np.arange(1, 201), np.exp(random.uniform(0, np.log(200), 900)).astype(int)])
    found, counts = np.unique(lengths, return_counts=True)
    groups = [(int(n), min(slots, int(c) - k)) for n, c in zip(found, counts, strict=True) for k in range(0, c, slots)]
    if order == "random":
        groups = [groups[k] for k in random.permutation(len(groups))]
    shapes, work, least = Buckets(), 0.0, 0.0
    for steps, sentences in groups[:: -1 if order == "descending" else 1] * 2:
        for begin in range(0, steps, cut or steps):
            own = Shape(min(cut or steps, steps - begin), slots if cut else sentences, ())
            own = Shape(own.steps, own.slots, ((max(1, int(own.cells**0.9)), 1),))
            padded = shapes.fit(own, 100, slots_stay=bool(cut), weights=weights)
            assert padded.holds(own, np.inf) and (not cut or padded.slots == slots)
            work, least = work + padded.work, least + own.rounded(2).work
    program = PROGRAM_WORK / (FIXED_WEIGHTS + weights)
    assert len(shapes.known) <= 30
    padding = work - 1.25 * least
    assert padding <= program * (1 + len(shapes.known)) or (len(shapes.known) > MANY_BUCKETS and padding < 0.9 * least)
    assert Buckets.from_json(json.loads(json.dumps(shapes.to_json()))) == shapes


def test_minibatches_that_come_one_by_one_wait_for_one_program():
    """Those of the classifier of `benchmarks/sequences.py --programs`, and a closer shape once its savings are worth
    it."""
    random = np.random.default_rng(0)
    buckets, used = Buckets(), []
    for _ in range(100):
        lengths = random.integers(3, 60, random.integers(8, 33))
        own = Shape(1, len(lengths), (), (int(lengths.max()),), (0, min(18, len(lengths))))
        used.append(buckets.fit(own, 0, weights=26_000))
    assert len(set(used)) == 1 and used[0].secondary == (64,)
    short = [buckets.fit(Shape(1, 8, (), (5,), (0, 4)), 0, weights=26_000) for _ in range(400)]
    assert short[0] == used[0] and short[-1].secondary[0] <= 8
    assert len(set(short)) == 2
    again = Buckets.from_json(json.loads(json.dumps(buckets.to_json())))
    assert again == buckets


def test_minibatches_of_equal_sequences_have_close_shapes():
    """The first one is not padded; those after it have one of few shapes."""
    buckets = Buckets()
    assert buckets.fit(Shape(33, 20), 660, ragged=False) == Shape(33, 20)
    assert buckets.fit(Shape(33, 20), 660, ragged=True) == Shape(33, 20)
    assert buckets.fit(Shape(33, 21), 660, ragged=False) == Shape(40, 24)
    assert Buckets().fit(Shape(33, 1), 660, ragged=False) == Shape(40, 1)
    assert Buckets().fit(Shape(33, 20), 660, ragged=True) == Shape(64, 24)
    first = Buckets().fit(Shape(33, 20, ((33, 5),), (9,)), 660, ragged=False)
    assert first == Shape(33, 20, ((48, 6),), (9,))


def test_minibatches_of_frames_are_not_padded():
    """Whatever sizes a schedule gives them; only the last of a sweep is filled up."""
    shapes = Buckets()
    for size in (16, 20, 300, 100, 50):
        assert [shapes.fit(Shape(1, slots), size).slots for slots in (size, size - 3)] == [size, size]


def test_exact_shapes_are_never_padded():
    shapes = Buckets()
    for steps, slots in [(1, 20), (1, 18), (3, 2), (1, 20)]:
        assert shapes.fit(Shape(steps, slots), 20, exact=True) == Shape(steps, slots)
    assert len(shapes.known) == 3


@given(st.lists(st.tuples(st.integers(1, 200), st.integers(1, 64)), max_size=60))
@settings(max_examples=50)
def test_sizes_grow_by_little(pairs):
    for size, _ in pairs:
        assert size <= round_to(size) <= 1.5 * size and size <= round_to(size, 4) <= max(size, 1.25 * size + 1)
    for shape in (Shape(*pair) for pair in pairs):
        assert shape.in_powers().holds(shape) and shape.with_slack().holds(shape) and shape.rounded(8).holds(shape)


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
    trainer = CompiledStep(network, [cost], momentum())
    layout = Layout(1, 2, np.array([[0, 0, 0, 1], [1, 1, 0, 1]]))
    for labels, good in (([(1, 0, 0, 2)] * 2, True), ([(1, 0, 0, 2), label], False)):
        streams = {
            "l": np.array([labels], np.float32),
            "h": np.zeros((1, 2, 3), np.float32),
            "s": np.zeros((1, 2, 2), np.float32),
        }
        minibatch = Minibatch(streams, dict.fromkeys(streams, layout))
        (group,) = trainer.batcher(2).stacks(iter([minibatch]), lambda number: False)
        if good:
            assert np.isfinite(np.asarray(trainer.run(group, EpochSettings(0.1, 0, Settings(), 0), 0))[0, 0])
        else:
            with pytest.raises(UserError, match=f"word {label[0]} of class {label[1]}"):
                trainer.run(group, EpochSettings(0.1, 0, Settings(), 0), 0)


def test_sparse_labels_of_classes_are_not_checked():
    network = Network("float")
    labels, h = (nodes.create(network, f"{k}Input", f"{k}x", (), {"dims": (4,)}) for k in ("Sparse", ""))
    weights = nodes.create(network, "LearnableParameter", "w", (), {"dims": (4, 6)})
    cost = nodes.create(network, "ClassBasedCrossEntropyWithSoftmax", "cost", (labels, h, weights, h))
    class_label_check(network, [cost])(None)
