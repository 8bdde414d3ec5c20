"""Values that are made ahead are handed over as soon as they are there, and nothing is lost or made in vain."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from collections.abc import Callable

import pytest

from cntkpy.cntk_config.base.stopping import Stopped
from cntkpy.readers.pipeline import read_ahead
from cntkpy.readers.pipeline.read_ahead import GROUP_BYTES, GROUP_ITEMS, SLOW_SECONDS, GroupedProducer, ReadAhead


def never(value: object) -> bool:
    return False


def test_after_a_slow_value_none_waits_for_the_next_ones() -> None:
    goes_on = threading.Event()
    made = 0

    def make() -> int:
        nonlocal made
        made += 1
        if made == 1:
            time.sleep(2 * SLOW_SECONDS)
        if made == 4:
            assert goes_on.wait(20), "the values before this one have not come"
        return made

    ahead = ReadAhead()
    values = ahead.begin(make, never)
    try:
        assert [next(values) for _ in range(3)] == [1, 2, 3]
        goes_on.set()
        assert [next(values) for _ in range(100)] == list(range(4, 104))
    finally:
        goes_on.set()
        ahead.close()


def test_values_do_not_wait_for_a_slow_one_behind_them() -> None:
    goes_on = threading.Event()
    numbers = iter(range(9))

    def make() -> int:
        number = next(numbers)
        assert number < 2 or goes_on.wait(20)
        return number

    ahead = ReadAhead()
    values = ahead.begin(make, never)
    try:
        assert [next(values), next(values)] == [0, 1]
    finally:
        goes_on.set()
        ahead.reset()
        ahead.close()


def test_nothing_is_made_ahead_behind_the_last_value() -> None:
    made: list[int | None] = []

    def make() -> int | None:
        made.append(len(made) if len(made) < 3 else None)
        return made[-1]

    ahead = ReadAhead()
    values = ahead.begin(make, lambda value: value is None)
    assert [next(values) for _ in range(4)] == [0, 1, 2, None]
    ahead.call(lambda: None)
    assert made == [0, 1, 2, None]
    ahead.close()


@pytest.mark.parametrize(("nbytes", "most"), [(0, 2 * GROUP_ITEMS), (GROUP_BYTES, 2), (GROUP_BYTES // 2, 4)])
def test_what_is_made_ahead_is_bounded(nbytes: int, most: int) -> None:
    made: list[int] = []
    ahead = ReadAhead()
    values = ahead.begin(lambda: made.append(0) or len(made), never, lambda value: nbytes)
    time.sleep(0.2)
    assert len(made) == most
    assert [next(values) for _ in range(3 * most)] == list(range(1, 3 * most + 1))
    ahead.close()


@pytest.mark.parametrize("nbytes", [0, GROUP_BYTES])
def test_values_are_made_while_the_consumer_works(nbytes: int) -> None:
    made: list[int] = []
    ahead = ReadAhead()
    values = ahead.begin(lambda: made.append(0) or len(made), never, lambda value: nbytes)
    time.sleep(0.1)
    before = len(made)
    assert next(values) == 1
    time.sleep(0.1)
    assert len(made) == 2 * before
    ahead.close()


def test_an_error_is_raised_behind_the_values_before_it_and_the_stream_goes_on() -> None:
    found = iter([1, ZeroDivisionError("two"), 3, 4])

    def make() -> int:
        value = next(found)
        if isinstance(value, Exception):
            raise value
        return value

    ahead = ReadAhead()
    values = ahead.begin(make, lambda value: value == 4)
    assert next(values) == 1
    with pytest.raises(ZeroDivisionError, match="two"):
        next(values)
    assert [next(values), next(values)] == [3, 4]
    ahead.close()


def test_a_new_stream_takes_the_place_of_the_one_before() -> None:
    ahead = ReadAhead()
    first = ahead.begin(lambda: 1, never)
    assert next(first) == 1
    second = ahead.begin(lambda: 2, never)
    assert next(second) == 2
    assert ahead.call(lambda: threading.current_thread().name) == "cntkpy-reader"
    ahead.reset()
    with pytest.raises(RuntimeError, match="another stream"):
        for _ in range(4 * GROUP_ITEMS):
            next(second)
    ahead.close()


@pytest.mark.parametrize("use", [lambda ahead: ahead.call(lambda: time.sleep(5)), lambda ahead: next(slow(ahead))])
def test_a_thread_that_does_not_answer_is_abandoned(
    use: Callable[[ReadAhead], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read_ahead, "ABANDON_SECONDS", 0.05)
    began = time.monotonic()
    ahead = ReadAhead(stop=lambda: True)
    with pytest.raises(Stopped):
        use(ahead)
    assert time.monotonic() - began < 2
    with pytest.raises(Stopped):
        ahead.call(lambda: None)
    ahead.close()  # does not wait


def slow(ahead: ReadAhead) -> object:
    return ahead.begin(lambda: time.sleep(5), never)


@pytest.mark.parametrize("ahead", [True, False])
def test_values_of_groups_come_one_by_one(ahead: bool) -> None:
    groups = iter([[1, 2], [3], [4, 5, 6]])
    producer = GroupedProducer(lambda: next(groups), lambda value: value == 6, lambda value: 8, ahead)
    assert [producer.next() for _ in range(6)] == [1, 2, 3, 4, 5, 6]
    producer.close()


@pytest.mark.thorough
def test_a_producer_that_nobody_needs_ends_its_thread() -> None:
    producer = GroupedProducer(lambda: [1], never, lambda value: 0, ahead=True)
    assert producer.next() == 1
    threads = [one for one in threading.enumerate() if one.name == "cntkpy-reader"]
    gone = weakref.ref(producer)
    del producer
    gc.collect()
    assert gone() is None
    for one in threads:
        one.join(5)
        assert not one.is_alive()
