"""Deserializers written in Python: orders, workers, states, what is refused, use in a configuration."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter

import numpy as np
import pytest
import scipy.sparse

from cntkpy.cntk_config import parse
from cntkpy.readers import (
    CTFDeserializer,
    DataError,
    MinibatchSource,
    StreamDef,
    StreamDefs,
    StreamInformation,
    UserDeserializer,
    create_reader,
)
from cntkpy.readers.user.from_section import construct

F = np.float32


class Numbers(UserDeserializer):
    """Sequences numbered through: `count` in each chunk, sequence k of `lengths[k % n]` samples with value k."""

    def __init__(self, chunks: int, count: int, lengths=(1,)):
        super().__init__()
        self.chunks, self.count, self.lengths, self.asked = chunks, count, lengths, []

    def stream_infos(self):
        return [StreamInformation("x", 0, "dense", F, (1,))]

    def num_chunks(self):
        return self.chunks

    def get_chunk(self, chunk_id):
        self.asked.append(chunk_id)
        numbers = range(chunk_id * self.count, (chunk_id + 1) * self.count)
        if self.lengths == (1,):
            return {"x": np.array(numbers, F).reshape(-1, 1)}
        return {"x": [np.full((self.lengths[k % len(self.lengths)], 1), k, F) for k in numbers]}


class Fixed(UserDeserializer):
    """Gives one chunk as it is told."""

    def __init__(self, streams, chunk):
        self._streams, self._chunk = streams, chunk

    def stream_infos(self):
        return self._streams

    def num_chunks(self):
        return 1

    def get_chunk(self, chunk_id):
        if isinstance(self._chunk, Exception):
            raise self._chunk
        return self._chunk


def values(source, size, **options):
    out = []
    for m in source.minibatches(size, **options):
        data = m[source["x"]]
        out += [] if data.data is None else [int(one[0, 0]) for one in data.as_sequences()]
    return out


def test_tumbling_orders_of_the_specification():
    source = MinibatchSource(Numbers(1, 5), max_sweeps=3)
    assert values(source, 5) == [4, 0, 3, 2, 1, 3, 0, 2, 1, 4, 3, 2, 0, 4, 1]


def test_windows_shuffle_within_themselves():
    source = MinibatchSource(Numbers(6, 3), max_sweeps=1, randomization_window_in_chunks=2)
    found = values(source, 4)
    assert sorted(found) == list(range(18))
    for i in range(0, 18, 6):
        assert len({v // 3 for v in found[i : i + 6]}) == 2


def test_a_window_goes_on_into_the_next_sweep():
    """A window of 4 chunks over sweeps of 3: parts of 3, 1, 2, 2, 1, 3 chunks, each shuffled by itself."""
    source = MinibatchSource(Numbers(3, 2), max_sweeps=4, randomization_window_in_chunks=4)
    found = values(source, 1)
    at = 0
    for part in (3, 1, 2, 2, 1, 3):
        piece = found[2 * at : 2 * (at + part)]
        assert len({v // 2 for v in piece}) == part
        at += part
    assert Counter(found) == dict.fromkeys(range(6), 4)


def test_windows_in_samples():
    source = MinibatchSource(
        Numbers(6, 3), max_sweeps=2, randomization_window_in_chunks=0, randomization_window_in_samples=5
    )
    assert Counter(values(source, 4)) == dict.fromkeys(range(18), 2)


@pytest.mark.parametrize("randomize", [True, False])
@pytest.mark.parametrize("workers", [1, 2, 3, 5])
@pytest.mark.parametrize("lengths", [(1,), (2, 1, 4)])
def test_workers_share_everything(randomize, workers, lengths):
    seen = []
    for rank in range(workers):
        source = MinibatchSource(Numbers(7, 4, lengths), max_sweeps=3, randomize=randomize)
        seen += values(source, 6 * workers, num_data_partitions=workers, partition_index=rank)
    assert Counter(seen) == dict.fromkeys(range(28), 3)


def test_a_worker_without_a_chunk_gets_nothing():
    source = MinibatchSource(Numbers(2, 4))
    assert source.next_minibatch(4, num_data_partitions=3, partition_index=2) == {}


def test_minibatches_cross_chunks_and_sweeps_in_order():
    source = MinibatchSource(Numbers(3, 4), max_sweeps=2, randomize=False)
    found = [(m[source["x"]].asarray().ravel().tolist(), m[source["x"]].end_of_sweep) for m in source.minibatches(6)]
    assert [v for v, _ in found] == [[0, 1, 2, 3, 4, 5], [6, 7, 8, 9, 10, 11]] * 2
    assert [flag for _, flag in found] == [False, True, False, True]


def test_max_samples_is_shared_out():
    counts = []
    for rank in range(3):
        source = MinibatchSource(Numbers(3, 10), max_samples=20, randomize=False)
        counts.append(len(values(source, 6, num_data_partitions=3, partition_index=rank)))
    assert counts == [7, 7, 6]


@pytest.mark.parametrize("randomize", [True, False])
@pytest.mark.parametrize("window", [2, 128])
@pytest.mark.parametrize("after", [0, 1, 4, 6, 11])
def test_state_goes_on_exactly(randomize, window, after):
    def make():
        return MinibatchSource(
            Numbers(5, 4, (2, 1, 3)), max_sweeps=3, randomize=randomize, randomization_window_in_chunks=window
        )

    whole, resumed = make(), make()
    for _ in range(after):
        whole.next_minibatch(7)
    state = json.loads(json.dumps(whole.get_checkpoint_state()))
    resumed.next_minibatch(3)
    resumed.restore_from_checkpoint(state)
    assert values(resumed, 7) == values(whole, 7)


def test_chunks_are_asked_for_once_while_they_are_needed():
    d = Numbers(4, 100)
    values(MinibatchSource(d, max_sweeps=1, randomize=False), 32)
    assert Counter(d.asked[:4]) == dict.fromkeys(range(4), 1)


def test_sequences_and_sparse_samples_of_several_axes():
    streams = [
        StreamInformation("x", 0, "sparse", F, (1, 3)),
        StreamInformation("y", 1, "dense", F, (2, 2)),
        StreamInformation("z", 2, "sparse", F, (4,)),
    ]
    x = scipy.sparse.csr_matrix(np.eye(3, dtype=F)[:2])
    y = [np.arange(8, dtype=F).reshape(2, 2, 2), np.ones((2, 2), F)]
    z = [scipy.sparse.csr_matrix(np.eye(4, dtype=F)[:n]) for n in (3, 1)]
    source = MinibatchSource(Fixed(streams, {"x": x, "y": y, "z": z}), randomize=False, max_sweeps=1)
    m = source.next_minibatch(10)
    assert m[source["x"]].shape == (2, 1, 1, 3)
    assert m[source["x"]].asarray()[:, 0, 0].tolist() == [[1, 0, 0], [0, 1, 0]]
    assert m[source["y"]].shape == (2, 2, 2, 2)
    assert m[source["y"]].as_sequences()[1].tolist() == [[[1, 1], [1, 1]]]
    assert [one.shape for one in m[source["z"]].as_sequences()] == [(3, 4), (1, 4)]
    assert m[source["z"]].num_samples == 4
    assert source.streams.y is source["y"]


def test_the_longest_stream_counts_unless_one_defines_the_size():
    def make(defines):
        streams = [
            StreamInformation("x", 0, "dense", F, (1,)),
            StreamInformation("y", 1, "dense", F, (1,), defines_mb_size=defines),
        ]
        chunk = {"x": [np.ones((n, 1), F) for n in (3, 4, 3, 4)], "y": [np.ones((1, 1), F)] * 4}
        return MinibatchSource(Fixed(streams, chunk), randomize=False)

    for defines, sequences in ((False, 2), (True, 4)):
        source = make(defines)
        assert source.next_minibatch(7 if not defines else 4)[source["y"]].num_sequences == sequences


D1 = [StreamInformation("x", 0, "dense", F, (2,))]
S1 = [StreamInformation("x", 0, "sparse", F, (2,))]
XY = [StreamInformation("x", 0, "dense", F, (2,)), StreamInformation("y", 1, "dense", F, (1,))]
CSR = scipy.sparse.csr_matrix(np.ones((2, 2), F))


@pytest.mark.parametrize(
    ("streams", "chunk", "part"),
    [
        (D1, {"z": np.ones((1, 2), F)}, "Stream with name 'z' does not exist"),
        (D1, {}, "stream 'x': it is missing"),
        (D1, [1], "gave list, not a dictionary"),
        (D1, {"x": np.ones((3, 2), np.int32)}, "elements are int32, only float32"),
        (D1, {"x": np.ones(3, F)}, "is not (n, 2)"),
        (D1, {"x": np.ones((3, 5), F)}, "samples of shape (5,) instead of (2,)"),
        (D1, {"x": "text"}, "str is neither an array"),
        (D1, {"x": CSR}, "sparse data in a dense stream"),
        (D1, {"x": [np.ones((3, 4), F)]}, "samples of shape (4,)"),
        (S1, {"x": np.ones((3, 2), F)}, "dense data in a sparse stream"),
        (S1, {"x": scipy.sparse.csr_matrix(np.ones((2, 3), F))}, "3 columns instead of 2"),
        (S1, {"x": scipy.sparse.csr_matrix(np.ones((2, 2), np.int64))}, "elements are int64"),
        (XY, {"x": np.ones((3, 2), F), "y": np.ones((2, 1), F)}, "stream 'x' has 3 sequences, stream 'y' has 2"),
        (D1, ZeroDivisionError("oh"), "get_chunk(0) failed: ZeroDivisionError: oh"),
        (D1, {"x": np.ones((0, 2), F)}, "has no sequences"),
        (D1, {"x": []}, "has no sequences"),
        (D1, {"x": [1, 2]}, "get_chunk(0), stream 'x': sequence 0 of the list is int"),
        (D1, {"x": [np.ones((1, 2), F), CSR]}, "sequence 1 of the list is csr_matrix"),
        (D1, {"x": [np.ones((1, 2), F), np.ones((0, 2), F)]}, "sequence 1 of the list has no samples"),
        (D1, {D1[0]: np.ones((1, 2), F)}, "StreamInformation x does not exist (Fixed.get_chunk(0))"),
        (S1, {"x": CSR.tocoo()}, "make it one by .tocsr()"),
        (D1, None, "Fixed.get_chunk(0) gave NoneType"),
    ],
)
@pytest.mark.parametrize("randomize", [True, False])
def test_wrong_chunks(streams, chunk, part, randomize):
    source = MinibatchSource(Fixed(streams, chunk), randomize=randomize)
    with pytest.raises(RuntimeError) as caught:
        source.next_minibatch(2)
    assert part in str(caught.value) or part in caught.value.diagnostic.render()
    if isinstance(chunk, Exception):
        assert caught.value.__cause__ is chunk
        assert f"{__file__}:" in caught.value.diagnostic.render()


def test_wrong_deserializers():
    with pytest.raises(ValueError, match="at least one stream"):
        MinibatchSource(Fixed([], {}))
    with pytest.raises(ValueError, match="at least one chunk"):
        MinibatchSource(Numbers(0, 1))
    with pytest.raises(NotImplementedError, match=r"has to implement num_chunks"):
        UserDeserializer().num_chunks()
    with pytest.raises(RuntimeError, match=r"UserDeserializer has to implement stream_infos\(\)"):
        MinibatchSource(UserDeserializer())
    with pytest.raises(ValueError, match="only float32"):
        MinibatchSource(Fixed([StreamInformation("x", 0, "dense", np.float64, (1,))], {}))
    for answer in (None, 2.5, "two"):
        with pytest.raises(ValueError, match=r"Numbers.num_chunks\(\) must be a whole number"):
            MinibatchSource(Numbers(answer, 1))
    with pytest.raises(ValueError, match="Numbers is a class, not a deserializer"):
        MinibatchSource(Numbers)
    both = [StreamInformation(n, i, "dense", F, (1,), True) for i, n in enumerate("ab")]
    with pytest.raises(ValueError, match="Only one stream can define"):
        MinibatchSource(Fixed(both, {}))


def test_a_deserializer_in_a_composite_reader():
    kind = f"type=Numbers;module={__name__};chunks=3;count=2"
    found = create_reader(f"randomize=false;deserializers=([{kind}])", "double")
    found.start_minibatch_loop(4, 0)
    first = found.get_minibatch()
    assert first.streams["x"].dtype == np.float64
    assert first.streams["x"].ravel().tolist() == [0, 1, 2, 3]
    state = json.loads(json.dumps(found.get_state()))
    assert found.get_minibatch().streams["x"].ravel().tolist() == [4, 5]
    assert found.get_minibatch() is None
    found.set_state(state)
    assert found.get_minibatch().streams["x"].ravel().tolist() == [4, 5]
    found.start_minibatch_loop(4, 1, 4)
    assert found.get_minibatch().streams["x"].ravel().tolist() == [4, 5, 0, 1]
    assert found.get_minibatch() is None
    with pytest.raises(DataError, match="Two streams with the same name 'x'"):
        create_reader(f"deserializers=([{kind}]:[{kind}])")


class Counted(Numbers):
    """Numbers that keep count of what is loaded, and by how many threads at once."""

    thread_safe = True

    def __init__(self, chunks: int, count: int, streams: object = None, pause: float = 0.0):
        super().__init__(chunks, count)
        self.given, self.pause = streams, pause
        self.calls: list[int] = []
        self.now = self.most = 0

    def get_chunk(self, chunk_id):
        self.calls.append(chunk_id)
        self.now += 1
        self.most = max(self.most, self.now)
        time.sleep(self.pause)
        self.now -= 1
        return super().get_chunk(chunk_id)


LIMITS = [
    {"max_sweeps": 1},
    {"max_samples": 90},
    {"max_sweeps": 1, "randomization_window_in_chunks": 5},
    {"max_sweeps": 1, "randomization_window_in_samples": 20, "randomization_window_in_chunks": 0},
]


@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize("randomize", [False, True])
def test_every_chunk_is_loaded_once_however_often_reading_goes_back(randomize, limits):
    data = Counted(30, 3)
    source = MinibatchSource(data, randomize=randomize, **limits)
    seen = []
    while found := source.next_minibatch(7):
        seen += found[source.streams.x].asarray().ravel().tolist()
        if len(seen) in (14, 35):
            source.restore_from_checkpoint(source.get_checkpoint_state())
    assert sorted(seen) == list(range(90))
    assert sorted(data.calls) == list(range(30))


def test_minibatches_do_not_wait_for_a_slow_chunk_behind_them(monkeypatch):
    for module in ("whole", "prefetch"):  # no time to make several at once
        monkeypatch.setattr(f"cntkpy.readers.pipeline.{module}.GROUP_SECONDS", -1.0)
    goes_on = threading.Event()

    class Slow(Numbers):
        def get_chunk(self, chunk_id):
            if chunk_id == 4:
                assert goes_on.wait(60)
            return super().get_chunk(chunk_id)

    source = MinibatchSource(Slow(8, 2), randomize=False, max_sweeps=1)
    try:
        before = [source.next_minibatch(2)[source.streams.x].asarray().ravel().tolist() for _ in range(4)]
    finally:
        goes_on.set()
    assert before == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert values(source, 2) == list(range(8, 16))


ORDERS = [
    {"randomize": False},
    {"randomize": True, "randomization_window_in_chunks": 1},
    {"randomize": True, "randomization_window_in_samples": 900, "randomization_window_in_chunks": 0},
]


@pytest.mark.parametrize("size", [7, 30, 1000])
@pytest.mark.parametrize("order", ORDERS, ids=["file order", "chunks", "samples"])
def test_minibatches_that_are_made_at_once_do_not_wait_for_a_slow_chunk_either(order, size):
    """However many there are in front of it: all that can be made of the chunks that are there come."""
    goes_on = threading.Event()

    class Slow(Numbers):
        def get_chunk(self, chunk_id):
            if len(self.asked) == 3:
                assert goes_on.wait(20), "the minibatches before this chunk have not come"
            return super().get_chunk(chunk_id)

    source = MinibatchSource(Slow(8, 1000), max_sweeps=1, **order)
    try:
        seen = [source.next_minibatch(size)[source.streams.x].asarray().ravel() for _ in range(3000 // size)]
    finally:
        goes_on.set()
    assert [len(one) for one in seen] == [size] * len(seen)
    seen += [np.array(values(source, size))]
    assert sorted(np.concatenate(seen).tolist()) == list(range(8000))


@pytest.mark.parametrize("options", [{}, {"max_samples": 4321}])
def test_many_sequences_in_one_chunk_come_as_they_do_from_many_chunks(options):
    lengths = (3, 1, 2)
    one, many = (
        MinibatchSource(Numbers(c, 900 // c, lengths), randomize=False, **options or {"max_sweeps": 2})
        for c in (1, 300)
    )
    assert values(one, 7) == values(many, 7)


def test_nothing_is_loaded_behind_the_end():
    data = Counted(30, 3)
    source = MinibatchSource(data, randomize=False, max_samples=15)
    while source.next_minibatch(4):
        pass
    source.close()
    assert sorted(data.calls) == list(range(5))


def test_several_threads_load_where_that_is_allowed(monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 4)
    data = Counted(16, 2, pause=0.01)
    source = MinibatchSource(data, randomize=False, max_sweeps=1)
    values = []
    while found := source.next_minibatch(8):
        values += found[source.streams.x].asarray().ravel().tolist()
    assert values == list(range(32))
    assert 1 < data.most <= 4
    alone = Counted(8, 2, pause=0.01)
    alone.thread_safe = False
    source = MinibatchSource(alone, randomize=False, max_sweeps=1)
    while source.next_minibatch(8):
        pass
    assert alone.most == 1


def test_beside_a_text_file(tmp_path):
    """The numbers of its sequences are the keys by which it is joined."""
    path = tmp_path / "y.ctf"
    path.write_text("".join(f"{key} |y {10 * key}\n" for key in (3, 0, 5, 1, 4, 2)))
    streams = StreamDefs(y=StreamDef(field="y", shape=1))
    source = MinibatchSource([Numbers(3, 2), CTFDeserializer(str(path), streams)], max_sweeps=2, randomization_seed=3)
    pairs = []
    while found := source.next_minibatch(4):
        x, y = (found[source.streams[name]].asarray().ravel().tolist() for name in "xy")
        pairs += zip(x, y, strict=True)
    assert sorted(pairs) == sorted(2 * [(k, 10 * k) for k in range(6)])
    source = MinibatchSource([CTFDeserializer(str(path), streams), Numbers(3, 2)], max_sweeps=1, randomize=False)
    found = source.next_minibatch(100)
    assert found[source.streams.x].asarray().ravel().tolist() == [3, 0, 5, 1, 4, 2]


def test_arguments_may_be_lists_and_dictionaries():
    seen = []

    class Given(Counted):
        def __init__(self, chunks: int, streams, more: dict, sizes: list):
            super().__init__(chunks, 1)
            seen.append((streams, more, sizes))

    section = parse("chunks=1 ; streams=([name=x;dim=3]:[name=y;parts=(a:b)]) ; more=[a=1;b=[c=2.5]] ; sizes=1:2")
    assert construct(Given, section).num_chunks() == 1
    streams = [{"name": "x", "dim": 3}, {"name": "y", "parts": ["a", "b"]}]
    assert seen == [(streams, {"a": 1, "b": {"c": 2.5}}, [1, 2])]
