"""Values that two programs exchange by files: two halves of this package, and one of PyTorch where it is installed."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cntkpy.compat.cntk as C
from cntkpy.cntk_config import UserError
from cntkpy.compat.cntk.contrib import crosstalk
from cntkpy.compat.cntk.contrib.crosstalk import crosstalk_cntk
from cntkpy.compat.cntk.contrib.crosstalk.crosstalk_pytorch import PyTorchCrosstalk

RANDOM = np.random.default_rng(0)
WORDS = {"a": 0, "b": 1, "c": 2, "d": 3}
OTHER_WORDS = {"d": 0, "b": 1, "a": 2, "c": 3}


class Net:
    """Layers of this package, with values of their own."""

    def __init__(self, dtype: Any = np.float32) -> None:
        with C.default_options(dtype=dtype):
            self.x = C.input_variable(4, dtype=dtype)
            self.picture = C.input_variable((2, 5, 6), dtype=dtype)
            self.words = C.sequence.input_variable(4, dtype=dtype)
            self.steps = C.sequence.input_variable(3, dtype=dtype)
            self.dense = C.layers.Dense(3)(self.x)
            self.convolution = C.layers.Convolution2D((3, 3), 4)(self.picture)
            self.embedding = C.layers.Embedding(2)(self.words)
            self.forwards = C.layers.Recurrence(C.layers.LSTM(2))(self.steps)
            self.backwards = C.layers.Recurrence(C.layers.LSTM(2), go_backwards=True)(self.steps)
        self.both = C.splice(self.forwards, self.backwards)
        for one in C.combine([self.dense, self.convolution, self.embedding, self.both]).parameters:
            one.value = RANDOM.normal(size=one.shape).astype(dtype)

    def watched(self, folder: Path, words: dict[str, int] | None = WORDS) -> crosstalk_cntk.CNTKCrosstalk:
        found = crosstalk_cntk.CNTKCrosstalk()
        found.set_workdir(folder)
        found.watch(self.dense.W, "W")
        found.watch(self.dense.b, "b")
        found.watch(self.convolution, "convolution", attr=crosstalk.Conv2DAttr())
        found.watch(self.embedding, "words", crosstalk.EmbedAttr, crosstalk.EmbedAttr(words, 4))
        found.watch((self.forwards, self.backwards), "lstm", attr=crosstalk.RnnAttr(True, "lstm", 3, 2))
        found.watch(self.both, "both")
        found.watch(self.convolution, "maps")
        found.watch(self.dense, "dense")
        return found


def data_of(net: Net) -> dict[Any, Any]:
    random = np.random.default_rng(1)
    given = {net.x: random.normal(size=(5, 4)), net.picture: random.normal(size=(2, 2, 5, 6))}
    given[net.steps] = [random.normal(size=(n, 3)).astype(net.x.dtype) for n in (4, 2)]
    return {one: each if isinstance(each, list) else each.astype(net.x.dtype) for one, each in given.items()}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_two_programs_have_the_same_values_in_the_end(tmp_path: Path, dtype: Any, caplog: Any) -> None:
    one, other = Net(dtype), Net(dtype)
    saves, loads = one.watched(tmp_path / "new"), other.watched(tmp_path / "new", OTHER_WORDS)
    for half, net in ((saves, one), (loads, other)):
        half.set_data(data_of(net))
    saves.save_all()
    names = ["W", "b", "convolution", "words", "lstm", "both", "maps", "dense"]
    assert list(loads.vars) == names
    with caplog.at_level(logging.WARNING):
        assert [loads.compare(name) for name in names if name != "words"] == [False] * 7
    assert "'W' is not the same in pass 0: differences are up to" in caplog.text
    assert not loads.passed
    loads.load_all_params()
    loads.compared.clear()
    assert all(loads.compare(name, rtol=1e-6) for name in names if name != "words")
    assert loads.passed
    rows = [np.asarray(net.embedding.E.value) for net in (one, other)]
    for word in WORDS:
        np.testing.assert_array_equal(rows[1][OTHER_WORDS[word]], rows[0][WORDS[word]])
    assert sorted(file.name for file in (tmp_path / "new").iterdir())[:2] == ["W.0.npy", "b.0.npy"]
    assert loads.fetch("W").dtype == dtype


def test_passes_have_files_of_their_own(tmp_path: Path) -> None:
    p = C.parameter((2,), init=0)
    half = crosstalk_cntk.CNTKCrosstalk()
    half.set_workdir(tmp_path)
    half.watch(p, "p")
    assert half.is_param("p")
    for number in range(3):
        p.value = np.full(2, number, np.float32)
        half.save_all_params()
        half.next_pass()
    half.passes = 1
    half.load_all_params()
    np.testing.assert_array_equal(p.value, [1, 1])
    half.assign("p", [5, 6])
    half.fetch("p", save=True)
    half.watch(C.parameter((2,), init=0), "q")
    half.assign("q", load=True, load_name="p")
    np.testing.assert_array_equal(half.fetch("q"), [5, 6])
    assert half.compare("q", "p")
    half.reset()
    assert (half.passes, half.vars, half.passed) == (0, {}, True)


def test_types_of_a_program(tmp_path: Path) -> None:
    half, store = crosstalk.Crosstalk(), {"a": 1.0}
    half.set_workdir(tmp_path)
    half.register_funcs("dict", lambda var, value, attr: var.update({attr: value}), lambda var, attr: var[attr])
    half.watch(store, "one", "dict", "a")
    half.save("one")
    store["a"] = 7.0
    half.load(["one"])
    assert store["a"] == 1


WRONG: dict[str, Any] = {
    "cannot be the name of a file": lambda c, p: c.watch(p, "../p"),
    "'p' is watched already": lambda c, p: c.watch(p, "p"),
    "has a type that is not registered: 'table'": lambda c, p: c.watch(p, "t", "table"),
    "nothing called 'q' is watched": lambda c, p: c.fetch("q"),
    r"a value of shape \(3,\) for Parameter.* of shape \(2,\)": lambda c, p: c.assign("p", np.ones(3)),
    "no value for 'p'": lambda c, p: c.assign("p"),
    "there is no value of 'p' in pass 0": lambda c, p: c.assign("p", load=True),
    "'f' is computed, so no value can be assigned": lambda c, p: c.assign("f", 1.0),
    "there are no data for the input Input": lambda c, p: c.fetch("f"),
    "op_type is 'lstm', not 'gru'": lambda c, p: (
        c.watch(LSTM, "l", attr=crosstalk.RnnAttr(False, "gru")),
        c.fetch("l"),
    ),
    "hidden_dim is 5, the layer has 2": lambda c, p: (
        c.watch(LSTM, "l", attr=crosstalk.RnnAttr(hidden_dim=5)),
        c.fetch("l"),
    ),
    "a bidirectional layer is a pair of functions": lambda c, p: (
        c.watch(LSTM, "l", attr=crosstalk.RnnAttr(True)),
        c.fetch("l"),
    ),
}
LSTM = C.layers.Recurrence(C.layers.LSTM(2))(C.sequence.input_variable(3))


@pytest.mark.parametrize("message", WRONG)
def test_what_does_not_fit_is_an_error(message: str, tmp_path: Path) -> None:
    half, p = crosstalk_cntk.CNTKCrosstalk(), C.parameter((2,), init=0)
    half.set_workdir(tmp_path)
    half.watch(p, "p")
    half.watch(p * C.input_variable(2), "f")
    with pytest.raises(UserError, match=message):
        WRONG[message](half, p)


def test_files_that_are_none_of_crosstalk_are_refused(tmp_path: Path) -> None:
    half = crosstalk_cntk.CNTKCrosstalk()
    half.watch(C.parameter((2,), init=0), "p")
    with pytest.raises(UserError, match="crosstalk has no folder yet"):
        half.save_all()
    half.set_workdir(tmp_path)
    (tmp_path / "p.0.npy").write_bytes(b"\x93NUMPY damaged")
    with pytest.raises(UserError, match="is not a file of crosstalk"):
        half.load("p")
    np.save(tmp_path / "p.0.npy", np.array([{}], object), allow_pickle=True)
    with pytest.raises(UserError, match=r"is not a file of crosstalk.*pickle"):
        half.load("p")


def test_one_side_without_a_dictionary_is_an_error(tmp_path: Path) -> None:
    Net().watched(tmp_path).save("words")
    with pytest.raises(UserError, match="one side names the rows of a table, the other does not"):
        Net().watched(tmp_path, None).load("words")
    with pytest.raises(UserError, match="the token 'c' is in one of the two dictionaries only"):
        Net().watched(tmp_path, {"a": 0, "b": 1, "d": 2}).load("words")


def test_pytorch_is_not_needed_to_import_it() -> None:
    half = PyTorchCrosstalk()
    assert not half.vars and half.passed


def test_both_toolkits_compute_the_same(tmp_path: Path) -> None:
    """Parameters of this package given to layers of PyTorch, and back again."""
    torch = pytest.importorskip("torch")
    net = Net()
    own = net.watched(tmp_path)
    data = data_of(net)
    own.set_data(data)
    own.save_all()
    linear, convolution = torch.nn.Linear(4, 3), torch.nn.Conv2d(2, 4, 3)
    embedding, lstm = torch.nn.Embedding(4, 2), torch.nn.LSTM(3, 2, bidirectional=True)

    def watched() -> PyTorchCrosstalk:
        found = PyTorchCrosstalk()
        found.set_workdir(tmp_path)
        found.watch(linear.weight.t(), "W")
        found.watch(linear.bias, "b")
        found.watch(convolution, "convolution", attr=crosstalk.Conv2DAttr())
        found.watch(embedding, "words", attr=crosstalk.EmbedAttr(OTHER_WORDS))
        found.watch(lstm, "lstm", attr=crosstalk.RnnAttr(True, hidden_dim=2))
        return found

    theirs = watched()
    theirs.load_all_params()
    theirs.watch(linear(torch.from_numpy(data[net.x])), "dense")
    theirs.watch(convolution(torch.from_numpy(data[net.picture])), "maps")
    assert not theirs.is_param("dense")
    assert theirs.compare("dense", rtol=1e-4, atol=1e-6)
    assert theirs.compare("maps", rtol=1e-4, atol=1e-6)
    for given, expected in zip(data[net.steps], own.fetch("both"), strict=True):
        found = lstm(torch.from_numpy(given)[:, None])[0][:, 0].detach().numpy()
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)
    other = Net()
    for part in (linear, convolution, embedding, lstm):
        for one in part.parameters():
            torch.nn.init.normal_(one)
    watched().save_all_params()
    own = other.watched(tmp_path)
    own.load_all_params()
    given = data[net.steps][0]
    (found,) = other.both.eval({other.steps: [given]})
    expected = lstm(torch.from_numpy(given)[:, None])[0][:, 0].detach().numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)
    rows = np.asarray(other.embedding.E.value)[[WORDS[word] for word in OTHER_WORDS]]
    np.testing.assert_array_equal(rows, embedding.weight.detach().numpy())
