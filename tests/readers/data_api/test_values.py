"""Values, and arrays as a minibatch source."""

from __future__ import annotations

import re

import numpy as np
import pytest
import scipy.sparse

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.readers import MinibatchSourceFromData, Value
from cntkpy.readers.data_api.frameworks import canonical

F = np.float32


# ------------------------------------------------------------------------------------------------- arrays as a source


def test_from_data():
    x, y = np.arange(15, dtype=F).reshape(5, 3), scipy.sparse.csr_matrix(np.eye(5, dtype=F))
    s = MinibatchSourceFromData({"x": x, "y": (y, "any type")})
    found = [s.next_minibatch(3) for _ in range(3)]
    assert [m[s["x"]].shape for m in found] == [(3, 3), (2, 3), (3, 3)]
    assert [m[s["x"]].end_of_sweep for m in found] == [False, True, False]
    assert found[0][s["y"]].asarray().shape == (3, 5)
    assert np.shares_memory(found[0][s["x"]].asarray(), x)
    state = s.get_checkpoint_state()
    assert state == {"cursor": 3, "total_num_samples": 8}
    again = MinibatchSourceFromData({"x": x, "y": y})
    again.restore_from_checkpoint(state)
    assert again.next_minibatch(3)[again["x"]].asarray().tolist() == x[3:].tolist()


def test_from_data_sequences_and_workers():
    sequences = [np.full((n, 1), n, F) for n in (2, 3, 9, 1)]
    s = MinibatchSourceFromData({"x": sequences}, max_samples=15)
    assert [m[s["x"]].num_samples for m in s.minibatches(5)] == [5, 9, 1]
    shares = []
    for rank in range(2):
        t = MinibatchSourceFromData({"x": np.arange(5, dtype=F).reshape(5, 1)}, max_samples=5)
        shares.append(t.next_minibatch(4, 2, rank)[t["x"]].asarray().ravel().tolist())
    assert shares == [[0, 2], [1, 3]]


@pytest.mark.parametrize(
    ("data", "kind", "part"),
    [
        ({}, ValueError, "at least one stream"),
        ({"x": "text"}, TypeError, "data must be a numpy.array or scipy.sparse.csr_matrix"),
        ({"x": np.ones((0, 2))}, ValueError, "data is empty"),
        ({"x": []}, ValueError, "data is empty"),
        ({"x": np.ones((3, 2)), "y": np.ones((2, 2))}, TypeError, "same first dimension"),
        ([np.ones(3)], TypeError, "dictionary {name: data}, not list"),
        ({"x": np.array(["a"])}, TypeError, "of numbers; 'x' has <U1"),
        ({"x": [np.ones((2, 3)), np.ones((1, 4))]}, TypeError, "sequence 1 of 'x' is ndarray (1, 4)"),
        ({"x": [np.ones((2, 3)), scipy.sparse.csr_matrix(np.eye(3))]}, TypeError, "sequence 1 of 'x' is csr_matrix"),
        ({"x": [np.ones((2, 3)), np.ones((0, 3))]}, TypeError, "sequences have at least one sample"),
    ],
)
def test_from_wrong_data(data, kind, part):
    with pytest.raises(kind, match=re.escape(part)):
        MinibatchSourceFromData(data)


def test_from_values_and_the_end_of_max_samples():
    padded = [np.arange(12, dtype=F).reshape(2, 3, 2)[k] for k in range(2)]  # two sequences of three samples
    s = MinibatchSourceFromData({"x": Value(padded)})
    assert s["x"].sample_shape == (3, 2)  # as of the array: the input says what a row is
    s = MinibatchSourceFromData({"x": padded})
    assert s["x"].sample_shape == (2,)
    assert [m[s["x"]].num_samples for m, _ in zip(s.minibatches(3), range(2), strict=False)] == [3, 3]
    s = MinibatchSourceFromData({"x": np.ones((5, 2), F)}, max_samples=7)
    assert [(d.num_samples, d.end_of_sweep) for m in s.minibatches(3) for d in m.values()] == [
        (3, False),
        (2, True),
        (2, True),
    ]
    for state in ({}, {"cursor": 9, "total_num_samples": 0}, None):
        with pytest.raises(ValueError, match="Checkpoint"):
            s.restore_from_checkpoint(state)
    for arguments in ((0,), (2.5,), (2, 2, 2)):
        with pytest.raises(ValueError, match=r"minibatch size|worker 2 of 2"):
            s.next_minibatch(*arguments)


# ------------------------------------------------------------------------------------------------- values


def test_one_hot():
    v = Value.one_hot([[1, 2], [0]], 3)
    assert (v.shape, v.is_sparse, v.mask.tolist()) == ((2, 2, 3), True, [[2, 1], [2, 0]])
    assert Value.one_hot([2, 0], 3).asarray().toarray().tolist() == [[0, 0, 1], [1, 0, 0]]
    assert Value.one_hot([[Value.ONE_HOT_SKIP, 1]], 2).asarray().tolist() == [[[0, 0], [0, 1]]]
    assert Value.one_hot([[[1, 0]]], (2, 3)).asarray().tolist() == [[[[0, 1, 0], [1, 0, 0]]]]
    flat, rows = np.array([2, 0]), np.array([[1, 2], [0, 0]])
    assert Value.one_hot(flat, 3).asarray().toarray().tolist() == [[0, 0, 1], [1, 0, 0]]
    for several in (rows, [rows[0], rows[1]]):
        assert [one.shape for one in Value.one_hot(several, 3).as_sequences()] == [(2, 3), (2, 3)]
    for wrong in ([[0.5]], [], [[3]], np.array(1), [1, [2]], [[[1], [2]]]):
        with pytest.raises(ValueError, match=r"one_hot|batch"):
            Value.one_hot(wrong, 3)


def test_values_of_lists():
    v = Value([np.ones((2, 3), F), np.ones((1, 3), F)])
    assert (v.shape, v.mask.tolist(), len(v)) == ((2, 2, 3), [[2, 1], [2, 0]], 2)
    for unknown in (Value(np.ones((4, 2, 3), F)), Value(np.ones((2, 2), F), seq_starts=[True, True])):
        with pytest.raises(ValueError, match="alone does not say which of its axes counts the steps"):
            _ = unknown.mask
    with pytest.raises(ValueError, match="samples of one shape"):
        Value([np.ones((2, 3)), np.ones((1, 4))])
    assert Value(scipy.sparse.coo_matrix(np.eye(3))).is_sparse
    for wrong in ("text", np.float32(3), None, np.array([["a"]])):
        with pytest.raises(ValueError, match="a Value is made of arrays of numbers"):
            Value(wrong)
    for classes, shape, part in (([[-1]], 3, "class -1 .* 0 to 2"), ([[1, 2, 0]], (2, 3), "2 classes per sample")):
        with pytest.raises(ValueError, match=part):
            Value.one_hot(classes, shape)


def test_values_to_jax():
    import jax

    x = np.arange(6, dtype=F).reshape(2, 3)
    assert jax.numpy.array_equal(Value(x).to_jax(), x)
    sparse = Value(scipy.sparse.csr_matrix(x)).to_jax()
    assert jax.numpy.array_equal(sparse.todense(), x)


def test_the_last_of_an_index_given_twice_goes_to_other_frameworks():
    rows = scipy.sparse.csr_matrix((np.array([1, 2, 3, 4], F), np.array([2, 0, 2, 1]), np.array([0, 3, 3, 4])), (3, 3))
    found = canonical(rows)
    assert found.toarray().tolist() == [[2, 0, 3], [0, 0, 0], [0, 4, 0]]
    assert found.has_canonical_format
    assert canonical(found) is found


@pytest.mark.filterwarnings("ignore:Sparse")
def test_values_to_torch():
    torch = pytest.importorskip("torch")
    x = np.arange(6, dtype=F).reshape(2, 3)
    tensor = Value(x).to_torch()
    tensor[0, 0] = 7
    assert x[0, 0] == 7
    assert torch.equal(Value(scipy.sparse.csr_matrix(x)).to_torch().to_dense(), tensor)


def test_a_missing_framework_is_named(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(UserError, match="torch is not installed"):
        Value(np.ones((1, 1))).to_torch()


def test_a_value_of_a_matrix_is_data_as_the_matrix_is() -> None:
    """A22: five samples of three values, not five sequences of three scalars."""
    from cntkpy.readers.data_api.from_data import MinibatchSourceFromData

    rows = np.arange(15, dtype=np.float32).reshape(5, 3)
    source = MinibatchSourceFromData({"x": Value(rows)})
    (stream,) = source.stream_infos()
    assert stream.sample_shape == (3,)
    found = source.next_minibatch(2)[stream]
    assert (found.num_sequences, found.num_samples) == (2, 2)
    np.testing.assert_array_equal(np.ravel(found.asarray()), rows[:2].ravel())


def test_what_cntk_has_of_values():
    class Input:
        shape = (2,)

    value = Value.create(Input(), [np.ones((3, 2), np.float32), np.ones((1, 2), np.float32)], [True, False])
    assert value.masked_count == 2
    assert value.mask.tolist() == [[2, 1, 1], [1, 0, 0]]
    assert value.data.asarray().shape == value.data.shape == (2, 3, 2)
    with pytest.raises(ValueError, match="1 seq_starts for 2 sequences"):
        Value.create(Input(), [np.ones((3, 2)), np.ones((1, 2))], [True])
    value.erase()
    assert len(value) == 0
