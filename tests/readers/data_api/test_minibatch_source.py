"""MinibatchSource over text files: limits, flags, shapes, keys, errors."""

from __future__ import annotations

import json

import numpy as np
import pytest

from cntkpy.readers import (
    FULL_DATA_SWEEP,
    INFINITELY_REPEAT,
    CTFDeserializer,
    MinibatchData,
    MinibatchSource,
    Record,
    StreamDef,
    StreamDefs,
    StreamInformation,
    create_reader,
    sequence_to_cntk_text_format,
)
from cntkpy.readers.data_api.text import is_tensor
from cntkpy.readers.errors import ArgumentError

FOUR = "|x 1\n|x 2\n|x 3\n|x 4"
TWO = "".join(f"0 |x {i}\n" for i in range(3)) + "".join(f"1 |x {i}\n" for i in range(4))


@pytest.fixture
def source(files):
    """Makes a source of text with one dense stream x, or with other streams."""
    made = []

    def make(text: str, *others: str, streams=None, **options) -> MinibatchSource:
        streams = streams or StreamDefs(x=StreamDef(field="x", shape=1))
        parts = [CTFDeserializer(str(files.write(text, "a b;c.ctf")), streams)]
        for i, (other, more) in enumerate(others):
            parts.append(CTFDeserializer(str(files.write(other, f"more{i}.ctf")), more))
        made.append(MinibatchSource(parts, trace_level=0, **options))
        return made[-1]

    yield make
    for one in made:
        one.close()


def flags(s: MinibatchSource, size: int, name: str = "x") -> list[tuple[int, bool]]:
    return [(m[s[name]].num_samples, m[s[name]].end_of_sweep) for m in s.minibatches(size)]


@pytest.mark.parametrize("randomize", [True, False])
@pytest.mark.parametrize(
    ("limit", "size", "expected"),
    [
        ({"max_sweeps": 3}, 5, [(5, True), (5, True), (2, True)]),
        ({"max_samples": 11}, 5, [(5, True), (5, True), (1, False)]),
        ({"max_samples": 1}, 1, [(1, False)]),
        ({"max_sweeps": 1}, 100, [(4, True)]),
        ({"max_samples": FULL_DATA_SWEEP}, 3, [(3, False), (1, True)]),
    ],
)
def test_limits_of_the_specification(source, randomize, limit, size, expected):
    s = source(FOUR, randomize=randomize, **limit)
    assert len(s.minibatches(size)) == len(expected)
    assert flags(s, size) == expected
    assert s.next_minibatch(size) == {}
    assert s.next_minibatch(1, input_map={"a": s.streams.x}) == {}
    assert not s.is_infinite()


def test_a_minibatch_over_many_sweeps(source):
    s = source("".join(f"0 |x {i}\n" for i in range(7)))
    data = s.next_minibatch(1000)[s.streams.x]
    assert (data.num_sequences, data.num_samples, data.end_of_sweep) == (142, 994, True)
    assert s.is_infinite()
    with pytest.raises(TypeError):
        len(s.minibatches(3))


def test_at_least_one_sequence(source):
    s = source(TWO, randomize=False)
    first, second = s.next_minibatch(7)[s["x"]], s.next_minibatch(1)[s["x"]]
    assert (first.num_sequences, first.num_samples, first.end_of_sweep) == (2, 7, True)
    assert first.mask.tolist() == [[2, 1, 1, 0], [2, 1, 1, 1]]
    assert (second.num_sequences, second.num_samples, second.end_of_sweep) == (1, 3, False)
    with pytest.warns(RuntimeWarning, match="padding"):
        assert first.asarray().ravel().tolist() == [0, 1, 2, 0, 0, 1, 2, 3]
    assert [one.ravel().tolist() for one in first.as_sequences()] == [[0, 1, 2], [0, 1, 2, 3]]


@pytest.mark.parametrize("size", [30, 100, 500, 1000])
def test_flags_of_ends_of_sweeps(source, size):
    text = "".join(f"|x {i}\n" for i in range(603))
    s = source(text, max_samples=2412)
    position = 0
    for count, flag in flags(s, size):
        assert count == min(size, 2412 - position)
        assert flag == ((position + count) // 603 > position // 603)
        position += count
    assert position == 2412


def test_arrays_of_the_specification(source):
    text = (
        "0 |S0 560:1 |S1 1 0 0 0 0\n0 |S0 0:1\n0 |S0 0:1\n"
        "1 |S0 560:1 |S1 0 1 0 0 0\n1 |S0 0:1\n1 |S0 0:1\n1 |S0 424:1\n"
    )
    streams = StreamDefs(
        features=StreamDef(field="S0", shape=1000, is_sparse=True), labels=StreamDef(field="S1", shape=5)
    )
    s = source(text, streams=streams, randomize=False)
    m = s.next_minibatch(7, input_map={"f": s.streams.features, "l": s.streams.labels})
    f, labels = m["f"], m["l"]
    assert f.shape == (2, 4, 1000)
    assert labels.shape == (2, 1, 5)
    assert (f.num_samples, labels.num_samples, f.end_of_sweep) == (7, 2, True)
    assert f.is_sparse
    assert not labels.is_sparse
    assert [one.indices.tolist() for one in f.as_sequences()] == [[560, 0, 0], [560, 0, 0, 424]]
    with pytest.warns(RuntimeWarning):
        dense = f.asarray()
    assert dense.shape == (2, 4, 1000)
    assert np.argwhere(dense[0]).tolist() == [[0, 560], [1, 0], [2, 0]]
    assert np.argwhere(dense[1]).tolist() == [[0, 560], [1, 0], [2, 0], [3, 424]]
    assert s.next_minibatch(1)[s.streams.labels].num_samples == 1


def test_the_stream_that_defines_the_size(source):
    text = "".join(f"{k} |x {i} {'|y 1' if i == 0 else ''}\n" for k, n in enumerate((3, 4, 3, 4)) for i in range(n))
    streams = StreamDefs(x=StreamDef(field="x", shape=1), y=StreamDef(field="y", shape=1, defines_mb_size=True))
    s = source(text, streams=streams, randomize=False)
    assert [(m[s["x"]].num_samples, m[s["y"]].num_samples) for m in [s.next_minibatch(2)]] == [(7, 2)]
    assert [(m[s["x"]].num_samples, m[s["y"]].num_samples) for m in [s.next_minibatch(3)]] == [(10, 3)]


def test_two_files_joined_by_the_defining_stream(source):
    one = "".join(f"{k} |x {i}\n" for k, n in enumerate((3, 4, 3, 4)) for i in range(n))
    two = "".join(f"{k} |y 1\n" for k in range(4))
    more = StreamDefs(y=StreamDef(field="y", shape=1, defines_mb_size=True))
    s = source(one, (two, more), randomize=False)
    m = s.next_minibatch(3)
    assert (m[s["x"]].num_samples, m[s["y"]].num_samples) == (10, 3)


def test_seeds(source):
    text = "".join(f"|x {i}\n" for i in range(50))

    def order(s, count=50):
        return s.next_minibatch(count)[s["x"]].asarray().ravel().tolist()

    plain, zero, other, one = (
        source(text),
        source(text, randomization_seed=0),
        source(text, randomization_seed=123),
        source(text, randomization_seed=1),
    )
    first = order(plain)
    assert order(zero) == first
    assert order(other) != first
    assert order(zero) == order(one)  # the second sweep of seed 0 is the first of seed 1


@pytest.mark.parametrize("randomize", [True, False])
def test_partitions_change_in_the_middle(source, files, randomize):
    text = "".join(f"|x {i}\n" for i in range(1000))
    streams = StreamDefs(x=StreamDef(field="x", shape=1))
    config = CTFDeserializer(str(files.write(text)), streams)
    config["chunkSizeInBytes"] = 100
    sources = [MinibatchSource(config, max_sweeps=1, randomize=randomize, trace_level=0) for _ in range(2)]
    seen = []
    for _ in range(3):
        seen += sources[0].next_minibatch(50)[sources[0]["x"]].asarray().ravel().tolist()
    state = json.loads(json.dumps(sources[0].get_checkpoint_state()))
    sources[1].restore_from_checkpoint(state)
    for rank, s in enumerate(sources):
        while m := s.next_minibatch(60, num_data_partitions=2, partition_index=rank):
            data = m[s["x"]]
            if data.data is not None:
                seen += data.asarray().ravel().tolist()
    assert sorted(seen) == list(range(1000))


def test_truncated(source):
    text = "".join(f"{k} |x {10 * k + t}\n" for k, n in enumerate((4, 2, 5)) for t in range(n))
    s = source(text, randomize=False, truncation_length=3, max_sweeps=1)
    first = s.next_minibatch(6)[s["x"]]
    assert first.mask.tolist() == [[2, 1, 1], [2, 1, 0], [2, 0, 0]]
    second = s.next_minibatch(6)[s["x"]]
    assert second.mask.tolist() == [[1, 0, 0], [1, 1, 1]]
    assert [one.ravel().tolist() for one in second.as_sequences()] == [[3], [21, 22, 23]]
    assert s.config["truncated"]
    assert len(s.config) == 7


def test_a_position_alone_can_be_restored(source):
    s = source(FOUR, max_sweeps=2, randomize=False)
    s.current_position = {"minibatchSourcePosition": 5}
    assert s.next_minibatch(2)[s["x"]].asarray().ravel().tolist() == [2, 3]
    assert s.current_position["minibatchSourcePosition"] == 7
    with pytest.raises(ValueError, match="Checkpoint misses required field minibatchSourcePosition"):
        s.restore_from_checkpoint({})


def test_restoring_after_the_end_and_before_the_start(source):
    s = source(FOUR, max_sweeps=1)
    begin = s.get_checkpoint_state()
    first = [m[s["x"]].asarray().tolist() for m in s.minibatches(3)]
    assert s.next_minibatch(3) == {}
    s.restore_from_checkpoint(begin)
    assert [m[s["x"]].asarray().tolist() for m in s.minibatches(3)] == first


def test_the_dictionary_of_the_configuration(source):
    assert len(source(FOUR, randomize=False).config) == 5
    assert len(source(FOUR).config) == 8
    assert source(FOUR, randomization_window_in_chunks=0).config["randomize"] is False
    by_samples = source(FOUR, randomization_window_in_chunks=0, randomization_window_in_samples=10).config
    assert (by_samples["randomizationWindow"], by_samples["sampleBasedRandomizationWindow"]) == (10, True)


@pytest.mark.parametrize(
    ("options", "kind", "part"),
    [
        ({"max_samples": 5, "max_sweeps": 1}, RuntimeError, "mutually exclusive"),
        ({"randomization_window_in_samples": 1}, RuntimeError, "mutually exclusive"),
        ({"frame_mode": True, "truncation_length": 3}, RuntimeError, "mutually exclusive"),
        ({"max_samples": 2**63}, ValueError, "overflow"),
        ({"max_sweeps": 2**62}, ValueError, "overflow"),
        ({"max_samples": -1}, ValueError, "max_samples must be at least 0"),
        ({"max_sweeps": 1.5}, ValueError, "max_sweeps must be a whole number, not 1.5"),
        ({"randomization_window_in_chunks": -1}, ValueError, "randomization_window_in_chunks must be at least 0"),
        ({"truncation_length": "3"}, ValueError, "truncation_length must be a whole number, not '3'"),
    ],
)
def test_options_that_exclude_each_other(source, options, kind, part):
    with pytest.raises(kind, match=part):
        source(FOUR, **options)


def test_wrong_calls(source):
    s = source(FOUR)
    with pytest.raises(ValueError, match="Requested minibatch size must be > 0"):
        s.next_minibatch(0)
    with pytest.raises(ValueError, match="partition 2 of 2"):
        s.next_minibatch(1, num_data_partitions=2, partition_index=2)
    with pytest.raises(RuntimeError, match="No stream found matching given name 'z'"):
        s["z"]
    with pytest.raises(RuntimeError, match="cannot find a stream with name 'z'"):
        s.next_minibatch(1, input_map={"a": StreamInformation("z", 7, "dense", np.float32, (1,))})
    with pytest.raises(ValueError, match="stream name for key x must be specified"):
        CTFDeserializer("f", StreamDefs(x=StreamDef(shape=1)))
    with pytest.raises(ValueError, match="is not a deserializer"):
        MinibatchSource(3)
    with pytest.raises(ValueError, match="unknown deserializer"):
        MinibatchSource({"type": "Nothing"})
    with pytest.raises(ValueError, match="must have a 'type'"):
        MinibatchSource({"file": "x"})
    for size, part in ((2.5, "must be a whole number, not 2.5"), ("2", "must be a whole number, not '2'")):
        with pytest.raises(ValueError, match=part):
            s.next_minibatch(size)
    for given, part in (([s.streams.x], "must be a dictionary"), ({"a": 3}, "has no stream for 'a'")):
        with pytest.raises(ValueError, match=part):
            s.next_minibatch(1, input_map=given)
        with pytest.raises(ValueError, match=part):
            s.minibatches(1, input_map=given)
    for state in (None, {}, {"minibatchSourcePosition": "x"}, {"minibatchSourcePosition": -1}):
        with pytest.raises(ValueError, match=r"checkpoint|Checkpoint"):
            s.restore_from_checkpoint(state)


def test_more_workers_than_slots_are_refused(source):
    s = source(FOUR, truncation_length=3)
    with pytest.raises(ValueError, match="2 workers are more than the parallel sequences"):
        s.next_minibatch(5, num_data_partitions=2, partition_index=0)


def test_a_worker_without_data_says_so(source):
    s = source(FOUR, randomize=False, max_sweeps=1)
    found = s.next_minibatch(4, num_data_partitions=5, partition_index=4)
    assert found == {} or found[s["x"]].data is None
    empty = MinibatchData(None, 0, 0, False)
    for ask in (lambda: empty.shape, lambda: empty.mask, empty.asarray, empty.as_sequences, lambda: empty.is_sparse):
        with pytest.raises(RuntimeError, match="this worker has no data in this minibatch"):
            ask()


@pytest.mark.parametrize("randomize", [False, True])
def test_fewer_chunks_than_partitions_are_told_once(source, randomize, caplog):
    s = source(FOUR, randomize=randomize)
    for _ in range(2):
        s.next_minibatch(4, num_data_partitions=3, partition_index=0)
        s.next_minibatch(4)
    told = [one.getMessage() for one in caplog.records if "partitions get no data" in one.getMessage()]
    assert len(told) == randomize
    assert all("2 of 3 partitions" in one and "there is 1." in one for one in told)


@pytest.mark.parametrize("randomize", [False, True])
def test_a_worker_beyond_the_data_does_not_look_for_ever(source, randomize):
    s = source(FOUR, randomize=randomize)
    assert s.next_minibatch(4, num_data_partitions=50, partition_index=49) == {}
    assert s.next_minibatch(4)[s["x"]].num_samples == 4


@pytest.mark.thorough
def test_malformed_places_up_to_max_errors(source):
    text = "0 |x 1\n0 |x a\n1 |x 2\n"
    with pytest.raises(RuntimeError, match="maximum number of allowed errors"):
        source(text, randomize=False, max_errors=2).next_minibatch(3)
    kept = source(text, randomize=False, max_errors=3)  # the value, the line without samples, the missing sample
    assert kept.next_minibatch(3)[kept["x"]].asarray().ravel().tolist() == [1, 2]


def test_errors_in_the_file_are_runtime_errors(source):
    s = source("|x 1\n|x a\n", randomize=False)
    with pytest.raises(RuntimeError, match="line 2, column 4"):
        s.next_minibatch(2)


def test_stream_information():
    s = StreamInformation("s", 3, "sparse", np.float32, (2, 5), True)
    assert (s.m_name, s.m_id, s.m_storage_format, s.m_sample_layout) == ("s", 3, "sparse", (5, 2))
    assert (s.sample_shape, s.storage_format, s.m_element_type, s.dim) == ((2, 5), "sparse", np.float32, 10)
    assert s.m_defines_mb_size
    assert s == StreamInformation("s", 3, "sparse", np.float32, (2, 5))
    assert s != StreamInformation("s", 4, "sparse", np.float32, (2, 5))
    assert {s: 1}[StreamInformation("s", 3, "sparse", np.float32, (2, 5))] == 1
    with pytest.raises(ArgumentError, match="is 'dense' or 'sparse', not 'thin'"):
        StreamInformation("s", 3, "thin", np.float32, (2,))


def test_records():
    r = Record(a=1, b=2)
    assert (r.a, r["b"], list(r)) == (1, 2, ["a", "b"])
    assert r.updated_with(c=3) == {"a": 1, "b": 2, "c": 3}
    with pytest.raises(AttributeError, match="record has no attribute 'x'"):
        _ = r.x
    for change in (
        lambda: setattr(r, "a", 5),
        lambda: r.update(a=5),
        lambda: r.__setitem__("a", 5),
        lambda: r.pop("a"),
    ):
        with pytest.raises(AttributeError, match="record is immutable"):
            change()
    assert StreamDef(field="x", shape=3, mlf="m").is_sparse
    assert "context" not in StreamDef(field="x", shape=3)
    assert INFINITELY_REPEAT == 2**64 - 1
    assert json.loads(json.dumps(r)) == {"a": 1, "b": 2}


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ({}, ""),
        ({"x": []}, ""),
        ({"x": np.array([[1.5, 2], [3, 4]], np.float32)}, "7\t|x 1.5 2.0\n7\t|x 3.0 4.0"),
        ({"y": [{3: 1.0, 1: 2}], "x": [[1], [2]]}, "7\t|x 1 |y 1:2 3:1.0\n7\t|x 2"),
        ({"x": [np.arange(2), np.arange(2)]}, None),
        ({"x": 5}, None),
    ],
)
def test_text_of_sequences(data, expected):
    if expected is None:
        with pytest.raises(ValueError, match=r"expected a tensor \(dense\) or list of dicts \(sparse\)"):
            sequence_to_cntk_text_format(7, data)
    else:
        assert sequence_to_cntk_text_format(7, data) == expected


def test_what_a_tensor_is():
    assert is_tensor(np.zeros(3))
    assert is_tensor([[1, 2], [3, 4.0]])
    assert not is_tensor([np.zeros(2)])
    assert not is_tensor(["a"])
    assert not is_tensor((1, 2))


def test_written_text_is_read_back(files):
    rng = np.random.default_rng(3)
    sequences = [rng.normal(size=(n, 2)).astype(np.float32) for n in (1, 3, 2)]
    text = "\n".join(sequence_to_cntk_text_format(i, {"x": one}) for i, one in enumerate(sequences))
    path = files.write(text)
    reader = create_reader(f'file="{path}";input=[x=[dim=2;format=dense]];randomize=false;traceLevel=0')
    reader.start_minibatch_loop(100, 0)
    m = reader.get_minibatch()
    found = [m.streams["x"][b:e, slot] for _, slot, b, e in m.layout.sequences.tolist()]
    assert all(np.array_equal(a, b) for a, b in zip(found, sequences, strict=True))


def test_lent_samples_are_those_that_everybody_sees(source):
    text = "".join(f"{k} |x {k} {-k}\n" for k in range(6)) + "7 |x 1 1\n7 |x 2 2\n"
    s = source(text, streams=StreamDefs(x=StreamDef(field="x", shape=2)), randomize=False, max_sweeps=1)
    first, second, third = (s.next_minibatch(3)[s.streams.x] for _ in range(3))
    data, layout = first.lend()
    assert layout.is_single and data[0].tolist() == [[0, 0], [1, -1], [2, -2]]
    assert first.lend()[0] is data
    seen = first.asarray()
    assert seen[:, 0].tolist() == data[0].tolist() and not np.shares_memory(seen, data)
    assert first.lend() is None, "somebody may change it"
    assert second.asarray().shape == (3, 1, 2) and second.lend() is None
    assert third.shape == (1, 2, 2) and third.lend() is None, "a sequence"
