"""Batchers of several workers compute in step: the same stacks, shapes and totals on all, whatever each one reads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from batching_cases import batcher, case, dense_batcher
from meeting import of_each

from cntkpy.cntk_config.base.stopping import Stopped
from cntkpy.readers.common.sparse import nbytes_of
from cntkpy.readers.minibatch import Minibatch
from cntkpy.trainers.parallel import batching
from cntkpy.trainers.parallel.batching import Part, SharedBatcher, SharedStack, whole
from cntkpy.trainers.parallel.process_group import ProcessGroup
from cntkpy.trainers.step import feed
from cntkpy.trainers.step.feed import Placed, PlacedStack
from cntkpy.trainers.step.shape import Shape


def in_step(shares: Sequence[Iterator[Minibatch]], run: Callable[..., Any] = list, **more: Any) -> list[Any]:
    """What `run` makes of the stacks of every worker, each in a thread of its own; exceptions are results too."""
    due = more.pop("due", lambda number: False)
    made = threading.Lock()

    def work(connection: Any) -> Any:
        group = ProcessGroup(connection, devices=[None] * len(shares), local=[None])
        with made:
            own = SharedBatcher.like(batcher(minibatch_size=8, **more), group)
        return run(own.stacks(shares[connection.rank], due))

    return of_each(len(shares), work)


def shares(*lengths: Sequence[Sequence[int]]) -> list[Iterator[Minibatch]]:
    return [iter([case(one, seed=n).minibatch for n, one in enumerate(some)]) for some in lengths]


def told(stacks: list[SharedStack]) -> list[tuple[Any, ...]]:
    """What must be the same on all workers."""
    return [
        (s.batch.mask.shape, len(s.minibatches), s.samples.tolist(), s.columns.tolist(), s.steps.tolist())
        for s in stacks
    ]


def test_workers_have_the_same_stacks() -> None:
    one, other = in_step(shares([[3, 2], [1, 1], [5]], [[4], [2, 2], [1, 1, 1]]))
    assert told(one) == told(other)
    assert [n for stack in one for n in stack.samples.tolist()] == [5 + 4, 2 + 4, 5 + 3]
    assert [n for stack in one for n in stack.steps.tolist()] == [4, 2, 5]
    for rank, stacks in enumerate((one, other)):
        own = [layout.num_samples for stack in stacks for layout in stack.layouts]
        assert own == ([5, 2, 5], [4, 4, 3])[rank], "each has only its own samples"
        assert [int(n) for s in stacks for n in s.batch.mask.sum(axis=(1, 2))[: len(s.minibatches)]] == own


def test_a_worker_without_data_takes_part_with_empty_minibatches() -> None:
    one, other = in_step(shares([[2, 2], [2, 2], [2]], [[2, 1]]))
    assert told(one) == told(other) and sum(len(stack.minibatches) for stack in other) == 3
    assert [n for stack in one for n in stack.samples.tolist()] == [7, 4, 2]
    assert sum(int(stack.batch.mask.sum()) for stack in other) == 3
    for stack in other:
        count = len(stack.minibatches)
        assert not stack.batch.inputs["x"][:count][~stack.batch.mask[:count]].any()
    assert told(in_step(shares([], []))[0]) == []


def test_a_stack_ends_where_a_minibatch_is_due_on_all() -> None:
    one, other = in_step(shares([[2]] * 5, [[2]] * 5), due=lambda number: number == 2)
    ends = np.cumsum([len(stack.minibatches) for stack in one])
    assert told(one) == told(other) and 2 in ends and ends[-1] == 5


def test_sparse_inputs_fill_what_is_held_for_a_stack(monkeypatch: pytest.MonkeyPatch) -> None:
    """One minibatch is as much as a stack may hold, so no second one is read before the workers meet."""
    sizes = [nbytes_of(values) for values in case([2, 2]).minibatch.streams.values()]
    assert len(sizes) == 2 and all(sizes)
    for module in (batching, feed):
        monkeypatch.setattr(module, "STACK_BYTES", sum(sizes) - 1)
    read = [0, 0]

    def counted(rank: int, share: Iterator[Minibatch]) -> Iterator[Minibatch]:
        for minibatch in share:
            read[rank] += 1
            yield minibatch

    of_each_worker = [counted(rank, share) for rank, share in enumerate(shares([[2, 2]] * 3, [[2, 2]] * 3))]
    in_step(of_each_worker, run=next)
    assert read == [1, 1]


@pytest.mark.parametrize("before", [0, 256])
def test_shares_of_frames_after_epochs_with_whole_minibatches(before: int) -> None:
    """They are padded to an eighth more than the nominal number, not to the size of a whole minibatch."""
    of_each_worker = (130, 126, 120, 128, 129), (126, 130, 131, 134, 127)

    def work(connection: Any) -> list[Any]:
        group = ProcessGroup(connection, devices=[None] * 2, local=[None])
        own = SharedBatcher.like(dense_batcher(256), group)
        own.buckets.know([Shape(1, before)] if before else [])
        given = [case([1] * n).minibatch for n in of_each_worker[connection.rank]]
        return list(own.stacks(iter(given), lambda number: False))

    one, other = of_each(2, work)
    assert told(one) == told(other)
    assert [stack.batch.mask.shape[2] for stack in one] == [144]
    assert [int(n) for s in one for n in s.batch.mask.sum(axis=(1, 2))[: len(s.minibatches)]] == list(of_each_worker[0])


def test_who_is_stopped_stops_all() -> None:
    def stopped() -> Iterator[Minibatch]:
        yield case([2]).minibatch
        raise Stopped

    found = in_step([*shares([[2]] * 3), stopped()])
    assert [type(one) for one in found] == [Stopped, Stopped]


@pytest.mark.parametrize(("slow", "ends"), [(False, ValueError), (True, ValueError), (False, Stopped)])
def test_reading_on_while_a_stack_is_computed(
    slow: bool, ends: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stacks are the same; not where one worker's data are slow; what reading raises comes after what was read."""
    if slow:
        monkeypatch.setattr(batching, "FILL_SECONDS", -1.0)

    def failing(rank: int) -> Iterator[Minibatch]:
        for number in range(6):
            count[rank] += 1
            yield case([2 + rank], seed=number).minibatch
        raise ends

    def work(connection: Any) -> Any:
        group = ProcessGroup(connection, devices=[None] * 2, local=[None])
        own = SharedBatcher.like(batcher(minibatch_size=8), group)
        made = own.stacks(failing(connection.rank), lambda number: number % 2 == 0)
        stacks = Placed(made, lambda stack: PlacedStack(stack, stack.batch))
        found: list[Any] = []
        for _ in range(4):
            try:
                found.append(next(stacks).stack.samples.tolist())
            except ends:
                return [*found, "no more"]
            if own.is_quick:
                stacks.read_ahead()
            found.append(count[connection.rank])
        return found

    count = [0, 0]
    read = [2, 4, 6] if slow else [4, 6, 6]
    for one in of_each(2, work):
        assert one == [*(part for number in read for part in ([5, 5], number)), "no more"]


def test_the_whole_of_some_parts() -> None:
    parts = [Part(Shape(3, 2, ((5, 1),)), 6, 6), Part(Shape(2, 4, ((7, 2),)), 7, 8, truncated=True)]
    assert whole(parts) == Part(Shape(3, 4, ((7, 2),)), 13, 14, truncated=True)
    known = [Part(one.shape, one.samples, one.columns, whole=20) for one in parts]
    assert whole(known).columns == 20, "of all workers, where the reader knows it"


@pytest.mark.parametrize("part", [Part(Shape(3, 2, ((5, 1),), (4,)), 6, 7, 8, True), Part(Shape(1, 1), 1, 1)])
def test_parts_are_exchanged_as_json(part: Part) -> None:
    import json

    assert Part.from_json(json.loads(json.dumps(part.to_json()))) == part
