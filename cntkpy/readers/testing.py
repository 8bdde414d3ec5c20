"""Checks for the tests of plug-ins: does a reader keep the contract that training relies on, a writer that of output?

import cntkpy.testing

def test_my_reader():
    cntkpy.testing.check_reader(lambda: create_reader("readerType=MyReader ; file=data.txt"))
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from cntkpy.cntk_config.base.writing import atomic_write

from .epochs import set_state, state_of
from .minibatch import Minibatch


def check_reader(make: Callable[[], Any], minibatch_size: int = 4, workers: int = 2) -> None:
    """Check a reader against its contract.

    Args:
        make: makes the reader, the same one every time.
        minibatch_size: samples of a minibatch; the data should fill several.
        workers: how many workers share the data.

    Raises:
        AssertionError: the streams of minibatches are not those that are declared; an epoch is not the same when it is
            read again; a state is not JSON, or reading does not resume where it was taken; the shares of the workers
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
    assert [list(minibatch.keys) for minibatch in _epoch(make(), minibatch_size, 0)] == keys, (
        "an epoch differs when read again"
    )
    for stop in range(len(keys)):
        _check_resume(make, minibatch_size, stop, keys)
    shares = [_epoch(make(), minibatch_size, 0, rank, workers) for rank in range(workers)]
    keys_read = Counter(key for share in shares for item in share for key in item.keys)
    assert keys_read == Counter(key for sequence_key in keys for key in sequence_key), (
        "the shares of the workers are not all the data"
    )
    reader.close()


def check_deserializer(make: Callable[[], Any]) -> None:
    """Check a class derived from `UserDeserializer` (or `ChunksReader`) against its contract.

    Args:
        make: makes the object, the same one every time.

    Raises:
        AssertionError: a chunk has no sequence, or depends on anything but its number.
        DataError: a chunk is not what the streams declare.
    """
    from cntkpy.readers.user.deserializer import UserData

    data, again = UserData(make()), UserData(make())
    assert [s.name for s in data.streams] == [s.name for s in again.streams], "the streams differ when asked again"
    assert data.chunks == again.chunks, "the number of chunks differs when asked again"
    first = {chunk: data.load_window_chunk(chunk) for chunk in range(data.chunks)}
    for chunk in reversed(range(data.chunks)):  # in another order, from another object and from the same
        loaded, lengths = first[chunk]
        assert len(lengths), f"chunk {chunk} has no sequence"
        for loader in (again, data):
            result, extra = loader.load_window_chunk(chunk)
            same = lengths.tolist() == extra.tolist() and all(
                stream.values.tolist() == result.streams[name].values.tolist()
                for name, stream in loaded.streams.items()
            )
            assert same, f"chunk {chunk} differs when it is read again"


def check_writer(
    make: Callable[[], Any], files: Sequence[str | Path], minibatches: Sequence[Mapping[str, Any]]
) -> None:
    """Check a writer against its contract.

    Args:
        make: makes the writer, the same one every time.
        files: what it writes when all minibatches are saved. None of them exists; their folders do.
        minibatches: what it is given, call by call: by name an array (records, dim). Two at least.

    Raises:
        AssertionError: `sections` or `save` answers something else than the contract says; a file is missing when the
            writer is closed, or another one is there; there is half a file before that, or after `abandon`, or what
            was there before is damaged; the same data give files of another size when they are written again.
    """
    paths = [Path(file) for file in files]
    assert len(minibatches) > 1, "two minibatches are needed, so that there is a middle"
    assert not [path for path in paths if path.exists()], "the files are there before anything is written"
    previous_files = _listed(paths)
    whole = _write(make(), minibatches, paths)
    assert _listed(paths) == previous_files | set(paths), "other files than those named are left in the folders"
    again = _write(make(), minibatches, paths, whole)
    sizes = [{path: len(content) for path, content in item.items()} for item in (whole, again)]
    assert sizes[0] == sizes[1], "the files have other sizes when they are written again"
    for stop in range(len(minibatches)):
        for old in (True, False):
            for path, content in whole.items():
                path.unlink(missing_ok=True)
                if old:
                    with atomic_write(path) as file:
                        file.write(b"old" + content)
            there = _contents(paths)
            writer = make()
            for minibatch in minibatches[:stop]:
                writer.save(minibatch)
            writer.abandon()
            for path, content in _contents(paths).items():
                complete = content in (there.get(path), whole[path])
                assert complete, f"abandoned after {stop} minibatches, the writer leaves half of {path.name}"
            assert there.keys() <= _contents(paths).keys(), "an abandoned writer removes what was there before"
            new_files = _listed(paths) - previous_files - set(paths)
            assert not new_files, (
                f"an abandoned writer leaves {', '.join(sorted(new_file.name for new_file in new_files))}"
            )


def _write(
    writer: Any,
    minibatches: Sequence[Mapping[str, Any]],
    paths: Sequence[Path],
    whole: Mapping[Path, bytes] | None = None,
) -> dict[Path, bytes]:
    """Write everything; the files. Before the end there is nothing under their names, or what was there before."""
    sections = writer.sections()
    is_text = all(isinstance(word, str) for pair in sections.items() for word in pair)
    assert is_text, f"sections() gives names of sections and their types, not {sections!r}"
    there: list[dict[Path, bytes]] = []
    for minibatch in minibatches:
        wants_more = writer.save(minibatch)
        assert isinstance(wants_more, bool), f"save() says whether it wants more, not {wants_more!r}"
        there.append(_contents(paths))
    writer.close()
    contents = _contents(paths)
    missing = [str(path) for path in paths if path not in contents]
    assert not missing, f"close() leaves no {', '.join(missing)}"
    for early in there:
        half = [
            path.name for path, content in early.items() if content not in (contents[path], (whole or {}).get(path))
        ]
        assert not half, f"{', '.join(half)} can be seen before it is complete"
    return contents


def _contents(paths: Sequence[Path]) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in paths if path.exists()}


def _listed(paths: Sequence[Path]) -> set[Path]:
    """Return all paths in the folders of these files."""
    return {path for folder in {path.parent for path in paths} for path in folder.iterdir()}


def _check_resume(make: Callable[[], Any], size: int, stop: int, keys: list[list[int | str]]) -> None:
    """Return whether reading continues exactly where the state after `stop` minibatches was taken."""
    reader, again = make(), make()
    reader.start_minibatch_loop(size, 0)
    for _ in range(stop):
        reader.get_minibatch()
    set_state(again, json.loads(json.dumps(state_of(reader))))
    remaining_keys = [list(minibatch.keys) for minibatch in iter(again.get_minibatch, None)]
    assert remaining_keys == keys[stop:], f"after {stop} minibatches, reading does not resume where the state was taken"
    reader.close()
    again.close()


def _epoch(reader: Any, size: int, epoch: int, rank: int = 0, workers: int = 1) -> list[Minibatch]:
    reader.start_minibatch_loop(size, epoch, None, rank, workers)
    return list(iter(reader.get_minibatch, None))
