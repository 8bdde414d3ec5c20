"""Readers that wrap readers: what is passed on, and what is asked of the reader inside."""

import pytest

from readers.reader import Reader
from readers.registry import create_reader
from trainers.parallel.reading import SharedReader
from trainers.step.reading import CountedReader, WrappedReader, innermost

LINES = "".join(f"|x {k}\n" for k in range(6))


@pytest.fixture
def reader(tmp_path, monkeypatch: pytest.MonkeyPatch) -> Reader:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.ctf").write_text(LINES)
    return create_reader("file = t.ctf ; randomize = none ; input = [ x = [ dim = 1 ; format = dense ] ]")


def test_everything_is_passed_on(reader: Reader) -> None:
    outer = SharedReader(CountedReader(WrappedReader(reader)), 0, 2, None)
    assert innermost(outer) is reader
    assert list(outer.streams) == list(reader.streams)
    assert outer.samples_per_sweep == 6
    outer.start_minibatch_loop(4, 0)
    first = outer.get_minibatch()
    assert first is not None and first.num_samples == 4
    state = outer.state()
    assert state["last_slots"] == 4
    rest = outer.get_minibatch()
    outer.restore(state)
    again = outer.get_minibatch()
    assert rest is not None and again is not None
    assert again.streams["x"].tolist() == rest.streams["x"].tolist() == [[[4.0], [5.0]]]
    assert outer.get_label_mapping("x") == {}
    outer.close()


def test_an_epoch_is_found_by_its_number_unless_the_reader_says_otherwise(reader: Reader) -> None:
    outer = SharedReader(CountedReader(WrappedReader(reader)), 0, 2, None)
    outer.start_minibatch_loop(4, 0)
    outer.get_minibatch()
    assert outer.epoch_state(1) == outer.state()  # with the number of slots, whatever wraps the reader
    before = outer.state()
    outer.restore_epoch({"minibatchSourcePosition": 0})
    assert outer.state() == before


@pytest.mark.parametrize(("workers", "given", "expected"), [(1, None, True), (1, False, False), (9, True, False)])
def test_who_gives_out_shares(reader: Reader, workers: int, given: bool | None, expected: bool) -> None:
    """Nine workers have more in number than the data has chunks."""
    assert SharedReader(CountedReader(reader), 0, workers, given).reads_share is expected
