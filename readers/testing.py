"""Checks of readers for the tests of plug-ins: does a reader keep the contract that training relies on?

import cntkpy.testing

def test_my_reader():
    cntkpy.testing.check_reader(lambda: create_reader("readerType=MyReader ; file=data.txt"))
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

from .minibatch import Minibatch


def check_reader(make: Callable[[], Any], minibatch_size: int = 4, workers: int = 2) -> None:
    """Check a reader against its contract.

    Args:
        make: makes the reader, the same one every time.
        minibatch_size: samples of a minibatch; the data should fill several.
        workers: how many workers share the data.

    Raises:
        AssertionError: the streams of minibatches are not those that are declared; an epoch is not the same when it is
            read again; a state is not JSON, or reading does not go on where it was taken; the shares of the workers
            are not all the data, each once.
    """
    reader = make()
    names = {stream.name for stream in reader.streams}
    first = _epoch(reader, minibatch_size, 0)
    assert first, "an epoch has no minibatch"
    for minibatch in first:
        assert set(minibatch.streams) == names, f"a minibatch has {set(minibatch.streams)}, the reader declares {names}"
        assert set(minibatch.layouts) == names, "every stream needs a layout"
    assert reader.data_end, "data_end is not set after the last minibatch"
    keys = [list(minibatch.keys) for minibatch in first]
    assert [list(one.keys) for one in _epoch(make(), minibatch_size, 0)] == keys, "an epoch differs when read again"
    for stop in range(len(keys)):
        _check_resume(make, minibatch_size, stop, keys)
    shares = [_epoch(make(), minibatch_size, 0, rank, workers) for rank in range(workers)]
    found = Counter(key for share in shares for one in share for key in one.keys)
    assert found == Counter(key for one in keys for key in one), "the shares of the workers are not all the data"
    reader.close()


def check_deserializer(make: Callable[[], Any]) -> None:
    """Check a class derived from `UserDeserializer` (or `ChunksReader`) against its contract.

    Args:
        make: makes the object, the same one every time.

    Raises:
        AssertionError: a chunk has no sequence, or depends on anything but its number.
        DataError: a chunk is not what the streams declare.
    """
    from readers.user.deserializer import UserData

    data, again = UserData(make()), UserData(make())
    assert [s.name for s in data.streams] == [s.name for s in again.streams], "the streams differ when asked again"
    assert data.chunks == again.chunks, "the number of chunks differs when asked again"
    first = {chunk: data.load_window_chunk(chunk) for chunk in range(data.chunks)}
    for chunk in reversed(range(data.chunks)):  # in another order, from another object and from the same
        loaded, lengths = first[chunk]
        assert len(lengths), f"chunk {chunk} has no sequence"
        for other in (again, data):
            found, more = other.load_window_chunk(chunk)
            same = lengths.tolist() == more.tolist() and all(
                stream.values.tolist() == found.streams[name].values.tolist() for name, stream in loaded.streams.items()
            )
            assert same, f"chunk {chunk} differs when it is read again"


def _check_resume(make: Callable[[], Any], size: int, stop: int, keys: list[list[int | str]]) -> None:
    """Whether reading goes on exactly where the state after `stop` minibatches was taken."""
    reader, again = make(), make()
    reader.start_minibatch_loop(size, 0)
    for _ in range(stop):
        reader.get_minibatch()
    again.restore(json.loads(json.dumps(reader.state())))
    rest = [list(one.keys) for one in iter(again.get_minibatch, None)]
    assert rest == keys[stop:], f"after {stop} minibatches, reading does not go on where the state was taken"
    reader.close()
    again.close()


def _epoch(reader: Any, size: int, epoch: int, rank: int = 0, workers: int = 1) -> list[Minibatch]:
    reader.start_minibatch_loop(size, epoch, None, rank, workers)
    return list(iter(reader.get_minibatch, None))
