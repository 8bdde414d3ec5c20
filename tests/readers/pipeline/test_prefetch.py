"""Results that are made ahead are given out as soon as they are there."""

from __future__ import annotations

import threading
import time

from readers.pipeline.prefetch import SLOW_SECONDS, Prefetcher


def test_after_a_slow_result_none_waits_for_the_next_ones() -> None:
    goes_on = threading.Event()
    made = 0

    def produce() -> int:
        nonlocal made
        made += 1
        if made == 1:
            time.sleep(2 * SLOW_SECONDS)
        if made == 4:
            assert goes_on.wait(20), "the results before this one have not come"
        return made

    prefetcher = Prefetcher(produce)
    try:
        assert [prefetcher.next() for _ in range(3)] == [1, 2, 3]
        goes_on.set()
        assert [prefetcher.next() for _ in range(100)] == list(range(4, 104))
    finally:
        goes_on.set()
        prefetcher.close()


def test_behind_the_last_result_little_is_made_ahead() -> None:
    made: list[int | None] = []

    def produce() -> int | None:
        made.append(len(made) if len(made) < 3 else None)
        return made[-1]

    prefetcher = Prefetcher(produce, is_last=lambda result: result is None)
    assert [prefetcher.next() for _ in range(4)] == [0, 1, 2, None]
    prefetcher.close()
    assert len(made) <= 6, "each slice ends with the end of the epoch: that given out and the two made ahead"
