"""Readers derived from RowsReader, SequencesReader, ChunksReader keep the contract of readers; errors name the call."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from cntkpy import testing
from cntkpy.cntk_config import ConfigError, UserError, parse
from cntkpy.readers import ChunksReader, Reader, RowsReader, SequencesReader, StreamInformation
from cntkpy.readers.errors import ArgumentError
from cntkpy.readers.user.reader import CHUNK, ReaderFactory, UserReader

X = StreamInformation("x", 0, "dense", np.float32, (2,))
S = StreamInformation("s", 1, "sparse", np.float32, (5,))
LENGTHS = [1, 3, 2, 5, 4, 1, 2]


class Rows(RowsReader):
    def __init__(self, count: int = 50):
        self.count = count

    def stream_infos(self) -> list[StreamInformation]:
        return [X, S]

    def num_rows(self) -> int:
        return self.count

    def get_rows(self, rows: np.ndarray) -> dict[str, Any]:
        hot = csr_matrix((np.ones(len(rows)), rows % 5, np.arange(len(rows) + 1)), (len(rows), 5))
        return {"x": np.stack([rows, -rows], 1).astype(float), "s": hot}

    def classes(self, stream: str) -> list[str]:
        return ["a", "b", "c", "d", "e"] if stream == "s" else []


class Sequences(SequencesReader):
    def stream_infos(self) -> list[StreamInformation]:
        return [X]

    def lengths(self) -> list[int]:
        return LENGTHS

    def get_sequence(self, number: int) -> dict[str, Any]:
        return {"x": np.full((LENGTHS[number], 2), number, np.float32)}


class Chunks(ChunksReader):
    def stream_infos(self) -> list[StreamInformation]:
        return [X]

    def num_chunks(self) -> int:
        return 4

    def get_chunk(self, chunk_id: int) -> dict[str, Any]:
        return {"x": np.full((3, 2), chunk_id, np.float32)}


def make(made: type[UserReader], text: str = "", precision: str = "float") -> Reader:
    return ReaderFactory(made)(parse(text), precision)


def all_of(reader: Reader, name: str = "x") -> list[float]:
    reader.start_minibatch_loop(7, 0)
    return [
        v
        for m in iter(reader.get_minibatch, None)
        for v in np.asarray(m.matrix(name).todense() if name == "s" else m.matrix(name))[0].tolist()
    ]


@pytest.mark.parametrize("made", [Rows, Sequences])
@pytest.mark.parametrize("text", ["", "randomize=none", "randomizationWindow=4"])
def test_the_contract_is_kept(made: type[UserReader], text: str) -> None:
    testing.check_reader(lambda: make(made, text))


def test_chunks_keep_the_contract() -> None:
    testing.check_reader(lambda: make(Chunks))
    testing.check_deserializer(Chunks)


def test_a_deserializer_that_gives_other_data_each_time_is_found() -> None:
    counter = iter(range(100))
    other = {"get_chunk": lambda self, chunk_id: {"x": np.full((3, 2), next(counter), np.float32)}}
    with pytest.raises(AssertionError, match="chunk 3 differs when it is read again"):
        testing.check_deserializer(type("Wrong", (Chunks,), other))
    short = {"get_chunk": lambda self, chunk_id: {"x": np.zeros((chunk_id, 2), np.float32)}}
    with pytest.raises(AssertionError, match="chunk 0 has no sequence"):
        testing.check_deserializer(type("Wrong", (Chunks,), short))


def test_order_and_precision_come_from_the_section() -> None:
    assert all_of(make(Rows, "randomize=none ; count=20")) == list(range(20))
    shuffled = all_of(make(Rows, "count=20"))
    assert sorted(shuffled) == list(range(20)) and shuffled != list(range(20))
    assert all_of(make(Rows, "count=20 ; randomizationSeed=1")) != shuffled
    reader = make(Rows, "precision=double")
    reader.start_minibatch_loop(3, 0)
    minibatch = reader.get_minibatch()
    assert minibatch is not None and minibatch.streams["x"].dtype == np.float64
    assert reader.get_label_mapping("s")[4] == "e" and reader.samples_per_sweep == 50


def test_more_rows_than_are_asked_for_at_once() -> None:
    assert all_of(make(Rows, f"randomize=none ; count={CHUNK + 5}")) == list(range(CHUNK + 5))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"num_rows": lambda self: 0}, "at least one row"),
        ({"num_rows": lambda self: 1 / 0}, r"num_rows\(\) failed: ZeroDivisionError"),
        ({"get_rows": lambda self, rows: {}}, "stream 'x': it is missing"),
        ({"get_rows": lambda self, rows: {"x": np.zeros((1, 2), np.float32), "s": csr_matrix((1, 5))}}, "1 of 50"),
        ({"stream_infos": lambda self: []}, "must provide at least one stream"),
    ],
)
def test_what_is_wrong_with_rows_names_the_call(changed: dict[str, Any], message: str) -> None:
    with pytest.raises((UserError, ValueError), match=message):
        all_of(make(type("Wrong", (Rows,), changed)))


def test_a_sequence_of_another_length_is_found() -> None:
    wrong = type("Wrong", (Sequences,), {"get_sequence": lambda self, number: {"x": np.zeros((2, 2), np.float32)}})
    with pytest.raises(UserError, match="samples, not") as found:
        all_of(make(wrong))
    assert "ChunksReader" in (found.value.hint or "")
    with pytest.raises(ValueError, match="each at least 1"):
        make(type("Wrong", (Sequences,), {"lengths": lambda self: [1, 0]}))


def test_an_argument_that_is_missing_is_named() -> None:
    needs = type("Needs", (Rows,), {"__init__": lambda self, file: None})
    with pytest.raises(ConfigError, match="file"):
        make(needs)


def test_a_stream_of_an_unknown_format() -> None:
    """S13: it was a KeyError."""
    with pytest.raises(ArgumentError, match="storage_format of stream 'x' is 'dense' or 'sparse', not 'dens'"):
        StreamInformation("x", 0, "dens", np.float32, (1,))
