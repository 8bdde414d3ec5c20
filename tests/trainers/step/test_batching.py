"""Minibatches on their way into the compiled network: padded, stacked, and every value at its cell."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from batching_cases import DIM, WORDS, Case, batcher, case, minibatch, network
from hypothesis import given, settings
from hypothesis import strategies as st

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.readers.minibatch import Layout, Minibatch
from cntkpy.trainers.step import feed, padding
from cntkpy.trainers.step.feed import Batcher
from cntkpy.trainers.step.stack import Stack

never: Any = lambda number: False  # noqa: E731


def stacks(cases: Sequence[Case], due: Any = never, **more: Any) -> list[Stack]:
    return list(batcher(**more).stacks((one.minibatch for one in cases), due))


def check(stack: Stack, cases: Sequence[Case]) -> None:
    """The arrays hold what the cases say, sample by sample, and nothing else."""
    batch = stack.batch
    words = batch.inputs["s"]
    for k, one in enumerate(cases):
        layout = one.minibatch.layouts["x"]
        assert batch.mask[k].sum() == layout.num_samples
        for row in layout.sequences.tolist():
            number, slot, begin, end = row
            for step in range(max(begin, 0), min(end, layout.T)):
                assert batch.mask[k, step, slot]
                assert batch.inputs["x"][k, step, slot].tolist() == one.x[number][step - begin]
                dense = np.zeros(WORDS + 1)
                np.add.at(dense, words.rows[k][words.index[k, step, slot]], words.values[k, step, slot])
                assert np.flatnonzero(dense[:WORDS]).tolist() == one.words[number][step - begin]
                if batch.to_start is not None:
                    assert batch.to_start[k, step, slot] == step - begin
                    assert batch.to_end[k, step, slot] == end - 1 - step
        outside = ~batch.mask[k]
        assert not batch.inputs["x"][k][outside].any() and not words.values[k][outside].any()
    for k in range(len(cases), len(batch.mask)):
        assert not batch.mask[k].any(), "only the first ones of a stack count"


def test_a_minibatch_may_say_how_many_cells_count() -> None:
    one = case([3, 2])
    (stack,) = stacks([one])
    one.minibatch.columns_together = 5
    assert (stack.columns.tolist(), stacks([one])[0].columns.tolist()) == ([5], [5])
    one.minibatch.columns_together = 0
    assert stack.columns.tolist() == [6]


lengths = st.lists(st.lists(st.integers(1, 9), min_size=1, max_size=5), min_size=1, max_size=8)


@settings(max_examples=20)
@given(lengths, st.integers(1, 4), st.booleans())
def test_every_value_stands_at_its_cell(lengths: list[list[int]], capacity: int, exact: bool) -> None:
    cases = [case(one, seed=n) for n, one in enumerate(lengths)]
    found, at = stacks(cases, capacity=capacity, exact=exact), 0
    for stack in found:
        mine = cases[at : at + len(stack.minibatches)]
        assert stack.minibatches == [one.minibatch for one in mine], "in order, none left out"
        check(stack, mine)
        layouts = [one.minibatch.layouts["x"] for one in mine]
        assert stack.samples.tolist() == [layout.num_samples for layout in layouts]
        assert stack.columns.tolist() == [layout.T * layout.S for layout in layouts]
        assert stack.steps.tolist() == [layout.T for layout in layouts]
        if exact:
            assert all(stack.batch.mask.shape[1:] == (layout.T, layout.S) for layout in layouts)
        at += len(mine)
    assert at == len(cases)


def test_nothing_of_what_was_in_memory_before_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(padding, "empty", lambda shape, dtype: np.full(shape, np.nan, dtype))
    for cases in ([case([1] * 8), case([1] * 5), case([1] * 8)], [case([3, 1]), case([2])], [case([1] * 8)] * 2):
        for stack in stacks(cases, minibatch_size=8):
            count = len(stack.minibatches)
            check(stack, [one for one in cases if any(one.minibatch is mine for mine in stack.minibatches)][:count])


def test_minibatches_of_one_shape_share_a_stack_up_to_its_capacity() -> None:
    frames = [case([1] * 4)] * 7
    assert [len(one.minibatches) for one in stacks(frames, capacity=3, minibatch_size=4)] == [3, 3, 1]
    mixed = [case([1] * 4), case([9, 9]), case([9, 9]), case([1] * 4)]
    assert [len(one.minibatches) for one in stacks(mixed, minibatch_size=4)] == [1, 2, 1]


def test_a_stack_ends_with_a_minibatch_that_is_due() -> None:
    frames = [case([1] * 4)] * 7
    found = stacks(frames, lambda number: number in (2, 5), minibatch_size=4)
    assert [len(one.minibatches) for one in found] == [2, 3, 2]


def test_a_stack_is_no_larger_than_its_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    frames = [case([1] * 4)] * 6
    sizes = []
    for limit in (1, 400, 10**6):
        monkeypatch.setattr(feed, "STACK_BYTES", limit)
        sizes.append([len(one.minibatches) for one in stacks(frames, minibatch_size=4)])
    assert sizes[0] == [1] * 6 and sizes[2] == [6]
    assert 1 < sizes[1][0] < 6


def test_a_short_minibatch_of_frames_is_filled_up() -> None:
    (stack,) = stacks([case([1] * 8), case([1] * 5)], minibatch_size=8)
    assert stack.batch.mask.shape[1:] == (1, 8) and stack.batch.to_start is None
    assert stack.columns.tolist() == [8, 5]


@pytest.mark.parametrize(
    ("more", "slots"),
    [
        ({}, [16, 16, 16]),
        ({"weights": 1e6}, [8, 8, 16]),
        ({"exact": True}, [8, 3, 16]),
        ({"max_minibatch_size": 8}, [8, 8, 16]),
    ],
)
def test_frames_of_small_networks_are_padded_to_the_largest_size_of_any_epoch(
    more: dict[str, Any], slots: list[int]
) -> None:
    """One program for all; where a step takes longer, and where columns count, there is nothing to gain."""
    made = network()
    one = replace(Batcher.of(made, [made["wx"]], 8, capacity=1, max_minibatch_size=16), **more)
    cases = [case([1] * count) for count in (8, 3, 16)]
    found = list(one.stacks((each.minibatch for each in cases), never))
    assert [stack.batch.mask.shape[2] for stack in found] == slots
    assert [stack.columns.tolist() for stack in found] == [[8], [3], [16]]
    for stack, each in zip(found, cases, strict=True):
        np.testing.assert_array_equal(stack.batch.inputs["x"][stack.batch.mask], np.concatenate(each.x))


def test_slots_that_go_on_in_the_next_minibatch_stay() -> None:
    pieces = [minibatch(Layout(3, 5, np.array([[n, n, 0, 7] for n in range(5)])), truncated=True)]
    (stack,) = batcher(minibatch_size=100).stacks(iter(pieces), never)
    assert stack.batch.mask.shape[2] == stack.carried_slots == 5
    assert stacks([case([1])])[0].carried_slots == 0


@pytest.mark.parametrize("precision", ["float", "double"])
def test_the_precision_is_that_of_the_network(precision: str) -> None:
    (stack,) = stacks([case([2, 3])], precision=precision)
    wanted = np.float64 if precision == "double" else np.float32
    assert stack.batch.inputs["x"].dtype == stack.batch.inputs["s"].values.dtype == wanted


def test_new_shapes_are_told_at_trace_level_2(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "cntkpy.trainers"):
        stacks([case([1] * 4), case([9, 9]), case([1] * 4)], minibatch_size=4, trace_level=2)
        stacks([case([5])], trace_level=1)
    told = [record.getMessage() for record in caplog.records if record.getMessage().startswith("Compiling")]
    assert [line.partition("(")[2] for line in told] == ["compilation 1).", "compilation 2)."]


# ------------------------------------------------------------------------------------------------- errors


def streams_of(one: Case, **changed: Any) -> Minibatch:
    given = {**one.minibatch.streams, **{name: value for name, value in changed.items() if value is not None}}
    for name in [name for name, value in changed.items() if value is None]:
        del given[name]
    layouts = dict.fromkeys(given, one.minibatch.layouts["x"])
    return Minibatch(given, layouts, one.minibatch.keys)


def error_of(wrong: Minibatch) -> UserError:
    with pytest.raises(UserError) as found:
        list(batcher().stacks(iter([wrong]), never))
    return found.value


def test_names_of_streams_ignore_case() -> None:
    one = case([2, 1])
    given = streams_of(one, x=None, X=one.minibatch.streams["x"])
    (stack,) = batcher().stacks(iter([given]), never)
    check(stack, [one])


def test_a_stream_that_is_not_there() -> None:
    one = case([2, 1])
    found = error_of(streams_of(one, x=None, xx=one.minibatch.streams["x"]))
    assert found.kind == "MissingStream" and "needs the input 'x'" in found.message
    assert found.hint in ("did you mean 'xx'?", "the reader delivers s, xx; add 'x' to the reader's `input` section")


@pytest.mark.parametrize(
    ("name", "values"),
    [("x", np.zeros((2, 2, DIM + 1))), ("s", scipy.sparse.csr_matrix((4, WORDS + 1)))],
    ids=["dense", "sparse"],
)
def test_a_stream_of_another_size(name: str, values: Any) -> None:
    found = error_of(streams_of(case([2, 2]), **{name: values}))
    assert found.kind == "DimensionMismatch"
    size = values.shape[-1]
    assert f"'{name}' has {size} values per sample, the network's input {size - 1}" in found.message


@pytest.mark.parametrize(("first", "count"), [(3, "3 samples"), (1, "1 sample")])
def test_streams_of_different_lengths_name_the_sequence(first: int, count: str) -> None:
    one, other = case([2, first]), case([2, 2])
    wrong = Minibatch(
        {**one.minibatch.streams, "s": other.minibatch.streams["s"]},
        {"x": one.minibatch.layouts["x"], "s": other.minibatch.layouts["x"]},
        ["first", "second"],
    )
    found = error_of(wrong)
    assert found.kind == "DifferentLengths"
    assert f"sequence second has {count} of 'x', 2 of 's'" in found.message


def test_only_inputs_below_the_roots_are_fed() -> None:
    made = network()
    names = [node.name for node in feed.input_nodes(made, [made["wx"]])]
    assert names == ["x"]


def test_what_is_read_ahead_before_an_error_is_trained_first() -> None:
    def source():
        yield from (case([n + 1], seed=n).minibatch for n in range(5))
        raise OSError("the sixth cannot be read")

    seen = 0
    with pytest.raises(OSError, match="sixth"):
        for stack in batcher(chosen=3, capacity=1).stacks(source(), never):
            seen += len(stack.minibatches)
    assert seen == 5


def test_few_data_are_worth_fewer_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where all minibatches were seen and the network is small, compiling takes longer than padding."""
    cases = [case([length] * 4, seed=n) for n, length in enumerate([10, 13] * 10)]

    def cells() -> list[int]:
        return [stack.batch.mask.size for stack in stacks(cases, chosen=3, capacity=1)]

    few = cells()
    assert len(set(few)) == 1
    monkeypatch.setattr(feed, "COMPILE_WORK", 0)
    assert len(set(cells())) == 2
    assert sum(few) <= 1.3 * sum(cells())
    monkeypatch.undo()
    monkeypatch.setattr(feed, "LOOKAHEAD", 8)  # more may come
    assert len(set(cells())) == 2
    monkeypatch.undo()
    cases = [case([length] * 4, seed=n) for n, length in enumerate([4, 64] * 10)]
    assert len(set(cells())) == 2  # so much padding is never worth it


@pytest.mark.parametrize(
    ("seconds", "hurries", "read"), [(0.0, True, 256), (0.1, True, 52), (0.1, False, 256), (3.0, True, 3)]
)
def test_a_slow_source_delays_the_first_step_by_seconds(
    seconds: float, hurries: bool, read: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, given = 0.0, 0

    def source():
        nonlocal clock, given
        for n in range(300):
            clock += seconds
            given += 1
            yield case([n % 3 + 2], seed=n).minibatch

    monkeypatch.setattr(feed.time, "monotonic", lambda: clock)
    next(batcher(chosen=3, capacity=1, hurries=hurries).stacks(source(), never))
    assert given == read


def test_a_source_that_stalls_delays_it_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, given = 0.0, 0

    def source():
        nonlocal clock, given
        for n in range(300):
            clock += 0.01 if n < 130 else 4.0
            given += 1
            yield case([n % 3 + 2], seed=n).minibatch

    monkeypatch.setattr(feed.time, "monotonic", lambda: clock)
    next(batcher(chosen=3, capacity=1).stacks(source(), never))
    assert given == 131


def test_what_is_there_is_trained_on_while_the_source_is_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = 0.0

    def source():
        nonlocal clock
        for _ in range(10):
            clock += 0.3
            yield case([1] * 4).minibatch

    monkeypatch.setattr(feed.time, "monotonic", lambda: clock)
    found = batcher(minibatch_size=4, exact=True).stacks(source(), never)
    assert [len(stack.minibatches) for stack in found] == [3, 3, 3, 1]
