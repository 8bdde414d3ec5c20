"""Minibatch sources written in Python, as the reader of a configuration."""

from __future__ import annotations

import json

import numpy as np
import pytest

from cntkpy.cntk_config.base.diagnostics import ConfigError, UserError
from cntkpy.readers import (
    DataError,
    MinibatchData,
    MinibatchSourceFromData,
    StreamInformation,
    UserMinibatchSource,
    Value,
    create_reader,
)
from cntkpy.readers.data_api.source_reader import SourceReader

F = np.float32


class Countdown(UserMinibatchSource):
    """Samples n, n - 1, ..., 1 again and again; labels are their parity."""

    def __init__(self, start: int, scale: float = 1.0, name="y"):
        self.x, self.y = StreamInformation("x", 0, "dense", F, (1,)), StreamInformation(name, 1, "sparse", F, (2,))
        self.start, self.scale, self.at, self.workers = start, scale, 0, set()
        super().__init__()

    def stream_infos(self):
        return [self.x, self.y]

    def next_minibatch(self, num_samples, number_of_workers=1, worker_rank=0, device=None):
        self.workers.add((number_of_workers, worker_rank))
        end = min(self.start, self.at + num_samples)
        numbers = [self.start - i for i in range(self.at, end)]
        self.at = 0 if end == self.start else end
        n, over = len(numbers), self.at == 0
        return {
            self.x: MinibatchData(np.array(numbers, F).reshape(-1, 1) * self.scale, n, n, over),
            self.y: MinibatchData(Value.one_hot([k % 2 for k in numbers], 2), n, n, over),
        }

    def get_checkpoint_state(self):
        return {"at": self.at}

    def restore_from_checkpoint(self, state):
        self.at = state["at"]


class Other:
    """Anything else."""


SECTION = f"readerType=UserMinibatchSource;module={__name__};class=Countdown;start=5;scale=0.5"


@pytest.fixture
def reader(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, __name__, sys.modules.get(__name__) or __import__(__name__))
    monkeypatch.setattr(sys.modules[__name__], "Countdown", Countdown)
    return create_reader(SECTION)


def numbers(reader, size, epoch, samples=None, **workers):
    reader.start_minibatch_loop(size, epoch, samples, **workers)
    out = []
    while (m := reader.get_minibatch()) is not None:
        out.append((m.streams["x"][..., 0] * 2).ravel().astype(int).tolist())
    assert reader.data_end
    return out


def test_epochs_of_a_sweep(reader):
    assert numbers(reader, 2, 0) == [[5, 4], [3, 2], [1]]
    assert numbers(reader, 3, 1) == [[5, 4, 3], [2, 1]]
    assert [s.name for s in reader.streams] == ["x", "y"]


def test_epochs_of_samples_go_on_and_can_be_read_again(reader):
    assert numbers(reader, 2, 0, 3) == [[5, 4], [3]]
    assert numbers(reader, 2, 1, 3) == [[2, 1], [5]]
    assert numbers(reader, 2, 2, 3) == [[4, 3], [2]]
    assert numbers(reader, 2, 1, 3) == [[2, 1], [5]]
    assert numbers(reader, 3, 0, 3) == [[5, 4, 3]]


def test_what_the_network_gets(reader):
    reader.start_minibatch_loop(3, 0, None, 0, 2)
    m = reader.get_minibatch()
    assert m.streams["x"].shape == (1, 3, 1)
    assert m.streams["x"].dtype == F
    assert m.streams["y"].toarray().tolist() == [[0, 1], [1, 0], [0, 1]]
    assert (m.layout.T, m.layout.S, m.num_samples) == (1, 3, 3)
    assert reader.source.workers == {(2, 0)}


@pytest.mark.parametrize("after", [0, 1, 2])
def test_state_of_a_reader(reader, after):
    reader.start_minibatch_loop(2, 1, 5)
    for _ in range(after):
        reader.get_minibatch()
    state = json.loads(json.dumps(reader.get_state()))
    rest = []
    while (m := reader.get_minibatch()) is not None:
        rest.append(m.streams["x"].tolist())
    again = SourceReader(Countdown(5, 0.5))
    again.set_state(state)
    found = []
    while (m := again.get_minibatch()) is not None:
        found.append(m.streams["x"].tolist())
    assert found == rest


def test_a_state_between_epochs(reader):
    numbers(reader, 2, 0, 3)
    state = json.loads(json.dumps(reader.get_state()))
    again = SourceReader(Countdown(5, 0.5))
    again.set_state(state)
    assert numbers(again, 2, 1, 3) == [[2, 1], [5]]
    assert numbers(again, 2, 1, 3) == [[2, 1], [5]]


def test_the_start_of_an_epoch_is_kept_for_a_resume(reader):
    numbers(reader, 2, 0, 3)
    between = json.loads(json.dumps(reader.epoch_state(1)))
    numbers(reader, 2, 1, 3)
    assert reader.epoch_state(1) == between
    again = SourceReader(Countdown(5, 0.5))
    again.set_state(between)
    assert numbers(again, 2, 1, 3) == [[2, 1], [5]]


def test_several_workers_count_what_they_ask_for_together(reader):
    class Shares(Countdown):
        def next_minibatch(self, num_samples, number_of_workers=1, worker_rank=0, device=None):
            found = super().next_minibatch(num_samples)
            share = slice(worker_rank, None, number_of_workers)
            return {
                s: MinibatchData(d.as_csr()[share] if s.sparse else d.asarray()[share], len(d), len(d), d.sweep_end)
                for s, d in found.items()
            }

    shares = [numbers(SourceReader(Shares(9, 0.5)), 4, 0, 8, worker_rank=r, number_of_workers=2) for r in range(2)]
    assert shares == [[[9, 7], [5, 3]], [[8, 6], [4, 2]]]


def test_the_stream_that_defines_the_size_is_counted():
    class Questions(UserMinibatchSource):
        """Three words and an answer in every sequence."""

        def __init__(self):
            self.w = StreamInformation("w", 0, "dense", F, (1,))
            self.a = StreamInformation("a", 1, "dense", F, (1,), defines_mb_size=True)
            super().__init__()

        def stream_infos(self):
            return [self.w, self.a]

        def next_minibatch(self, num_samples, number_of_workers=1, worker_rank=0, device=None):
            n = num_samples
            words, answers = np.ones((n, 3, 1), F), np.ones((n, 1), F)
            return {self.w: MinibatchData(words, n, 3 * n, False), self.a: MinibatchData(answers, n, n, False)}

    reader = SourceReader(Questions())
    reader.start_minibatch_loop(2, 0, 5)
    assert [m.layouts["a"].num_samples for m in iter(reader.get_minibatch, None)] == [2, 2, 1]


@pytest.mark.parametrize(
    ("section", "part"),
    [
        ("class=Countdown", "module is missing"),
        (f"module={__name__};class=Countdwn", "has no class 'Countdwn'"),
        (f"module={__name__};class=Countdown", "start"),
        (f"module={__name__};class=Countdown;start=many", "many"),
        (f"module={__name__};class=Other", "is not a minibatch source"),
        ("module=no.such;class=X", "no.such"),
    ],
)
def test_wrong_sections(reader, section, part):
    with pytest.raises(ConfigError) as caught:
        create_reader("readerType=UserMinibatchSource;" + section)
    assert part in caught.value.diagnostic.render()


def test_sequences_of_a_source_share_a_layout():
    class Sequences(Countdown):
        def next_minibatch(self, num_samples, number_of_workers=1, worker_rank=0, device=None):
            x = Value([np.full((2, 1), 1, F), np.full((3, 1), 2, F)])
            y = Value.one_hot([[0, 1], [1, 1, 0]], 2)
            return {self.x: MinibatchData(x, 2, 5, True), self.y: MinibatchData(y, 2, 5, True)}

    reader = SourceReader(Sequences(5))
    reader.start_minibatch_loop(5, 0)
    m = reader.get_minibatch()
    assert m.layout.sequences.tolist() == [[0, 0, 0, 2], [1, 1, 0, 3]]
    assert m.streams["x"][:, :, 0].tolist() == [[1, 2], [1, 2], [0, 2]]
    assert m.streams["y"].toarray().tolist() == [[1, 0], [0, 1], [0, 1], [0, 1], [0, 0], [1, 0]]


def test_data_of_a_wrong_shape():
    class Wrong(Countdown):
        def next_minibatch(self, num_samples, number_of_workers=1, worker_rank=0, device=None):
            y = MinibatchData(Value.one_hot([0, 1, 0], 2), 3, 3, True)
            return {self.x: MinibatchData(np.ones((3, 2), F), 3, 3, True), self.y: y}

    reader = SourceReader(Wrong(5))
    reader.start_minibatch_loop(5, 0)
    with pytest.raises(DataError, match=r"data of shape \(3, 1, 2\)|data of shape \(3, 2\)"):
        reader.get_minibatch()


def answering(answer, **methods):
    """A Countdown whose next_minibatch gives something else; answer: a function of the source and its own answer."""

    class Mistaken(Countdown):
        def next_minibatch(self, num_samples, number_of_workers=1, worker_rank=0, device=None):
            return answer(self, super().next_minibatch(num_samples))

    for name, method in methods.items():
        setattr(Mistaken, name, method)
    return Mistaken(5)


OTHER = StreamInformation("z", 5, "dense", F, (1,))
ONES = MinibatchData(np.ones((2, 1), F), 2, 2, True)


@pytest.mark.parametrize(
    ("answer", "part"),
    [
        (lambda s, d: None, "Mistaken.next_minibatch(3, 1, 0) gave NoneType, not a dictionary"),
        (lambda s, d: [d], "gave list, not a dictionary"),
        (lambda s, d: {}, "Mistaken has no data for epoch 1"),
        (lambda s, d: d | {s.x: np.ones((3, 1))}, "stream 'x': ndarray instead of MinibatchData"),
        (lambda s, d: {k.name: v for k, v in d.items()}, "the text 'x' is a key of the dictionary"),
        (lambda s, d: d | {OTHER: ONES}, "StreamInformation 'z' is a key of the dictionary, but not a stream"),
        (lambda s, d: {s.x: d[s.x]}, "no data of stream 'y'"),
        (lambda s, d: d | {s.x: ONES}, "stream 'x' has 2 sequences, stream 'y' has 3"),
        (lambda s, d: d | {s.y: MinibatchData(np.ones((3, 2), F), 3, 3, True)}, "dense data for the sparse stream 'y'"),
        (lambda s, d: MinibatchData(np.array(["a"]), 1, 1, True), "not of <U1"),
        (lambda s, d: s.table, "failed: AttributeError: 'Mistaken' object has no attribute 'table'"),
        (lambda s, d: 1 / 0, "Mistaken.next_minibatch(3, 1, 0) failed: ZeroDivisionError: division by zero"),
    ],
)
def test_mistakes_in_answers(answer, part):
    reader = SourceReader(answering(answer))
    reader.start_minibatch_loop(3, 0)
    with pytest.raises(DataError if "<U1" not in part else ValueError) as caught:
        reader.get_minibatch()
    shown = caught.value.diagnostic.render()
    assert part in shown
    if "failed" in part or "<U1" in part:
        assert f"{__file__}:" in shown  # the line of the user's code
        assert "Mistaken.next_minibatch(3, 1, 0)" in shown


def wrong_restore(self, state):
    raise KeyError("place")


@pytest.mark.parametrize(
    ("methods", "part"),
    [
        ({"get_checkpoint_state": lambda self: None}, "get_checkpoint_state() gave None"),
        ({"get_checkpoint_state": lambda self: {1: 2}}, "whose keys are texts"),
        ({"get_checkpoint_state": lambda self: {"at": np.int64(3)}}, "what JSON cannot hold"),
        ({"get_checkpoint_state": lambda self: self.nothing}, "Mistaken.get_checkpoint_state() failed: AttributeError"),
        ({"restore_from_checkpoint": wrong_restore}, "restore_from_checkpoint({'at': 0}) failed: KeyError: 'place'"),
        (
            {"restore_from_checkpoint": UserMinibatchSource.restore_from_checkpoint},
            "so it has to implement restore_from_checkpoint",
        ),
        ({"is_infinite": lambda self: True}, "Mistaken is infinite, so an epoch needs a number of samples"),
    ],
)
def test_mistakes_about_positions(methods, part):
    reader = SourceReader(answering(lambda s, d: d, **methods))
    with pytest.raises((DataError, ValueError)) as caught:
        reader.start_minibatch_loop(3, 0)
        reader.set_state({"source": {"at": 0}})
    assert part in caught.value.diagnostic.render()


@pytest.mark.parametrize(
    ("streams", "part"),
    [
        (lambda self: None, "stream_infos() gave a NoneType, not a list of StreamInformation"),
        (lambda self: [("x", 2)], "gave a list with tuple"),
        (lambda self: [], "must provide at least one stream"),
        (lambda self: [OTHER, OTHER], "two streams with the name 'z'"),
        (lambda self: [self.later], "make the streams before calling super().__init__()"),
        (UserMinibatchSource.stream_infos, "has to implement stream_infos()"),
    ],
)
def test_mistakes_about_streams(streams, part):
    with pytest.raises((DataError, ValueError)) as caught:
        type("Mistaken", (UserMinibatchSource,), {"stream_infos": streams})()
    assert part in caught.value.diagnostic.render()


def make_source(count: int):
    """A function that makes a built-in source serves as well as a class."""
    return MinibatchSourceFromData({"x": np.arange(count, dtype=F).reshape(-1, 1)}, max_samples=2 * count)


@pytest.mark.parametrize(
    ("code", "part"),
    [
        ("import no_such_module_either", "cannot be imported: No module named 'no_such_module_either'"),
        ("def f(:", "SyntaxError"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("class C:\n    def __init__(self): raise OSError('no disk')", "C cannot be made: OSError: no disk"),
        (
            "from cntkpy.readers import UserMinibatchSource\n"
            "class C(UserMinibatchSource):\n    def __init__(self): pass",
            "C.__init__ does not call super().__init__()",
        ),
        ("from test_user_source import make_source as C", None),
    ],
)
def test_modules(tmp_path, monkeypatch, request, code, part):
    import sys

    name = f"users_module_{request.node.callspec.indices['code']}"
    (tmp_path / f"{name}.py").write_text(code)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setitem(sys.modules, "test_user_source", sys.modules[__name__])
    section = f"readerType=UserMinibatchSource;module={name};class=C;count=4"
    if part is not None:
        with pytest.raises(UserError) as caught:
            create_reader(section)
        assert part in caught.value.diagnostic.render()
        return
    reader = create_reader(section)
    found = []
    for epoch in range(2):
        reader.start_minibatch_loop(3, epoch)
        found.append([m.streams["x"].ravel().tolist() for m in iter(reader.get_minibatch, None)])
    assert found == [[[0, 1, 2], [3]]] * 2
    reader.start_minibatch_loop(3, 2)
    with pytest.raises(DataError, match="no data for epoch 3"):
        reader.get_minibatch()
