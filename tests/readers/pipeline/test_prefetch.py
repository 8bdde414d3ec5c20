"""Values that are made ahead are handed over as soon as they are there, and nothing is lost or made in vain."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from collections.abc import Callable

import pytest

from cntkpy.cntk_config.base.stopping import Stopped
from cntkpy.readers.pipeline import prefetch
from cntkpy.readers.pipeline.prefetch import GROUP_BYTES, GROUP_VALUES, SLOW_VALUE_SECONDS, Prefetch


def no_bytes(value: object) -> int:
    return 0


def test_after_a_slow_value_none_waits_for_the_next_ones() -> None:
    goes_on = threading.Event()
    made = 0

    def make() -> int:
        nonlocal made
        made += 1
        if made == 1:
            time.sleep(2 * SLOW_VALUE_SECONDS)
        if made == 4:
            assert goes_on.wait(20), "the values before this one have not come"
        return made

    values = Prefetch(make, nbytes=no_bytes)
    try:
        assert [next(values) for _ in range(3)] == [1, 2, 3]
        goes_on.set()
        assert [next(values) for _ in range(100)] == list(range(4, 104))
    finally:
        goes_on.set()
        values.close()


def test_values_do_not_wait_for_a_slow_one_behind_them() -> None:
    goes_on = threading.Event()
    numbers = iter(range(9))

    def make() -> int:
        number = next(numbers)
        assert number < 2 or goes_on.wait(20)
        return number

    values = Prefetch(make, nbytes=no_bytes)
    try:
        assert [next(values), next(values)] == [0, 1]
    finally:
        goes_on.set()
        values.reset()
        values.close()


def test_nothing_is_made_ahead_behind_the_last_value() -> None:
    made: list[int | None] = []

    def make() -> int | None:
        made.append(len(made) if len(made) < 3 else None)
        return made[-1]

    values = Prefetch(make, nbytes=no_bytes, is_last=lambda value: value is None)
    assert [next(values) for _ in range(4)] == [0, 1, 2, None]
    values.call(lambda: None)
    assert made == [0, 1, 2, None]
    values.close()


@pytest.mark.parametrize(("nbytes", "most"), [(0, 2 * GROUP_VALUES), (GROUP_BYTES, 2), (GROUP_BYTES // 2, 4)])
def test_what_is_made_ahead_is_bounded(nbytes: int, most: int) -> None:
    made: list[int] = []
    values = Prefetch(lambda: made.append(0) or len(made), nbytes=lambda value: nbytes)
    assert next(values) == 1
    time.sleep(0.2)
    group = len(values._taken) + 1
    assert len(made) == most + group
    assert [next(values) for _ in range(3 * most)] == list(range(2, 3 * most + 2))
    values.close()


@pytest.mark.parametrize("nbytes", [0, GROUP_BYTES])
def test_values_are_made_while_the_consumer_works(nbytes: int) -> None:
    made: list[int] = []
    values = Prefetch(lambda: made.append(0) or len(made), nbytes=lambda value: nbytes)
    assert next(values) == 1
    for _ in values._taken.copy():
        next(values)
    time.sleep(0.1)
    count = len(made)
    next(values)
    group = len(values._taken) + 1
    time.sleep(0.1)
    assert len(made) == count + group
    values.close()


def test_an_error_is_raised_behind_the_values_before_it_and_the_stream_goes_on() -> None:
    found = iter([1, ZeroDivisionError("two"), 3, 4])

    def make() -> int:
        value = next(found)
        if isinstance(value, Exception):
            raise value
        return value

    values = Prefetch(make, nbytes=no_bytes, is_last=lambda value: value == 4)
    assert next(values) == 1
    with pytest.raises(ZeroDivisionError, match="two"):
        next(values)
    assert [next(values), next(values)] == [3, 4]
    values.close()


def test_values_made_in_another_way_take_the_place_of_those_before() -> None:
    values = Prefetch(lambda: 1, nbytes=no_bytes)
    assert next(values) == 1
    values.restart(lambda: 2)
    assert [next(values) for _ in range(4 * GROUP_VALUES)] == 4 * GROUP_VALUES * [2]
    assert values.call(lambda: threading.current_thread().name) == "cntkpy-reader"
    values.close()


@pytest.mark.parametrize("use", [lambda ahead, wait: ahead.call(wait), lambda ahead, _: next(ahead)])
def test_a_thread_that_does_not_answer_is_abandoned(
    use: Callable[[Prefetch[None], Callable[[], None]], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prefetch, "ABANDON_SECONDS", 0.05)
    end, ended = threading.Event(), list[bool]()

    def wait() -> None:
        ended.append(end.wait(60))

    ahead = Prefetch(wait, stop=lambda: True)
    with pytest.raises(Stopped):
        use(ahead, wait)
    with pytest.raises(Stopped):
        ahead.call(lambda: None)
    ahead.close()
    assert not ended  # nobody has waited for it
    end.set()


def test_after_an_interruption_values_have_to_be_made_again() -> None:
    def interrupted() -> int:
        raise KeyboardInterrupt

    values = Prefetch(interrupted, threads=0)
    with pytest.raises(KeyboardInterrupt):
        next(values)
    assert values.interrupted
    values.reset()
    assert not values.interrupted


def test_values_can_be_made_after_closing() -> None:
    numbers = iter(range(1000))
    values = Prefetch(lambda: next(numbers), nbytes=no_bytes)
    first = next(values)
    values.close()
    assert next(values) > first
    values.close()


@pytest.mark.thorough
def test_a_prefetch_that_nobody_needs_ends_its_thread() -> None:
    values = Prefetch(lambda: 1, nbytes=no_bytes)
    assert next(values) == 1
    threads = values._workers
    gone = weakref.ref(values)
    del values
    gc.collect()
    assert gone() is None
    for thread in threads:
        thread.join(5)
        assert not thread.is_alive()


@pytest.mark.parametrize("waits", [False, True])
def test_more_is_ahead_of_a_consumer_that_waits_after_it_took_nothing(waits: bool) -> None:
    """It had stopped the thread by taking nothing; so does one that fills a stack with more than two groups."""
    may_make, made = threading.Event(), 0
    may_make.set()

    def make() -> int:
        nonlocal made
        assert may_make.wait(20)
        made += 1
        return made

    def stopped_at() -> int:
        """Return how many values are made when the thread makes no more."""
        count = -1
        while count != made:
            count = made
            time.sleep(0.1)
        return made

    values = Prefetch(make, nbytes=no_bytes)
    try:
        taken = next(values)
        ready = stopped_at()
        if waits:
            may_make.clear()
            taken = [next(values) for _ in range(ready - taken)][-1]
            threading.Timer(0.05, may_make.set).start()
        taken = next(values)
        assert (stopped_at() - taken >= 4 * GROUP_VALUES) == waits
    finally:
        may_make.set()
        values.close()
