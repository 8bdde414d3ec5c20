"""Minibatches of whole sequences: made in growing groups, and yet as if they were made one by one."""

from __future__ import annotations

import weakref
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numbers_data import Numbers, inputs_of

from cntkpy.readers.epochs import EpochRequest
from cntkpy.readers.minibatch import Minibatch
from cntkpy.readers.pipeline import whole
from cntkpy.readers.pipeline.assembly import Inputs
from cntkpy.readers.pipeline.pack import SequencePacker
from cntkpy.readers.pipeline.randomize import WHOLE_DATA, BlockRandomizer, NoRandomizer
from cntkpy.readers.pipeline.store import ChunkStore
from cntkpy.readers.pipeline.whole import GROUP_GROWTH_FACTOR, MAX_GROUP_MINIBATCHES, GroupLoader, WholeSequences

SIZE = 10


def start(data: Numbers, randomized: bool = False, loaded_bytes: float = 0.0) -> tuple[WholeSequences, Inputs]:
    timeline = BlockRandomizer(data.table, WHOLE_DATA) if randomized else NoRandomizer(data.table)
    store = ChunkStore(data, threads=0, callers=1)
    inputs = inputs_of(data, timeline, store, SIZE)
    return WholeSequences(inputs, GroupLoader(inputs, loaded_bytes), SequencePacker(data.streams)), inputs


def group_sizes(packer: WholeSequences) -> list[int]:
    """Minibatches of each group until the end of the epoch."""
    sizes = []
    while (group := next(packer._loader)).planned:
        sizes.append(len(list(group.each())))
    return sizes


def rest(packer: WholeSequences) -> list[tuple[Minibatch, dict[str, Any]]]:
    """All minibatches of the epoch with the states after them."""
    found: list[tuple[Minibatch, dict[str, Any]]] = []
    while True:
        minibatch, state, held = next(packer)
        assert held is None
        if minibatch is None:
            return found
        found.append((minibatch, state))


def told(minibatch: Minibatch) -> tuple[Any, ...]:
    """What a minibatch holds."""
    layout = minibatch.layouts["x"]
    flags = minibatch.end_of_sweep, minibatch.end_of_epoch
    return list(minibatch.keys), minibatch.streams["x"].tolist(), layout.sequences.tolist(), flags


def test_groups_grow_so_that_a_start_costs_little() -> None:
    sizes = group_sizes(start(Numbers(40, 200))[0])
    assert sizes[:5] == [1, 4, 16, 64, 256]
    assert max(sizes) == MAX_GROUP_MINIBATCHES and sum(sizes) == 40 * 200 // SIZE
    assert all(b <= GROUP_GROWTH_FACTOR * a for a, b in pairwise(sizes))


def test_large_minibatches_are_made_alone() -> None:
    wide = Numbers(2, 20, dim=1 + whole.MAX_GROUP_DENSE_BYTES // 4 // SIZE)
    assert set(group_sizes(start(wide)[0])) == {1}
    light, _ = start(Numbers(2, 50))
    heavy, _ = start(Numbers(2, 50), loaded_bytes=1 + whole.MAX_GROUP_LOADED_BYTES / SIZE)
    assert len(group_sizes(light)) < 10
    assert set(group_sizes(heavy)) == {1}


@pytest.mark.parametrize("randomized", [False, True])
def test_several_at_once_are_those_one_by_one(randomized: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    data = Numbers(6, 40, longest=4)
    together = [told(one) for one, _ in rest(start(data, randomized)[0])]
    monkeypatch.setattr(whole, "MAX_GROUP_MINIBATCHES", 1)
    assert [told(one) for one, _ in rest(start(data, randomized)[0])] == together
    keys = [key for one in together for key in one[0]]
    assert sorted(keys) == list(range(240)) and (keys == list(range(240))) is not randomized
    assert [one[3] for one in together] == [(False, False)] * (len(together) - 1) + [(True, True)]
    for names, values, rows, _ in together:
        for (which, slot, begin, end), step in ((row, row[2]) for row in rows):
            assert values[step][slot] == [names[which]] and end - begin == data.lengths[names[which]]


def test_the_state_beside_a_minibatch_is_the_position_after_it() -> None:
    data = Numbers(4, 30, longest=3)
    made = rest(start(data, randomized=True)[0])
    for at in (0, 3, len(made) - 2):
        packer, inputs = start(data, randomized=True)
        inputs.timeline.set_state(made[at][1])
        assert [told(one) for one, _ in rest(packer)] == [told(one) for one, _ in made[at + 1 :]]


def test_a_fault_comes_at_its_minibatch_and_again_when_asked_again() -> None:
    data = Numbers(20, 10, broken=[137])
    packer, _ = start(data)
    found: list[list[int | str]] = []
    for _ in range(2):
        with pytest.raises(OSError, match="sequence 137 cannot be read"):
            while True:
                found.append(list(next(packer)[0].keys))
    assert found == [list(range(at, at + 10)) for at in range(0, 130, 10)]


def test_clear_forgets_the_fault_and_begins_with_a_group_of_one() -> None:
    data = Numbers(20, 10)
    packer, inputs = start(data)
    for _ in range(3):
        next(packer)
    packer.set_state(None)
    inputs.timeline.set_state(EpochRequest(SIZE))
    assert group_sizes(packer)[:3] == [1, 4, 15]


def test_parts_of_a_group_are_cut_at_the_minibatches() -> None:
    packer, _ = start(Numbers(5, 20, longest=2))
    next(packer._loader)
    group = next(packer._loader)
    singles = [planned for planned, _ in group.separate()]
    assert np.concatenate([one.sequences for one in singles]).tolist() == group.sequences.tolist()
    assert [len(one.sequences) for one in singles] == np.diff(group.cuts).tolist()


def test_a_packer_that_nobody_needs_is_freed_at_once() -> None:
    """With its data and their open files: no part of it is in a circle of references."""
    packer, inputs = start(Numbers(5, 20))
    next(packer)
    gone = weakref.ref(inputs)
    del packer, inputs
    assert gone() is None
