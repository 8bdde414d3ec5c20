"""Packing, truncation, joining, workers, saved state."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse

from cntkpy.readers import DataError, Layout
from cntkpy.readers.pipeline.pack import place

ORDERS = json.loads((Path(__file__).parent / "orders.json").read_text())


def test_first_fit_of_the_specification():
    layout = place(np.array([3, 5, 2, 2, 4]))
    assert (layout.T, layout.S) == (5, 4)
    assert layout.sequences.tolist() == [[0, 0, 0, 3], [1, 1, 0, 5], [2, 0, 3, 5], [3, 2, 0, 2], [4, 3, 0, 4]]
    assert layout.num_samples == 16
    assert layout.mask.sum() == 16
    assert layout.to_start[:, 0].tolist() == [0, 1, 2, 0, 1]
    assert layout.to_end[:, 2].tolist() == [1, 0, -1, -1, -1]


def test_equal_lengths_get_a_slot_each():
    layout = place(np.array([2, 2, 2]))
    assert layout.sequences.tolist() == [[0, 0, 0, 2], [1, 1, 0, 2], [2, 2, 0, 2]]


def test_layout_of_continued_sequences():
    layout = Layout(3, 2, np.array([[0, 0, -3, 2], [1, 0, 2, 7], [2, 1, 0, 3]]))
    assert layout.mask.all()
    assert layout.to_start[:, 0].tolist() == [3, 4, 0]
    assert layout.to_end[:, 0].tolist() == [1, 0, 4]
    assert layout.num_samples == 6


def test_sparse_minibatch_of_the_specification(files):
    (m,) = files.minibatches("0 |s 0:1\n0 |s 2:5\n1 |s\n", "s:4:sparse")
    data = m.streams["s"]
    assert scipy.sparse.issparse(data)
    assert data.shape == (4, 4)
    assert (m.layout.T, m.layout.S) == (2, 2)
    assert data.indptr.tolist() == [0, 1, 1, 2, 2]
    assert data.data.tolist() == [1, 5]
    assert data.indices.tolist() == [0, 2]
    assert m.matrix("s").shape == (4, 3)
    assert m.matrix("s").toarray()[:, 2].tolist() == [0, 0, 5, 0]
    assert m.matrix("s", gaps=True).format == "csc"


def test_dense_matrix_in_the_order_of_the_original(files):
    (m,) = files.minibatches("0 |x 1 2\n0 |x 3 4\n1 |x 5 6\n", "x:2")
    assert m.streams["x"].flags.c_contiguous
    assert m.matrix("x").tolist() == [[1, 5, 3], [2, 6, 4]]
    assert m.matrix("x", gaps=True).tolist() == [[1, 5, 3, 0], [2, 6, 4, 0]]


def test_truncation_of_the_specification(compose, tools):
    lengths = {"A": 4, "B": 2, "C": 5}
    text = "".join(f"{i} |x {10 * i + t}\n" for i, n in enumerate(lengths.values()) for t in range(n))
    reader = compose([(text, "x:1")], randomize=False, truncated=True, truncationLength=3)
    first, second, third = tools["epoch"](reader, 6)
    assert first.streams["x"][:, 0, 0].tolist() == [0, 1, 2]
    assert first.streams["x"][:, 1, 0].tolist() == [10, 11, 20]
    assert first.layout.sequences.tolist() == [[0, 0, 0, 4], [1, 1, 0, 2], [2, 1, 2, 7]]
    assert second.layout.sequences.tolist() == [[0, 0, -3, 1], [1, 1, -1, 4]]
    assert second.streams["x"][:, 1, 0].tolist() == [21, 22, 23]
    assert second.layout.mask.tolist() == [[True, True], [False, True], [False, True]]
    assert third.layout.sequences.tolist() == [[0, 1, -4, 1]]
    assert [m.keys for m in (first, second, third)] == [[0, 1, 2], [0, 2], [2]]
    assert [m.end_of_epoch for m in (first, second, third)] == [False, False, True]
    assert [m.end_of_sweep for m in (first, second, third)] == [False, False, True]


def test_truncated_minibatches_of_the_original(compose, tools, sequences):
    reader = compose([(sequences, "x:1")], randomize=False, truncated=True, truncationLength=3)
    for number, expected in enumerate(ORDERS["composite_truncated"]):
        found = [[float(m.streams["x"].sum()), m.num_samples] for m in tools["epoch"](reader, 6, number)]
        assert found == pytest.approx(np.array(expected), abs=0.02)


def test_truncated_streams_must_have_equal_lengths(compose, tools):
    reader = compose([("7 |x 1 |y 2\n7 |x 1\n", "x:1 y:1")], truncated=True, truncationLength=3)
    with pytest.raises(DataError, match="For BPTT sequences") as caught:
        tools["epoch"](reader, 6)
    assert "sequence 7 have 2 and 1 samples" in str(caught.value.hint)


def test_composite_of_one_is_the_plain_reader(compose, tools, sequences):
    reader = compose([(sequences, "x:1")])
    for number, expected in enumerate(ORDERS["composite_one"]):
        found = [[float(m.streams["x"].sum()), m.num_samples] for m in tools["epoch"](reader, 7, number)]
        assert found == pytest.approx(np.array(expected), abs=0.02)


def test_joined_by_key(compose, tools, singles):
    other = "9 |w 81\n3 |w 9\n30 |w 900\n12 |w 144\n"
    reader = compose([(singles, "x:1"), (other, "w:1")], randomize=False, allowDataLoss=True)
    (m,) = tools["epoch"](reader, 100)
    assert m.keys == [3, 9, 12]
    assert m.streams["x"].ravel().tolist() == [4, 10, 13]
    assert m.streams["w"].ravel().tolist() == [9, 81, 144]


@pytest.mark.parametrize("chunk", [1, 50, 1 << 20])
def test_joined_and_shuffled(compose, tools, sequences, chunk):
    lines = sequences.splitlines()
    one = "".join(line.split(" |s")[0] + "\n" for line in lines)
    two = "".join(line.split(" ")[0] + " |s" + line.split("|s")[1] + "\n" for line in reversed(lines))
    keys = sorted({line.split(" ")[0] for line in lines}, key=int)
    two = "".join(x + "\n" for key in reversed(keys) for x in two.splitlines() if x.split(" ")[0] == key)
    reader = compose([(one, "x:1"), (two, "s:5:sparse")], chunkSizeInBytes=chunk)
    for m in tools["epoch"](reader, 7):
        for key, streams in tools["unpack"](m):
            assert [x[0] // 100 for x in streams["x"]] == [key - 2] * len(streams["x"])
            assert len(streams["x"]) == len(streams["s"])
            assert sorted(v for ((_, v),) in streams["s"]) == list(range(1, len(streams["s"]) + 1))


def test_nothing_in_common(compose):
    with pytest.raises(DataError, match="Could not reconcile data"):
        compose([("0 |x 1\n", "x:1"), ("1 |y 1\n", "y:1")])


def test_same_stream_twice(compose):
    with pytest.raises(DataError, match="Two streams with the same name 'x'"):
        compose([("0 |x 1\n", "x:1"), ("0 |x 1\n", "x:1")])


def test_repeated_ids_cannot_be_joined(compose):
    with pytest.raises(DataError, match=r"Sequence id 4 occurs more than once in deserializer 2 \(.*\), so"):
        compose([("4 |x 1\n", "x:1"), ("4 |y 1\n5 |y 1\n4 |y 2\n", "y:1")])


@pytest.mark.parametrize("randomize", [True, False])
@pytest.mark.parametrize("workers", [1, 2, 3, 5])
@pytest.mark.parametrize("composed", [True, False])
def test_workers_share_a_sweep(compose, files, tools, sequences, randomize, workers, composed):
    seen = []
    for rank in range(workers):
        options = {"randomize": randomize, "chunkSizeInBytes": 40, "traceLevel": 0}
        reader = compose([(sequences, "x:1")], **options) if composed else files.reader(sequences, "x:1", **options)
        for m in tools["epoch"](reader, 6, worker_rank=rank, number_of_workers=workers):
            seen += m.keys
        reader.close()
    assert sorted(seen) == list(range(3, 17))


def test_a_worker_without_a_chunk_gets_nothing(files, tools, singles):
    reader = files.reader(singles, "x:1 y:1")
    assert tools["epoch"](reader, 5, worker_rank=1, number_of_workers=2) == []


@pytest.mark.parametrize("truncated", [False, True])
@pytest.mark.parametrize("randomize", [False, True])
@pytest.mark.parametrize("after", [0, 1, 3, 5, 7])
@pytest.mark.sampled
def test_state_goes_on_exactly(compose, tools, sequences, truncated, randomize, after):
    def make():
        more = {"truncated": True, "truncationLength": 3} if truncated else {}
        return compose([(sequences, "x:1 s:5:sparse")], randomize=randomize, chunkSizeInBytes=100, **more)

    whole, partly, resumed = make(), make(), make()
    for reader in (whole, partly):
        reader.start_minibatch_loop(6, 1, 33)
    expected = [tools["unpack"](m) for m in tools["rest"](whole)][after:]
    for _ in range(after):
        partly.get_minibatch()
    state = json.loads(json.dumps(partly.get_state()))
    resumed.start_minibatch_loop(6, 0)
    resumed.get_minibatch()
    resumed.set_state(state)
    assert resumed.get_state() == state
    found = tools["rest"](resumed)
    assert [tools["unpack"](m) for m in found] == expected
    assert resumed.data_end
    for reader in (whole, partly, resumed):
        reader.close()


def test_a_state_needs_a_position(files, singles):
    with pytest.raises(ValueError, match="minibatchSourcePosition"):
        files.reader(singles, "x:1 y:1").set_state({})


def test_too_big_epochs(files, singles):
    with pytest.raises(ValueError, match="overflow"):
        files.reader(singles, "x:1 y:1").start_minibatch_loop(1, 1, 2**62 + 1)


def test_keep_data_in_memory(files, tools, singles):
    reader = files.reader(singles, "x:1 y:1", keepDataInMemory=True, randomize=False, chunkSizeInBytes=30)
    first = [m.keys for m in tools["epoch"](reader, 3)]
    (files.folder / "data.ctf").write_text("")
    assert [m.keys for m in tools["epoch"](reader, 3, 1)] == first


@pytest.mark.parametrize("options", [{"prefetch": False}, {}, {"multiThreadedDeserialization": True}])
def test_what_comes_before_a_fault_is_given_out(files, options):
    text = "".join(f"{i} |x {'oops' if i == 60 else i}\n" for i in range(100))
    reader = files.reader(text, "x:1", randomize=False, chunkSizeInBytes=80, traceLevel=0, **options)
    bounds = reader.source.deserializer.table.first
    chunk = int(bounds.searchsorted(60, "right")) - 1
    reader.start_minibatch_loop(3, 0)
    good = int(bounds[chunk]) // 3  # minibatches without a sequence of the faulty chunk
    assert 0 < good < 20
    assert [reader.get_minibatch().keys for _ in range(good)] == [[3 * i, 3 * i + 1, 3 * i + 2] for i in range(good)]
    state = reader.get_state()
    for _ in range(3):  # and never passed over
        with pytest.raises(DataError, match="line 61, column 7"):
            reader.get_minibatch()
    assert reader.get_state() == state
    reader.close()


def test_minibatches_made_together_do_not_share_cells(files):
    reader = files.reader("".join(f"{i} |x {i} |s {i}:1\n" for i in range(40)), "x:1 s:40:sparse", randomize=False)
    reader.start_minibatch_loop(10, 0)
    first, second = reader.get_minibatch(), reader.get_minibatch()
    first.streams["x"][:] = -1
    first.streams["s"].data[:] = -1
    assert second.streams["x"].ravel().tolist() == list(range(10, 20))
    assert second.streams["s"].toarray()[:, 10:20].tolist() == np.eye(10).tolist()
    assert second.streams["s"].indptr.tolist() == list(range(11))
    reader.close()


def test_every_worker_loads_its_own_chunks_only(files, tools, singles):
    for rank in range(3):
        reader = files.reader(singles, "x:1 y:1", chunkSizeInBytes=30)
        loaded = []
        load = reader.source.deserializer.load_chunk
        reader.source.deserializer.load_chunk = lambda chunk, load=load, loaded=loaded: (
            loaded.append(chunk) or load(chunk)
        )
        tools["epoch"](reader, 4, worker_rank=rank, number_of_workers=3)
        order = reader.source.timeline.sweep(0).chunks
        assert set(loaded) <= set(order[rank::3].tolist())
        reader.close()


def test_importing_readers_is_light():
    import subprocess
    import sys

    code = "import sys, readers, cntkpy.readers.registry; print(sorted({'numba','jax','scipy'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_streams_with_as_many_samples_share_their_bounds(files: Any) -> None:
    text = "".join(f"{i // 3} |a {i} |b {i % 4}:1 {'|c 1' if i % 3 else ''}\n" for i in range(12))
    reader = files.reader(text, "a:1 b:4:sparse c:1", prefetch=False)
    streams = reader.source.deserializer.load_chunk(0).streams
    assert streams["a"].sequences is streams["b"].sequences
    assert streams["c"].sequences is not streams["a"].sequences
    reader.start_minibatch_loop(6, 0)
    minibatch = reader.get_minibatch()
    np.testing.assert_array_equal(minibatch.layouts["a"].sequences, minibatch.layouts["b"].sequences)
    assert minibatch.layouts["a"].T == 3 and minibatch.layouts["c"].T == 2
    for t, s in zip(*np.nonzero(minibatch.layouts["a"].mask), strict=True):
        value = int(minibatch.streams["a"][t, s, 0])
        assert minibatch.streams["b"].toarray().reshape(*minibatch.layouts["a"].mask.shape, 4)[t, s, value % 4] == 1
    reader.close()
