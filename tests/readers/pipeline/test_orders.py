"""The order of the data: CNTK's, number by number."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cntkpy.readers import DataError
from cntkpy.readers.common.planned import Limits
from cntkpy.readers.common.sequences import SequenceTable
from cntkpy.readers.epochs import EpochRequest
from cntkpy.readers.kernels import budget
from cntkpy.readers.kernels import order_kernels as k
from cntkpy.readers.kernels.random_kernels import mt_next, mt_seed
from cntkpy.readers.pipeline.randomize import WHOLE_DATA, BlockRandomizer, NoRandomizer
from cntkpy.readers.pipeline.store import ChunkStore

ORDERS = json.loads((Path(__file__).parent / "orders.json").read_text())


def table(chunks: int, sequences: int, length: int = 1) -> SequenceTable:
    return SequenceTable(np.arange(chunks + 1) * sequences, np.array([length], np.int32))


def order(chunks: int, each: int, window: int = WHOLE_DATA, sweep: int = 0, in_chunks: bool = False, seed: int = 0):
    found = BlockRandomizer(table(chunks, each), window, in_chunks=in_chunks, seed=seed).lay_out(sweep).order
    assert found is not None
    return " ".join(map(str, found))


@pytest.mark.parametrize(
    ("seed", "values"),
    [
        (5489, [14514284786278117030, 4620546740167642908, 13109570281517897720]),
        (0, [2947667278772165694, 18301848765998365067, 729919693006235833]),
    ],
)
def test_mersenne_twister_64(seed, values):
    state = mt_seed(np.uint64(seed))
    assert [int(mt_next(state)) for _ in values] == values


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((5, 2), "6 3 1 5 9 0 4 2 7 8"),
        ((5, 2, WHOLE_DATA, 1), "3 0 8 4 7 5 2 9 1 6"),
        ((5, 2, 4), "8 9 1 0 6 7 2 3 4 5"),
        ((10, 2, 18), "18 19 7 14 6 9 8 15 5 2 10 13 16 17 1 4 3 12 11 0"),
        ((4, 1, 1), "2 0 1 3"),
        ((4, 1), "1 2 0 3"),
        ((4, 1, WHOLE_DATA, 1), "0 3 1 2"),
        ((4, 1, 128, 0, True), "1 2 0 3"),
        ((4, 1, 128, 1, True), "0 3 1 2"),
        ((1, 4), "2 0 1 3"),
        ((1, 4, 1, 1), "0 2 3 1"),
        ((1, 4, 1, 2), "0 2 1 3"),
        ((5, 2, 1, 0, True), "8 9 0 1 7 6 2 3 4 5"),
        ((5, 2, 2, 0, True), "0 8 9 1 6 7 2 3 5 4"),
        ((5, 2, 3, 0, True), "0 9 8 7 1 6 2 5 4 3"),
    ],
)
def test_shuffles_of_the_specification(arguments, expected):
    assert order(*arguments) == expected


def test_the_seed_is_added_to_the_sweep():
    assert order(5, 2, seed=1) == order(5, 2, sweep=1)


@pytest.mark.parametrize("window", ["8", "-1", str(2**64 - 1)])
def test_the_largest_window_is_everything(files, tools, singles, window):
    reader = files.reader(singles, "x:1", randomizationWindow=window, chunkSizeInBytes=40)
    found = [key for m in tools["epoch"](reader, 7) for key in m.keys]
    assert sorted(found) == list(range(20))
    everything = [key for m in tools["epoch"](files.reader(singles, "x:1", chunkSizeInBytes=40), 7) for key in m.keys]
    assert (found == everything) == (window != "8")


def test_windows_fit_into_what_kernels_take():
    """A kernel that was compiled for a smaller number takes none beyond 63 bits."""
    budget.reset(0)
    assert order(5, 2, 8) != order(5, 2, 2**64 - 1) == order(5, 2)


def test_order_is_the_same_for_longer_items():
    found = BlockRandomizer(table(10, 2, length=7), 18 * 7).lay_out(0).order
    assert found is not None
    assert " ".join(map(str, found)) == order(10, 2, 18)


def test_shuffle_range_within_bounds():
    values = np.arange(10)
    k.shuffle_range(mt_seed(np.uint64(0)), values, 3, 7)
    assert values[:3].tolist() == [0, 1, 2]
    assert values[7:].tolist() == [7, 8, 9]
    assert sorted(values[3:7]) == [3, 4, 5, 6]


X, XY = "x:1", "x:1 y:1"
CASES: dict[str, tuple[str, str, int, int | None, dict[str, Any]]] = {
    # data, inputs, minibatch size, epoch size, options
    "default_order": ("singles", XY, 1, None, {}),
    "no_randomize": ("singles", XY, 3, 7, {"randomize": False}),
    "small_chunks": ("singles", XY, 1, None, {"chunkSizeInBytes": 60}),
    "small_chunks_window2": ("singles", XY, 1, None, {"chunkSizeInBytes": 60, "randomizationWindow": 2}),
    "small_chunks_window7": ("singles", XY, 1, None, {"chunkSizeInBytes": 30, "randomizationWindow": 7}),
    "small_chunks_sample_window": (
        "singles",
        XY,
        1,
        None,
        {"chunkSizeInBytes": 40, "randomizationWindow": 8, "sampleBasedRandomizationWindow": True},
    ),
    "epoch_smaller": ("singles", XY, 3, 7, {"chunkSizeInBytes": 60}),
    "minibatch_larger_than_data": ("singles", XY, 32, 50, {}),
    "frame_mode": ("singles", XY, 6, None, {"frameMode": True}),
    "sequences_file_order": ("sequences", X, 7, None, {"randomize": False}),
    "sequences_one_each": ("sequences", X, 1, None, {}),
    "sequences_random_chunks": ("sequences", X, 7, 20, {"chunkSizeInBytes": 100, "randomizationWindow": 3}),
    "sequences_epoch_not_dividing": ("sequences", X, 5, 17, {"randomize": False}),
    "sequences_skip_ids_random": ("sequences", X, 9, None, {"skipSequenceIds": True, "chunkSizeInBytes": 70}),
    "sparse_and_dense": ("sequences", "x:1 s:5:sparse", 6, None, {"randomize": False}),
    "short_last_sweep_one_big_minibatch": ("sequences", X, 100, None, {"randomize": False}),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("prefetch", [True, False])
def test_minibatches_of_the_original(name, prefetch, files, tools, request):
    data, inputs, size, samples, options = CASES[name]
    reader = files.reader(request.getfixturevalue(data), inputs, traceLevel=0, prefetch=prefetch, **options)
    for number, expected in enumerate(ORDERS[name]):
        found = tools["epoch"](reader, size, number, samples)
        sums = [[float(m.streams["x"].sum()), m.num_samples] for m in found]
        assert sums == pytest.approx(np.array(expected), abs=0.02)
    reader.close()


def test_epochs_can_be_read_in_any_sequence(files, tools, singles):
    reader = files.reader(singles, X, chunkSizeInBytes=60, traceLevel=0)
    for number in (2, 0, 6, 1, 1):
        found = tools["epoch"](reader, 3, number, 7)
        sums = [[float(m.streams["x"].sum()), m.num_samples] for m in found]
        assert sums == pytest.approx(np.array(ORDERS["epoch_smaller"][number]), abs=0.02)


@pytest.mark.parametrize("memory", [1, 100])
@pytest.mark.parametrize("threads", [0, 1, 3])
def test_small_memory_gives_the_same_order(files, tools, singles, memory, threads):
    reader = files.reader(singles, XY, chunkSizeInBytes=60, traceLevel=0)
    reader.source.store = ChunkStore(reader.source.deserializer, memory=memory, threads=threads)
    found = [float(m.streams["x"].sum()) for m in tools["epoch"](reader, 1, 0)]
    assert found == [total for total, _ in ORDERS["small_chunks"][0]]
    reader.close()


@pytest.mark.parametrize("workers", [pytest.param(1, marks=pytest.mark.thorough), 2])
def test_scattered_sequences_are_read_in_batches(files, tools, workers):
    """Of a window that does not fit into memory, each batch holds the sequences of many minibatches."""
    text = "".join(f"{i} |x {i}\n" for i in range(4000))
    seen, calls = [], []
    for rank in range(workers):
        reader = files.reader(text, X, chunkSizeInBytes=400, traceLevel=0)
        data = reader.source.deserializer
        reader.source.store = ChunkStore(data, memory=40_000, threads=1)  # batches of about 100
        load = data.load_sequences
        data.load_sequences = lambda numbers, load=load: calls.append(len(numbers)) or load(numbers)
        for m in tools["epoch"](reader, 1, worker_rank=rank, number_of_workers=workers):
            seen += m.keys
        reader.close()
    assert sorted(seen) == list(range(4000))
    assert len(calls) < 100
    assert 90 < max(calls) < 200


@pytest.mark.parametrize("together", [1, 256])
@pytest.mark.parametrize("threads", [0, 2])
def test_a_fault_among_scattered_sequences_comes_in_its_minibatch(files, threads, together, monkeypatch):
    monkeypatch.setattr(
        "cntkpy.readers.pipeline.whole.MAX_GROUP_MINIBATCHES", together
    )  # 1, as where minibatches are large
    text = "".join(f"{i} |x {'oops' if i == 60 else i}\n" for i in range(100))
    good = files.reader(text.replace("oops", "60"), X, chunkSizeInBytes=80, traceLevel=0)
    good.start_minibatch_loop(3, 0)
    expected = []
    while 60 not in (keys := good.get_minibatch().keys):
        expected.append(keys)
    good.close()
    reader = files.reader(text, X, chunkSizeInBytes=80, traceLevel=0)
    reader.source.store = ChunkStore(reader.source.deserializer, memory=1600, threads=threads)
    reader.start_minibatch_loop(3, 0)
    assert [reader.get_minibatch().keys for _ in expected] == expected
    for _ in range(2):
        with pytest.raises(DataError, match="line 61, column 7"):
            reader.get_minibatch()
    reader.close()


@pytest.mark.parametrize("randomizer", [BlockRandomizer, NoRandomizer])
def test_every_sweep_has_every_sequence_once(randomizer):
    data = SequenceTable(np.array([0, 4, 9, 10]), np.array([3, 1, 4, 1, 5, 9, 2, 6, 5, 3], np.int32))
    timeline = randomizer(data)
    for number in range(3):
        timeline.set_state(EpochRequest(7, number))
        timeline.limits = Limits(7, 7)
        seen = [number for planned in iter(lambda: next(timeline, None), None) for number in planned.sequences.tolist()]
        assert sorted(seen) == list(range(10))
        assert timeline.position == 39 * (number + 1)


@pytest.mark.parametrize("randomizer", [BlockRandomizer, NoRandomizer])
@pytest.mark.parametrize("lengths", [[3, 1, 4, 1, 5, 9, 2, 6, 5, 3], [2]])
@pytest.mark.parametrize("cross_sweeps", [False, True])
@pytest.mark.parametrize("size", [None, 25, 40])
def test_several_minibatches_at_once_are_those_one_by_one(randomizer, lengths, cross_sweeps, size):
    data = SequenceTable(np.array([0, 4, 9, 10]), np.array(lengths, np.int32))

    def walk(limit, most):
        timeline, found = randomizer(data, cross_sweeps=cross_sweeps), []
        for number in range(4):
            timeline.set_state(EpochRequest(limit, number, size))
            timeline.limits = Limits(limit, limit, most, 12)
            for planned in iter(lambda: next(timeline, None), None):
                minibatches = list(planned.each())
                assert len(minibatches) == len(planned.states) <= most
                for one in minibatches:
                    position = one.states[0]["minibatchSourcePosition"]
                    found.append((one.sequences.tolist(), position, one.end_of_sweep, one.end_of_epoch))
                assert position == timeline.position
        return found

    for limit in (1, 4, 7, 100):
        assert walk(limit, 3) == walk(limit, 1)
