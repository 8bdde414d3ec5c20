"""Errors in data come with the frame of the function that was called, not with those of the pipeline (C10)."""

import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cntkpy.readers import CTFDeserializer, DataError, MinibatchSource, StreamDef, StreamDefs, create_reader


def _source(path: Path) -> Callable[[], Any]:
    streams = StreamDefs(x=StreamDef(field="x", shape=1))
    source = MinibatchSource(CTFDeserializer(str(path), streams), randomize=False)
    return lambda: source.next_minibatch(1)


def _reader(path: Path) -> Callable[[], Any]:
    reader = create_reader(f'file="{path}";input=[x=[dim=1;format=dense]];randomize=false')
    reader.start_minibatch_loop(1, 0)
    return reader.get_minibatch


@pytest.mark.parametrize("make", [_source, _reader])
def test_the_traceback_is_short(make: Callable[[Path], Callable[[], Any]], tmp_path: Path) -> None:
    path = tmp_path / "a.ctf"
    path.write_text("0 |x 1\n1 |x oops\n")
    read = make(path)
    with pytest.raises(DataError, match="'oops'") as caught:
        for _ in range(3):
            read()
    files = [Path(frame.filename).name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert set(files) <= {Path(__file__).name, "minibatch_source.py", "reader.py"}
    assert len(files) <= 5
