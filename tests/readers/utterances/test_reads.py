"""Utterances side by side: how many is told by the source, epoch by epoch; nothing is written into an assembler."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from numbers_data import Numbers, inputs_of

from cntkpy.cntk_config import ConfigParameters, parse
from cntkpy.readers.epochs import EpochRequest
from cntkpy.readers.pipeline.source import Source, SourceOptions
from cntkpy.readers.pipeline.truncated import TruncatedPacker
from cntkpy.readers.utterances.order import InOrder
from cntkpy.readers.utterances.reader import UtteranceReader, in_file_order
from cntkpy.readers.utterances.reads import Reads, TruncatedReads
from tests.readers.conftest import epoch
from tests.readers.formats.htk.htk_data import Speech


def slots_per_epoch(text: str) -> Any:
    section: ConfigParameters = parse(f"slots = {text}")
    return section.array("slots").convert(int)


def reader(kind: type[Any], slots: str = "2:3") -> UtteranceReader:
    data, per_epoch = Numbers(3, 8, longest=5), slots_per_epoch(slots)
    if kind is TruncatedPacker:
        source = Source(data, InOrder(data.table), SourceOptions(slots=per_epoch), make_packer=TruncatedPacker)
        return UtteranceReader(source, per_epoch)
    return UtteranceReader(Source(data, InOrder(data.table), SourceOptions(slots=per_epoch), make_packer=kind))


@pytest.mark.parametrize("kind", [Reads, TruncatedReads, TruncatedPacker])
def test_the_number_of_slots_is_that_of_the_epoch(kind: type[Any]) -> None:
    made = reader(kind)
    for number, slots in ((0, 2), (1, 3), (5, 3), (0, 2)):
        made.start_minibatch_loop(4, number)
        minibatch = made.get_minibatch()
        assert minibatch is not None and slots == minibatch.layouts["x"].S
        assert kind is Reads or minibatch.layouts["x"].T == 4
    made.close()


@pytest.mark.parametrize("kind", [Reads, TruncatedReads, TruncatedPacker])
def test_a_position_goes_on_in_a_reader_that_was_never_started(kind: type[Any]) -> None:
    whole, again = reader(kind), reader(kind)
    whole.start_minibatch_loop(4, 0)
    whole.get_minibatch()
    again.set_state(whole.get_state())
    rest = [[(list(m.keys), m.streams["x"].tolist()) for m in iter(one.get_minibatch, None)] for one in (whole, again)]
    assert rest[0] == rest[1] and len(rest[0]) > 2
    whole.close()
    again.close()


@pytest.mark.parametrize(("slots", "workers", "shares"), [(5, 2, [3, 2]), (4, 4, [1] * 4), (1, 3, [1] * 3)])
def test_workers_share_the_slots_and_have_one_at_least(slots: int, workers: int, shares: list[int]) -> None:
    data = Numbers(2, 4)
    inputs = inputs_of(data, InOrder(data.table), None, 4)
    inputs.slots, found = slots, []
    for rank in range(workers):
        inputs.timeline.set_state(EpochRequest(4, worker=rank, workers=workers))
        found.append(inputs.own_slots())
    assert found == shares


def test_in_file_order_every_minibatch_is_an_utterance() -> None:
    made = in_file_order(Numbers(2, 4, longest=3), prefetch=False)  # type: ignore[arg-type]
    made.start_minibatch_loop(100, 0)
    assert [list(one.keys) for one in iter(made.get_minibatch, None)] == [[n] for n in range(8)]
    made.close()


def test_what_waits_for_one_slot_is_put_behind_another_that_has_room(tmp_path: Path) -> None:
    """What waits for the first slot is too long for all, what waits for the second fits into the first."""
    speech = Speech(tmp_path, (4, 12, 20, 3, 5, 2))
    reader = speech.old(frameMode=False, randomize="none", nbruttsineachrecurrentiter=2)
    found = [
        [(str(key)[-2:], *row) for key, row in zip(m.keys, m.layout.sequences[:, 1:].tolist(), strict=True)]
        for m in epoch(reader, 1)
    ]
    reader.close()
    assert found == [
        [("u0", 0, 0, 4), ("u3", 0, 4, 7), ("u1", 1, 0, 12)],
        [("u2", 0, 0, 20), ("u4", 1, 0, 5), ("u5", 1, 5, 7)],
    ]


def test_the_first_reads_go_to_the_slots_in_turn_before_any_slot_takes_a_second_one(tmp_path: Path) -> None:
    speech = Speech(tmp_path, (4, 4, 4, 2))
    reader = speech.old(frameMode=False, truncated=True, randomize="none", nbruttsineachrecurrentiter=2)
    first, second = (
        [(str(key)[-2:], *row) for key, row in zip(m.keys, m.layout.sequences[:, 1:].tolist(), strict=True)]
        for m in epoch(reader, 6)
    )
    reader.close()
    assert first == [("u0", 0, 0, 4), ("u2", 0, 4, 8), ("u1", 1, 0, 4), ("u3", 1, 4, 6)]
    assert second == [("u2", 0, -2, 2)]


def test_a_slot_without_a_read_is_a_gap(tmp_path: Path) -> None:
    reader = Speech(tmp_path, (4, 4, 4)).old(frameMode=False, randomize="none", nbruttsineachrecurrentiter=2)
    assert [(m.layout.T, m.layout.S, m.num_samples) for m in epoch(reader, 1)] == [(4, 2, 8), (4, 2, 4)]
    reader.close()
