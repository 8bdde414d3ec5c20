"""Minibatches made on several threads: the same ones in the same order, faults at their places, nothing lost."""

from __future__ import annotations

import gc
import itertools
import os
import pickle
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from cntkpy.readers import DataError
from cntkpy.readers.common.chunk import Chunk, dense_stream
from cntkpy.readers.common.planned import LoadHints
from cntkpy.readers.common.sequences import SequenceTable
from cntkpy.readers.epochs import EpochRequest
from cntkpy.readers.pipeline.loads import Load, Loads
from cntkpy.readers.pipeline.prefetch import READY_VALUES, Prefetch
from cntkpy.readers.pipeline.randomize import BlockRandomizer, NoRandomizer
from cntkpy.readers.pipeline.source import Source, SourceOptions
from cntkpy.readers.pipeline.store import ChunkStore
from cntkpy.readers.streams import StreamInformation

# ------------------------------------------------------------------------------------------------- loads


def test_those_who_wait_for_a_load_make_calls_meanwhile():
    loads, made, running, go_on = Loads(0), [], threading.Event(), threading.Event()

    def slow() -> str:
        running.set()
        assert go_on.wait(60)
        return "slow"

    first, second = loads.begin(slow), loads.begin(lambda: made.append("second") or go_on.set() or "quick")
    with ThreadPoolExecutor(1) as pool:
        elsewhere = pool.submit(loads.result, first)
        assert running.wait(60)
        assert (
            loads.result(first) == "slow"
        )  # this thread has made the second call, without which it would wait forever
        assert elsewhere.result() == "slow"
    assert made == ["second"]
    assert loads.result(second) == "quick"


def test_what_a_load_raised_is_raised_whenever_it_is_asked_for():
    for threads in (0, 2):
        loads, calls = Loads(threads), []

        def fail(calls: list[int] = calls) -> None:
            calls.append(1)
            raise ValueError("broken")

        load = loads.begin(fail)
        for _ in range(2):
            with pytest.raises(ValueError, match="broken"):
                loads.result(load)
        assert calls == [1]
        loads.close()


def test_a_cancelled_load_is_not_made():
    loads, calls = Loads(0), []
    dropped, wanted = loads.begin(lambda: calls.append("dropped")), loads.begin(lambda: calls.append("wanted"))
    wanted.wanted = True
    for load in (dropped, wanted):
        load.cancel()
    assert dropped.done
    dropped.make()
    loads.result(wanted)
    assert calls == ["wanted"]


def test_ctrl_c_leaves_a_load_to_be_made_again():
    loads, raised = Loads(0), [KeyboardInterrupt()]

    def call() -> str:
        if raised:
            raise raised.pop()
        return "made"

    load = loads.begin(call)
    with pytest.raises(KeyboardInterrupt):
        loads.result(load)
    assert loads.result(load) == "made"


# ------------------------------------------------------------------------------------------------- order


def test_results_come_in_the_order_of_the_plans():
    numbers, events = iter(range(100)), [threading.Event() for _ in range(100)]
    consumer = threading.get_ident()

    def plan() -> int:
        assert threading.get_ident() == consumer, "another thread plans"
        return next(numbers)

    def make(number: int) -> int:
        if number % 2 == 0:  # is done only after the next one
            assert events[number + 1].wait(60)
        events[number].set()
        return number

    ahead = Prefetch(make, plan, threads=3)
    assert [next(ahead) for _ in range(40)] == list(range(40))
    for event in events:
        event.set()
    ahead.close()


@pytest.mark.parametrize("threads", [1, 3])
def test_values_ahead_are_bounded(threads):
    numbers = iter(range(100))
    ahead = Prefetch(lambda number: number, lambda: next(numbers), threads=threads)
    for value in range(10):
        assert next(ahead) == value
        assert len(ahead._queue.jobs) + len(ahead._queue.ready) == threads + READY_VALUES - 1
    ahead.close()
    assert next(numbers) == 10 + threads + READY_VALUES - 1, "a plan more than values"


@pytest.mark.parametrize("stage", ["plan", "make"])
def test_what_was_raised_comes_at_its_place_and_is_tried_again(stage):
    numbers = itertools.count()
    failing = True

    def plan() -> int:
        number = next(numbers)
        if stage == "plan" and number == 3:
            raise DataError("three")
        return number

    def make(number: int) -> int:
        if stage == "make" and number == 3 and failing:
            raise DataError("three")
        return number

    ahead = Prefetch(make, plan, threads=2)
    assert [next(ahead) for _ in range(3)] == [0, 1, 2]
    for _ in range(3 if stage == "make" else 1):
        with pytest.raises(DataError, match="three"):
            next(ahead)
    failing = False
    assert [next(ahead) for _ in range(5)] == ([3, 4, 5, 6, 7] if stage == "make" else [4, 5, 6, 7, 8])
    ahead.reset()
    following = next(ahead)
    assert following > 8
    assert next(ahead) == following + 1
    ahead.close()


# ------------------------------------------------------------------------------------------------- minibatches


def text_of(sequences: int, broken: int = -1) -> str:
    """Sequences of one to three samples; the sparse stream has lengths of its own. broken: a number of three digits."""
    return "".join(
        f"{k} |x {'ooo' if k == broken else k} {t}" + (f" |s {k % 5}:{k + 1} {(k + t) % 7}:0.5\n" if t == 0 else "\n")
        for k in range(sequences)
        for t in range(k % 3 + 1)
    )


@pytest.fixture
def parallel(files, monkeypatch):
    """Makes readers of text that use three threads; memory: of the store."""
    monkeypatch.setattr("os.cpu_count", lambda: 3)

    def make(text, memory=None, threads=True, **options):
        given = {"multiThreadedDeserialization": threads, "prefetch": threads, "chunkSizeInBytes": 300, "traceLevel": 0}
        reader = files.reader(text, "x:2 s:7:sparse", "float", **given | options)
        if memory is not None and threads:
            reader.source.store = ChunkStore(reader.source.deserializer, memory=memory, threads=0, callers=3)
        return reader

    return make


@pytest.mark.parametrize("memory", [None, 300, 3000])
@pytest.mark.parametrize("options", [{"randomize": False}, {}, {"randomizationWindow": 20}])
@pytest.mark.sampled
def test_three_threads_give_what_one_gives(parallel, tools, options, memory):
    """memory 300 holds no window: batches of sequences are read."""
    text, found = text_of(700), []
    for threads in (False, True):
        reader = parallel(text, memory, threads, **options)
        assert (reader.source._packer.groups.threads == 3) == threads
        minibatches = [m for number in (0, 1) for m in tools["epoch"](reader, 9, number, 1000)]
        found.append([(tools["unpack"](m), m.end_of_sweep, m.end_of_epoch) for m in minibatches])
        reader.close()
    assert found[0] == found[1]
    assert len(found[0]) > 200


@pytest.mark.parametrize("randomize", [True, False])
def test_a_position_on_several_threads_can_be_saved_anywhere(parallel, tools, randomize):
    text = text_of(300)
    whole = parallel(text, threads=False, randomize=randomize)
    keys = [m.keys for m in tools["epoch"](whole, 4)]
    whole.close()
    for stop in (0, 1, 2, 6, 22, 23, 90, len(keys) - 1):
        reader = parallel(text, randomize=randomize)
        reader.start_minibatch_loop(4, 0)
        assert [reader.get_minibatch().keys for _ in range(stop)] == keys[:stop]
        state = reader.get_state()
        reader.close()
        again = parallel(text, randomize=randomize)
        again.set_state(state)
        assert [m.keys for m in tools["rest"](again)] == keys[stop:]
        again.close()


@pytest.mark.parametrize("memory", [None, 300])
@pytest.mark.parametrize("randomize", [True, False])
def test_a_fault_comes_at_its_minibatch(parallel, randomize, memory):
    """Nothing in front of the faulty chunk (or batch) is lost, and it is never passed over."""
    good = parallel(text_of(300), randomize=randomize, threads=False)
    good.start_minibatch_loop(4, 0)
    expected = []
    while 150 not in (keys := good.get_minibatch().keys):
        expected.append(keys)
    good.close()
    reader = parallel(text_of(300, broken=150), memory, randomize=randomize)
    reader.start_minibatch_loop(4, 0)
    found = []
    with pytest.raises(DataError, match=r"line 301, column 8, sequence id 150"):
        while True:
            found.append(reader.get_minibatch().keys)
    assert found == expected[: len(found)]
    if memory is not None and randomize:
        assert found == expected, "single sequences are read"
    state = reader.get_state()
    with pytest.raises(DataError, match="sequence id 150"):
        reader.get_minibatch()
    assert reader.get_state() == state
    reader.close()


class Faulty:
    """600 samples in chunks of 20, some of which are invalid."""

    def __init__(self, bad):
        self.streams = [StreamInformation("x", (1,), False, np.dtype(np.float32))]
        self.table = SequenceTable(np.arange(0, 601, 20), np.ones(1, np.int32))
        self.chunk_bytes = np.full(30, 80)
        self.bad = np.isin(np.arange(600), bad)

    def load_chunk(self, chunk):
        return self.load_sequences(np.arange(20 * chunk, 20 * chunk + 20))

    def load_sequences(self, sequences):
        rows = sequences.astype(np.float32).reshape(-1, 1)
        bad = self.bad[sequences]
        return Chunk({"x": dense_stream(rows, np.arange(len(rows) + 1))}, 80, bad if bad.any() else None)


@pytest.mark.parametrize("randomizer", [NoRandomizer, BlockRandomizer])
def test_invalid_sequences_are_counted_in_order(randomizer):
    """The minibatch that has one too many is the same on every number of threads, and so is its message."""

    def read(threads):
        data = Faulty([3, 77, 78, 250, 251, 252, 590])
        source = Source(data, randomizer(data.table), SourceOptions(threads=threads, max_errors=5))
        source.set_state(EpochRequest(7))
        found = []
        try:
            while (m := next(source, None)) is not None:
                found.append((m.keys, m.streams["x"].ravel().tolist()))
        except DataError as error:
            found.append(str(error))
        source.close()
        return found

    one = read(1)
    assert "exceeded the specified maximum number '5'" in one[-1]
    assert len(one) > 30
    for threads in (2, 3, 5):
        assert read(threads) == one


# ------------------------------------------------------------------------------------------------- Ctrl-C, pickle


@pytest.mark.parametrize("threads", [True, False])
def test_ctrl_c_while_a_minibatch_is_waited_for_loses_none(parallel, tools, monkeypatch, threads):
    reader = parallel(text_of(300), threads=threads, prefetch=True, randomize=False)
    reader.start_minibatch_loop(4, 0)
    keys = [m.keys for _ in range(10) if (m := reader.get_minibatch())]

    def interrupted(*arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(threading.Condition, "wait_for", interrupted)
        while True:
            keys.append(reader.get_minibatch().keys)
    keys += [m.keys for m in tools["rest"](reader)]
    assert [key for one in keys for key in one] == list(range(300))
    reader.close()


@pytest.mark.parametrize("threads", [True, False])
def test_ctrl_c_while_a_minibatch_is_made_loses_none(parallel, tools, monkeypatch, threads):
    reader = parallel(text_of(300), threads=threads, randomize=False)
    reader.start_minibatch_loop(4, 0)
    keys = [m.keys for _ in range(10) if (m := reader.get_minibatch())]

    def interrupted(*arguments):
        raise KeyboardInterrupt

    for place in ("cntkpy.readers.pipeline.whole._made", "cntkpy.readers.kernels.pack_kernels.first_fit"):
        if threads and "first_fit" in place:
            break  # only the main thread is interrupted
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(place, interrupted)
            while True:
                keys.append(reader.get_minibatch().keys)
    keys += [m.keys for m in tools["rest"](reader)]
    assert [key for one in keys for key in one] == list(range(300))
    reader.close()


def test_a_minibatch_takes_its_own_keys_along(files):
    """Keys are made when they are asked for; the table of all of them does not go with a minibatch."""
    (minibatch,) = files.minibatches("".join(f"{k} |x {k}\n" for k in range(20, 30)), "x:1")
    copy = pickle.loads(pickle.dumps(minibatch))
    assert copy.keys == minibatch.keys == list(range(20, 30))
    many = files.minibatches("".join(f"{k} |x {k}\n" for k in range(20_000)), "x:1", size=10)
    assert len(pickle.dumps(many[0])) < 5000


def test_loads_that_nobody_wants_any_more_are_not_made():
    """The window moves on: chunks that were begun ahead are dropped, those that somebody waits for are not."""
    data = Faulty([])
    store = ChunkStore(data, memory=400, threads=0, callers=2)
    wanted = store.begin(np.arange(20), LoadHints(np.array([0]), np.array([1, 2])))
    ahead: Load = store._chunks[2]
    store.begin(np.arange(200, 220), LoadHints(np.array([10]), np.array([11])))
    assert ahead.done
    assert ahead.make()
    assert ahead._value == []
    assert wanted()[0].chunk.streams["x"].values.tolist() == list(range(20))


@pytest.mark.thorough
@pytest.mark.parametrize("how", [{"threads": 0}, {"threads": 1}, {"threads": 0, "callers": 3}])
def test_chunks_that_are_not_needed_any_more_are_let_go_of(parallel, tools, how):
    reader = parallel(text_of(3000), threads="callers" in how, randomize=False)
    data, alive, most = reader.source.deserializer, weakref.WeakSet(), 0
    load = data.load_chunk

    def watched(number):
        chunk = load(number)
        alive.add(chunk)
        return chunk

    data.load_chunk = watched
    reader.source.store = ChunkStore(data, memory=2000, **how)
    reader.start_minibatch_loop(20, 0)
    while reader.get_minibatch() is not None:
        most = max(most, len(alive))
    assert data.table.num_chunks > 150
    assert most < 75, "groups of 4, 16, 64 minibatches ahead of the one at hand"
    reader.close()
    gc.collect()
    assert len(alive) == 0


def test_reading_without_pread(files, monkeypatch):
    """As on Windows."""
    text = text_of(100)
    good = files.sequences(text, "x:2 s:7:sparse", chunkSizeInBytes=100)
    for name in ("pread", "preadv"):
        monkeypatch.delattr(os, name, raising=False)
    assert files.sequences(text, "x:2 s:7:sparse", chunkSizeInBytes=100) == good
    path = files.folder / "data.ctf"
    reader = files.reader(text, "x:2 s:7:sparse", chunkSizeInBytes=100, prefetch=False)
    reader.start_minibatch_loop(4, 0)
    path.write_bytes(path.read_bytes()[:700])
    with pytest.raises(DataError, match="cut short"):
        while reader.get_minibatch() is not None:
            pass
    reader.close()
