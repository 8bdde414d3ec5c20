"""Minibatch sources written in Python, as the reader of a configuration."""

from __future__ import annotations

import json

import numpy as np
import pytest

from cntk_config.diagnostics import ConfigError
from readers import (
    DataError,
    MinibatchData,
    StreamInformation,
    UserMinibatchSource,
    Value,
    create_reader,
)
from readers.data_api.source_reader import SourceReader

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
    state = json.loads(json.dumps(reader.state()))
    rest = []
    while (m := reader.get_minibatch()) is not None:
        rest.append(m.streams["x"].tolist())
    again = SourceReader(Countdown(5, 0.5))
    again.restore(state)
    found = []
    while (m := again.get_minibatch()) is not None:
        found.append(m.streams["x"].tolist())
    assert found == rest


def test_a_state_between_epochs(reader):
    numbers(reader, 2, 0, 3)
    state = json.loads(json.dumps(reader.state()))
    again = SourceReader(Countdown(5, 0.5))
    again.restore(state)
    assert numbers(again, 2, 1, 3) == [[2, 1], [5]]
    assert numbers(again, 2, 1, 3) == [[2, 1], [5]]


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
            return {self.x: MinibatchData(np.ones((3, 2), F), 3, 3, True)}

    reader = SourceReader(Wrong(5))
    reader.start_minibatch_loop(5, 0)
    with pytest.raises(DataError, match=r"data of shape \(3, 1, 2\)|data of shape \(3, 2\)"):
        reader.get_minibatch()
