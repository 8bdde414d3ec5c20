"""Readers that wrap readers: what is passed on, and what is asked of the reader inside."""

import signal
import threading
import time

import pytest

from cntkpy.cntk_config.base.stopping import Stopped
from cntkpy.readers.minibatch import Minibatch
from cntkpy.readers.pipeline import prefetch
from cntkpy.readers.reader import Reader
from cntkpy.readers.registry import create_reader
from cntkpy.trainers.parallel.reading import SharedReader
from cntkpy.trainers.step.reading import CountedReader, InterruptibleReader, WrappedReader, following, innermost

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
    state = outer.get_state()
    assert state["last_slots"] == 4
    rest = outer.get_minibatch()
    outer.set_state(state)
    again = outer.get_minibatch()
    assert rest is not None and again is not None
    assert again.streams["x"].tolist() == rest.streams["x"].tolist() == [[[4.0], [5.0]]]
    assert outer.get_label_mapping("x") == {}
    outer.close()


def test_an_epoch_is_found_by_its_number_unless_the_reader_says_otherwise(reader: Reader) -> None:
    outer = SharedReader(CountedReader(WrappedReader(reader)), 0, 2, None)
    outer.start_minibatch_loop(4, 0)
    outer.get_minibatch()
    assert outer.epoch_state(1) == outer.get_state()  # with the number of slots, whatever wraps the reader
    before = outer.get_state()
    outer.restore_epoch({"minibatchSourcePosition": 0})
    assert outer.get_state() == before


@pytest.mark.parametrize(("workers", "given", "expected"), [(1, None, True), (1, False, False), (9, True, False)])
def test_who_gives_out_shares(reader: Reader, workers: int, given: bool | None, expected: bool) -> None:
    """Nine workers have more in number than the data has chunks."""
    assert SharedReader(CountedReader(reader), 0, workers, given).reads_share is expected


class Counting(WrappedReader):
    """Says how often it was asked for a minibatch, and by which threads; fails at one of them, or waits."""

    def __init__(self, reader: Reader, fails_at: int = 0, waits_at: int = 0) -> None:
        super().__init__(reader)
        self.asked, self.threads, self._fails_at, self._waits_at = 0, set[str](), fails_at, waits_at
        self.go_on = threading.Event()

    def get_minibatch(self) -> Minibatch | None:
        self.asked += 1
        self.threads.add(threading.current_thread().name)
        if self.asked == self._waits_at:
            assert self.go_on.wait(10)
        if self.asked == self._fails_at:
            raise ValueError("a bad sector")
        return super().get_minibatch()


def in_a_thread(reader: Counting) -> InterruptibleReader:
    outer = InterruptibleReader(lambda: CountedReader(reader), lambda: False)
    outer.start_minibatch_loop(1, 0)
    return outer


def test_minibatches_are_read_ahead_in_one_thread(reader: Reader) -> None:
    """What is given out, and the position after each, are those of one after the other."""
    reader.start_minibatch_loop(1, 0)
    expected = []
    while (minibatch := reader.get_minibatch()) is not None:
        expected.append((minibatch.streams["x"].tolist(), {**reader.get_state(), "last_slots": 1}))
    counting = Counting(reader)
    found = [(one.streams["x"].tolist(), state) for one, state in following(in_a_thread(counting), states=True)]
    assert found == expected
    assert counting.threads == {"cntkpy-reader"}


def test_no_more_is_read_than_asked_for(reader: Reader) -> None:
    counting = Counting(reader)
    data = following(in_a_thread(counting), ahead=False)
    next(data), next(data)
    assert counting.asked == 2


def test_what_is_there_does_not_wait_for_a_slow_minibatch(reader: Reader) -> None:
    """Other questions, and a new epoch, come after the one that nobody waits for any more."""
    counting = Counting(reader, waits_at=3)
    outer = in_a_thread(counting)
    data = following(outer)
    assert [next(data)[0].streams["x"].tolist() for _ in range(2)] == [[[[0.0]]], [[[1.0]]]]
    assert not counting.go_on.is_set()
    counting.go_on.set()
    assert [one.streams["x"].tolist() for one, _ in data] == [[[[k]]] for k in (2.0, 3.0, 4.0, 5.0)]
    counting.asked = 0
    counting.go_on.clear()
    outer.start_minibatch_loop(1, 0)
    data = following(outer)
    next(data), next(data)
    counting.go_on.set()
    assert outer.get_state()["last_slots"] == 1  # answered after the question that `data` still waits for
    assert len(list(data)) == 4
    counting.asked = 0
    counting.go_on.clear()
    outer.start_minibatch_loop(1, 1)
    next(following(outer))
    counting.go_on.set()
    outer.start_minibatch_loop(1, 2)
    assert len(list(following(outer))) == 6


def test_an_error_comes_behind_what_was_read_before(reader: Reader) -> None:
    data = following(in_a_thread(Counting(reader, fails_at=3)))
    assert [next(data)[0].streams["x"].tolist() for _ in range(2)] == [[[[0.0]]], [[[1.0]]]]
    with pytest.raises(ValueError, match="a bad sector"):
        next(data)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers that send signals here")
def test_a_signal_that_is_handled_for_long(reader: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    """It arrives while the reader is waited for, and its handler ends after the time to wait."""
    monkeypatch.setattr(prefetch, "ABANDON_SECONDS", 0.1)
    counting, arrived = Counting(reader, waits_at=1), list[int]()
    outer = InterruptibleReader(lambda: counting, lambda: bool(arrived))
    outer.start_minibatch_loop(1, 0)
    before = signal.signal(signal.SIGALRM, lambda *_: (arrived.append(1), time.sleep(3 * prefetch.STOP_POLL_SECONDS)))
    signal.setitimer(signal.ITIMER_REAL, 2 * prefetch.STOP_POLL_SECONDS)
    try:
        with pytest.raises(Stopped):
            outer.get_minibatch()
    finally:
        signal.signal(signal.SIGALRM, before)
        counting.go_on.set()
